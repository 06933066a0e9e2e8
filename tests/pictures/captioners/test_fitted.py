"""The folder of a captioner that was fitted here, and who reads it."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.pictures import Pictures
from bias_pipeline.corpus.predictions import LabelledCaptions
from bias_pipeline.data.photos import find_photos
from bias_pipeline.errors import (
    BiasPipelineError,
    DataError,
    NotApplicableError,
    ResourceError,
    UsageError,
)
from bias_pipeline.models.picture_text import Question
from bias_pipeline.models.pretrained import find_pretrained
from bias_pipeline.models.sampling import Decoding
from bias_pipeline.pictures.captioners.fitted import (
    KINDS,
    NO_PROMPT,
    Fitted,
    FittedCaptioner,
    FittedJudge,
    side_of,
)
from bias_pipeline.pictures.captioners.grit import Grit
from bias_pipeline.pictures.captioners.judge import Judge
from bias_pipeline.pictures.captioners.prompt import Prompt
from bias_pipeline.pictures.captioners.sat import Sat
from tests.photo_folder import write_photos

CPU = torch.device("cpu")
WORDS = ("a", "man", "woman", "person", "rides", "therefore", "the", "gender", "is", "male", "he")
SIZES = {"side": 32, "width": 4, "embedding_dim": 6, "hidden_dim": 8, "attention_dim": 5}
ENCODERS: dict[str, Any] = {
    "sat": Sat(Prompt("gender"), **SIZES),
    "grit": Grit(Prompt("gender")),
}


def write(folder: Path, kind: str) -> Path:
    """A captioner of random weights."""
    torch.manual_seed(0)
    fitted = Fitted(kind, ENCODERS[kind], WORDS)
    net = fitted.network()
    for weight in net.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    folder.mkdir(parents=True)
    fitted.save(folder, net.state_dict(), "# A card\n")
    return folder


@pytest.fixture(params=KINDS)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return write(tmp_path / "mine", request.param)


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_photos(tmp_path_factory.mktemp("photos"), 5)


def find_fitted(folder: Path) -> Any:
    return find_pretrained(str(folder), KINDS)


def test_it_comes_back_as_it_was_saved(folder):
    content = Fitted.read(find_fitted(folder))
    assert content.words == WORDS
    assert content.encoder == replace(ENCODERS[content.kind], prompt=NO_PROMPT)


def test_words_of_a_prompt_that_it_never_learnt_are_told_and_no_others(folder):
    (note,) = Judge(Prompt("race"), str(folder)).notes(["light", "dark"])
    assert note.endswith("unknown words: dark, light, race")
    prompt = Prompt("gender", answers={"m": "man", "f": "woman"})
    assert Judge(prompt, str(folder)).notes(["m", "f"]) == []


def open_captioner(
    folder: Path, photos: Path, **decoding: Any
) -> tuple[FittedCaptioner, list[Any]]:
    """A captioner, and photos that it has read."""
    captioner = FittedCaptioner(find_fitted(folder), CPU, Decoding(max_new_tokens=6, **decoding))
    return captioner, [captioner.read(path) for path in find_photos(photos).values()]


def captions(folder: Path, photos: Path, beams: int = 1) -> list[str]:
    captioner, read = open_captioner(folder, photos, beams=beams)
    return [text for [text] in captioner.describe(read)]


@pytest.mark.parametrize(
    "decoding", [{}, {"beams": 3}, {"n": 2, "temperature": 1.0}], ids=["one", "beams", "draws"]
)
def test_captions_are_the_same_whoever_stands_beside_them(folder, photos, decoding):
    captioner, read = open_captioner(folder, photos, **decoding)
    assert captioner.describe(read) == [captioner.describe([one])[0] for one in read]


def test_draws_differ_and_the_best_of_several_captions_is_that_of_one(folder, photos):
    captioner, read = open_captioner(folder, photos, n=2, temperature=1.0)
    assert any(first != second for first, second in captioner.describe(read))
    captioner, read = open_captioner(folder, photos, beams=3, n=3)
    written = captioner.describe(read)
    assert [texts[0] for texts in written] == captions(folder, photos, beams=3)
    assert all(len(set(texts)) == 3 for texts in written)
    assert {word for text in captions(folder, photos) for word in text.split()} <= set(WORDS)


PROMPTS = ("{caption} therefore the {attribute} is {answer}", "the {answer} {caption}")


@pytest.mark.parametrize("template", PROMPTS)
def test_it_judges_as_its_network_answers(template, folder, photos):
    pictures = Pictures(tuple(find_photos(photos).values()))
    answers = {"male": "a man", "female": "woman"}
    prompt = Prompt("gender", template, answers)
    texts = ["a person rides", "he rides a bicycle now", "person", "a", "he is the person"]
    data = LabelledCaptions(
        "model",
        Captions.from_texts(texts),
        np.zeros(5, np.int64),
        2,
        ("male", "female"),
        pictures=pictures,
    )
    likely = Judge(prompt, str(folder), batch_size=2).answer_log_probs(data)
    content = Fitted.read(find_fitted(folder))
    net = content.encoder.network(None, content.vocabulary, [[4, 5], [6]])
    judge = FittedJudge(find_fitted(folder), CPU)
    net.load_state_dict(judge._net.network.state_dict())
    net.eval()
    for row, text in enumerate(texts):
        caption = [content.vocabulary.get(word, 0) for word in text.split()]
        before = [2, *caption, 9, 10, 11, 12] if template == PROMPTS[0] else [2, 10]
        tail = torch.tensor([caption]) if template == PROMPTS[1] else None
        lengths = None if tail is None else torch.tensor([len(caption)])
        pixels = judge.read(Question(pictures, row, "", ("a", "man")))[0]
        with torch.no_grad():
            wanted = net(
                torch.tensor([before]),
                torch.tensor([len(before)]),
                tail,
                lengths,
                **judge._net.picture([pixels]),
            )
        assert likely[row].tolist() == pytest.approx(wanted[0].tolist(), abs=1e-4)


def test_answers_must_be_words_that_it_can_write_and_other_words_need_not(folder, photos):
    judge = FittedJudge(find_fitted(folder), CPU)
    pictures = Pictures(tuple(find_photos(photos).values()))
    with pytest.raises(DataError, match="cannot write 'nonbinary'"):
        judge.read(Question(pictures, 0, "a", ("man", "nonbinary")))
    judge = FittedJudge(find_fitted(folder), CPU)
    pictures = Pictures(tuple(find_photos(photos).values()))
    follows = judge.read(Question(pictures, 0, "a", ("man zyzzyva", "woman zyzzyva")))[2]
    assert follows == [[5, 0], [6, 0]]


def test_it_computes_in_one_precision(folder):
    with pytest.raises(UsageError, match="computes in float32"):
        Judge(Prompt("gender"), str(folder), dtype="bfloat16").require()


def test_a_dropout_that_was_set_as_a_whole_number_is_read(tmp_path):
    folder = write(tmp_path / "mine", "sat")
    encoder = json.loads((folder / "config.json").read_text())["encoder"]
    edit(folder, "config.json", encoder={**encoder, "dropout": 0})
    assert Fitted.read(find_fitted(folder)).encoder == replace(
        ENCODERS["sat"], prompt=NO_PROMPT, dropout=0
    )


def refusal(folder: Path) -> str:
    with pytest.raises(BiasPipelineError) as caught:
        FittedJudge(find_fitted(folder), CPU)
    return str(caught.value)


def edit(folder: Path, name: str, **changes: object) -> None:
    path = folder / name
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


SMALLER = {"height": 48, "width": 48}


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("config.json", {"version": 99}, "version 99"),
        (
            "preprocessor_config.json",
            {"size": SMALLER},
            "its size differs from the size of config.json",
        ),
        ("vocab.json", {"zebra": 3}, "must number its words"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(folder, name, changes, message):
    edit(folder, name, **changes)
    assert message in refusal(folder)


@pytest.mark.parametrize(
    ("kind", "key", "value", "message"),
    [
        *((kind, "weights", "x", "must have the keys") for kind in KINDS),
        ("sat", "hidden_dim", "8", "encoder.hidden_dim='8'"),
        # Sizes of other weights, before anything is made.
        *(("sat", "hidden_dim", size, "config.json") for size in (16, 100_000, -3, 0)),
        ("grit", "size", "huge", "config.json"),
        ("sat", "recipe", "huge", "config.json"),
    ],
)
def test_a_setting_that_does_not_fit_is_refused(tmp_path, kind, key, value, message):
    folder = write(tmp_path / "mine", kind)
    encoder = json.loads((folder / "config.json").read_text())["encoder"]
    edit(folder, "config.json", encoder={**encoder, key: value})
    assert message in refusal(folder)


@pytest.mark.parametrize("name", ["vocab.json", "preprocessor_config.json"])
def test_a_file_that_is_absent_is_named(name, folder):
    (folder / name).unlink()
    with pytest.raises(ResourceError, match=name):
        FittedJudge(find_fitted(folder), CPU)


def test_cut_weights_are_refused(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    assert "not a file of weights, or cut short" in refusal(folder)


@pytest.mark.parametrize(
    "encoder",
    [
        Sat(Prompt("gender"), backbone="annotations"),
        Grit(Prompt("gender"), weights="x.pth"),
    ],
)
def test_eyes_that_are_not_fitted_with_it_are_refused(encoder):
    with pytest.raises(NotApplicableError, match="fitted to see pixels"):
        side_of(encoder)
