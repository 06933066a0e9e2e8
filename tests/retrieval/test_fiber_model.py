"""FIBER's folder: its vocabulary, how photos are prepared, and what is refused."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from bias_pipeline.errors import AbsentModelError, DataError, UsageError
from bias_pipeline.retrieval.fiber.folder import fiber_files, find_fiber, read_tokenizer
from bias_pipeline.retrieval.fiber.model import FiberModel
from bias_pipeline.retrieval.fiber.net import FiberNet
from tests.fiber_files import TINY, network, write_checkpoint, write_fiber, write_vocabulary

CPU = torch.device("cpu")
TEXTS = ["a man", "A dog, and  a man!", " man", "", "<s> a"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_fiber(tmp_path_factory.mktemp("fiber"))


@pytest.fixture(scope="module")
def our_model(folder: Path) -> FiberModel:
    return FiberModel(find_fiber(str(folder)), CPU, 40)


def test_texts_are_tokenised_as_the_library_does(folder):
    transformers = pytest.importorskip("transformers")
    tokenizer = read_tokenizer(find_fiber(str(folder)))
    library = transformers.RobertaTokenizerFast.from_pretrained(folder)
    assert [tokenizer.encode(text).ids for text in TEXTS] == library(TEXTS)["input_ids"]


def test_photos_are_squeezed_and_have_the_mean_and_spread_of_imagenet(
    our_model,
):
    grey = Image.new("RGB", (90, 30), (124, 116, 104))
    prepare = our_model.prepare(grey)
    assert prepare.shape == (3, TINY.side, TINY.side)
    wanted = [(124 / 255 - 0.485) / 0.229, (116 / 255 - 0.456) / 0.224, (104 / 255 - 0.406) / 0.225]
    np.testing.assert_allclose(prepare.mean(axis=(1, 2)), wanted, atol=1e-5)


def photos(model: FiberModel, n: int = 11) -> list[np.ndarray]:
    noise = np.random.default_rng(0).integers(0, 256, (n, 40, 30, 3), np.uint8)
    return [model.prepare(Image.fromarray(pixels)) for pixels in noise]


def test_vectors_are_those_of_the_network(our_model):
    net, recorded = network(), photos(our_model)
    wanted = net.pictures(torch.from_numpy(np.stack(recorded)))
    np.testing.assert_allclose(
        our_model.photos(recorded, normalize=False), wanted.numpy(), atol=1e-5
    )
    lengths = np.linalg.norm(our_model.photos(recorded, normalize=True), axis=1)
    np.testing.assert_allclose(lengths, 1, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(our_model.texts(TEXTS), axis=1), 1, atol=1e-6)


def test_every_pair_is_judged_as_by_itself(our_model):
    recorded, encoded = photos(our_model, 3), our_model.encode_texts(TEXTS)
    pairs = np.array([(photo, text) for photo in range(3) for text in range(5)] * 5)
    match = our_model.match(recorded, encoded, pairs)
    for (photo, text), value in zip(pairs[:15].tolist(), match[:15].tolist(), strict=True):
        alone = our_model.match(
            [recorded[photo]], our_model.encode_texts([TEXTS[text]]), np.array([[0, 0]])
        )
        assert value == pytest.approx(alone[0], abs=1e-5)


def test_a_text_is_read_as_far_as_is_set(our_model, folder):
    """Six tokens: two around a text, and four letters and spaces of it."""
    short = FiberModel(find_fiber(str(folder)), CPU, 6)
    texts = ["a dxy", "a dx"]
    assert np.allclose(*short.texts(texts), atol=1e-6)
    assert not np.allclose(*our_model.texts(texts), atol=1e-4)


@pytest.mark.parametrize("longest", [2, 47])
def test_texts_that_are_too_long_or_empty_are_refused(folder, longest):
    with pytest.raises(UsageError, match=rf"encoder\.longest={longest}: .* reads 3 to 46 tokens"):
        FiberModel(find_fiber(str(folder)), CPU, longest)


@pytest.mark.parametrize(
    ("vocabulary", "message"),
    [('{"a": 0, "b": 1}', "not RoBERTa's vocabulary"), ("{", "its vocabulary cannot be read")],
)
def test_another_vocabulary_is_refused(folder, tmp_path, vocabulary, message):
    mine = Path(shutil.copytree(folder, tmp_path / "mine"))
    (mine / "vocab.json").write_text(vocabulary)
    (mine / "merges.txt").write_text("#version: 0.2\n")
    with pytest.raises(DataError, match=message):
        read_tokenizer(find_fiber(str(mine)))


def with_nan() -> FiberNet:
    broken = network()
    broken.dual_text.pooler.weight.fill_(torch.nan)
    return broken


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: network(replace(TINY, n_words=50)), r"has \d+ words, but the weights have 50"),
        (with_nan, "contains NaN or infinity"),
    ],
    ids=["more words", "no numbers"],
)
def test_weights_that_do_not_fit_the_vocabulary_or_are_no_numbers_are_refused(
    make, message, tmp_path
):
    write_checkpoint(tmp_path / "f.ckpt", make())
    with pytest.raises(DataError, match=message):
        FiberModel(find_fiber(str(write_vocabulary(tmp_path))), CPU, 40)


@pytest.mark.parametrize("name", ["fiber_pretrain.ckpt", "vocab.json", "merges.txt"])
def test_a_file_that_is_absent_is_named(folder, tmp_path, name):
    mine = Path(shutil.copytree(folder, tmp_path / "mine"))
    (mine / name).unlink()
    with pytest.raises(AbsentModelError, match=f"{name} is absent; fetch fiber_pretrain"):
        fiber_files(str(mine), None)
    with pytest.raises(AbsentModelError, match=r"encoder\.model=null: fetch fiber_pretrain\.ckpt"):
        fiber_files(None, None)


def test_of_several_files_one_is_named(folder, tmp_path):
    mine = Path(shutil.copytree(folder, tmp_path / "mine"))
    (mine / "other.ckpt").write_bytes((mine / "fiber_pretrain.ckpt").read_bytes())
    with pytest.raises(UsageError, match=r"several files.*encoder\.weights=NAME.*other\.ckpt"):
        fiber_files(str(mine), None)
    assert fiber_files(str(mine), "other.ckpt")[0].name == "other.ckpt"
    with pytest.raises(UsageError, match="a file's name within"):
        fiber_files(str(mine), "../other.ckpt")
