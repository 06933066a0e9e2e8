"""``data check_lists``: compares word lists of another language with the English lists.

Human captions of the same images, in both languages, are cut to the same number of words and masked
by the lists of their language.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import yaml

from bias_pipeline.commands.arguments import PROGRAM, Parser
from bias_pipeline.commands.audit import add_config_dir, config_dir_in
from bias_pipeline.corpus.attribute import ENGLISH, Attribute
from bias_pipeline.corpus.captions import Captions, offsets, ranges
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.corpus.list_check import FIELDS, Compared, ListCheck
from bias_pipeline.data.base import NO_CAPTIONER
from bias_pipeline.data.tables import check_file
from bias_pipeline.errors import DataError, UndecidedError, UsageError
from bias_pipeline.io.paths import with_config_dir
from bias_pipeline.io.terminal import print_out
from bias_pipeline.metrics.base import Number
from bias_pipeline.metrics.corpus_view import has_captions
from bias_pipeline.metrics.counting.gender_error import NAMED_HUMAN
from bias_pipeline.metrics.value_names import HUMAN
from bias_pipeline.report.answer_texts import fold
from bias_pipeline.run.audit import FIRST, attribute_names
from bias_pipeline.run.compose import Cell
from bias_pipeline.run.presets import preset
from bias_pipeline.stats.compare import paired_difference
from bias_pipeline.text.caption_language import check_sentence, language_shares, untestable

_SETTINGS: Mapping[str, Mapping[str, object]] = {
    "leakage": {"sides": [str(HUMAN)], "learning_curve": False, "alignment": "none"}
}
_MANY = 10_000  # more captions than an image has
_LEAST_WORDS = 0.5  # how many words a side needs, as a share of the other's
_EXIT = {"passed": 0, "worse": 1, "undecided": UndecidedError.exit_code}
_SAYS = {
    "passed": "{name} passes. With these lines in its YAML, answers are given:",
    "worse": "{name} does not pass. With these lines in its YAML, audit says why:",
    "undecided": "{name} does not pass, but more images may decide; until then its YAML may have:",
}


def data_check_lists_command(words: Sequence[str]) -> int:
    """Print the result of the check, and the lines to add to the attribute's YAML."""
    with with_config_dir(config_dir_in(words)):
        options = data_check_lists_parser().parse_args(list(words))
        lists, english = (
            preset({"attribute": name}, {"dataset": "coco"}).build("attribute")
            for name in (options.only, options.english)
        )
        if lists.language == ENGLISH:
            raise UsageError(
                f"{lists.name} is English; name an attribute whose YAML has language: CODE"
            )
        if english.language != ENGLISH or set(english.groups) != set(lists.groups):
            raise UsageError(
                f"--english {english.name}: name an attribute in English with the groups "
                f"{', '.join(lists.groups)}"
            )
        files = (options.captions, options.english_captions)
        for path in (*files, options.attributes):
            check_file(path)
        check = compared_lists((lists, english), files, options.attributes)
    print_out(*fold(f"{check.images:,} images: {check_sentence(check)}."))
    print_out(*fold(_SAYS[check.outcome].format(name=lists.name)), *yaml_lines(check).splitlines())
    return _EXIT[check.outcome]


def data_check_lists_parser() -> Parser:
    parser = Parser(
        f"{PROGRAM} data check_lists",
        description="Compare an attribute's lists in another language with the English lists, on "
        "human captions of the same images: how well an attacker guesses the group from masked "
        "captions, and how often a caption names the wrong group",
    )
    parser.add_argument(
        "captions", type=Path, help="file with human captions in the language of the lists"
    )
    parser.add_argument(
        "english_captions", type=Path, help="English human captions, written independently"
    )
    parser.add_argument(
        "--attributes", type=Path, required=True, metavar="LABELS", help="labels of the images"
    )
    parser.add_argument(
        "--only",
        required=True,
        choices=attribute_names(),
        metavar="ATTRIBUTE",
        help="the attribute whose word lists are checked",
    )
    parser.add_argument(
        "--english",
        default=FIRST,
        choices=attribute_names(),
        metavar="ATTRIBUTE",
        help=f"the attribute with the English lists (default: {FIRST})",
    )
    add_config_dir(parser)
    return parser


def compared_lists(
    attributes: Sequence[Attribute], files: Sequence[Path], labels: Path
) -> ListCheck:
    """Compare an attribute's lists with English lists, on images that both files describe."""
    cells = [
        _cell("leakage", attribute, file, labels)
        for attribute, file in zip(attributes, files, strict=True)
    ]
    corpora = _of_shared_images([cell.corpus() for cell in cells], attributes, files)
    pair = equally_long(corpora[0].human, corpora[1].human)
    leaks, errors = [], []
    for k, (attribute, file) in enumerate(zip(attributes, files, strict=True)):
        corpus, attack = corpora[k], cells[k].build("metric")
        cut = corpus.rewrite({"human": pair[k]})
        attack = replace(attack, positions=int(pair[k].positions.max()) + 1)
        leaks.append(attack.compute(cut, splits=attack.draw_splits(cut, cells[k].seeds)))
        people = corpus.rewrite({"model": corpus.human})  # the metric needs captions of a model
        errors.append(
            _cell("gender_error", attribute, file, labels)
            .build("metric")
            .compute(people, splits=[])
        )
    return ListCheck(
        words=attributes[0].words_digest,
        images=len(corpora[0]),
        leak=_difference(*(score.parts[HUMAN] for score in leaks)),
        wrong=_difference(*(score.parts[NAMED_HUMAN] for score in errors)),
    )


def equally_long(one: Captions, other: Captions) -> tuple[Captions, Captions]:
    """Pairs of captions of the same image, one in each language, cut to the same number of words.

    Captions are cut because longer captions describe more of the picture, which also shows the
    group.

    Raises:
        DataError: if one side has less than half as many words.

    Example:
        >>> pair = equally_long(*(Captions.from_texts([t]) for t in ("ein Hund", "a dog runs")))
        >>> [captions.text(0) for captions in pair]
        ['ein Hund', 'a dog']
    """
    first, second = (each.image_rows * _MANY + each.positions for each in (one, other))
    _, rows, others = np.intersect1d(first, second, assume_unique=True, return_indices=True)
    pair = one.take(rows), other.take(others)
    means = [float(captions.lengths.mean()) for captions in pair]
    if min(means) < _LEAST_WORDS * max(means):
        raise DataError(
            f"the captions have {means[0]:.1f} words on average and the English ones "
            f"{means[1]:.1f}; captions can be compared if one language has at most twice as "
            "many words as the other. A language without blanks between words cannot be "
            "checked"
        )
    lengths = np.minimum(pair[0].lengths, pair[1].lengths)

    def cut(captions: Captions) -> Captions:
        tokens = captions.tokens[ranges(captions.starts[:-1], lengths)]
        return replace(captions, tokens=tokens, starts=offsets(lengths)).compact()

    return cut(pair[0]), cut(pair[1])


def _cell(metric: str, attribute: Attribute, file: Path, labels: Path) -> Cell:
    data = {"attributes": str(labels), "captions": str(file), "strict": False}
    settings = {"attribute": attribute.name, "captioner": NO_CAPTIONER, "dataset": data}
    return preset({"metric": metric, **settings, **_SETTINGS.get(metric, {})}, {"dataset": "coco"})


def _of_shared_images(
    corpora: Sequence[Corpus], attributes: Sequence[Attribute], files: Sequence[Path]
) -> list[Corpus]:
    """Both corpora, reduced to images that have a group and captions in both.

    Raises:
        DataError: if captions are not in the language of their lists, or no image is in both.
    """
    rows = []
    for corpus, attribute, file in zip(corpora, attributes, files, strict=True):
        shares = language_shares(corpus, attribute)
        if reason := untestable(shares, attribute.language):
            raise DataError(
                f"{file}: {reason}; give the captions in the language of the lists first, and the "
                "English captions second"
            )
        labelled = corpus.groupings[attribute.name].codes >= 0
        rows.append(np.flatnonzero(labelled & has_captions(corpus, HUMAN)))
    ids = [
        [corpus.ids[row] for row in chosen.tolist()]
        for corpus, chosen in zip(corpora, rows, strict=True)
    ]
    shared = set(ids[0]) & set(ids[1])
    if not shared:
        raise DataError(f"no labelled image has captions in both {files[0]} and {files[1]}")
    return [
        corpus.take(chosen[[name in shared for name in names]])
        for corpus, chosen, names in zip(corpora, rows, ids, strict=True)
    ]


def _difference(lists: Number, english: Number) -> Compared:
    """A number under the lists and under the English lists, and the interval of the difference.

    Raises:
        DataError: if a number has no value.
    """
    if lists.draws is None or english.draws is None:
        raise DataError(
            "too few captions are of labelled images, or no caption in one of the languages "
            "names a group; add captions, or words to the lists"
        )
    difference = paired_difference(lists.draws, english.draws)
    numbers = (lists.value, english.value, difference.ci_low, difference.ci_high)
    return {field: round(value, 4) for field, value in zip(FIELDS, numbers, strict=True)}


def yaml_lines(check: ListCheck) -> str:
    """The check as lines of an attribute's YAML."""
    name = f"{ListCheck.__module__}.{ListCheck.__qualname__}"
    return yaml.safe_dump({"english_check": {"_target_": name, **vars(check)}}, sort_keys=False)
