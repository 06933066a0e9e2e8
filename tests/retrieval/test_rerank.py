"""Rankings whose first are ordered again by a model that judges pairs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from bias_pipeline.corpus.pictures import Pictures
from bias_pipeline.errors import UsageError
from bias_pipeline.metrics.base import Score
from bias_pipeline.retrieval.dual_encoders import DualEncoder
from bias_pipeline.retrieval.encoders import Fiber
from bias_pipeline.retrieval.ranked import Ranked, Reranker
from bias_pipeline.retrieval.side_effects import Recall
from bias_pipeline.run import compose

N, K = 30, 5
ROWS = np.arange(100, 100 + N)  # of the corpus
NOWHERE = Pictures((), None, ())  # nobody looks


@dataclass
class Judge:
    """Prefers pictures by a table, (texts, rows of the corpus); counts what it is asked."""

    table: np.ndarray
    judged: list[tuple[int, int]] = field(default_factory=list)

    def require(self) -> None:
        """It can."""

    def match(self, _: Pictures, texts: Sequence[str], pairs: np.ndarray) -> np.ndarray:
        self.judged += [tuple(pair) for pair in pairs.tolist()]
        assert pairs[:, 1].max() < len(texts)
        return self.table[pairs[:, 1], pairs[:, 0]].astype(np.float32)


def rank_line(least: int = 0) -> tuple[Ranked, np.ndarray]:
    """Two queries over pictures in a line, and their similarity."""
    queries = np.array([[1.0, 0.0], [-1.0, 0.0]], np.float32)
    pictures = np.column_stack([np.arange(N), np.zeros(N)]).astype(np.float32)
    ranking = Ranked.rank(queries, pictures, ROWS, np.arange(N) % 2, 2, K, least=least)
    return ranking, queries @ pictures.T


def table(seed: int = 0) -> np.ndarray:
    scores = np.zeros((2, 200))
    scores[:, ROWS] = np.random.default_rng(seed).normal(size=(2, N))
    return scores


def test_the_first_are_in_the_order_in_which_they_match():
    before, near = rank_line()
    judge = Judge(table())
    result = Reranker(judge, NOWHERE, 8).rerank(["a", "b"], before)
    for query in range(2):
        candidates = ROWS[np.argsort(-near[query])[:8]].tolist()
        wanted = sorted(candidates, key=lambda row: -judge.table[query, row])
        assert result.images[query, :8].tolist() == wanted
        assert result.images[query, 8:].tolist() == before.images[query, 8:].tolist()
        assert result.groups[query].tolist() == ((result.images[query] - 100) % 2).tolist()
    assert len(judge.judged) == 16


def test_equally_matching_pictures_stay_in_their_order():
    before, _ = rank_line()
    result = Reranker(Judge(np.zeros((2, 200))), NOWHERE, 8).rerank(["a", "b"], before)
    assert np.array_equal(result.images, before.images)


def test_more_than_there_are_are_all_of_them():
    before, _ = rank_line(least=1000)
    judge = Judge(table())
    result = Reranker(judge, NOWHERE, 1000).rerank(["a", "b"], before)
    for query in range(2):
        wanted = sorted(ROWS.tolist(), key=lambda row: -judge.table[query, row])
        assert result.images[query].tolist() == wanted


@dataclass(frozen=True)
class Numbered:
    """Texts and pictures that are told apart by half: the first of two alike is found."""

    spec: None = None

    def embed(self, items: Sequence[str]) -> np.ndarray:
        return np.eye(N, dtype=np.float32)[[int(item) // 2 for item in items]]


def recall(judge: Judge | None, n: int = 0) -> dict[str, float]:
    captions = [str(number) for number in range(N)]
    dual = DualEncoder(Numbered(), Numbered())
    pictures = Numbered().embed(captions)
    again = None if judge is None else Reranker(judge, NOWHERE, n)
    computed = Recall.measure(dual, captions, pictures, ROWS, (1,), again)
    shares = computed.shares(np.ones((1, N)), ROWS)[0].tolist()
    return dict(zip(map(str, computed.names), shares, strict=True))


@pytest.mark.parametrize(("n", "share"), [(None, 0.5), (4, 1.0), (1, 0.5)])
def test_who_judges_pairs_tells_alike_ones_apart_among_the_first(n, share):
    """Without a judge half of them are not."""
    judge = Judge(np.zeros((N, 200)))
    judge.table[np.arange(N), ROWS] = 1
    result = recall(None) if n is None else recall(judge, n)
    assert result == {"recall:image@1": share, "recall:text@1": share}


WORDS = ("metric=retrieval_fairness", "encoder=fiber", "dataset.n_images=60", "seeds=1")
QUICK = ("stats.resamples=20", "metric.k=10", "encoder.device=cpu")


def of_model(folder: Path) -> list[str]:
    """A model, and where its vectors are cached for all tests."""
    return [f"encoder.model={folder}", f"encoder.cache={folder.parent / 'cache'}"]


def compute(folder: Path, *words: str) -> Score:
    cell = compose.cell([*WORDS, *QUICK, *of_model(folder), *words])
    metric, corpus = cell.build("metric"), cell.corpus()
    score: Score = metric.compute(corpus, splits=metric.draw_splits(corpus, (0,)))
    return score


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("torch")
    from tests.fiber_files import write_fiber

    return write_fiber(tmp_path_factory.mktemp("fiber"))


SOME = ("metric.concepts=[zoo,wine,nurse]", "metric.recall=[]")


def test_judging_changes_rankings_and_says_so(folder):
    before, after = compute(folder, *SOME), compute(folder, *SOME, "metric.rerank=30")
    assert before.parts["score"].value != after.parts["score"].value
    assert before.parts["null"].value == after.parts["null"].value
    assert after.audit["rerank"] == 30
    assert any("the first 30 of each ranking" in note for note in after.notes)


def test_a_debiasing_only_chooses_what_is_judged(folder):
    words = (*SOME, "debias=mean_difference", "debias.side=image")
    score = compute(folder, *words, "metric.rerank=30")
    assert any("the debiasing only chose them" in note for note in score.notes)
    # Where all are judged there is nothing to choose.
    everything = "metric.rerank=1000"
    one, other = compute(folder, *words, everything), compute(folder, *SOME, everything)
    assert one.parts["score"].value == other.parts["score"].value


def test_weights_that_judge_no_pairs_are_refused(tmp_path):
    pytest.importorskip("torch")
    from dataclasses import replace

    from tests.fiber_files import TINY, write_fiber

    silent = write_fiber(tmp_path / "silent", replace(TINY, matches=False))
    assert "score" in compute(silent, *SOME).parts
    with pytest.raises(UsageError, match=r"metric\.rerank: .* have no matching head"):
        compute(silent, *SOME, "metric.rerank=30")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("encoder=ngram",), "choose encoder=clip"),
        (("encoder=clip", "metric.rerank=200"), "choose encoder=fiber"),  # before one is fitted
        (("encoder=fiber", "metric.rerank=100"), r"the first metric\.k=100 stay the same"),
        (
            ("encoder=fiber", "metric.rerank=200", "metric.ties=all"),
            "set metric.ties=stable or metric.rerank=null",
        ),
    ],
)
def test_an_encoder_or_a_depth_that_does_not_fit_is_refused(words, message):
    with pytest.raises(UsageError, match=message):
        compose.cell(["metric=retrieval_fairness", *words]).build("metric").require()


def test_every_pair_is_judged_once(folder, monkeypatch):
    from bias_pipeline.retrieval.fiber.model import FiberModel

    judged: list[int] = []
    looked: list[int] = []
    match = FiberModel.match

    def count_match(self: FiberModel, photos: list, texts: object, pairs: np.ndarray) -> np.ndarray:
        judged.append(len(pairs))
        looked.append(len(photos))
        return match(self, photos, texts, pairs)

    monkeypatch.setattr(FiberModel, "match", count_match)
    uncached = (f"encoder.model={folder}", "encoder.cache=null")
    cell = compose.cell([*WORDS, *QUICK, *uncached])
    corpus, encoder = cell.corpus(), cell.build("encoder")
    assert isinstance(encoder, Fiber)
    matcher, pictures = encoder.dual("person").matcher, corpus.pictures
    assert matcher is not None
    assert pictures is not None
    rows = np.flatnonzero(pictures.present)[:10]
    pairs = np.array([(row, text) for text in range(3) for row in rows.tolist()])
    texts = ["a man", "a dog", "a zoo"]
    first = matcher.match(pictures, texts, pairs)
    assert (sum(judged), sum(looked)) == (30, 10)
    assert np.array_equal(matcher.match(pictures, texts, pairs[::-1]), first[::-1])
    assert sum(judged) == 30
