import random
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.errors import DataError, ResourceError, UsageError
from bias_pipeline.run import compose
from tests import composed
from tests.lic_folder import HUMAN, SAT, entries, write_folder


def load(root: Path, *overrides: str) -> Corpus:
    settings = {"dataset": "lic", "dataset.root": str(root), "captioner": "sat"}
    settings |= dict(override.split("=") for override in overrides)
    return composed.corpus(*(f"{key}={value}" for key, value in settings.items()))


def spoil(drop: str = "", **changes: Any) -> dict[str, Any]:
    """Entries of which the eighth has other values, or lacks one."""
    rows = entries()
    rows[7] = {**rows[7], **changes}
    rows[7].pop(drop, None)
    return {SAT: rows}


def test_captions_labels_and_the_published_vocabulary_are_read(tmp_path):
    corpus = load(write_folder(tmp_path))
    assert (corpus[0].id, corpus[0].labels) == ("100", {"gender": "male"})
    assert len(corpus.human) == 5 * 60  # of a part of the images
    assert corpus.vocabulary == {"<unk>", "<pad>", "a", "person", "with"}
    assert load(tmp_path, "captioner=fc").vocabulary is None


def test_the_folder_may_be_that_which_holds_it(tmp_path):
    write_folder(tmp_path / "bias_data")
    assert load(tmp_path).digest == load(tmp_path / "bias_data").digest


def test_images_of_people_alone_are_kept_with_their_labels(tmp_path):
    corpus = load(write_folder(tmp_path, {SAT: entries(40)}))
    assert (len(corpus), corpus[50].labels) == (60, {"gender": "male"})


def test_without_a_file_of_human_captions_the_model_side_is_left(tmp_path):
    root = write_folder(tmp_path)
    words = (f"dataset.root={root}", "captioner=sat", "~dataset.human.gender")
    assert len(compose.cell(["dataset=lic", *words]).corpus().human) == 0
    (root / HUMAN).unlink()
    assert len(load(root).human) == 0


def test_the_order_of_the_file_does_not_matter(tmp_path):
    rows = entries()
    random.Random(0).shuffle(rows)
    one = load(write_folder(tmp_path / "one"))
    two = load(write_folder(tmp_path / "two", {SAT: rows}))
    assert one.digest == two.digest


def test_captioner_all_is_what_has_files(tmp_path):
    root = write_folder(tmp_path)
    cell = compose.cell(["dataset=lic", f"dataset.root={root}"])
    all_captioners = cell.build("dataset").all_captioners(cell.build("attribute"))
    assert all_captioners == ["sat", "fc"]


@pytest.mark.parametrize(
    ("word", "error", "message"),
    [
        ("captioner=sta", UsageError, "did you mean 'sat'"),
        ("captioner=updn", ResourceError, r"UpDn/gender_val_updn_cap_mw_entries\.pkl is absent"),
        ("dataset.root=nowhere", ResourceError, r"set dataset\.root"),
        ("attribute=age", UsageError, "no labels of attribute 'age'"),
    ],
)
def test_what_is_not_there_is_named(tmp_path, word, error, message):
    with pytest.raises(error, match=message):
        load(write_folder(tmp_path), word)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bb_gender": "Femal"}, r"entry 7, image 107: label 'Femal'.*did you mean"),
        ({"bb_gender": None}, r"entry 7: label None is not text"),
        ({"pred": ["a", "b"]}, r"entry 7: 'pred' contains something that is not a caption"),
        ({"img_id": 3.5}, r"sat_cap_mw_entries\.pkl, entry 7: image id 3\.5"),
        ({"img_id": 100}, r"entry 7: image id 100 occurs twice with different contents"),
        ({"drop": "pred"}, "entry 7: key 'pred' is absent"),
    ],
)
def test_a_spoiled_entry_is_named(tmp_path, changes, message):
    with pytest.raises(DataError, match=message):
        load(write_folder(tmp_path, spoil(**changes)))


@pytest.mark.parametrize("content", [[], {}, [1], "text"])
def test_another_top_level_is_refused(tmp_path, content):
    with pytest.raises(DataError, match="expected a"):
        load(write_folder(tmp_path, {SAT: content}))


def test_a_pickle_that_runs_code_is_refused_and_does_not_run(tmp_path):
    canary = tmp_path / "canary"
    evil = b"cos\nsystem\n(S'touch " + str(canary).encode() + b"'\ntR."
    with pytest.raises(DataError, match="system"):
        load(write_folder(tmp_path / "data", {SAT: evil}))
    assert not canary.exists()


def test_lone_surrogates_are_read_and_a_caption_of_a_megabyte_is_cut(tmp_path):
    assert load(write_folder(tmp_path / "a", spoil(pred="a \ud800 dog"))).digest
    long = load(write_folder(tmp_path / "b", spoil(pred="dog " * 250_000)))
    assert long.model.lengths.max() == 2_500


@pytest.mark.real
@pytest.mark.parametrize(
    ("captioner", "share"),
    [("sat", 59.6), pytest.param("transformer", 35.1, marks=pytest.mark.slow)],
)
def test_the_published_draws_repeat_what_the_reference_repeats(data_root, captioner, share):
    """Verbatim test captions over ten seeds, measured on the reference's own splits."""
    from bias_pipeline.corpus.predictions import LabelledCaptions
    from bias_pipeline.corpus.split import seeds_of
    from bias_pipeline.metrics.attack.attack_runner import _verbatim_share

    words = ["experiment=relic_gender", f"captioner={captioner}"]
    cell = compose.cell([*words, f"dataset.root={data_root}/lic/bias_data"])
    metric, corpus = cell.build("metric"), cell.corpus()
    for transform in metric.transforms[:2]:
        corpus = transform(corpus)
    labels = corpus.groupings["gender"].codes[corpus.model.image_rows]
    splits = metric.draw_splits(corpus, seeds_of(10))
    verbatim_share = _verbatim_share(LabelledCaptions("model", corpus.model, labels, 2), splits)
    assert 100 * verbatim_share == pytest.approx(share, abs=0.05)


def test_images_without_a_picture_are_refused_or_counted(tmp_path):
    (tmp_path / "photos").mkdir()
    for number in range(100, 178):
        Image.new("RGB", (4, 4)).save(tmp_path / f"photos/{number}.png")
    root, images = write_folder(tmp_path / "lic"), f"dataset.images={tmp_path / 'photos'}"
    with pytest.raises(DataError, match="2 of 80 labelled images have no picture"):
        load(root, images)
    corpus = load(root, images, "dataset.strict=false")
    assert corpus.pictures.present.sum() == 78
    assert "2 of 80 labelled images have no picture" in corpus.notes[-1]
