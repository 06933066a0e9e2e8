"""Visual context from files and networks: which labels count, and what is refused."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bias_pipeline.attack.language_models import Frozen
from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.corpus.object_names import NAMES_BY_NUMBER
from bias_pipeline.errors import DataError, NotApplicableError, ResourceError, UsageError
from bias_pipeline.language.caption_scoring import Contexts
from bias_pipeline.language.visual_context import VisualContext, content_of
from bias_pipeline.models.recognition import Recognizer
from bias_pipeline.run import compose
from tests.corpora import make_corpus
from tests.photo_folder import BROKEN, write_photos
from tests.tiny_detectors import random_torchvision
from tests.tiny_models import language_models, write_clip, write_detector, write_resnet

VECTORS = {"dog": (1, 0), "hound": (0.8, 0.6), "kite": (0, 1), "car": (-0.6, 0.8)}


class Encoder:
    """Vectors that a reader can check in the head."""

    def vectors(self, texts: Sequence[str]) -> Any:
        return np.array([VECTORS[text] for text in texts], np.float32)


ENCODER: Any = Encoder()


def corpus(n: int = 3, photos: Path | None = None) -> Corpus:
    places = {k: None if photos is None else photos / f"{k}.png" for k in range(1, n + 1)}
    records = [
        Record(str(k), "a man", (), {"gender": "mf"[k % 2]}, image=p) for k, p in places.items()
    ]
    return make_corpus(records)


def file_of(folder: Path, name: str, contexts: Mapping[int, Mapping[str, float]]) -> str:
    rows = [
        {"image_id": image, "label": label, "score": score}
        for image, probabilities in contexts.items()
        for label, score in probabilities.items()
    ]
    path = folder / f"{name}.json"
    path.write_text(json.dumps(rows))
    return str(path)


def contexts_by_image(
    *sources: str, of: Corpus | None = None, encoder: Any = ENCODER, **options: Any
) -> dict[str, dict[str, float]]:
    """Image id to what counts."""
    corpus_given = corpus() if of is None else of
    contexts = contexts_of(*sources, of=corpus_given, encoder=encoder, **options)
    pairs = zip(contexts.images, contexts.objects, contexts.probabilities, strict=True)
    by_image: dict[str, dict[str, float]] = {}
    for row, number, probability in pairs:
        by_image.setdefault(corpus_given.ids[row], {})[contexts.names[number]] = float(probability)
    return by_image


def contexts_of(
    *sources: str, of: Corpus | None = None, encoder: Any = ENCODER, **options: Any
) -> Contexts:
    corpus_given = corpus() if of is None else of
    return VisualContext(sources, device="cpu", **options).find_contexts(
        corpus_given, np.arange(len(corpus_given)), encoder
    )


# --- files: which labels count


NOBODY = {"top_k": 2, "exclude_labels": frozenset({"person"})}


@pytest.mark.parametrize(
    ("contexts", "options", "counting"),
    [
        (
            {1: {"dog": 0.75, "kite": 0.5}, 2: {"car": 0.25}},
            {},
            {"1": {"dog": 0.75, "kite": 0.5}, "2": {"car": 0.25}},
        ),
        (
            {1: {"dog": 0.3, "kite": 0.5, "car": 0.4}},
            {"top_k": 2},
            {"1": {"kite": 0.5, "car": 0.4}},
        ),
        ({1: {"dog": 0.2, "kite": 0.19}}, {}, {"1": {"dog": 0.2}}),
        ({1: {"Person": 0.9, "dog": 0.5, "kite": 0.4}}, NOBODY, {"1": {"dog": 0.5, "kite": 0.4}}),
    ],
    ids=["the file's confidence", "the surest few", "sure enough", "people take no place"],
)
def test_labels_of_a_file_that_count(contexts, options, counting, tmp_path):
    assert contexts_by_image(file_of(tmp_path, "a", contexts), **options) == counting


def test_detections_are_of_the_picture_that_the_file_names(tmp_path):
    labels = {1: "dog", 2: "kite", 3: "car"}
    rows = [
        {"image_id": 10 + image, "file_name": f"{image:06d}.jpg", "label": label, "score": 0.5}
        for image, label in labels.items()
    ]
    shifted = [{**row, "image_id": 1 + int(row["image_id"]) % 3} for row in rows]
    wanted = {str(image): {label: 0.5} for image, label in labels.items()}
    for number, listed in enumerate((rows, shifted)):
        path = tmp_path / f"{number}.json"
        path.write_text(json.dumps(listed))
        assert contexts_by_image(str(path)) == wanted
    names = [{**row, "image_id": row["file_name"]} for row in rows]
    path.write_text(json.dumps(names))
    assert contexts_by_image(str(path)) == wanted


# --- several sources vote


# Cosines: dog and hound 0.8, kite and hound 0.6, kite and car 0.8; dog and kite or car 0 or less.
@pytest.mark.parametrize(
    ("one", "other", "agreement", "counting"),
    [
        (
            {1: {"dog": 0.9, "kite": 0.8}, 2: {"dog": 0.9}},
            {1: {"hound": 0.7}},
            0.7,
            {"1": {"dog": 0.9, "hound": 0.7}},
        ),
        (
            {1: {"dog": 0.9, "hound": 0.8, "kite": 0.8}},
            {1: {"car": 0.7}},
            0.7,
            {"1": {"kite": 0.8, "car": 0.7}},
        ),
        ({1: {"dog": 0.5}}, {1: {"dog": 0.75}}, 1, {"1": {"dog": 0.75}}),
    ],
    ids=["one like it of another source", "not of the same", "the surest source"],
)
def test_a_label_that_another_source_agrees_with_counts(one, other, agreement, counting, tmp_path):
    sources = (file_of(tmp_path, "a", one), file_of(tmp_path, "b", other))
    assert contexts_by_image(*sources, agreement=agreement) == counting


def test_the_order_of_sources_plays_no_part(tmp_path):
    one = file_of(tmp_path, "a", {1: {"dog": 0.5, "kite": 0.4}, 3: {"kite": 0.9}})
    other = file_of(tmp_path, "b", {1: {"hound": 0.75}, 3: {"car": 0.9}})
    assert contexts_by_image(one, other) == contexts_by_image(other, one)


def test_a_sentence_model_votes(tmp_path):
    one = file_of(tmp_path, "a", {1: {"a red dog": 0.5}})
    other = file_of(tmp_path, "b", {1: {"a red dog": 0.25, "horse": 0.9}})
    encoder = Frozen(str(language_models()[1]), device="cpu")
    assert contexts_by_image(one, other, agreement=0.999, encoder=encoder) == {
        "1": {"a red dog": 0.5}
    }


# --- networks look at pictures


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_photos(tmp_path_factory.mktemp("photos"), 6)


@pytest.fixture
def seen_photos(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many pictures any network looks at."""
    n_photos: list[int] = []
    describe = Recognizer.describe

    def count_photos(self: Recognizer, photos: Any) -> Any:
        n_photos.append(len(photos))
        return describe(self, photos)

    monkeypatch.setattr(Recognizer, "describe", count_photos)
    return n_photos


@pytest.mark.parametrize("write", [write_resnet, write_clip, write_detector])
def test_a_network_sees_objects_in_pictures(write, photos, tmp_path):
    built_contexts_by_image = contexts_by_image(
        str(write(tmp_path)), of=corpus(6, photos), names=("dog", "kite"), min_confidence=0.0
    )
    assert sorted(built_contexts_by_image) == list("123456")
    assert {label for recorded in built_contexts_by_image.values() for label in recorded} <= {
        *("dog", "kite", "sports ball", "person")
    }


def test_each_picture_is_looked_at_once(photos, tmp_path, seen_photos):
    model, cache = str(write_resnet(tmp_path / "model")), str(tmp_path / "kept")
    few = contexts_by_image(model, of=corpus(4, photos), cache=cache, min_confidence=0.0)
    more = contexts_by_image(model, of=corpus(6, photos), cache=cache, min_confidence=0.0)
    contexts_by_image(model, of=corpus(6, photos), cache=cache, min_confidence=0.3, top_k=1)
    assert sum(seen_photos) == 6
    assert {image: more[image] for image in few} == few


def test_pictures_that_cannot_be_read_are_told(photos, tmp_path):
    folder = write_photos(tmp_path / "photos", 3)
    (folder / "2.png").write_bytes(BROKEN["902.jpg"])
    model = str(write_resnet(tmp_path / "model"))
    (message, bare) = contexts_of(model, of=corpus(3, folder), min_confidence=0.0).notes
    assert "1 picture cannot be read: 2 (not a picture in a known format" in message
    assert bare == "visual context: 1 of 3 images has no object left"


# --- refusals


def test_a_data_set_without_pictures_is_told(tmp_path):
    model = str(write_resnet(tmp_path))
    with pytest.raises(NotApplicableError, match=r"has no pictures, which .* needs; set"):
        contexts_by_image(model)


def test_drawn_pictures_are_told(tmp_path):
    words = ["metric=gender_ratio", "captioner=faithful", "dataset.n_images=20"]
    drawn = compose.cell(words).corpus()
    model = str(write_resnet(tmp_path))
    with pytest.raises(NotApplicableError, match="draws its pictures, and"):
        contexts_of(model, of=drawn)


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        (
            "microsoft/resnet-152",
            ResourceError,
            "model microsoft/resnet-152, revision main: neither",
        ),
        ("/none/seen.csv", ResourceError, r"seen\.csv is absent .* set metric\.context="),
        ("/none/fasterrcnn.pth", ResourceError, r"fasterrcnn\.pth: no such file"),
        ("bert", DataError, "model type 'bert' is not supported here"),
    ],
    ids=["weights", "a file", "a detector's weights", "a model that looks at nothing"],
)
def test_what_is_absent_or_of_no_use_is_told_before_any_work(source, error, message):
    with pytest.raises(error, match=message):
        VisualContext((str(language_models()[1]) if source == "bert" else source,)).require()


def test_images_that_the_data_set_lacks_are_told(tmp_path):
    path = file_of(tmp_path, "a", {1: {"dog": 0.5}, 77: {"dog": 0.5}})
    (message, _) = contexts_of(path).notes
    assert message == f"{path}: 1 of 2 images is not in dataset 'toy', such as 77"


def test_a_file_of_other_images_is_refused(tmp_path):
    path = file_of(tmp_path, "a", {77: {"dog": 0.5}})
    with pytest.raises(
        DataError, match=r"1 of 1 images is not in .* such as 1, 2, 3: use the same"
    ):
        contexts_by_image(path)


def test_a_file_of_people_alone_is_no_context(tmp_path):
    path = file_of(tmp_path, "a", {1: {"person": 0.5}})
    with pytest.raises(NotApplicableError, match="no object is left in any of these images"):
        contexts_by_image(path, exclude_labels=frozenset({"person"}))


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        ((), "give objects, or files of detections and networks, each once"),
        (("a.csv", "a.csv"), "each once"),
        (("objects", "a.csv"), "have no confidence and cannot vote"),
    ],
)
def test_sources_that_do_not_fit_are_refused(sources, message):
    with pytest.raises(UsageError, match=message):
        VisualContext(sources)


# --- what it is in a run's identity


@pytest.mark.parametrize(
    "write",
    [
        lambda folder, name, seed: file_of(folder, name, {1: {("dog", "kite")[seed]: 0.5}}),
        lambda folder, name, seed: write_resnet(folder / name, seed),
    ],
    ids=["a file", "a network"],
)
def test_a_source_is_what_stands_in_it(write, tmp_path):
    one, same, other = (
        content_of(str(write(tmp_path, name, seed)))
        for name, seed in (("a", 0), ("b", 0), ("c", 1))
    )
    assert one == same != other


# --- weights of torchvision's detectors


@pytest.mark.slow
def test_a_detector_of_torchvision_is_a_source(tmp_path, monkeypatch):
    """One whose every box is a dog."""
    net = random_torchvision(monkeypatch)
    dog = next(int(n) for n, name in NAMES_BY_NUMBER.items() if name == "dog")
    net.roi_heads.box_predictor.cls_score.bias.data[dog] = 9.0
    torch.save(net.state_dict(), tmp_path / "net.pth")
    write_photos(tmp_path / "photos", 2)
    result = contexts_by_image(str(tmp_path / "net.pth"), of=corpus(2, tmp_path / "photos"))
    assert {image: [*labels] for image, labels in result.items()} == {"1": ["dog"], "2": ["dog"]}
