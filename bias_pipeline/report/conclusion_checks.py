"""Checks why a number is not used: too few images, or captions that differ too much."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from bias_pipeline.corpus.attribute import ENGLISH
from bias_pipeline.corpus.corpus import BLANK_WARNING, SIDES
from bias_pipeline.corpus.object_names import MOST_UNKNOWN
from bias_pipeline.metrics.base import HEADLINES, EvidenceRule
from bias_pipeline.metrics.catalogue import info_of
from bias_pipeline.metrics.value_names import BEYOND, SCORE, sibling_name
from bias_pipeline.results.rows import Result, Row
from bias_pipeline.results.settings import text_settings
from bias_pipeline.text.caption_language import ENGLISH_PARTS, list_name, untestable
from bias_pipeline.text.caption_statistics import CaptionStatistics

COVERAGE = 0.5
NO_VALUE = "it has no value"
NO_RULE = "it changes with longer or shorter captions, even without bias"
DECISIVE = ("gender_error", "ba_mals", "ba_directional")  # the metrics that decide most often
# Questions whose numbers rest only on the attribute's words, masked or found.
_BY_LISTS = ("leakage", "misgendering", "mentions")
NOT_JUDGED = "it is shown, but no conclusion is drawn from it"


@dataclass(frozen=True)
class Limits:
    """Limits on the data that a number needs, and on the similarity of captions; we chose them."""

    coverage: float = COVERAGE  # the share of its images that a number must use
    # The share of captions that must name a group, if a number uses only such captions
    named: float = 0.1
    # How far the shares of images with a caption may differ between captioners
    captioned: float = 0.02
    # The largest share of blank captions that a compared captioner may have
    blanks: float = BLANK_WARNING
    unknown_objects: float = MOST_UNKNOWN  # the largest share of objects whose names are unknown
    neutral: float = 0.1  # how much more often the fairer captioner may name no group
    reach: float = 0.95  # the share of the model's words that annotators must use at equal style
    removed: float = 0.1  # the largest share of the captioner's words that an alignment may remove
    longer: float = 2.0  # how many times as many words as annotators a model may write in a caption
    # The answer is no if an attacker's interval at equal style ends at most this much above the
    # annotators' value; in the unit of that value
    negligible: float = 0.02
    # The fraction by which caption lengths and vocabularies may differ. Simulated captioners
    # without bias that differ by more move attackers' scores out of their intervals.
    speech: float = 0.05


LIMITS = Limits()


def evidence_rules(result: Result, *others: Result) -> dict[str, EvidenceRule]:
    """The part that may decide, for each headline; empty for results of earlier versions.

    At equal style, a part with a ``matched`` rule changes with no trait of style. If every result
    has the part ``matched:beyond``, this part decides.
    """
    beyond = all(math.isfinite(_value_of(each, BEYOND)) for each in (result, *others))
    rules = {}
    for headline, rule in (result.facts.metric.readings or {}).items():
        if rule.matched and not math.isnan(reach_of(result, headline)):
            part = BEYOND if beyond and headline == SCORE else rule.part
            rules[headline] = replace(rule, part=part, follows=())
        else:
            rules[headline] = replace(rule, matched=False)
    return rules


def reach_of(result: Result, headline: str) -> float:
    """The share of the model's words that annotators use at equal style; else NaN."""
    return _matched_share(result, headline, "reach")


def _matched_share(result: Result, headline: str, detail: str) -> float:
    """The value of a headline's part ``matched:DETAIL``, or NaN without this part."""
    part = f"matched:{detail}"
    return _value_of(result, part if headline == SCORE else sibling_name(headline, part))


def _value_of(result: Result, part: str) -> float:
    return next((row.value for row in result.rows if row.part == part), math.nan)


def people_part(part: str) -> str:
    """The name of the number that a part has with one annotator in the model's place.

    Example:
        >>> people_part("score"), people_part("a_to_t:shared")
        ('matched:people', 'a_to_t:shared:matched:people')
    """
    return "matched:people" if part in (SCORE, BEYOND) else f"{part}:matched:people"


# Value of `text.unit` to the part of captions that is scored.
_UNITS = {
    "caption": "",
    "sentence": "the first sentence of each caption",
    "subject": "the sentences on persons",
}


def retained_in(result: Result, headline: str) -> float:
    """The share of the captioner's words that stayed after an alignment; 1 if all stayed."""
    retained = _matched_share(result, headline, "retained")
    return 1.0 if math.isnan(retained) else retained


def scored_part(result: Result, headline: str) -> str:
    """A phrase on the part of the captions that a headline is about; empty for whole captions."""
    retained = retained_in(result, headline)
    words = f"{retained:.0%} of its words" if retained < LIMITS.reach else ""
    unit = _UNITS[text_settings(result)["text.unit"]]
    return " in ".join(filter(None, [words, unit]))


def unreached_reason(result: Result, headline: str, limits: Limits = LIMITS) -> str:
    """Why annotators and the model cannot be compared at equal style; empty if they can."""
    reach = reach_of(result, headline)
    if reach < limits.reach:  # NaN if not matched
        few = _too_few(reach, "of its words as often", limits.reach)
        return f"annotators use only {few}"
    return ""


def beyond_reach(result: Result, headline: str, limits: Limits = LIMITS) -> str:
    """Why some of the model's words cannot be compared with annotators; empty if all can."""
    if reason := unreached_reason(result, headline, limits):
        return reason
    retained = retained_in(result, headline)
    if not 1 - retained > limits.removed:
        return ""
    lost = max(round(100 * (1 - retained)), round(100 * limits.removed) + 1)
    return f"{lost}% of its words were removed, since annotators do not use them as often"


def much_longer(result: Result, limits: Limits = LIMITS) -> str:
    """A sentence if captions are too long for a comparison with human captions; else empty.

    A short human caption mentions less of everything than a long caption by a model.
    """
    longest = limits.longer
    if math.isfinite(_value_of(result, BEYOND)):
        longest *= 1 + limits.speech  # two joined annotators write about twice as much
    model, human = (caption_statistics_of(result, side)["words"] for side in SIDES)
    if not model > longest * human:
        return ""
    return (
        f"it writes {model:.1f} words and annotators {human:.1f}; more than "
        f"{limits.longer:g} times as many cannot be compared"
    )


def untestable_data(result: Result) -> str:
    """A sentence on why captions and labels test nothing; empty if they test something.

    Captions and labels must belong to the same images. Word lists must fit the captions' language.
    Word lists in other languages must have passed a comparison with the English lists.
    """
    corpus, question = result.facts.corpus, result.facts.metric.question
    if reason := corpus.misfit or (corpus.objects_misfit if question == "inventing" else ""):
        return f"cannot be tested: {reason}"
    if question not in (*_BY_LISTS, *ENGLISH_PARTS):
        return ""
    language = result.facts.language
    shares = {side: language.shares.get(side, math.nan) for side in SIDES}
    reason = untestable(shares, language.lists)
    if not reason and language.lists not in ("", ENGLISH):  # empty in results of earlier versions
        if question in ENGLISH_PARTS:
            reason = f"{ENGLISH_PARTS[question]} are English"
        elif language.unchecked:
            reason = f"lists {list_name(language.lists)} {language.unchecked}"
    return f"cannot be tested: {reason}" if reason else ""


_UNKNOWN = CaptionStatistics(math.nan, math.nan, math.nan)


def caption_statistics_of(result: Result, side: str = "model") -> Mapping[str, float]:
    """A side's words per caption, vocabulary, share of captions without a group; NaN if unknown."""
    return vars(result.facts.speech.get(side, _UNKNOWN))


def lacks_evidence(result: Result, row: Row, reading: EvidenceRule, limits: Limits = LIMITS) -> str:
    """Why a number cannot be used at all; empty if the number can be used."""
    if math.isnan(row.value):
        return NO_VALUE
    # Whoever captions 500 of 10,000 labelled images asks about these 500
    coverage = min(1.0, row.coverage / result.facts.corpus.file_share)
    if coverage < limits.coverage:
        return "it covers only " + _too_few(coverage, "of its images", limits.coverage)
    if math.isnan(row.ci_low):
        return "it has no interval"
    if reading.named and 1 - row.neutral_rate < limits.named:
        return "only " + _too_few(
            1 - row.neutral_rate, "of the captions name a group", limits.named
        )
    return ""


def rests_on_unknown(result: Result, headline: str, limits: Limits = LIMITS) -> str:
    """Why a headline about objects cannot be tested; empty if the headline can be tested."""
    info = info_of(result.rows[0].metric)
    needs = set() if info is None else {*info.needs, *info.without}
    spared = info is not None and info.without.get("objects") == headline
    share, misfit = result.facts.corpus.unknown_objects, result.facts.corpus.objects_misfit
    if "objects" not in needs or spared:
        return ""
    if misfit:
        return f"not tested: {misfit}"
    if not share > limits.unknown_objects:
        return ""
    return f"not tested: {share:.0%} of the objects have names that the list of tasks does not know"


def _too_few(share: float, of_what: str, limit: float) -> str:
    """A clause on a share below a limit, where the share is never rounded up to the limit."""
    shown = min(round(100 * share), round(100 * limit) - 1)
    return f"{shown}% {of_what}; {limit:.0%} are needed"


def differs_from_humans(result: Result, reading: EvidenceRule, limits: Limits = LIMITS) -> str:
    """A clause on a trait of style that changes the number and is unlike annotators; or empty."""
    model, human = (caption_statistics_of(result, side) for side in ("model", "human"))
    return _unlike(("it", model), ("annotators", human), reading.follows, limits)


def incomparable_reasons(
    first: Result, other: Result, reading: EvidenceRule, limits: Limits = LIMITS
) -> Sequence[str]:
    """Why a number cannot compare two captioners; empty if the number can compare them."""
    pair = [(result.rows[0].captioner, result) for result in (first, other)]
    one, two = ((name, caption_statistics_of(result)) for name, result in pair)
    reasons = [
        *(_blank(name, result, limits) for name, result in pair),
        _other_images(pair, limits),
        _other_sizes(pair, reading, limits),
        _unlike(one, two, reading.follows, limits),
    ]
    return [text for text in reasons if text]


def wins_by_silence(fairer: Result, other: Result, limits: Limits = LIMITS) -> str:
    """A sentence if the fairer of two captioners wins because it names no group; else empty."""
    silent, other_silent = (caption_statistics_of(result)["neutral"] for result in (fairer, other))
    if not silent - other_silent > limits.neutral:
        return ""
    names = [result.rows[0].captioner for result in (fairer, other)]
    return (
        f"{names[0]} names no group in {silent:.0%} of all its captions and {names[1]} in "
        f"{other_silent:.0%}"
    )


def _blank(name: str, result: Result, limits: Limits) -> str:
    share = result.facts.corpus.blank_share.get("model", math.nan)
    return (
        f"{share:.0%} of the captions of {name} are blank or decline"
        if share > limits.blanks
        else ""
    )


def _other_images(pair: Sequence[tuple[str, Result]], limits: Limits) -> str:
    (one, first), (two, second) = ((name, result.facts.corpus.captioned) for name, result in pair)
    if abs(first - second) <= limits.captioned:
        return ""
    return f"{one} has captions of {first:.1%} of the images to score and {two} of {second:.1%}"


def _other_sizes(pair: Sequence[tuple[str, Result]], reading: EvidenceRule, limits: Limits) -> str:
    """A clause on different numbers of attackers' training images; empty if they are equal."""
    (one, first), (two, second) = ((name, _images_tested(result, reading)) for name, result in pair)
    if not abs(first - second) > limits.captioned * max(first, second):
        return ""
    return (
        f"{one} was scored on {first:.0f} images and {two} on {second:.0f}, and attackers learn "
        "more from more images"
    )


def _images_tested(result: Result, reading: EvidenceRule) -> float:
    """The number of images behind an attackers' number, or NaN without attackers."""
    if not result.facts.attackers:
        return math.nan
    return next((row.n_images for row in result.rows if row.part == reading.part), math.nan)


_WORDING = {
    "words": ("writes {:.1f} words a caption", "{:.1f}"),
    "vocabulary": ("has an effective vocabulary of {:.0f} words", "one of {:.0f}"),
    "neutral": ("names no group in {:.0%} of the captions", "in {:.0%}"),
}


def _unlike(
    first: tuple[str, Mapping[str, float]],
    other: tuple[str, Mapping[str, float]],
    follows: Sequence[str],
    limits: Limits,
) -> str:
    """A clause on the first trait of style that is unknown or differs too much; else empty."""
    for trait in follows:
        (one, value), (two, other_value) = (
            (name, speech[trait]) for name, speech in (first, other)
        )
        apart = abs(value - other_value) / (1.0 if trait == "neutral" else abs(other_value))
        if not apart <= (limits.neutral if trait == "neutral" else limits.speech):
            if math.isnan(apart):
                return "length or vocabulary of the captions is unknown"
            wording, of_other = _WORDING[trait]
            return f"{one} {wording.format(value)} and {two} {of_other.format(other_value)}"
    return ""


def untried_ways(results: Sequence[Result]) -> str:
    """A phrase on other metrics or settings that could decide between these results."""
    alignments = {result.rows[0].metric: result.rows[0].alignment for result in results}
    unmatched = [
        metric
        for metric, alignment in alignments.items()
        if not alignment.startswith("matched") and (info := info_of(metric))
        if any(reading.matched for reading in info.readings.values())
    ]
    # `matched_both` removes words that annotators use less often.
    unreached = {
        result.rows[0].metric: None
        for result in results
        if result.rows[0].alignment != "matched_both"
        and any(
            1 - LIMITS.removed <= reach_of(result, headline) < LIMITS.reach
            for headline in HEADLINES
        )
    }
    others = [metric for metric in DECISIVE if metric not in alignments]
    ways = {
        ", or score {} at equal style (alignment=matched)": unmatched,
        ", or score {} by the words annotators use as often (alignment=matched_both)": unreached,
        ", or choose another metric ({})": others,
    }
    return "".join(way.format(", ".join(metrics)) for way, metrics in ways.items() if metrics)


_PLURAL = {
    "it changes ": "they change ",
    "it covers ": "they cover ",
    "it cannot ": "they cannot ",
    "it has ": "they have ",
    "of its images": "of their images",
    "compare it ": "compare them ",
}


def doubt_about(metrics: Collection[str], doubt: str) -> str:
    """A sentence on a doubt about some metrics, in the plural if there are several.

    The text after a colon is unchanged, since it is about the captioner.

    Example:
        >>> doubt_about(["dbac", "dpa"], "it changes with the style: it has few words")
        'they change with the style: it has few words'
    """
    stem, colon, detail = doubt.partition(": ")
    for one, several in _PLURAL.items() if len(metrics) > 1 else ():
        stem = stem.replace(one, several)
    return f"{stem}{colon}{detail}"
