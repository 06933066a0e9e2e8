"""Grad-CAM of captions: maps, their shares outside people, and the layers they are read in."""

from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from bias_pipeline.corpus.attribute import Attribute, Context
from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.corpus.pictures import Drawn, Pictures, Region
from bias_pipeline.errors import DataError, NotApplicableError, UsageError
from bias_pipeline.pictures.forced_captions import WrittenCaption
from bias_pipeline.pictures.gradcam.attribution import (
    Attribution,
    ExplainedWords,
    SeenMasks,
    attribution_row,
    describe_attribution,
    layer_of,
)
from bias_pipeline.pictures.gradcam.layers import LayerSearch, MapLayer, form_of
from bias_pipeline.pictures.gradcam.maps import Target, area_means, maps, shares_outside
from tests.corpora import make_corpus
from tests.pictures.gradcam.planted_captioner import PlantedCaptioner
from tests.pictures.test_forced_captions import captioner, photos

GENDER = Attribute("gender", ("male", "female"), {"male": ["man"], "female": ["woman"]}, {})


class Square:
    """A grey picture with a person on some of its pixels."""

    def __init__(self, person: np.ndarray[Any, Any] | None) -> None:
        self.person, self.digest = person, "square"

    def draw(self, side: int) -> Drawn:
        from pycocotools import mask as coco

        pixels = np.full((side, side, 3), 200, np.uint8)
        if self.person is None:
            return Drawn(pixels, ())
        large = np.kron(self.person, np.ones((side // 8, side // 8)))
        counts = coco.encode(np.asfortranarray(large, np.uint8))["counts"]
        return Drawn(pixels, (Region("person", (0, 0, side, side), large.shape, counts=counts),))


def quarter(rows: slice, columns: slice) -> np.ndarray[Any, Any]:
    person = np.zeros((8, 8))
    person[rows, columns] = 1
    return person


CORNER = quarter(slice(0, 4), slice(0, 4))


def corpus_of(*people: np.ndarray[Any, Any] | None) -> Corpus:
    records = [
        Record(str(n), model="a man", human=("a man",), labels={"gender": "m"})
        for n in range(len(people))
    ]
    return replace(make_corpus(records), pictures=Pictures(tuple(Square(one) for one in people)))


def rows_of(
    model: Any, corpus: Corpus, words: ExplainedWords | None = None
) -> list[dict[str, Any]]:
    layer = layer_of(model, corpus)
    return [
        attribution_row(one)
        for one in Attribution(model, layer, words or ExplainedWords(GENDER)).explain(corpus)
    ]


def test_words_are_explained_where_they_name_a_group():
    words = {"light": ["white"], "dark": ["black", "black skinned"]}
    race = Attribute("race", ("light", "dark"), words, {})
    assert ExplainedWords(race).spans("a black skinned man and a black man") == [
        ("black skinned", 2, 15),
        ("black", 26, 31),
    ]
    words = {"light": ["white"], "dark": ["black"]}
    race = Attribute("race", tuple(words), words, {}, applies_to=Context("man, woman"))
    assert ExplainedWords(race).spans("a black dog and a black man") == [("black", 18, 23)]


def test_a_network_that_looks_at_one_corner_has_all_of_its_map_there():
    model = PlantedCaptioner()
    corpus = corpus_of(CORNER, 1 - CORNER, quarter(slice(2, 6), slice(2, 6)))
    inside, beside, partly = rows_of(model, corpus)
    assert inside["attribution_score"] == pytest.approx(0, abs=1e-6)
    assert beside["attribution_score"] == pytest.approx(1, abs=1e-6)
    assert partly["attribution_score"] == pytest.approx(12 / 16, abs=1e-6)
    assert [row["uniform_share"] for row in (inside, beside, partly)] == [0.75, 0.25, 0.75]


def test_the_layer_is_the_last_that_carries_all_of_the_picture():
    assert layer_of(PlantedCaptioner(), corpus_of(CORNER)).name == "quarter"


@pytest.mark.parametrize(
    ("kind", "name", "grid"),
    [
        ("sat", "seeing", (8, 8)),
        ("grit", "detector.backbone.layers.0.blocks.1", (8, 8)),
        ("blip", "vision_model.encoder.layers.1", (4, 4)),
        ("git", "git.visual_projection", (4, 4)),
        ("florence2", "model.multi_modal_projector", (4, 4)),
        ("vision-encoder-decoder", "encoder.layernorm", (4, 4)),
    ],
)
def test_a_layer_is_chosen_in_networks_of_all_kinds(kind, name, grid):
    layer = layer_search(kind).find()
    assert (layer.name, layer.grid) == (name, grid)


def layer_search(kind: str) -> LayerSearch:
    model = captioner(kind)
    pictures = [model.prepare(photo) for photo in photos()]
    return LayerSearch(model, pictures, model.write(pictures)[0])


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("sat", "attention"),
        ("blip", "text_decoder.bert.encoder.layer.1.crossattention"),
        ("vision-encoder-decoder", "decoder.transformer.h.1.crossattention"),
    ],
)
def test_attention_of_words_to_the_picture_is_a_layer(kind, name):
    layer = layer_search(kind).find_named("attention")
    assert (layer.name, layer.kind) == (name, "attention")


@pytest.mark.parametrize(
    ("kind", "layer", "message"),
    [
        ("sat", "next_word", r"has no such layer with a grid.* seeing, "),
        ("git", "attention", "says how much words attend to places"),
    ],
)
def test_a_layer_that_it_does_not_have_is_refused(kind, layer, message):
    with pytest.raises(UsageError, match=message):
        layer_search(kind).find_named(layer)


def sat_word(model: Any, word: int) -> Any:
    """The network of a SAT as one of pictures alone: log-probabilities of the word at a place."""

    class Forced(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = model.network

        def forward(self, pixels: torch.Tensor) -> torch.Tensor:
            tokens = torch.tensor([[2, 4, 5, 6]]).expand(len(pixels), -1)
            likely: torch.Tensor = self.network.next_word_log_probs(tokens, pixels=pixels)
            return likely[:, word]

    return Forced()


def sat_maps(model: Any, word: int, layer: str) -> tuple[torch.Tensor, list[Any]]:
    """Two pictures' pixels, and our maps of the word at one place of one caption."""
    pictures = [model.prepare(photo) for photo in photos()]
    caption = WrittenCaption("", [2], [4, 5, 6], [])
    pixels = model.picture(pictures)["pixels"].float()
    target = [[Target("x", [word])]] * 2
    read = MapLayer(layer, "grid", 0, (8, 8))
    return pixels, [m[0] for m in maps(model, read, pictures, [caption, caption], target, [4])]


@pytest.mark.parametrize("word", [1, 2])
def test_maps_of_a_convolution_are_captums(word):
    captum = pytest.importorskip("captum.attr", reason="captum is not installed")
    model = captioner("sat")
    pixels, ours = sat_maps(model, word, "seeing.layers")
    oracle = captum.LayerGradCam(sat_word(model, word), model.network.seeing.layers)
    theirs = oracle.attribute(pixels, target=[4, 5, 6][word], relu_attributions=True)
    assert max(one.max() for one in ours) > 0
    np.testing.assert_allclose(np.stack(ours), theirs[:, 0].detach().numpy(), rtol=1e-4, atol=1e-9)


@pytest.mark.skipif(find_spec("pytorch_grad_cam") is None, reason="grad-cam is not installed")
@pytest.mark.filterwarnings("ignore")
def test_maps_of_a_convolution_are_grad_cams():
    from pytorch_grad_cam import GradCAM
    from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget

    model = captioner("sat")
    pixels, ours = sat_maps(model, 1, "seeing.layers")
    layer, goals = model.network.seeing.layers, [ClassifierOutputTarget(5)] * 2
    with GradCAM(sat_word(model, 1), [layer]) as oracle:
        oracle.forward(pixels.requires_grad_(), goals)
        read = oracle.activations_and_grads
        activations, gradients = (r[0].cpu().numpy() for r in (read.activations, read.gradients))
        theirs = oracle.get_cam_image(pixels, layer, goals, activations, gradients)
    np.testing.assert_allclose(np.stack(ours), np.maximum(theirs, 0), rtol=1e-4, atol=1e-9)


def test_tokens_of_a_grid_have_the_map_of_its_convolution():
    model = captioner("sat")
    of_tokens, of_channels = (sat_maps(model, 1, name)[1] for name in ("seeing", "seeing.layers"))
    np.testing.assert_allclose(of_tokens, of_channels, rtol=1e-5)


def test_shuffled_weights_change_the_map():
    model = captioner("sat")
    weights = {name: value.clone() for name, value in model.network.state_dict().items()}
    before = np.stack(sat_maps(model, 1, "seeing")[1])
    torch.manual_seed(1)
    with torch.no_grad():
        for weight in model.network.parameters():
            weight.copy_(weight.flatten()[torch.randperm(weight.numel())].view_as(weight))
    after = np.stack(sat_maps(model, 1, "seeing")[1])
    model.network.load_state_dict(weights)
    assert np.abs(before / before.sum() - after / max(after.sum(), 1e-12)).sum() > 0.1


def test_attention_times_gradient_is_that_of_finite_differences():
    model, step = captioner("sat"), 1
    layer = MapLayer("attention", "attention", 0, (8, 8))
    pictures = [model.prepare(photos(1)[0])]
    caption = WrittenCaption("", [2], [4, 5, 6], [])
    ((ours,),) = maps(model, layer, pictures, [caption], [[Target("x", [step])]], [4])
    taken: list[torch.Tensor] = []

    def value_after(place: int, by: float) -> float:
        calls = []

        def hook(_: Any, __: Any, weights: torch.Tensor) -> torch.Tensor:
            calls.append(weights.clone())
            if len(calls) == step + 1:
                taken[:] = [weights.clone()]
                weights = weights.clone()
                weights[0, place] += by
            return weights

        handle = model.network.attention.register_forward_hook(hook)
        with torch.no_grad():
            value = model.logits(pictures, [caption]).log_softmax(-1)[0, step, 5].item()
        handle.remove()
        return value

    for place in (0, 20, 63):
        slope = (value_after(place, 0.01) - value_after(place, -0.01)) / 0.02
        expected = max(slope, 0) * float(taken[0][0, place])
        assert ours.ravel()[place] == pytest.approx(expected, rel=0.02, abs=1e-6)


def test_a_word_of_several_tokens_has_the_gradient_of_their_sum():
    model = PlantedCaptioner()
    pictures = [model.prepare(photos(1)[0])]
    captions = model.write(pictures)
    targets = [[Target("man", [1]), Target("man walks", [1, 2])]]
    ((one, both),) = maps(
        model, MapLayer("quarter", "grid", 0, (8, 8)), pictures, captions, targets, [2]
    )
    # Brightness moves the logit of a man alone: by 1 - P(man) and by -P(man) after it.
    man = model.logits(pictures, captions).softmax(dim=-1)[0, :, 2].tolist()
    np.testing.assert_allclose(both, one * (1 - man[1] - man[2]) / (1 - man[1]), rtol=1e-4)
    assert both.max() > 0


def test_words_are_mapped_where_they_are_likeliest_and_must_be_known():
    corpus = corpus_of(CORNER)
    (row,) = rows_of(PlantedCaptioner(), corpus, ExplainedWords(GENDER, ("woman",)))
    assert row["word"] is None
    (row,) = rows_of(PlantedCaptioner(), corpus, ExplainedWords(GENDER, ("man",)))
    assert row["word"] == "man"
    with pytest.raises(DataError, match="its vocabulary has none of the words zebra"):
        rows_of(PlantedCaptioner(), corpus_of(CORNER), ExplainedWords(GENDER, ("zebra",)))


def test_a_phrase_does_not_lend_its_first_word_to_captions_without_it():
    model = PlantedCaptioner()
    layer = layer_of(model, corpus_of(CORNER))

    def heat(*words: str) -> Any:
        (one,) = Attribution(model, layer, ExplainedWords(GENDER, words)).explain(corpus_of(CORNER))
        return one.words[0].heatmap

    assert heat("woman", "man").max() > 0
    assert heat("woman", "man runs").max() == heat("woman").max() == 0


def test_pictures_without_a_mask_or_of_nothing_but_people_have_no_score():
    everywhere = np.ones((8, 8))
    rows = rows_of(PlantedCaptioner(), corpus_of(1 - CORNER, None, everywhere))
    assert [np.isnan(row["attribution_score"]) for row in rows] == [False, True, True]
    lines = describe_attribution(rows, [])
    assert "2 of 3 pictures have no outline of a person, or nothing beside one, and no score" in (
        lines
    )


def test_no_mask_at_all_is_an_error_that_names_the_setting():
    rows = rows_of(PlantedCaptioner(), corpus_of(None, None))
    with pytest.raises(DataError, match=r"no picture has a score: none has an outline .*regions"):
        describe_attribution(rows, [])


def test_nan_is_no_score_and_a_captioner_of_nan_is_refused():
    shares = shares_outside(np.array([[np.nan, 1.0]]), np.array([[0.5, 0.0]]))
    assert np.isnan([shares.mass, shares.pixels]).all()
    assert shares.uniform == 0.75
    model = PlantedCaptioner()
    nn.init.constant_(model.network.brightness.weight, float("nan"))
    with pytest.raises((DataError, NotApplicableError), match="broken"):
        layer_of(model, corpus_of(CORNER))


def test_words_never_written_are_named():
    rows = rows_of(
        PlantedCaptioner(), corpus_of(1 - CORNER), ExplainedWords(GENDER, ("man", "woman"))
    )
    assert describe_attribution(rows, ["man", "woman"])[-1] == (
        "'woman' is in no caption the first of the words"
    )


@pytest.mark.parametrize("grid", [(1, 1), (4, 4), (3, 5), (8, 8)])
def test_areas_are_means_whatever_the_grid(grid):
    values = np.random.default_rng(0).random((12, 10))
    means = area_means(values, grid)
    assert means.shape == grid
    assert means.mean() == pytest.approx(values.mean())


def test_areas_are_those_of_torch_where_the_grid_divides_the_picture():
    values = np.random.default_rng(0).random((12, 10))
    pooled = torch.nn.functional.adaptive_avg_pool2d(torch.from_numpy(values)[None], (4, 5))
    np.testing.assert_allclose(area_means(values, (4, 5)), pooled[0].numpy())


def test_masks_are_cropped_and_filled_up_as_pictures_are():
    model = captioner("git")  # resizes the shorter side to 32 and crops the middle
    mask = np.zeros((64, 128), bool)
    mask[:, :32] = True  # all of it beside the crop
    assert SeenMasks(model).shares(mask).mean() < 0.01
    mask[:, 32:64] = True
    np.testing.assert_allclose(
        SeenMasks(model).shares(mask).mean(axis=0)[[4, -4]], [1, 0], atol=0.02
    )

    class Padded(PlantedCaptioner):
        def prepare(self, photo: Any) -> torch.Tensor:
            shown = super().prepare(photo)
            shown[:, :, 16:] = 0.5
            return shown

    assert SeenMasks(Padded()).shares(np.ones((8, 8), bool)).mean() == 0.5


@pytest.mark.parametrize(
    ("n_places", "picture", "form"),
    [(64, (64, 64), (8, 8)), (60, (384, 640), (6, 10)), (7, (64, 64), None), (0, (8, 8), None)],
)
def test_forms_of_grids(n_places, picture, form):
    assert form_of(n_places, picture) == form
