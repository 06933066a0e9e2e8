"""How likely language models find texts, against the library's own logits on tiny models."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from shutil import copytree
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from bias_pipeline.errors import DataError
from bias_pipeline.language import likelihoods
from bias_pipeline.language.likelihoods import COLUMNS, Kind, Likelihoods, PrefixTree, pool_tokens
from bias_pipeline.models.pretrained import find_pretrained
from bias_pipeline.models.sentences import KINDS
from tests.tiny_models import SPECIAL, WORDS, write_causal, write_masked, write_words

TEXTS = ["a man rides a horse", "a man rides a red horse on the beach", "dog", "a woman"]
N_WORDS = len(SPECIAL) + len(WORDS)
SMALL = {
    "vocab_size": N_WORDS, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
    "num_attention_heads": 2, "num_key_value_heads": 2, "max_position_embeddings": 64,
    "head_dim": 16, "bos_token_id": 4, "eos_token_id": 3, "pad_token_id": 0,
    "initializer_range": 0.5,
}  # fmt: skip


def model(folder: Path, kind: Kind = "causal", *, bos: bool = True) -> Likelihoods:
    return Likelihoods(find_pretrained(str(folder), KINDS), kind, bos, torch.device("cpu"))


@pytest.fixture(scope="module")
def causal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_causal(tmp_path_factory.mktemp("causal"))


@pytest.fixture(scope="module")
def masked_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_masked(tmp_path_factory.mktemp("masked"))


def logs_of(folder: Path, texts: Sequence[str]) -> Iterator[np.ndarray]:
    """Log P of each token and of the end, from the whole network on one text after another."""
    from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

    network = AutoModelForCausalLM.from_pretrained(folder).eval()
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    for text in texts:
        row = torch.tensor([[4, *tokenizer(text, add_special_tokens=False)["input_ids"], 3]])
        with torch.inference_mode():
            logs = network(row).logits.double().log_softmax(-1)[0, :-1]
        yield logs.gather(-1, row[0, 1:, None])[:, 0].numpy()


def numbers_of(logs: np.ndarray, last: int = 1) -> list[float]:
    *words, end = logs
    return [len(words), sum(words), np.logaddexp.reduce(words), end, sum(words[-last:])]


def test_numbers_are_those_of_the_whole_network(causal):
    vectors = model(causal).embed(TEXTS)
    expected = [numbers_of(logs) for logs in logs_of(causal, TEXTS)]
    np.testing.assert_allclose(vectors, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_on_either_side_gives_the_same(causal, side):
    """The library's padded batch against ours, in which nothing is padded."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    network = AutoModelForCausalLM.from_pretrained(causal).eval()
    tokenizer = AutoTokenizer.from_pretrained(causal, padding_side=side)
    rows = [
        {"input_ids": [4, *tokenizer(text, add_special_tokens=False)["input_ids"], 3]}
        for text in TEXTS
    ]
    batch = tokenizer.pad(rows, return_tensors="pt")
    mask = batch["attention_mask"]
    places = (mask.cumsum(dim=1) - 1).clamp(min=0)
    with torch.inference_mode():
        logits = network(**batch, position_ids=places).logits.double()
    logs = logits.log_softmax(-1)[:, :-1].gather(-1, batch["input_ids"][:, 1:, None])[..., 0]
    inside = (mask[:, 1:] * mask[:, :-1]).bool()
    ours = model(causal).embed(TEXTS)
    totals = [float(log[retained].sum()) for log, retained in zip(logs, inside, strict=True)]
    np.testing.assert_allclose(ours[:, 1] + ours[:, 3], totals, rtol=1e-4)


def test_a_token_that_the_network_does_not_know_is_refused(causal, tmp_path):
    folder = Path(copytree(causal, tmp_path / "gpt2"))
    settings = folder / "tokenizer_config.json"
    added = {**json.loads(settings.read_text()), "bos_token": "<added later>"}
    settings.write_text(json.dumps(added))
    with pytest.raises(DataError, match="has a token of number"):
        model(folder).embed(["a dog runs"])


def test_the_texts_beside_one_do_not_matter(causal):
    together = model(causal).embed(TEXTS)
    alone = np.concatenate([model(causal).embed([text]) for text in TEXTS])
    np.testing.assert_allclose(together, alone, rtol=1e-4, atol=1e-4)


@pytest.mark.skipif(
    transformers.__version__.startswith("4."), reason="its networks heed no such masks: one by one"
)
def test_texts_that_begin_alike_share_their_beginning(causal):
    assert model(causal)._together > 1


ARCHITECTURES = (
    *("bloom", "gemma2", "gemma3_text", "gpt_neox", "llama", "mistral", "olmo2", "opt"),
    *("phi", "qwen3"),
)


WINDOWED: dict[str, dict[str, Any]] = {
    "gemma2": {"sliding_window": 6},
    "gemma3_text": {"sliding_window": 6, "sliding_window_pattern": 2},
    "gpt_neo": {"window_size": 10, "attention_types": [[["global", "local"], 1]], "num_layers": 2},
    "mistral": {"sliding_window": 6},
    "phi3": {"sliding_window": 6},
    "qwen2": {"sliding_window": 6, "use_sliding_window": True, "max_window_layers": 0},
    "qwen3": {"sliding_window": 6, "use_sliding_window": True, "max_window_layers": 0},
    "smollm3": {"sliding_window": 6, "layer_types": ["sliding_attention", "full_attention"]},
}
LONG = [
    *TEXTS,
    "a man rides a red horse on the beach with a dog",
    "a man rides a red horse on the beach with a red dog and a woman on the grass",
    "a man rides a red horse",
]


def write_random(folder: Path, kind: str, **settings: Any) -> Path:
    """A causal model of random weights, of any kind."""
    from transformers import AutoConfig, AutoModelForCausalLM

    torch.manual_seed(0)
    config = AutoConfig.for_model(kind, **{**SMALL, **settings})
    AutoModelForCausalLM.from_config(config).eval().save_pretrained(folder)
    write_words(folder, eos="[SEP]")
    return folder


@pytest.fixture(scope="module", params=WINDOWED)
def windowed_model(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A model of which some layers see the last six or ten tokens."""
    folder = tmp_path_factory.mktemp(request.param)
    return write_random(folder, request.param, **WINDOWED[request.param])


def test_texts_beyond_a_window_are_as_likely_as_alone(windowed_model):
    vectors = model(windowed_model).embed(LONG)
    expected = [numbers_of(logs) for logs in logs_of(windowed_model, LONG)]
    np.testing.assert_allclose(vectors, expected, rtol=2e-3, atol=2e-3)


def test_windows_of_these_models_matter(windowed_model, tmp_path):
    """The test above would see it if no layer heeded its window."""
    path = copytree(windowed_model, tmp_path / "wide") / "config.json"
    settings = json.loads(path.read_text())
    key = "window_size" if settings["model_type"] == "gpt_neo" else "sliding_window"
    path.write_text(json.dumps({**settings, key: 60}))
    narrow, wide = (next(logs_of(folder, LONG[-2:-1])) for folder in (windowed_model, path.parent))
    assert np.abs(narrow - wide).max() > 0.05


@pytest.mark.filterwarnings("ignore:`position_ids` have no functionality")  # Bloom's, in 4.51
@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_every_kind_of_causal_model_is_asked_rightly(kind, tmp_path):
    more = {"ffn_dim": 48, "word_embed_proj_dim": 32} if kind == "opt" else {}
    folder = write_random(tmp_path, kind, **more)
    expected = [numbers_of(logs) for logs in logs_of(folder, TEXTS)]
    np.testing.assert_allclose(model(folder).embed(TEXTS), expected, rtol=2e-3, atol=2e-3)


def test_a_network_that_heeds_no_such_masks_reads_texts_one_by_one(causal, monkeypatch):
    together = model(causal).embed(TEXTS)
    monkeypatch.setattr(Likelihoods, "_can_share", lambda self: False)
    np.testing.assert_allclose(model(causal).embed(TEXTS), together, rtol=1e-4, atol=1e-4)


def test_without_a_beginning_the_first_token_is_not_scored(causal):
    values = dict(zip(COLUMNS, model(causal, bos=False).embed(["a man rides"])[0], strict=True))
    assert values["tokens"] == 2


def test_pseudo_likelihood_hides_one_token_at_a_time(masked_model):
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    network = AutoModelForMaskedLM.from_pretrained(masked_model).eval()
    tokenizer = AutoTokenizer.from_pretrained(masked_model)
    row = tokenizer("a man rides")["input_ids"]
    logs = []
    for place in range(1, len(row) - 1):
        hidden = torch.tensor([[*row[:place], tokenizer.mask_token_id, *row[place + 1 :]]])
        with torch.inference_mode():
            logs.append(float(network(hidden).logits[0, place].log_softmax(-1)[row[place]]))
    result = model(masked_model, "masked").embed(["a man rides"])[0]
    np.testing.assert_allclose(result[:3], numbers_of(np.array([*logs, 0]))[:3], rtol=1e-4)


def test_tokens_of_a_long_text_are_hidden_in_several_passes(masked_model, monkeypatch):
    text = "a man rides a horse on the beach"
    whole, read = model(masked_model, "masked"), []
    expected = whole.embed([text])
    row = len(whole._row(text))
    whole._network.register_forward_pre_hook(
        lambda _, __, inputs: read.append(inputs["input_ids"].numel()), with_kwargs=True
    )
    monkeypatch.setattr(likelihoods, "_MASKED_TOKENS", 3 * row)
    np.testing.assert_allclose(whole.embed([text]), expected, rtol=1e-4)
    assert len(read) > 1
    assert max(read) == 3 * row


# --- pooling


@pytest.mark.parametrize(
    ("term", "end", "value"),
    [
        ("arithmetic", True, (0.5 + 0.25 + 0.125 + 0.0625) / 4),
        ("arithmetic", False, (0.5 + 0.25 + 0.125) / 3),
        ("geometric", True, (0.5 * 0.25 * 0.125 * 0.0625) ** 0.25),
        ("total", False, 0.5 * 0.25 * 0.125),
        ("total", True, 0.5 * 0.25 * 0.125 * 0.0625),
        ("cloze", True, 0.25 * 0.125),
    ],
)
def test_pooling_is_what_its_name_says(term, end, value):
    array = np.array([numbers_of(np.log([0.5, 0.25, 0.125, 0.0625]), last=2)], np.float32)
    assert np.exp(pool_tokens(array, term, end=end))[0] == pytest.approx(value, rel=1e-6)


def test_the_last_word_may_have_several_tokens(tmp_path):
    """A tokenizer of signs: the last word is as many tokens as it has signs."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    write_causal(tmp_path, vocab_size=40)
    letters = {sign: k + 5 for k, sign in enumerate(" abcdefghijklmnopqrstuvwxyz")}
    tokenizer = Tokenizer(
        models.WordLevel({"[UNK]": 1, "[BOS]": 4, "[SEP]": 3, **letters}, "[UNK]")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="[BOS]", eos_token="[SEP]", unk_token="[UNK]"
    ).save_pretrained(tmp_path)
    (logs,) = logs_of(tmp_path, ["a dog"])
    values = dict(zip(COLUMNS, model(tmp_path).embed(["a dog"])[0], strict=True))
    assert values["last_word"] == pytest.approx(logs[1:5].sum(), rel=1e-4)


# --- beginnings


def test_all_beginnings_are_in_some_part_after_their_own():
    known = PrefixTree([(1, 2, 3), (1, 2, 4), (5,), (1, 6)])
    for most in (0, 2, 4, 100):
        parts = list(known.parts(most))
        assert set(np.concatenate(parts).tolist()) == set(range(len(known.tokens)))
        for part in parts:
            place = {node: k for k, node in enumerate(part.tolist())}
            assert all(
                known.parents[node] < 0 or place[int(known.parents[node])] < k
                for node, k in place.items()
            )


def test_a_beginning_sees_what_it_begins_with_and_nothing_else():
    known = PrefixTree([(1, 2, 3), (1, 9)])
    ancestry = known.ancestry(np.arange(4))
    assert [np.flatnonzero(row).tolist() for row in ancestry] == [[0], [0, 1], [0, 1, 2], [0, 3]]


# --- refusals


def test_a_tokenizer_without_a_beginning_is_refused(causal, tmp_path):
    write_causal(tmp_path)
    path = tmp_path / "tokenizer_config.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "bos_token": None}))
    with pytest.raises(DataError, match=r"has no BOS token.*metric.bos=false does without"):
        model(tmp_path)


@pytest.mark.parametrize(
    ("bos", "text", "message"),
    [
        (True, "a " * 80, r"reads 64 tokens, and 'a a a.* has 81; shorten"),
        (False, "dog", "no token to score in 'dog'"),
    ],
    ids=["too long", "one token"],
)
def test_a_text_that_cannot_be_scored_is_refused(causal, bos, text, message):
    with pytest.raises(DataError, match=message):
        model(causal, bos=bos).embed([text])


def test_numbers_that_are_none_are_refused(tmp_path):
    from safetensors.torch import load_file, save_file

    write_causal(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    weights["transformer.ln_f.weight"][:] = float("nan")
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(DataError, match="not numbers; its weights are broken"):
        model(tmp_path).embed(["a dog"])
