"""Captioners write what a plain call of transformers writes for each photo alone."""

import json
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers", reason="extra models is not installed")
torch = pytest.importorskip("torch")

from bias_pipeline.errors import ResourceError  # noqa: E402
from bias_pipeline.models.generation import KINDS, Captioner, usual_prompt  # noqa: E402
from bias_pipeline.models.picture_text import require_image_text  # noqa: E402
from bias_pipeline.models.pretrained import Pretrained, find_pretrained  # noqa: E402
from bias_pipeline.models.runner import in_batches  # noqa: E402
from bias_pipeline.models.sampling import Decoding, Noise, own_settings  # noqa: E402
from tests.tiny_chat_models import RECENT, WRITERS, tiny_captioner  # noqa: E402

LONGEST = 8
# Beams and draws are one code for all; those whose inputs are alike wait for make slow.
OF_EACH_INPUT = ("blip", "florence2", "git", "llava", "vision-encoder-decoder")
KIND = [
    kind if kind in OF_EACH_INPUT else pytest.param(kind, marks=pytest.mark.slow)
    for kind in WRITERS
]
CHAT = ("gemma3", "idefics3", "internvl", "llava", "llava_onevision", "qwen2_vl")
PROMPT = "a red dog"

# Of PaliGemma's processor, with NumPy 2.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    """Of several shapes, two of them equal."""
    from PIL import Image

    folder = tmp_path_factory.mktemp("photos")
    generator = torch.Generator().manual_seed(0)
    paths = []
    for number, size in enumerate([(48, 40), (40, 90), (48, 40), (90, 40), (64, 64)]):
        pixels = torch.randint(0, 256, (4, 4, 3), generator=generator, dtype=torch.uint8).numpy()
        paths.append(folder / f"{number}.png")
        Image.fromarray(pixels).resize(size).save(paths[-1])
    return tuple(paths)


@cache
def captioner(kind: str, decoding: Decoding) -> Captioner:
    model = find_pretrained(str(tiny_captioner(kind)), None)
    return Captioner(model, torch.device("cpu"), decoding)


def question(kind: str, prompt: str = "") -> str:
    return prompt or usual_prompt(kind.removesuffix("-t5"))


@cache
def captions(
    kind: str, photos: tuple[Path, ...], prompt: str = "", **settings: Any
) -> list[list[str]]:
    writer = captioner(kind, Decoding(question(kind, prompt), LONGEST, **settings))
    return list(in_batches(writer, map(writer.read, photos), len(photos)))


@cache
def parts(kind: str) -> tuple[Any, Any, Any]:
    """The network, its preprocessing of pictures and texts, and its tokenizer."""
    import transformers

    folder = tiny_captioner(kind)
    pillow: dict[str, Any] = {"backend": "pil"} if RECENT else {"use_fast": False}
    pictures = transformers.AutoImageProcessor.from_pretrained(folder, **pillow)
    network = transformers.AutoModelForImageTextToText.from_pretrained(folder).eval()
    if kind == "vision-encoder-decoder":
        return network, pictures, transformers.AutoTokenizer.from_pretrained(folder)
    processor = transformers.AutoProcessor.from_pretrained(folder)
    processor.image_processor = pictures
    return network, processor, processor.tokenizer


def library_captions(kind: str, path: Path, prompt: str = "", **options: Any) -> list[str]:
    """What the library writes for one photo, as its pages on the model show it."""
    from PIL import Image

    photo = Image.open(path)
    network, processor, tokenizer = parts(kind)
    prompt, cut = question(kind, prompt), 0
    if kind in CHAT:
        content = [{"type": "image", "image": photo}, {"type": "text", "text": prompt}]
        inputs = processor.apply_chat_template(
            [{"role": "user", "content": content}],
            add_generation_prompt=True,
            tokenize=True,
            return_dict=True,
            return_tensors="pt",
        )
        cut = inputs["input_ids"].shape[1]
    elif kind == "vision-encoder-decoder":
        inputs = processor(photo, return_tensors="pt")
        if prompt:
            tokens = tokenizer(prompt, add_special_tokens=False).input_ids
            inputs["decoder_input_ids"] = torch.tensor([[4, *tokens]])
            cut = 1 + len(tokens)
    elif not prompt:
        inputs = processor(images=photo, return_tensors="pt")
    elif kind == "git":
        tokens = tokenizer(prompt, add_special_tokens=False).input_ids
        inputs = processor(images=photo, return_tensors="pt")
        inputs["input_ids"] = torch.tensor([[tokenizer.cls_token_id, *tokens]])
        cut = 1 + len(tokens)
    else:
        inputs = processor(images=photo, text=prompt, return_tensors="pt")
        inputs.pop("labels", None)
        cut = 0 if kind in ("florence2", "blip-2-t5") else inputs["input_ids"].shape[1]
        cut -= kind == "blip"  # the sign at the end, which it takes away
    with torch.inference_mode():
        written = network.generate(**inputs, max_new_tokens=LONGEST, do_sample=False, **options)
    texts = tokenizer.batch_decode(written[:, cut:], skip_special_tokens=True)
    return [" ".join(text.split()) for text in texts]


@pytest.mark.parametrize("kind", WRITERS)
def test_captions_are_what_the_library_writes_for_each_photo(kind, photos):
    assert captions(kind, photos) == [library_captions(kind, path) for path in photos]


@pytest.mark.parametrize("kind", WRITERS)
def test_prompts_are_answered_as_by_the_library_and_cut(kind, photos):
    assert captions(kind, photos, PROMPT) == [
        library_captions(kind, path, PROMPT) for path in photos
    ]


@pytest.mark.parametrize("kind", KIND)
def test_the_best_beams_are_those_of_the_library(kind, photos):
    expected = [
        library_captions(kind, path, num_beams=3, num_return_sequences=2) for path in photos
    ]
    assert captions(kind, photos, beams=3, n=2) == expected


@pytest.mark.parametrize("kind", WRITERS)
def test_captions_depend_on_the_photo(kind, photos):
    """Else what is tested here would say nothing; the third photo is of the shape of the first."""
    assert len({text for texts in captions(kind, photos, PROMPT) for text in texts}) > 1


@pytest.mark.parametrize("kind", KIND)
def test_draws_depend_on_the_seed_and_on_nothing_else(kind, photos):
    drawn = captions(kind, photos, temperature=30.0, n=2)
    alone = [captions(kind, (path,), temperature=30.0, n=2)[0] for path in photos[:3]]
    assert drawn[:3] == alone
    assert drawn != captions(kind, photos, temperature=30.0, n=2, seed=1)


@pytest.mark.parametrize("kind", WRITERS)
def test_cold_draws_are_the_likeliest_words(kind, photos):
    assert captions(kind, photos, temperature=1e-6) == captions(kind, photos)


def test_words_are_drawn_as_often_as_they_are_likely():
    """Within four standard deviations."""
    n_draws, temperature = 4000, 0.7
    scores = torch.tensor([[0.0, 1.0, -1.0, -torch.inf]])
    images = [str(k) for k in range(n_draws)]
    noise = Noise(Decoding(temperature=temperature), images, 0, torch.device("cpu"))
    drawn = noise(torch.empty(0), scores.expand(n_draws, -1)).argmax(dim=1)
    shares = torch.bincount(drawn, minlength=4) / n_draws
    likely = (scores[0] / temperature).softmax(dim=0)
    spread = (likely * (1 - likely) / n_draws).sqrt()
    assert ((shares - likely).abs() <= 4 * spread).all()


@pytest.mark.parametrize("kind", ["llava", "vision-encoder-decoder"])
def test_captions_that_end_early_are_not_filled(kind, photos):
    texts = [text for path in photos for text in captions(kind, (path,), PROMPT)[0]]
    assert [text for [text] in captions(kind, photos, PROMPT)] == texts


def test_a_prompt_follows_the_decoders_first_token_of_number_0(photos):
    writer = Captioner(
        find_pretrained(str(tiny_captioner("vision-encoder-decoder")), None),
        torch.device("cpu"),
        Decoding("a dog", LONGEST),
    )
    config = writer._network.generation_config
    config.decoder_start_token_id, config.bos_token_id = 0, 4
    assert writer.read(photos[0]).inputs["decoder_input_ids"][0, 0] == 0


@pytest.mark.parametrize(
    ("kind", "since"), [("florence2", "4.56"), ("internvl", "4.52"), ("vlm9", "a later version")]
)
def test_a_kind_that_is_not_there_names_the_version_that_has_it(kind, since, monkeypatch):
    import transformers

    monkeypatch.setattr(transformers, "CONFIG_MAPPING", {})
    model = Pretrained("mine", Path("mine"), kind, {})
    with pytest.raises(ResourceError, match=f"has no {kind} models; .*{since}"):
        require_image_text(model, KINDS)


def test_code_of_a_folder_is_not_run(tmp_path):
    folder = Path(shutil.copytree(tiny_captioner("llava"), tmp_path / "mine"))
    (folder / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Own: ...\n")
    for name in ("config.json", "tokenizer_config.json"):
        content = json.loads((folder / name).read_text())
        parts_of_own = ("AutoConfig", "AutoProcessor", "AutoModelForImageTextToText")
        content["auto_map"] = dict.fromkeys(parts_of_own, "own.Own")
        (folder / name).write_text(json.dumps(content))
    model = find_pretrained(str(folder), None)
    Captioner(model, torch.device("cpu"), Decoding(PROMPT, LONGEST))
    assert not (tmp_path / "ran").exists()


def test_what_the_model_adds_to_the_search_is_told(tmp_path):
    settings = {"repetition_penalty": 1.2, "length_penalty": 1.0, "max_length": 20}
    (tmp_path / "generation_config.json").write_text(json.dumps(settings))
    assert own_settings(tmp_path) == {"repetition_penalty": 1.2}
