"""Finds pictures that raters call anonymous, and the groups that captions of them name.

Bakr et al., ImageCaptioner2 (2024), section 5.5.1, ask whether there is a human in the scene. If
so, they ask whether gender and race are anonymous. We ask both questions as one question with three
answers; "cannot tell" means yes to both. GT says how often raters name a group when they read a
caption. GT is the share of a caption's raters, averaged over captions. The paper does not say how
this average is taken.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import stats

from bias_pipeline.array_types import IntArray
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.corpus.pictures import Pictures
from bias_pipeline.corpus.predictions import LabelledCaptions
from bias_pipeline.corpus.split import Split
from bias_pipeline.data.rating_tables import CANNOT_TELL
from bias_pipeline.errors import DataError, NotApplicableError
from bias_pipeline.io.files import replace_file, table_csv
from bias_pipeline.io.terminal import print_out, printable
from bias_pipeline.metrics.attack.attack_runner import label_captions
from bias_pipeline.metrics.attack.caption_attack import CaptionAttack
from bias_pipeline.metrics.base import Number
from bias_pipeline.metrics.value_names import HEADLINES, MODEL
from bias_pipeline.report.figures import Colours, Plot, name_points
from bias_pipeline.report.screen import print_table
from bias_pipeline.report.table import Cell, NumberCell, PCell, Table, number
from bias_pipeline.results.rows import Result
from bias_pipeline.stats.bootstrap import Estimate
from bias_pipeline.stats.compare import of_pearson, pearson
from bias_pipeline.stats.raters import krippendorff
from bias_pipeline.stats.shares import NORMAL_95, effective_trials, wilson
from bias_pipeline.text.mending import mended_records
from bias_pipeline.text.scored_text import ScoredText
from bias_pipeline.text.transform import Transform, apply_transforms

if TYPE_CHECKING:
    from matplotlib.axes import Axes

QUESTION = "Can you tell the gender or the race of a person in this picture?"
CAN_TELL, NOBODY = "can_tell", "no_person"
ANSWERS = (CAN_TELL, NOBODY)  # besides "cannot tell"


class Filtered(NamedTuple):
    """Pictures, sorted by the answer of more than half of their raters."""

    retained: tuple[str, ...]  # ids of the pictures whose raters could not tell
    # For each other answer, how many pictures had it; `undecided`: no answer has more than half
    dropped: Mapping[str, int]
    unanswered: int  # for how many pictures there is no answer


def filter_pictures(images: Collection[str], votes: Mapping[str, Mapping[str, str]]) -> Filtered:
    """Keep the pictures whose group raters cannot tell.

    The paper does not say how many raters must agree; we ask for more than half.

    Example:
        >>> split = {"ann": "Unsure", "ben": "no_person"}
        >>> filter_pictures(["1", "2", "3"], {"1": {"ann": "Unsure"}, "2": split})
        Filtered(retained=('1',), dropped={'undecided': 1}, unanswered=1)
    """
    rated = [image for image in images if image in votes]
    retained, others = list[str](), Counter[str]()
    for image in rated:
        ((answer, count),) = Counter(votes[image].values()).most_common(1)
        if 2 * count <= len(votes[image]):
            others["undecided"] += 1
        elif answer == CANNOT_TELL:
            retained.append(image)
        else:
            others[answer] += 1
    return Filtered(tuple(retained), dict(others), len(images) - len(rated))


GT = "gt"


def human_scores(
    votes: Mapping[str, Mapping[str, str]],
    groups: Sequence[str],
    truth: Mapping[str, str] | None = None,
) -> dict[str, Number]:
    """The scores of raters: how often they name a group, which group, and how often correctly.

    Each score is a share of answers or Krippendorff's alpha, with its interval over captions.

    Example:
        >>> votes = {"1": {"ann": "male", "ben": "Unsure"}, "2": {"ann": "female", "ben": "female"}}
        >>> scores = human_scores(votes, ["male", "female"], {"1": "female", "2": "female"})
        >>> scores["gt"].value, scores["names:male"].value, scores["right"].value
        (0.75, 0.25, 0.5)
    """
    images = list(votes)
    counts = np.array(
        [[[*votes[image].values()].count(group) for group in groups] for image in images], np.int64
    ).reshape(len(images), len(groups))
    totals = np.array([len(votes[image]) for image in images], np.int64)
    named = counts.sum(axis=1)
    scores = {GT: _share(named, totals)}
    scores |= {f"names:{g}": _share(counts[:, k], totals) for k, g in enumerate(groups)}
    nobody = (totals - named)[:, None]
    alpha = krippendorff(np.hstack([counts, nobody]))
    scores["alpha"] = Number(alpha, n_images=int((totals > 1).sum()), coverage=math.nan)
    if truth is None:
        return scores
    codes = np.array([groups.index(truth[i]) if i in truth else -1 for i in images], np.int64)
    known = codes >= 0
    right = np.where(known, counts[np.arange(len(images)), codes], 0)
    scores["right"] = _share(right[known], named[known])
    for k, group in enumerate(groups):
        of_group = codes == k
        scores[f"{GT}:{group}"] = _share(named[of_group], totals[of_group])
        scores[f"right:{group}"] = _share(right[of_group], named[of_group])
    return scores


def _share(events: IntArray, trials: IntArray) -> Number:
    """The mean over captions of a share of answers, with Wilson's interval over captions."""
    answered = trials > 0
    n = int(answered.sum())
    if not n:
        return Number(math.nan, n_images=0, coverage=math.nan)
    shares = events[answered] / trials[answered]
    value = float(shares.mean())
    error = float(shares.std(ddof=1) / math.sqrt(n)) if n > 1 else 0.0
    n_answers = float(trials[answered].sum())
    low, high = wilson(value, effective_trials(value, error, n_answers, n), NORMAL_95)
    return Number(value, ci_low=low, ci_high=high, n_images=n, coverage=math.nan)


PEOPLE, ANONYMOUS = "people", "anonymous"
LARGEST = "largest_s_a"
HERE, PAPER = "here", "Bakr et al. 2024"
# Nine captioners, gender: Table 5's columns, and the scores of Table 3, each with GT of Table 5.
# Only 0.55 and 0.80 are in the paper; all four follow from its printed cells.
_PRINTED = {
    ("lic", LARGEST, ANONYMOUS): 0.5474,
    ("imagecaptioner2", LARGEST, ANONYMOUS): 0.8006,
    ("lic", "score", "coco"): -0.0559,
    ("imagecaptioner2", "score", "coco"): 0.0321,
}
_N_PRINTED = 9


@dataclass(frozen=True)
class AnonymousRow:
    """One number of a captioner, which may be absent (NaN).

    ``data`` is ``anonymous``, or the labelled data set of a metric's value.
    """

    captioner: str
    attribute: str
    metric: str
    part: str
    data: str
    value: float
    ci_low: float
    ci_high: float
    seed_std: float
    n_images: int


@dataclass(frozen=True)
class CorrelationRow:
    """Pearson's correlation over captioners between a metric's part and ``gt``.

    ``source`` is ``here``, or the paper from whose printed cells the correlation follows.
    """

    attribute: str
    metric: str
    part: str
    data: str
    value: float
    ci_low: float
    ci_high: float
    p_value: float
    n_captioners: int
    source: str


def anonymous_rows(
    captioner: str, attribute: str, metric: str, scores: Mapping[str, Number]
) -> list[AnonymousRow]:
    """Rows on the groups that raters named (``metric`` is ``people``) or that attackers guessed."""
    return [
        AnonymousRow(
            captioner, attribute, metric, part, ANONYMOUS,
            score.value, score.ci_low, score.ci_high, score.seed_std, score.n_images,
        )
        for part, score in scores.items()
    ]  # fmt: skip


def labelled_rows(
    results: Iterable[Result], captioners: Sequence[str], attribute: str
) -> list[AnonymousRow]:
    """The headline numbers of finished runs on these captioners."""
    rows: dict[tuple[str, str, str, str], AnonymousRow] = {}
    for row in (row for result in results for row in result.rows):
        if row.part not in HEADLINES or row.attribute != attribute:
            continue
        if row.captioner not in captioners:
            continue
        key = (row.captioner, row.metric, row.part, row.dataset)
        if key in rows:
            raise DataError(
                f"--runs: several runs of {row.metric} about {row.captioner} on {row.dataset}, "
                f"such as {row.run_id}; name a folder with one of each"
            )
        rows[key] = AnonymousRow(
            row.captioner, attribute, row.metric, row.part, row.dataset,
            row.value, row.ci_low, row.ci_high, row.seed_std, row.n_images,
        )  # fmt: skip
    return list(rows.values())


def correlations(rows: Sequence[AnonymousRow]) -> list[CorrelationRow]:
    """Correlations, over captioners, between each metric and how often raters name a group."""
    values: defaultdict[tuple[str, str, str], dict[str, float]] = defaultdict(dict)
    for row in rows:
        of_key = values[row.metric, row.part, row.data]  # even if no captioner has a number
        if not math.isnan(row.value):
            of_key[row.captioner] = row.value
    named = values[PEOPLE, GT, ANONYMOUS]
    lines = []
    for key, of_key in values.items():
        if key[0] != PEOPLE:
            both = [name for name in of_key if name in named]
            correlation = pearson([of_key[name] for name in both], [named[name] for name in both])
            line = _correlation_row(rows[0].attribute, key, correlation, len(both), HERE)
            lines.append(line)
    return lines


def _correlation_row(
    attribute: str, key: tuple[str, str, str], correlation: Estimate, n: int, source: str
) -> CorrelationRow:
    ends = correlation.ci_low, correlation.ci_high
    return CorrelationRow(attribute, *key, correlation.value, *ends, correlation.p_value, n, source)


def printed_correlations(lines: Sequence[CorrelationRow]) -> list[CorrelationRow]:
    """The correlations of these metrics that ImageCaptioner2's tables print or imply."""
    metrics = {line.metric for line in lines if line.attribute == "gender"}
    return [
        _correlation_row("gender", key, of_pearson(value, _N_PRINTED), _N_PRINTED, PAPER)
        for key, value in _PRINTED.items()
        if key[0] in metrics
    ]


def anonymous_corpus(
    captioner: str, captions: Mapping[str, str], photos: Mapping[str, Path], scored: ScoredText
) -> Corpus:
    """A corpus of anonymous pictures with captions; it has no groups and nothing to mask."""
    records = [
        Record(image, model=text, image=photos[image], regions=())
        for image, text in captions.items()
    ]
    records, mends = mended_records(records, {})
    corpus = Corpus.build(records, dataset="anonymous", captioner=captioner, groups={}, notes=mends)
    return scored.apply(corpus)


def anonymous_attack(
    metric: CaptionAttack,
    transforms: Sequence[Transform],
    reference: Corpus,
    anonymous: Corpus,
    seeds: Sequence[int],
) -> Number:
    """Train attackers on captions of labelled images to read captions of anonymous pictures.

    An attacker learns from labelled images outside a validation part, with equally many images of
    each group and the metric's words masked. An attacker of ImageCaptioner2 also learns from the
    masked pictures. After training, the attacker reads the masked captions of anonymous pictures.
    The pictures stay unmasked, since they show no group.
    """
    ready = apply_transforms(transforms, reference)
    mask: Transform | None = getattr(metric, "image_masking", None)
    if mask is not None:
        encoder = metric.probe.encoder
        spec = getattr(getattr(encoder, "visual", None), "spec", {})
        if encoder.sees == "objects" or spec.get("sees") == "boxes":
            raise NotApplicableError(
                "anonymous pictures have no annotated objects; choose attackers that look at "
                "pixels (encoder.backbone=own or timm:NAME)"
            )
        ready = mask(ready)
    labelled_captions = _learnt_captions(metric, ready)
    data = join_tables(labelled_captions, apply_transforms(transforms, anonymous), len(ready))
    splits = _splits(metric.draw_splits(ready, seeds), len(ready), len(anonymous))
    probs = metric.predictions(data, [splits])[0].probs
    largest = np.stack([one.max(axis=1) for one in probs])  # (S, N)
    captions = largest.mean(axis=0)
    half = math.nan
    if len(captions) > 1:
        half = float(stats.t.ppf(0.975, len(captions) - 1) * stats.sem(captions))
    value = float(captions.mean())
    std = float(largest.mean(axis=1).std(ddof=1)) if len(largest) > 1 else math.nan
    return Number(
        value,
        seed_std=std,
        ci_low=value - half,
        ci_high=min(value + half, 1.0),
        n_images=len(captions),
        coverage=math.nan,
    )


def _learnt_captions(metric: CaptionAttack, ready: Corpus) -> LabelledCaptions:
    """The labelled captions, with their pictures if attackers look at pictures."""
    grouping = ready.groupings[metric.attribute.name]
    images = grouping.labelled & metric.attackable(ready)
    captions = ready.model.take(images[ready.model.image_rows])
    for table in label_captions(MODEL, captions, grouping, 1):
        return metric.with_inputs(table, ready)
    raise NotApplicableError(
        f"captioner {ready.captioner!r}: attackers need two groups or more with at least ten "
        "captioned images each"
    )


def join_tables(data: LabelledCaptions, anonymous: Corpus, n_images: int) -> LabelledCaptions:
    """One table of labelled and anonymous images, where the n labelled images come first."""
    more = anonymous.model
    texts = [table.text(row) for table in (data.captions, more) for row in range(len(table))]
    rows = np.concatenate([data.captions.image_rows, n_images + more.image_rows])
    pictures = data.pictures
    if pictures is not None and anonymous.pictures is not None:
        shown = anonymous.pictures.take(more.image_rows)
        regions = pictures.regions or (None,) * len(pictures)
        pictures = Pictures(
            (*pictures.files, *shown.files), (*regions, *[()] * len(shown)), pictures.edits
        )
    return replace(
        data,
        captions=Captions.from_texts(texts, rows.tolist()),
        labels=np.concatenate([data.labels, np.zeros(len(more), np.int64)]),  # never used
        pictures=pictures,
    )


def _splits(splits: Sequence[Split], n_images: int, n_anonymous: int) -> list[Split]:
    """A split for each seed that trains on labelled images and tests on all anonymous images."""
    tested = np.arange(n_images, n_images + n_anonymous)
    first = {split.seed: split for split in reversed(splits)}
    return [
        replace(
            split,
            train=np.concatenate([split.train, split.test]),
            test=tested,
            balanced=True,
            whole_test=True,
        )
        for split in reversed(first.values())
    ]


SCORES, CORRELATIONS, FIGURE = "scores.csv", "correlations.csv", "figure"
_MARKERS = "os^Dv"
_NAMES = {"lic": "LIC", "imagecaptioner2": "ImageCaptioner2"}


def write_rows(folder: Path, rows: Sequence[AnonymousRow], lines: Sequence[CorrelationRow]) -> None:
    for name, table in ((SCORES, rows), (CORRELATIONS, lines)):
        text = table_csv([asdict(one) for one in table])
        replace_file(folder / name, text.encode())


def print_scores(rows: Sequence[AnonymousRow]) -> None:
    """Print captioners' numbers in per cent with intervals, in a column for each number."""
    keys = list(dict.fromkeys((row.metric, row.part, row.data) for row in rows))
    cells = {(row.captioner, row.metric, row.part, row.data): _cell(row) for row in rows}
    names = list(dict.fromkeys(row.captioner for row in rows))
    rows_of_numbers = [[name, *(cells.get((name, *key)) for key in keys)] for name in names]
    print_table(Table("", ["captioner", *map(_column, keys)], rows_of_numbers))


def print_correlations(lines: Sequence[CorrelationRow]) -> None:
    head = ["with what people name", "Pearson", "p", "captioners", "from"]
    cells: list[list[Cell]] = [
        [
            _column((line.metric, line.part, line.data)),
            NumberCell(line.value, line.ci_low, line.ci_high),
            PCell(line.p_value),
            NumberCell(line.n_captioners, digits=0),
            line.source,
        ]
        for line in lines
    ]
    print_table(Table("", head, cells))
    print_out()


def _column(key: tuple[str, str, str]) -> str:
    """The heading of a column of numbers.

    Example:
        >>> _column(("people", "gt", "anonymous")), _column(("lic", "score", "coco"))
        ('GT', 'LIC score on coco')
    """
    metric, part, data = key
    if metric == PEOPLE:
        return part.replace(GT, "GT").replace(":", " ")
    name = _NAMES.get(metric, metric)
    return name if data == ANONYMOUS else f"{name} {part} on {data}"


def _cell(row: AnonymousRow) -> NumberCell:
    if row.part == "alpha":
        return NumberCell(row.value)
    low, high = (None, None) if math.isnan(row.ci_low) else (row.ci_low, row.ci_high)
    return NumberCell(row.value, low, high, fraction=True, digits=1)


def figure_of(rows: Sequence[AnonymousRow], lines: Sequence[CorrelationRow]) -> Plot | None:
    """Figure 4: attackers' certainty against how often raters name a group, for each captioner."""
    people = {row.captioner: row for row in rows if (row.metric, row.part) == (PEOPLE, GT)}
    shown = [line for line in lines if line.data == ANONYMOUS and line.source == HERE]
    points = {
        line: [
            (100 * people[row.captioner].value, 100 * row.value, row.captioner)
            for row in rows
            if (row.metric, row.part, row.data) == (line.metric, line.part, line.data)
            and row.captioner in people
        ]
        for line in shown
    }
    if not any(points.values()):
        return None
    attribute = rows[0].attribute

    def draw(axes: Axes, colours: Colours) -> None:
        strengths = [1 - 0.6 * place / max(len(shown), 1) for place in range(len(shown))]
        for (line, of_line), marker, strength in zip(
            points.items(), _MARKERS, strengths, strict=False
        ):
            label = f"{_column((line.metric, line.part, line.data))}, r = {number(line.value)}"
            across, up = [x for x, _, _ in of_line], [y for _, y, _ in of_line]
            axes.plot(
                across, up, marker, color=colours.mark, alpha=strength, label=label, markersize=6
            )
        axes.set_xlabel(f"captions whose readers name a {printable(attribute)}, per cent")
        axes.set_ylabel("attackers' largest probability, per cent")
        axes.figure.legend(loc="outside upper center", ncols=2, frameon=False)
        every = [point for of_line in points.values() for point in of_line]
        places = [(x, y) for x, y, _ in every]
        name_points(axes, places, [printable(name) for *_, name in every], (), colours.faint)

    title = f"Attackers and people on anonymous pictures, {attribute}"
    return Plot(title, (6.4, 4.4), draw)


def write_figure(folder: Path, attribute: str, plot: Plot) -> Iterable[Path]:
    for ending, content in ((".svg", plot.svg().encode()), (".png", plot.png())):
        path = folder / f"{FIGURE}-{attribute}{ending}"
        replace_file(path, content)
        yield path
