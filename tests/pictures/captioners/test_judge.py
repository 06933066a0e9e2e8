"""A published model judges captions and pictures: what it is asked, and what it costs."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("transformers", reason="extra models is not installed")

from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.pictures import Pictures
from bias_pipeline.corpus.predictions import LabelledCaptions
from bias_pipeline.data.image_masking import Blank
from bias_pipeline.errors import DataError, NotApplicableError, ResourceError
from bias_pipeline.models.picture_text import PictureText
from bias_pipeline.pictures.captioners.judge import Judge
from bias_pipeline.pictures.captioners.prompt import Prompt
from bias_pipeline.run import compose
from tests.photo_folder import write_photos
from tests.tiny_models import write_gpt2
from tests.tiny_picture_text import WRITERS, write

TEXTS = ["a person rides a horse", "", "a dog on the beach"]
PROMPT = Prompt("gender", answers={"male": "young male"})


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write(tmp_path_factory.mktemp("models") / "git", "git"))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> LabelledCaptions:
    photos = write_photos(tmp_path_factory.mktemp("photos"), 3)
    pictures = Pictures(tuple(sorted(photos.iterdir())))
    labels = np.array([0, 1, 0])
    return LabelledCaptions(
        "model", Captions.from_texts(TEXTS), labels, 2, ("male", "female"), pictures=pictures
    )


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, tuple[str, ...]]]:
    """What any model was asked, in words."""
    questions = []
    original = PictureText.read

    def read_and_note(self: PictureText, question: object) -> object:
        questions.append((question.before, question.follows))
        return original(self, question)

    monkeypatch.setattr(PictureText, "read", read_and_note)
    return questions


def test_it_is_asked_by_the_prompt(model, data, read):
    assert Judge(PROMPT, model, side=32).answer_log_probs(data).shape == (3, 2)
    assert sorted(read) == [
        ("a dog on the beach therefore the gender is", ("young male", "female")),
        ("a person rides a horse therefore the gender is", ("young male", "female")),
        ("therefore the gender is", ("young male", "female")),
    ]


def test_what_stands_behind_the_answer_counts(model, data, read):
    cloze = Prompt("gender", template="the gender is {answer} with {caption}")
    Judge(cloze, model, side=32).answer_log_probs(data)
    follows = ("male with a dog on the beach", "female with a dog on the beach")
    assert ("the gender is", follows) in read


def test_a_question_is_asked_once(model, data, read, tmp_path):
    judge = Judge(PROMPT, model, side=32, cache=str(tmp_path))
    first = judge.answer_log_probs(data)
    assert np.array_equal(replace(judge, batch_size=1).answer_log_probs(data), first)
    assert len(read) == 3


def test_another_picture_is_another_question(model, data, read, tmp_path):
    judge = Judge(PROMPT, model, side=32, cache=str(tmp_path))
    judge.answer_log_probs(data)
    assert data.pictures is not None
    masked = replace(data, pictures=data.pictures.with_edit(Blank()))
    judge.answer_log_probs(masked)
    assert len(read) == 6
    assert judge.digest(masked) != judge.digest(data)


def test_a_model_is_its_files(model, tmp_path):
    other = str(write(tmp_path / "other", "git", seed=1))
    one, two = (dict(Judge(PROMPT, name).spec)["files"] for name in (model, other))
    assert one != two
    assert "answers" in str(Judge(PROMPT, model).spec["prompt"])


def test_without_pictures_nothing_is_asked(model, data):
    with pytest.raises(NotApplicableError, match="needs pictures"):
        Judge(PROMPT, model).answer_log_probs(replace(data, pictures=None))


def test_a_model_that_cannot_judge_is_told_before_any_work(tmp_path):
    with pytest.raises(ResourceError, match="models prefetch"):
        Judge(PROMPT, "Salesforce/blip-image-captioning-large").require()
    with pytest.raises(DataError, match="model type 'gpt2' is not supported here"):
        Judge(PROMPT, str(write_gpt2(tmp_path))).require()


KINDS = [pytest.param(kind, marks=[pytest.mark.slow] * (kind != "git")) for kind in WRITERS]


@pytest.mark.parametrize("kind", KINDS)
def test_a_metric_has_it_as_attacker(kind, tmp_path):
    built = compose.cell(
        [
            *("metric=imagecaptioner2", "encoder=hf", f"encoder.model={write(tmp_path, kind)}"),
            *("encoder.side=32", "encoder.cache=null", "probe.cache=null", "metric.leaks=[blank]"),
            *("captioner=faithful", "dataset.n_images=40", "stats.resamples=20"),
            "metric.sides=[model]",
        ]
    )
    metric, corpus = built.build("metric"), built.corpus()
    score = metric.compute(corpus, splits=metric.draw_splits(corpus, (0, 1)))
    assert score.parts["leak:blank"].value == pytest.approx(0.5, abs=0.01)
    assert 0 < score.parts["model"].value < 1
