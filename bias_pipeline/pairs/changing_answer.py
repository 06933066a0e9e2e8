"""Answers "Does the caption change with the group?" and writes the sentences around the answer."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

import numpy as np

from bias_pipeline.errors import inflect
from bias_pipeline.metrics.base import NOT_SHOWN
from bias_pipeline.metrics.counting.description_answer import NEGLIGIBLE, Answer
from bias_pipeline.metrics.counting.object_answer import per_100
from bias_pipeline.metrics.value_names import DECIDING, PartName
from bias_pipeline.pairs.comparison import GroupsCompared
from bias_pipeline.pairs.group_gaps import GroupGap
from bias_pipeline.pairs.several_groups import GroupShares, SeveralGroups
from bias_pipeline.stats.bootstrap import Estimate, quantile
from bias_pipeline.stats.compare import holm
from bias_pipeline.stats.sign_flips import FEWEST_SETS

ALPHA = 0.05
DRAWN, ALIKE = "drawn", "alike"  # whether each picture has its own background, or a set has one
MOST_WORDS = 10  # printed
_SHIFT, _BEYOND = "shift", "beyond_pictures"
_CHANGES = {
    _BEYOND: "the captions change with the group, picture by picture",
    _SHIFT: "the captions change with the group in the same direction over sets",
}
_DRAWN_WITH_IT = {
    _BEYOND: "the captions change with the group, or with the background that was drawn with it",
    _SHIFT: "the captions change in one direction with the group, or with its backgrounds",
}
_UNLIKE = "the pictures are described differently; the group was not shown to be the reason"


def answer_of(
    comparisons: Sequence[GroupsCompared], backgrounds: str, several: SeveralGroups | None
) -> Answer:
    """The answer; with three groups or more, it rests on all groups at once."""
    beside = [text for one in comparisons for text in _further_sentences(one, backgrounds)]
    most_sets = max(one.n_sets for one in comparisons)
    if most_sets < FEWEST_SETS:
        reason = f"{inflect(most_sets, 'sets are')} too few; caption {FEWEST_SETS}, or better 50"
        first = f"cannot tell whether captions change with the group: {reason}"
        return Answer("cannot_tell", reason, math.nan, (), [first, *beside])
    deciding = [(one, gap) for one in comparisons for gap in one.deciding]
    significant = [(one, gap) for one, gap in deciding if gap.adjusted_p < ALPHA]
    significant.sort(key=lambda each: (each[1].adjusted_p, -abs(each[1].value)))
    named = [gap.name for _, gap in significant]
    sentences = [gap_sentence(one, gap) for one, gap in significant]
    p_value = smallest_p(comparisons, several, 1.0)
    if several:
        pairs: dict[str, list[str]] = {gap.name: [] for _, gap in significant}
        for (_, gap), sentence in zip(significant, sentences, strict=True):
            pairs[gap.name].append(sentence)
        clear = [one for one in several.classes if one.adjusted_p < ALPHA]
        clear.sort(key=lambda one: (one.adjusted_p, -one.range))
        named = [one.name for one in clear]
        sentences = [_sentence_on_all(several, one) for one in clear]
        beside = [text for name in named for text in pairs.get(name, ())] + beside
    if backgrounds == ALIKE:
        for one in comparisons:
            for name, p in distance_p_values(one).items():
                p_value = min(p_value, p)
                if p < ALPHA:
                    named.append(name)
                    sentences.append(
                        f"{name} ({one.first_group}, {one.second_group}): {_CHANGES[name]}"
                    )
        p_value = min(1.0, 2 * p_value)  # of two families of tests
    if named:
        return Answer("yes", "", p_value, named, [*sentences, *beside])
    if largest_gap(comparisons, 0.95).ci_high <= NEGLIGIBLE:
        return Answer("no", "", p_value, (), beside)
    return Answer("cannot_tell", NOT_SHOWN, p_value, (), beside)


def distance_p_values(compared: GroupsCompared) -> dict[str, float]:
    """The p of both tests of distances, corrected by Holm's method for these two tests."""
    names = (_BEYOND, _SHIFT)
    p_values = holm([compared.distance_tests[name][1] for name in names])
    return {
        name: min(1.0, compared.n_families * p)
        for name, p in zip(names, p_values, strict=True)
        if not math.isnan(p)
    }


def smallest_p(
    comparisons: Sequence[GroupsCompared], several: SeveralGroups | None, default: float
) -> float:
    """The smallest p of a class about the person; ``default`` if no class is tested."""
    each = [gap.adjusted_p for one in comparisons for gap in one.deciding]
    if several:
        each = [one.adjusted_p for one in several.classes]
    return min((p for p in each if not math.isnan(p)), default=default)


def largest_gap(comparisons: Sequence[GroupsCompared], level: float) -> Estimate:
    """The largest absolute difference in a class about the person, with its interval.

    The lower end is the largest lower end of any class, corrected for the number of classes. The
    upper end is the largest upper end, which needs no correction.
    """
    gaps = [gap for one in comparisons for gap in one.deciding]
    wider = quantile(1 - (1 - level) / len(gaps)) / quantile(level)
    lows = []
    for gap in gaps:
        near = gap.ci_low if gap.value > 0 else -gap.ci_high  # the end towards 0
        lows.append(abs(gap.value) - wider * (abs(gap.value) - near))
    value = max(abs(gap.value) for gap in gaps)
    high = max(max(abs(gap.ci_low), abs(gap.ci_high)) for gap in gaps)
    return Estimate(value, ci_low=max(0.0, *lows), ci_high=high)


def gap_sentence(compared: GroupsCompared, gap: GroupGap) -> str:
    """A sentence on how often each group's captions are of a class, with difference, p, power."""
    of = compared.second_group if gap.value > 0 else compared.first_group
    low, high = sorted(end if gap.value > 0 else -end for end in (gap.ci_low, gap.ci_high))
    beyond = " beyond annotators'" if compared.pictures.people else ""
    return (
        f"{gap.name} ({compared.first_group} {per_100(gap.first)} %, {compared.second_group} "
        f"{per_100(gap.second)} % of captions): {per_100(abs(gap.value))} [{per_100(low)}, "
        f"{per_100(high)}] points more of {of}{beyond}, p {gap.adjusted_p:.2g}; the test usually "
        f"misses differences below {per_100(gap.misses)} points"
    )


def _sentence_on_all(several: SeveralGroups, one: GroupShares) -> str:
    shares = (
        f"{group} {per_100(share)} %"
        for group, share in zip(several.groups, one.shares, strict=True)
    )
    return f"{one.name} ({', '.join(shares)} of captions): Cochran's Q, p {one.adjusted_p:.2g}"


def _further_sentences(compared: GroupsCompared, backgrounds: str) -> Iterator[str]:
    """Sentences to read beside the answer."""
    yield from _base(compared)
    significant = [name for name, p in distance_p_values(compared).items() if p < ALPHA]
    meanings = _CHANGES if backgrounds == ALIKE else _DRAWN_WITH_IT
    for name, (value, p_value) in compared.distance_tests.items():
        if not math.isnan(p_value) and name in _CHANGES:
            yield f"{name} {_distance_text(name, value)}, p {p_value:.2g}" + (
                f": {meanings[name]}" if name in significant else ""
            )
    if not significant:
        for name, unlike in _unlike_pictures(compared).items():
            yield f"{name} {per_100(unlike)} points: {_UNLIKE}"
    yield from _power(compared)
    yield from _words(compared)


def _unlike_pictures(compared: GroupsCompared) -> dict[str, float]:
    """A clause on how much more captions of unlike pictures differ than captions of one picture."""
    means: dict[str, float] = {}
    each = {"beyond_samples": compared.distances, "beyond_edits": compared.edit_distances}
    for name, distances in each.items():
        further = compared.by_set(distances.excess) if distances else np.empty(0)
        further = further[~np.isnan(further)]
        if len(further) >= FEWEST_SETS:
            mean, error = further.mean(), further.std(ddof=1) / math.sqrt(len(further))
            means |= {name: float(mean)} if mean > 2 * error else {}
    return means


def beside_answer(comparisons: Sequence[GroupsCompared], backgrounds: str) -> str:
    """A clause on findings that do not lead to a Yes; usually empty."""
    significant = [p < ALPHA for one in comparisons for p in distance_p_values(one).values()]
    if any(significant):
        return "" if backgrounds == ALIKE else _DRAWN_WITH_IT[_BEYOND]
    return _UNLIKE if any(map(_unlike_pictures, comparisons)) else ""


def _distance_text(name: str, value: float) -> str:
    return f"{1000 * value:.2f} in 1,000" if name == _SHIFT else f"{per_100(value)} points"


def _base(compared: GroupsCompared) -> Iterator[str]:
    """Sentences on how similar captions are if the groups do not differ."""
    same = compared.mean_over_sets(compared.distances.samples)
    if not math.isnan(same):
        yield f"two captions of one picture differ by {per_100(same)} of 100 content words"
    if edited := compared.edit_distances:
        same_or_edit = per_100(compared.mean_over_sets(edited.samples))
        yield f"captions of a picture and its edits differ by {same_or_edit} of 100 content words"
    if not math.isnan(same):
        return
    equal, n_sets = compared.n_equal, compared.n_sets
    text = f"captions without words for the person are equal in {equal} of {n_sets} sets"
    if equal == n_sets:
        yield f"{text}: captions change in at most {per_100(1 - 0.05 ** (1 / n_sets))} % of sets"
    else:
        yield f"{text}; in the other sets any difference between pictures may change captions"


def _power(compared: GroupsCompared) -> Iterator[str]:
    """Sentences on the smallest detectable differences, and on whether any p can be small."""
    deciding = [gap for gap in compared.deciding if gap.n_differing]
    if deciding:
        low, high = (pick(deciding, key=lambda gap: gap.misses) for pick in (min, max))
        between = f" ({low.name}) to {per_100(high.misses)} points ({high.name})"
        only = f" points ({low.name})"
        yield (
            f"{compared.n_sets} sets usually miss differences below {per_100(low.misses)}"
            f"{between if len(deciding) > 1 else only}"
        )
    n_tests = compared.n_families * sum(not math.isnan(gap.p_value) for gap in compared.gaps)
    lowest = 2.0 ** (1 - compared.n_sets) * n_tests
    if lowest >= ALPHA:
        yield (
            f"with {compared.n_sets} sets no p can be below {lowest:.2g}: too few for "
            f"{n_tests} tests"
        )


def _words(compared: GroupsCompared) -> Iterator[str]:
    clear = [gap for gap in compared.words[:MOST_WORDS] if gap.p_value < ALPHA]
    if clear:
        listed = ", ".join(
            f"{gap.name} ({compared.first_group} {per_100(gap.first)} %, {compared.second_group} "
            f"{per_100(gap.second)} %)"
            for gap in clear
        )
        yield f"words that go with a group: {listed}"
    alone = [
        gap.name
        for gap in compared.words
        if min(gap.first, gap.second) == 0 and gap.p_value < ALPHA
    ]
    if alone:
        yield f"said of one group alone, so they may name the group: {', '.join(alone)}"


def facts(
    answer: Answer, comparisons: Sequence[GroupsCompared], backgrounds: str
) -> dict[str, object]:
    """The answer as plain data, with values of each set, which comparisons of captioners need."""
    return {
        **asdict(answer),
        "p_value": None if math.isnan(answer.p_value) else answer.p_value,
        "beside": "" if answer.named else beside_answer(comparisons, backgrounds),
        "sets": {
            one.label or f"{one.second_group} against {one.first_group}": {
                "sets": list(one.contrasts.sets),
                _BEYOND: [None if np.isnan(x) else float(x) for x in one.beyond_pictures.by_set],
                DECIDING: _deciding_differences(one, backgrounds),
            }
            for one in comparisons
        },
    }


def _deciding_differences(
    compared: GroupsCompared, backgrounds: str
) -> dict[str, Mapping[str, float]]:
    """The difference in each set, for each part that an answer may rest on."""
    parts = {
        str(PartName(f"class:{gap.name}", group=compared.label)): gap.by_set
        for gap in compared.deciding
    }
    if backgrounds != ALIKE:
        return parts
    values = zip(compared.contrasts.sets, compared.beyond_pictures.by_set.tolist(), strict=True)
    known = {name: value for name, value in values if not math.isnan(value)}
    return {**parts, str(PartName(_BEYOND, group=compared.label)): known}
