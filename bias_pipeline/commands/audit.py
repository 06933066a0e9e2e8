"""``audit``: scores one file of captions with all metrics, and writes a report.

The expected time is announced first.
"""

from __future__ import annotations

import hashlib
import math
import re
import shlex
import time
from argparse import Namespace
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from bias_pipeline.commands import arguments
from bias_pipeline.commands.arguments import PROGRAM, Parser, number
from bias_pipeline.commands.audit_settings import (
    add_settings,
    in_options,
    setting_overrides,
)
from bias_pipeline.corpus.corpus import SIDES, Corpus
from bias_pipeline.data.binary_tables import stem
from bias_pipeline.data.gold_files import read_gold
from bias_pipeline.data.photos import find_photos
from bias_pipeline.data.rating_tables import read_label_errors
from bias_pipeline.data.tables import check_file
from bias_pipeline.declared import Count, Positive
from bias_pipeline.errors import BiasPipelineError, DataError, UsageError, did_you_mean, inflect
from bias_pipeline.io.files import check_places, write_file
from bias_pipeline.io.machine import REPORT
from bias_pipeline.io.paths import config_dir_flag, with_config_dir
from bias_pipeline.io.terminal import lines_as, print_out, print_text, warn
from bias_pipeline.metrics import catalogue
from bias_pipeline.metrics.catalogue import infos
from bias_pipeline.report import baseline
from bias_pipeline.report.answer_table import numbers_tables
from bias_pipeline.report.conclusion_checks import Limits
from bias_pipeline.report.page import report_of_folder, save_page
from bias_pipeline.report.power import unseen
from bias_pipeline.report.screen import print_table
from bias_pipeline.report.tables import attributed_notes
from bias_pipeline.report.text_formats import skipped_cells
from bias_pipeline.run.audit import (
    FIRST,
    MATCHED_BOTH,
    Plan,
    attribute_names,
    plan_audit,
    read_or_refused,
    run_audit,
    word_reach,
)
from bias_pipeline.run.compose import Cell, Sweep, cell
from bias_pipeline.run.outcomes import SweepOutcome
from bias_pipeline.run.overrides import options_of, quote_value
from bias_pipeline.run.presets import preset
from bias_pipeline.run.sweep_bar import announced_seconds
from bias_pipeline.run.worker_processes import n_wanted

_ABOUT = (
    "Score a file of captions with every metric that your files allow, for every attribute that "
    "the labels have; print answers and write a report. The expected time is printed first"
)
_NOISE = "dataset.label_noise="
_CONFIG_DIR = "--config-dir"
Meanings = tuple[set[str], set[str]]  # groups, and labels that belong to no group
NO_MEANINGS: Meanings = (set(), set())  # without --map, meanings are not needed
_STREAMED = "bias_pipeline.data.coco_streamed.StreamedCocoDataset"
_LONGEST = 60  # characters of a file's name in its folder's name


def command(words: Sequence[str]) -> int:
    """Audit a file of captions.

    Messages that advise a setting name the option of ``audit`` for it.
    """
    with lines_as(in_options):
        try:
            with with_config_dir(config_dir_in(words)):
                return _audit(words)
        except BiasPipelineError as error:
            error.args = (in_options(str(error)),)
            raise


def config_dir_in(words: Sequence[str]) -> Path | None:
    """The folder of ``--config-dir``; its YAML files decide which names other options may take."""
    early = Parser(PROGRAM, add_help=False, allow_abbrev=False)
    early.add_argument(_CONFIG_DIR)
    folder: str | None = early.parse_known_args(list(words))[0].config_dir
    if folder is None:
        return None
    from bias_pipeline.run.hydra_composer import further_folders

    return further_folders(folder)[0]


def _audit(words: Sequence[str]) -> int:
    options, settings = parser().parse_known_args(list(words))
    if settings:
        raise UsageError(
            f"{settings[0]} is not an option of audit, see {PROGRAM} audit --help; settings "
            f"(key=value) are for {PROGRAM} run and compare"
        )
    started = time.monotonic(), time.process_time()
    REPORT.require()
    check_places(options.json)
    photos = find_photos(options.images) if options.images else None
    out = options.out or Path("outputs") / f"audit-{slug(stem(options.file))}"
    source = source_of_file(options, out)
    announce = partial(_announce, options.file, source, started)
    if options.dry_run:
        corpora, plans = plan_audit(source, options.minutes, announce)
        return source.print_plan(
            {
                name: replace(plan, metrics=_permitted_metrics(plan, corpora[name]))
                for name, plan in plans.items()
            }
        )
    limits = Limits(coverage=options.least_coverage, negligible=options.negligible)
    result = run_audit(source, options.minutes, limits, announce)
    if options.tables:
        several = len(result.corpora) > 1
        for attribute in result.corpora:
            for table in numbers_tables(result.verdict, result.answers_on(attribute)):
                print_table(
                    replace(table, caption=f"{attribute}: {table.caption}") if several else table
                )
                print_out()
        for note in attributed_notes(result.results):
            print_text(note)
        print_out()
    print_out(*result.screen())
    if options.notes:
        print_out("", *result.notes)
    report = report_of_folder(out, limits, result.made)
    if photos is not None:
        from bias_pipeline.report.example_pictures import with_pictures

        report = with_pictures(report, photos)
    save_page(report, out / "report.html")
    if options.json:
        answers = [answer.as_plain_data() for answer in result.answers]
        skipped = skipped_cells(result.skipped)
        write_file(
            options.json, baseline.baseline_bytes(result.results, answers=answers, skipped=skipped)
        )
    print_out(out / "report.html")
    return result.exit_code


def source_of_file(options: Namespace, out: Path, further: Sequence[str] = ()) -> FileSource:
    """The source of an audit that options and further overrides describe."""
    names = options.only or attribute_names()
    meanings = {name: _meanings(name) if options.map else NO_MEANINGS for name in names}
    known = {name for words in meanings.values() for part in words for name in part}
    for text in options.map:
        if "=" not in text or _group_in(text) not in known:
            raise UsageError(
                f"--map {text}: write LABEL=GROUP; {did_you_mean(_group_in(text), known - {''})}"
            )
    files = (options.attributes, options.captions, options.objects, options.label_noise)
    once = {"--gold": options.gold, "--label-noise": options.label_noise}
    once |= {arguments.LIMIT: options.limit, arguments.QUICK: options.quick}
    if options.stream and (given := [option for option, value in once.items() if value]):
        raise UsageError(
            "--stream counts all images by the labels as they are and does not go with "
            f"{given[0]}; leave one of the two out"
        )
    if options.gold and options.label_noise:
        raise UsageError("--gold corrects label errors, and --label-noise adds some; give one")
    for path in (options.file, *files):
        if path is not None:
            check_file(path)
    noisy: Collection[str] = read_label_errors(options.label_noise) if options.label_noise else ()
    if options.label_noise and not {*noisy} & {*meanings}:
        raise DataError(
            f"{options.label_noise} has none of the attributes; "
            f"{did_you_mean(next(iter(noisy), ''), meanings)}"
        )
    overrides = [*_overrides(options, out), *further]
    labels = _labels_of(overrides, options, meanings, noisy)
    return FileSource(overrides, labels, _gold(options.gold, names))


@dataclass(frozen=True)
class FileSource:
    """The files that an audit reads, and how it runs cells."""

    overrides: Sequence[str]  # the overrides that all cells share
    # By attribute, the overrides for its labels
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    # By attribute, the override of its gold labels, for the metrics that they correct
    gold: Mapping[str, str] = field(default_factory=dict)

    @property
    def attributes(self) -> Collection[str]:
        return self.labels

    def corpus(self, attribute: str) -> Corpus:
        return cell(self.overrides_of(attribute)).corpus()

    def reach(self, attribute: str, settings: Mapping[str, str]) -> float:
        if any(word.partition("=")[0] in settings for word in self.overrides):
            return math.nan
        lic = cell([*self.overrides_of(attribute), "metric=lic", *_words_of(settings)])
        return word_reach(lic, lic.corpus())

    def run_plans(self, plans: Mapping[str, Plan]) -> SweepOutcome:
        from bias_pipeline.run.launch import run_cells

        finished = run_cells(self.cells(plans))
        return replace(finished, results=finished.with_draws())

    def print_plan(self, plans: Mapping[str, Plan]) -> int:
        from bias_pipeline.run import planning

        return planning.print_plan(self.cells(plans), lenient=True)

    @property
    def processes(self) -> int:
        """How many processes share the work if it is long."""
        from bias_pipeline.run.launch import processes_of

        lic = cell([*self.overrides_of(next(iter(self.labels))), "metric=lic"])
        return n_wanted(processes_of([lic]))

    def noisy(self, attribute: str) -> bool:
        return any(word.startswith(_NOISE) for word in self.labels.get(attribute, ()))

    def overrides_of(self, attribute: str) -> list[str]:
        return [*self.overrides, f"attribute={attribute}", *self.labels.get(attribute, ())]

    def _gold_of(self, attribute: str, metric: str) -> list[str]:
        corrected = attribute in self.gold and catalogue.corrected_by_gold(metric)
        return [self.gold[attribute]] if corrected else []

    def cells(self, plans: Mapping[str, Plan]) -> list[Cell]:
        """The cells of each attribute: first metrics as published, then metrics at equal style."""
        jobs = [
            [
                *(*self.overrides_of(attribute), f"metric={metric}", f"seeds={plan.seeds}"),
                *_words_of(settings),
                *self._gold_of(attribute, metric),
            ]
            for attribute, plan in plans.items()
            for metric, settings in plan.cells
        ]
        return [*Sweep(jobs, options_of(()))]


def _words_of(settings: Mapping[str, str]) -> list[str]:
    return [f"{key}={value}" for key, value in settings.items()]


def parser() -> Parser:
    parser = Parser(f"{PROGRAM} audit", description=_ABOUT)
    parser.add_argument(
        "file",
        type=Path,
        help="file with the model's captions: COCO results, or another form listed in "
        "docs/variants.md",
    )
    parser.add_argument(
        "--attributes",
        type=Path,
        required=True,
        metavar="LABELS",
        help="file with the images' labels, such as gender: a table with a row for each image",
    )
    parser.add_argument(
        "--only",
        action="append",
        choices=attribute_names(),
        metavar="ATTRIBUTE",
        help="audit only this attribute; repeat the option for more attributes (default: all "
        "labelled attributes)",
    )
    add_config_dir(parser)
    parser.add_argument(
        "--captions",
        type=Path,
        metavar="FILE",
        help="file with human captions of the same images: COCO captions JSON, or a table",
    )
    parser.add_argument(
        "--objects",
        type=Path,
        metavar="FILE",
        help="file with the objects in the images: COCO instances JSON, or a table",
    )
    parser.add_argument(
        "--images",
        type=Path,
        metavar="FOLDER",
        help="folder of photos that are named by image id; the report shows the photos beside "
        "its examples, and all numbers stay the same",
    )
    parser.add_argument(
        "--label-noise",
        type=Path,
        metavar="FILE",
        help="table of how often labels are wrong, written by the command 'rate "
        "--gather'; audit then also prints how such errors would change the "
        "scores, and takes many times as long (see --minutes)",
    )
    parser.add_argument("--gold", type=Path, metavar="FILE", help=arguments.GOLD)
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="folder for runs and report (default: outputs/audit-NAME)",
    )
    parser.add_argument(
        "--minutes",
        type=number(Positive),
        help="longest time for each attribute, in minutes; audit leaves out the slowest metrics "
        "if the time is too short (default: 1; 5 with more than 10,000 captions)",
    )
    parser.add_argument(
        arguments.LIMIT,
        type=number(Count),
        metavar="N",
        help="score only N labelled images, for a first look",
    )
    parser.add_argument(
        arguments.QUICK, action="store_true", help=f"the same as --limit {arguments.QUICK_IMAGES}"
    )
    parser.add_argument(
        arguments.DRY_RUN,
        action="store_true",
        help="print what is finished, what would run and how long that takes, but run nothing",
    )
    parser.add_argument(
        "--stream",
        action="store_true",
        help="read captions block by block, for files that do not fit into memory; files must be "
        "Parquet with whole numbers as image ids, and only questions that need no attacker "
        "are answered",
    )
    parser.add_argument(
        "--tables", action="store_true", help="also print a table of all numbers for each question"
    )
    parser.add_argument(
        "--notes",
        action="store_true",
        help="also print further numbers for each question, and say which numbers are not used "
        "and why",
    )
    parser.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help="write the answers and the results to a file, which the command "
        "'compare --baseline' can read",
    )
    arguments.add_limits(parser)
    add_settings(parser)
    arguments.add_column_options(parser)
    return parser


def add_config_dir(parser: Parser) -> None:
    parser.add_argument(
        _CONFIG_DIR,
        metavar="DIR",
        help="folder with your own YAML files, such as DIR/attribute/NAME.yaml; these files are "
        "data, not code",
    )


def _overrides(options: Namespace, out: Path) -> list[str]:
    """The overrides that all cells share; labels that do not fit are reported, not refused."""
    overrides = [
        "dataset=coco",
        "dataset.strict=False",  # written as Hydra writes values, as in checked jobs
        "logger=csv",
        f"paths.outputs={quote_value(str(out))}",
    ]
    keys = {"attributes": "attributes", "captions": "captions", "objects": "instances"}
    for option, key in keys.items():
        path = getattr(options, option)
        if path is not None:
            overrides.append(f"dataset.{key}={quote_value(str(path))}")
    columns = Namespace(**{**vars(options), "label_column": None, "map": []})
    overrides += setting_overrides(options)
    overrides += arguments.column_overrides(columns)  # labels differ from attribute to attribute
    limit = arguments.QUICK_IMAGES if options.quick and options.limit is None else options.limit
    if limit is not None:
        overrides.append(f"limit={limit}")
    if options.stream:
        overrides += [f"dataset._target_={_STREAMED}", "processes=1"]
    return [*overrides, f"captioner={quote_value(str(options.file))}"]


def slug(name: str) -> str:
    """A name for use in a folder's name. A long name is cut and ends in a hash.

    Example:
        >>> slug("../my captions"), slug("été"), slug(100 * "long")[50:]
        ('my_captions', 'été', 'nglonglong_0184fa9c')
    """
    plain = re.sub(r"[\W_]+", "_", name).strip("_") or "captions"
    if len(plain) <= _LONGEST:
        return plain
    return f"{plain[:_LONGEST]}_{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _labels_of(
    overrides: Sequence[str],
    options: Namespace,
    meanings: Mapping[str, Meanings],
    noisy: Collection[str],
) -> dict[str, list[str]]:
    """Map each attribute to the overrides for its labels, or to none if its labels do not fit."""
    words_by_attribute = {name: _own_labels(options, words) for name, words in meanings.items()}
    source = FileSource(overrides, words_by_attribute)
    read = {
        name: read_or_refused(source, name)
        for name in words_by_attribute
        if words_by_attribute[name]
    }
    misfits = {name: error for name, error in read.items() if isinstance(error, DataError)}
    if misfits and len(misfits) == len(read):
        raise misfits.get(FIRST, next(iter(misfits.values())))
    noise = [f"{_NOISE}{quote_value(str(options.label_noise))}"]
    return {
        name: [*([] if name in misfits else words), *(noise if name in noisy else [])]
        for name, words in words_by_attribute.items()
    }


def _gold(path: Path | None, attributes: Sequence[str]) -> dict[str, str]:
    """Map each attribute in the gold file to the override that names the file.

    A file that labels none of the attributes is refused.
    """
    if path is None:
        return {}
    refused: list[DataError] = []
    labelled = {}
    for name in attributes:
        attribute = preset({"attribute": name, "dataset": "coco"}).build("attribute")
        try:
            read_gold(path, "coco", attribute)
        except DataError as error:
            refused.append(error)
        else:
            labelled[name] = f"dataset.gold={quote_value(str(path))}"
    if not labelled:
        raise refused[0]
    return labelled


def _own_labels(options: Namespace, meanings: Meanings) -> list[str]:
    """The overrides for an attribute's labels, with each ``--map`` to a group of this attribute."""
    groups, strata = meanings
    maps = [text for text in options.map if _group_in(text) in groups | strata]
    if options.map and not maps:
        return []
    return arguments.column_overrides(Namespace(label_column=options.label_column, map=maps))


def _group_in(text: str) -> str:
    return text.rpartition("=")[2].strip()


def _meanings(name: str) -> Meanings:
    """The groups of an attribute with their labels, and the labels of no group."""
    attribute = preset({"attribute": name, "dataset": "coco"}).build("attribute")
    labels = attribute.labels.get("coco")
    written = set(labels.groups) if labels else set()
    return {*attribute.groups, *written}, set(labels.strata if labels else ())


def _announce(
    file: Path,
    source: FileSource,
    started: tuple[float, float],
    corpora: Mapping[str, Corpus],
    plans: Mapping[str, Plan],
) -> None:
    first = next(iter(corpora.values()))
    groups = []
    for name, corpus in corpora.items():
        sizes = corpus.groupings[name].sizes.items()
        groups.append(f"{name} ({', '.join(f'{group} {n}' for group, n in sizes)})")
    people = (
        inflect(len(first.human), "human captions") if len(first.human) else "no human captions"
    )
    objects = "with objects" if first.objects is not None else "no objects"
    n_captions = sum(len(sample.model) for sample in first.each_sample)
    warn(f"{file}: {inflect(n_captions, 'captions')} of labelled images; {people}; {objects}")
    warn(f"labels: {'; '.join(groups)}")
    blanks = ", ".join(f"{first.blanks.get(side, 0)} {side}" for side in SIDES)
    warn(f"blank captions: {blanks}")
    for note in reading_notes(corpora):
        warn(note)
    passed, computed = time.monotonic() - started[0], time.process_time() - started[1]
    slowdown = max(1.0, passed / computed)
    processes = source.processes
    for name, plan in plans.items():
        which = f"{name}: " if len(plans) > 1 else ""
        seconds = announced_seconds(plan.seconds, processes, slowdown)
        permitted = _permitted_metrics(plan, corpora[name])
        warn(
            f"{which}{inflect(len(permitted), 'metrics')}, {inflect(plan.seeds, 'seeds')}, "
            f"about {seconds:.0f} s"
        )
        warn(f"{which}{unseen(corpora[name], name, permitted, plan.matched)}")
        if plan.too_rich:
            warn(
                f"{which}annotators use only {plan.reach:.0%} of the model's words as often "
                "as the model: the other words are removed for scores at equal style "
                f"({', '.join(plan.matched)}; alignment={MATCHED_BOTH})"
            )
        if plan.by_sentence:
            warn(
                f"{which}first sentences are compared too (lic, without preambles): "
                f"annotators use {plan.first_sentence:.0%} of their words as often as the "
                "model"
            )
        if plan.left_out:
            words = [f"metric={','.join(plan.left_out)}", *source.overrides_of(name)]
            alone = f"{PROGRAM} {shlex.join([*config_dir_flag(), *words])}"
            warn(
                f"{which}no time for {', '.join(plan.left_out)}; --minutes gives more, or: {alone}"
            )
    warn()


def _permitted_metrics(plan: Plan, corpus: Corpus) -> list[str]:
    """The planned metrics for which all needed data are present."""
    return [name for name in plan.metrics if catalogue.has_needs(infos()[name], corpus)]


def reading_notes(corpora: Mapping[str, Corpus]) -> list[str]:
    """The notes on the files. A note names its attributes, unless the note holds for all."""
    attributes_by_note: dict[str, list[str]] = {}
    for name, corpus in corpora.items():
        for note in corpus.notes:
            attributes_by_note.setdefault(note, []).append(name)
    return [
        note if len(names) == len(corpora) else f"{', '.join(names)}: {note}"
        for note, names in attributes_by_note.items()
    ]
