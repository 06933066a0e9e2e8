"""Other forms of people at equal style, tried against the one that the package has.

Usage: python -m experiments.equal_speech.forms [DATA_ROOT]

Speakers without bias should score 0, whatever their style, and planted bias should stay. With
DATA_ROOT (the folder that holds lic/bias_data) every score that is missing in forms.csv is
computed, so a stopped study resumes; without it, FORMS.md is made from the rows.
"""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from scipy import sparse

from bias_pipeline.array_types import BoolArray, Float64Array, IntArray
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.io.hashing import UIntArray, mix, random_words
from bias_pipeline.metrics.attack.lic import LIC
from bias_pipeline.run import compose
from bias_pipeline.text.matched import MatchedAlignment
from bias_pipeline.text.transform import Entries, apply_transforms
from experiments.flatness.speakers import SCENES, People, sample
from experiments.study import lic_data, markdown, read_rows, write_page

HERE = Path(__file__).resolve().parent
ROWS, PAGE = HERE / "forms.csv", HERE / "FORMS.md"
N_IMAGES = 3000
_LIC = ("metric=lic", "alignment=matched", "encoder.order=1", "metric.positions=3", "seeds=2",
        "metric.learning_curve=false", "stats.resamples=200")  # fmt: skip


class InTurn(MatchedAlignment):
    """Words are drawn one after the other, so that what a caption has lost or got can count."""

    def _edits(
        self,
        here: sparse.csr_array,
        others: sparse.csr_array,
        target: IntArray,
        words: UIntArray,
        images: UIntArray,
        position: int,
    ) -> tuple[Entries, Entries]:
        spoken, after = others.tocsc(), here.toarray() > 0
        missing = target - after.sum(axis=0)
        self.size = here.sum(axis=1).astype(np.float64)
        self.start(here, others)
        part = np.array([position], np.uint64)
        taken: list[tuple[IntArray, int]] = []
        given: list[tuple[IntArray, int]] = []
        for word in np.argsort(mix(words)).tolist():
            lacking = int(missing[word])
            if not lacking:
                continue
            rows = np.flatnonzero(after[:, word])
            chances, purpose = np.ones(len(rows)), "words out"
            if lacking > 0:
                column = slice(spoken.indptr[word], spoken.indptr[word + 1])
                open_to = ~after[spoken.indices[column], word]
                rows, purpose = spoken.indices[column][open_to], "words in"
                chances = spoken.data[column][open_to]
            chances = chances * self.liking(rows, word, after, lacking > 0)
            drawn = random_words(purpose, self.seed, mix(words[[word]]) ^ images[rows], part)
            times = -np.log((drawn.astype(np.float64) + 0.5) / 2.0**64) / chances
            chosen = rows[np.argsort(times, kind="stable")[: abs(lacking)]].astype(np.int64)
            changes = [(chosen, word)]
            changes += self.accompanying_changes(chosen, word, after, spoken, missing)
            for which, changed in changes:
                after[which, changed] = lacking > 0
                missing[changed] -= np.sign(lacking) * len(which)
                self.size[which] += np.sign(lacking)
            (given if lacking > 0 else taken).extend(changes)
        return _entries(taken), _entries(given)

    def accompanying_changes(
        self,
        chosen: IntArray,
        word: int,
        after: BoolArray,
        spoken: sparse.csc_array,
        missing: IntArray,
    ) -> list[tuple[IntArray, int]]:
        """What comes or goes together with a word in the captions drawn for it; here nothing."""
        return []

    def start(self, here: sparse.csr_array, others: sparse.csr_array) -> None:
        """Remember what a form needs of the captions before any change."""

    @abstractmethod
    def liking(self, rows: IntArray, word: int, after: BoolArray, adding: bool) -> Float64Array:
        """(R,) how much likelier captions are drawn for a word, given their words so far."""


class EvenLength(InTurn):
    """Captions that have got words give words, those that have lost words get them."""

    def start(self, here: sparse.csr_array, others: sparse.csr_array) -> None:
        """See the base."""
        self.length = self.size.copy()

    def liking(self, rows: IntArray, word: int, after: BoolArray, adding: bool) -> Float64Array:
        """See the base."""
        grown = self.size[rows] - self.length[rows]
        return np.exp(-grown if adding else grown)


class ShortFirst(InTurn):
    """Short captions get words, long ones give them: lengths vary less than people's."""

    def start(self, here: sparse.csr_array, others: sparse.csr_array) -> None:
        """See the base."""
        self.mean = float(self.size.mean())

    def liking(self, rows: IntArray, word: int, after: BoolArray, adding: bool) -> Float64Array:
        """See the base."""
        longer = (self.size[rows] - self.mean) / 2
        return np.exp(-longer if adding else longer)


class Companions(InTurn):
    """Words come and go in pairs: with the word they most often stand with in human captions."""

    def start(self, here: sparse.csr_array, others: sparse.csr_array) -> None:
        """See the base."""
        both = (here.T @ here).toarray()
        sizes = np.diag(both).copy()
        np.fill_diagonal(both, 0)
        self.companion = (2 * both / np.maximum(sizes[:, None] + sizes, 1)).argmax(axis=1)

    def liking(self, rows: IntArray, word: int, after: BoolArray, adding: bool) -> Float64Array:
        """See the base."""
        there = after[rows, self.companion[word]]
        return np.where(there == adding, 10.0, 1.0)


class Phrases(Companions):
    """A word takes its companion along, as long as the companion must change in the same way."""

    def liking(self, rows: IntArray, word: int, after: BoolArray, adding: bool) -> Float64Array:
        """See the base."""
        return np.ones(len(rows))

    def accompanying_changes(
        self,
        chosen: IntArray,
        word: int,
        after: BoolArray,
        spoken: sparse.csc_array,
        missing: IntArray,
    ) -> list[tuple[IntArray, int]]:
        """See the base."""
        other = int(self.companion[word])
        if missing[word] * missing[other] <= 0:
            return []
        adding = missing[word] > 0
        there = after[chosen, other]
        if adding:
            by_others = np.zeros(len(after), bool)
            by_others[spoken.indices[spoken.indptr[other] : spoken.indptr[other + 1]]] = True
            fitting = chosen[~there & by_others[chosen]]
        else:
            fitting = chosen[there]
        return [(fitting[: abs(int(missing[other]))], other)]


class SaidOnce(InTurn):
    """Words replace words: a caption gets what it does not say yet, and gives what it says twice.

    Word v says w if other people say w of an image whose caption holds v more often than that
    caption holds w itself, as with synonyms.
    """

    strength = 4.0

    def start(self, here: sparse.csr_array, others: sparse.csr_array) -> None:
        """See the base."""
        sizes = np.maximum(np.asarray(here.sum(axis=0)).ravel(), 1)
        people = others.sum() / here.sum()
        elsewhere = (others.T @ here).toarray() / sizes / people  # (w, v)
        together = (here.T @ here).toarray() / sizes
        says = np.maximum(elsewhere - together, 0)
        np.fill_diagonal(says, 0)
        says[says < 0.02] = 0
        self.says = says / np.maximum(says.max(axis=1, keepdims=True), 1e-9)

    def liking(self, rows: IntArray, word: int, after: BoolArray, adding: bool) -> Float64Array:
        """See the base."""
        by = np.flatnonzero(self.says[word])
        spoken = after[np.ix_(rows, by)] @ self.says[word, by]
        return np.exp(self.strength * np.minimum(spoken, 2) * (-1 if adding else 1))


class Pooled(MatchedAlignment):
    """The base is what any of the people said of an image, thinned; no sentence stays."""

    def _edits(
        self,
        here: sparse.csr_array,
        others: sparse.csr_array,
        target: IntArray,
        words: UIntArray,
        images: UIntArray,
        position: int,
    ) -> tuple[Entries, Entries]:
        spoken = sparse.csr_array(here + others)
        kept_words = self._draw("words out", spoken, target, words, images, position)
        shape = here.shape
        chosen = sparse.csr_array(
            (np.ones(len(kept_words)), (kept_words.captions, kept_words.types)), shape=shape
        )
        out, put = ((here - chosen).tocoo(), (chosen - here).tocoo())
        return _positive(out), _positive(put)


FORMS: Mapping[str, type[MatchedAlignment]] = {
    "as in the package": MatchedAlignment,
    "even length": EvenLength,
    "short first": ShortFirst,
    "companions": Companions,
    "phrases": Phrases,
    "pooled": Pooled,
    "said once": SaidOnce,
}


def _entries(parts: Sequence[tuple[IntArray, int]]) -> Entries:
    rows = [rows for rows, _ in parts]
    types = [np.full(len(rows), word, np.int64) for rows, word in parts]
    nothing = [np.empty(0, np.int64)]
    return Entries(np.concatenate(nothing + rows), np.concatenate(nothing + types))


def _positive(difference: sparse.coo_array) -> Entries:
    row, word = (np.asarray(axis, np.int64) for axis in difference.coords)
    above = difference.data > 0
    return Entries(row[above], word[above])


SPEAKERS = (
    "faithful", "terse", "small vocabulary", "talkative", "amplifies 25 %", "amplifies 25 %, terse",
)  # fmt: skip
CHOSEN_ON, OTHERS = (0, 1, 2, 3), (4, 5, 6, 7)  # seeds of the world
MANNERS = ("whole", "half", "first five words", "two joined")
PLANTED = (0, 20)  # per cent of human captions with a planted word
KEYS = ["world", "speaker", "form"]
_HEAD = (
    "Points, mean over worlds ± its standard error; from the second column on the difference "
    "from the first in the same world.\n"
)


def cases(data: Path) -> Iterator[tuple[str, str, Sequence[str], Corpus | None]]:
    """World, speaker, overrides, and the captions if the overrides do not say which."""
    for seed in (*CHOSEN_ON, *OTHERS):
        for name in SPEAKERS:
            dials = [f"+dataset.captioners.speaker.{k}={v}" for k, v in SCENES[name].items()]
            dials = dials or ["+dataset.captioners.speaker.a_to_t=0"]
            words = [f"dataset.n_images={N_IMAGES}", f"dataset.seed={seed}", "captioner=speaker"]
            yield f"scenes {seed}", name, [*words, *dials], None
    for planted, attribute in product(PLANTED, ("gender", "race")):
        words = [f"attribute={attribute}", *lic_data(data), "captioner=sat"]
        built = compose.cell(words)
        described = built.build("attribute")
        labels = described.labels["lic"]
        raw = {group: label for label, group in labels.groups.items()}
        chosen = [
            replace(record, labels={attribute: raw[record.labels[attribute]]})
            for record in sample(built.corpus(), N_IMAGES)
        ]
        people = People(chosen, frozenset(described.all_words), attribute)
        groups = {attribute: (described.groups, labels)}
        for manner in MANNERS:
            records = list(people.speaking(manner, planted))
            corpus = Corpus.build(records, dataset="lic", captioner=manner, groups=groups)
            yield f"people, {attribute}, {planted} % planted", manner, words, corpus


def score_forms(
    words: Sequence[str], corpus: Corpus | None, forms: Mapping[str, type[MatchedAlignment]]
) -> Iterator[dict[str, object]]:
    """LIC at equal style in some forms; the attackers of the captioner are trained once."""
    with TemporaryDirectory() as folder:
        for name, form in forms.items():
            cell = compose.cell([*_LIC, *words, f"paths.outputs={folder}"])
            metric, captions = cell.build("metric"), cell.corpus() if corpus is None else corpus
            assert isinstance(metric, LIC)
            *before, matched = metric.transforms
            assert isinstance(matched, MatchedAlignment)
            ready = apply_transforms([*before, form(matched.excluded, matched.seed)], captions)
            metric.transforms = ()  # so that people are not scored as the captioner too
            splits = metric.draw_splits(ready, cell.seeds)
            part = metric.compute(ready, splits=splits).parts["score"]
            yield {
                "form": name,
                "metric": metric.info.name,
                "metric_version": metric.info.version,
                "value": part.value,
                "ci_low": part.ci_low,
                "ci_high": part.ci_high,
                "n_images": part.n_images,
            }


def run(data: Path) -> None:
    """Score what is missing; rows are stored after each speaker."""
    rows = read_rows(ROWS) if ROWS.is_file() else pd.DataFrame(columns=KEYS)
    done = set(zip(*(rows[key] for key in KEYS), strict=True))
    for world, speaker, words, corpus in cases(data):
        forms = {name: form for name, form in FORMS.items() if (world, speaker, name) not in done}
        if not forms:
            continue
        lines = score_forms(words, corpus, forms)
        fresh = [{"world": world, "speaker": speaker, **line} for line in lines]
        rows = pd.concat([rows, pd.DataFrame(fresh)]) if len(rows) else pd.DataFrame(fresh)
        rows.to_csv(ROWS, index=False, float_format="%.6g")
        print(f"{world}: {speaker}", flush=True)


def by_world(rows: pd.DataFrame, seeds: Sequence[int]) -> str:
    """Speakers by forms in points, mean over worlds and its standard error.

    The package's form as it is, the others as the difference from it in the same world.
    """
    chosen = rows[rows["world"].isin([f"scenes {seed}" for seed in seeds])]
    table = 100 * chosen.pivot_table(index=["world", "speaker"], columns="form", values="value")
    package, *others = FORMS
    changes = table[others].sub(table[package], axis=0)
    lines = {}
    for speaker in SPEAKERS:
        columns = table.xs(speaker, level="speaker")[[package]].join(
            changes.xs(speaker, level="speaker")
        )
        error = columns.std() / len(columns) ** 0.5
        lines[speaker] = {form: f"{columns[form].mean():.2f} ±{error[form]:.2f}" for form in FORMS}
        lines[speaker] |= {
            form: f"{columns[form].mean():+.2f} ±{error[form]:.2f}" for form in others
        }
    return f"{_HEAD}\n{markdown(pd.DataFrame(lines).T.rename_axis('speaker'))}"


def of_people(rows: pd.DataFrame) -> str:
    """People's styles by forms, in points with half of the interval."""
    chosen = rows[rows["world"].str.startswith("people")].copy()
    half = 50 * (chosen["ci_high"] - chosen["ci_low"])
    chosen["text"] = [
        f"{100 * value:.2f} ±{error:.1f}"
        for value, error in zip(chosen["value"], half, strict=True)
    ]
    table = chosen.pivot_table(
        index=["world", "speaker"], columns="form", values="text", aggfunc="first", sort=False
    )
    return markdown(table[list(FORMS)].reset_index().set_index("world"))


def main(arguments: Sequence[str]) -> None:
    """Score what is missing if data are named; write the page."""
    if arguments:
        run(Path(arguments[0]))
    rows = read_rows(ROWS)
    texts = {
        "Scenes, worlds 0 to 3, on which forms were looked at": by_world(rows, CHOSEN_ON),
        "Scenes, worlds 4 to 7": by_world(rows, OTHERS),
        "Scenes, all worlds": by_world(rows, (*CHOSEN_ON, *OTHERS)),
        "Real people, with half of the 95 % interval": of_people(rows),
    }
    write_page(PAGE, "Other forms of equal style", __file__, texts)


if __name__ == "__main__":
    main(sys.argv[1:])
