"""The Python interface: takes data in memory or files, returns results with tables; no Hydra.

``bias_pipeline`` itself offers these functions (``import bias_pipeline as bp``). The functions run
the same code as the commands, with the same defaults (``conf/``) and numbers.
"""

from __future__ import annotations

import inspect
import json
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from bias_pipeline.data.memory import (
    caption_file,
    check_aligned,
    gold_file,
    label_file,
    object_file,
)
from bias_pipeline.data.rating_tables import read_label_errors
from bias_pipeline.declared import NotNegative, Positive, Share
from bias_pipeline.errors import (
    BiasPipelineError,
    DataError,
    NotApplicableError,
    TooFewImagesError,
    UsageError,
)
from bias_pipeline.io.machine import REPORT
from bias_pipeline.io.paths import safe_name
from bias_pipeline.metrics.catalogue import corrected_by_gold
from bias_pipeline.report.conclusion_checks import COVERAGE, LIMITS, Limits
from bias_pipeline.report.gate import Comparison, check_margin, compare_results
from bias_pipeline.report.name_collisions import check_distinct, resolve_name_collisions
from bias_pipeline.report.page import finished_runs, write_page
from bias_pipeline.results.rows import Result
from bias_pipeline.results.settings import Results
from bias_pipeline.results.store import ResultStore
from bias_pipeline.run.audit import (
    FIRST_SENTENCE,
    Audit,
    Plan,
    attribute_names,
    run_audit,
    word_reach,
)
from bias_pipeline.run.compose import Cell, read_corpus
from bias_pipeline.run.job import load_or_run
from bias_pipeline.run.outcomes import SweepOutcome
from bias_pipeline.run.presets import UnknownSettingError, in_python, preset
from bias_pipeline.run.targets import check_value

if TYPE_CHECKING:
    from bias_pipeline.corpus.corpus import Corpus
    from bias_pipeline.data.memory import Captions, Gold, Labels, Objects
    from bias_pipeline.metrics.base import Metric

Settings = Mapping[str, Any]
P = ParamSpec("P")
T = TypeVar("T")


def _python_call(function: Callable[P, T]) -> Callable[P, T]:
    """The function, with errors that name arguments instead of a command's options."""
    arguments = {*inspect.signature(function).parameters} - {"settings"}

    @wraps(function)
    def call(*given: P.args, **named: P.kwargs) -> T:
        try:
            return function(*given, **named)
        except UnknownSettingError as error:
            raise UnknownSettingError(error.key, {*error.known, *arguments}) from None
        except BiasPipelineError as error:
            error.args = (in_python(str(error)),)
            raise

    return call


@_python_call
def score(
    metric: str,
    captions: Captions,
    labels: Labels,
    human: Captions | None = None,
    objects: Objects | None = None,
    *,
    captioner: str = "captions",
    gold: Gold | None = None,
    out: str | Path | None = None,
    **settings: Any,
) -> Result:
    """Compute one metric of one captioner.

    Args:
        metric: the metric's name, as in ``python -m bias_pipeline metrics``.
        captions: the captioner's captions: a mapping or Series of image id to caption, a list
            (aligned with the other arguments), a table with columns ``id`` and ``caption``, or a
            file. A table comes from pandas, polars, Arrow or DuckDB, or is a data set of Hugging
            Face.
        labels: image id to label, a list, attribute to labels in one of these forms, a table with a
            column for each attribute, or a file.
        human: human captions: image id to captions, lists, a table with a line for each caption,
            or a file.
        objects: image id to the names of the objects in the image, lists, a table with columns
            ``id`` and ``category``, or a file.
        captioner: the captioner's name in results; a file of captions has its own name.
        gold: labels by people for images drawn at random, if ``labels`` were made by a machine:
            image id to label, a DataFrame with columns ``image_id``, ``value`` and, if known,
            ``rater`` and ``chance``, or a file.
        out: the folder in which the result is stored, and attackers' predictions for later calls.
        settings: settings that differ from the defaults: a choice (``attribute="race"``,
            ``encoder="lstm"``), values (``seeds=10``, ``stats={"resamples": 100}``), or a parameter
            of the metric (``sides=["model"]``; ``**{"metric.labels": "each"}`` if an argument of
            this function has the parameter's name).

    Returns:
        The result; :meth:`~bias_pipeline.results.rows.Result.frame` is its table.

    Raises:
        BiasPipelineError: in one sentence, if data or settings are wrong.

    Example:
        >>> captions = ["a man rides", "a woman rides", "a man sits", "a man eats"]
        >>> result = score("gender_error", captions, ["male", "female", "female", "male"])
        >>> result.frame()[["part", "value"]].values.tolist()[0]
        ['score', 0.25]
    """
    data = labels, human, objects, gold
    with _runner_of({captioner: captions}, *data, out, settings) as runner:
        return runner.run(captioner, metric=metric)


@_python_call
def audit(
    captions: Captions,
    labels: Labels,
    human: Captions | None = None,
    objects: Objects | None = None,
    *,
    captioner: str = "captions",
    minutes: float | None = None,
    least_coverage: float = COVERAGE,
    negligible: float = LIMITS.negligible,
    gold: Gold | None = None,
    out: str | Path | None = None,
    **settings: Any,
) -> Audit:
    """Run every metric that the data permit, for every attribute in the labels.

    Args:
        captions: see :func:`score`.
        labels: see :func:`score`; labels without an attribute's name are labels of ``attribute``,
            or else of gender.
        human: see :func:`score`.
        objects: see :func:`score`.
        captioner: see :func:`score`.
        minutes: the time limit for each attribute (default: 1; 5 with more than 10,000 captions).
        least_coverage: the least share of the captions' labelled images that an answer must use.
        negligible: how far an attacker's score at equal style may exceed annotators' score and
            still count as no bias.
        gold: see :func:`score`; docs/labels.md lists the numbers that gold labels correct.
        out: the folder in which results and the report ``report.html`` are stored.
        settings: see :func:`score`; the time limit decides which metrics run, with two seeds.

    Returns:
        The audit; ``str()`` gives its answers in sentences, ``frame()`` its table.

    Raises:
        BiasPipelineError: in one sentence, if data or settings are wrong.
    """
    for name in ("metric", "seeds"):
        if name in settings:
            raise UsageError(
                f"audit has no setting {name!r}: the time (minutes=...) decides what runs, with "
                f"two seeds; use score(...), which takes {name}=..."
            )
    check_value(minutes, Positive | None, "minutes")
    check_value(least_coverage, Share, "least_coverage")
    check_value(negligible, Share, "negligible")
    if out is not None:
        REPORT.require()
    settings = {**settings, "dataset": {"strict": False, **_dataset(settings)}}
    data = labels, human, objects, gold
    with _runner_of({captioner: captions}, *data, out, settings) as runner:
        limits = Limits(coverage=least_coverage, negligible=negligible)
        result = run_audit(runner, minutes, limits)
    if out is not None:
        write_page(Path(out), Path(out) / "report.html", limits, result.made)
    return result


@_python_call
def compare(
    a: Captions | Result | Audit | Results,
    b: Captions | Result | Audit | Results,
    labels: Labels | None = None,
    human: Captions | None = None,
    objects: Objects | None = None,
    *,
    metric: str | Sequence[str] = "lic",
    names: tuple[str, str] = ("a", "b"),
    margin: float | None = None,
    least_coverage: float = COVERAGE,
    alike: float = LIMITS.speech,
    gold: Gold | None = None,
    out: str | Path | None = None,
    **settings: Any,
) -> Comparison:
    """Compare two captioners: is the first fairer? Differences are paired over images and seeds.

    Args:
        a: captions of the first captioner, see :func:`score`; or its results, as :func:`score`,
            :func:`audit` and :func:`load` return them.
        b: captions or results of the second captioner.
        labels: see :func:`score`; not needed for results.
        human: see :func:`score`.
        objects: see :func:`score`.
        metric: the name of a metric, or several names.
        names: the captioners' names in results; a file of captions has its own name.
        margin: by how much ``a`` may be worse, in the metric's unit.
        least_coverage: the least share of the captions' labelled images that a number must use.
        alike: how much caption length and vocabulary may differ if attackers read captions.
        gold: see :func:`score`.
        out: see :func:`score`.
        settings: see :func:`score`.

    Returns:
        The decisions; ``str()`` gives sentences, ``frame()`` a table. A metric that does not apply
        to a captioner is in ``skipped``, with the reason.

    Raises:
        BiasPipelineError: in one sentence, if nothing can be compared.
    """
    check_value(margin, NotNegative | None, "margin")
    check_value(least_coverage, Share, "least_coverage")
    check_value(alike, NotNegative, "alike")
    limits = Limits(coverage=least_coverage, speech=alike)
    if isinstance(a, Result | Audit | Results) and isinstance(b, Result | Audit | Results):
        return compare_results([*_results(a), *_results(b)], margin=margin, limits=limits)
    if isinstance(a, Result | Audit | Results) or isinstance(b, Result | Audit | Results):
        raise UsageError("compare: give captions of both captioners, or results of both")
    if labels is None or len(names) != 2 or len({safe_name(str(name)) for name in names}) != 2:
        raise UsageError(
            "compare: captions need labels and two names that differ, compare(a, b, labels)"
        )
    if isinstance(a, str | Path) and isinstance(b, str | Path) and Path(a) == Path(b):
        raise UsageError(f"compare: both captioners are {a}; name two files")
    metrics = [metric] if isinstance(metric, str) else metric
    both = dict(zip(names, (a, b), strict=True))
    with _runner_of(both, labels, human, objects, gold, out, settings) as runner:
        for name in metrics if margin is not None else ():
            check_margin(margin, runner.metric(name))
        results, skipped = runner.compare_captioners(metrics)
    return compare_results(results, margin=margin, limits=limits, skipped=skipped)


@_python_call
def load(folder: str | Path = "outputs") -> Results:
    """All finished runs of a folder, whether commands wrote them or calls with ``out=``.

    Captioners that share a name, such as ``A/model.json`` and ``B/model.json``, get the names that
    tables and reports use: ``A_model`` and ``B_model``.

    Returns:
        The results; ``frame()`` gives a table of all rows.

    Raises:
        BiasPipelineError: if the folder has no finished runs.
    """
    results, draws = finished_runs(Path(folder))
    apart, _ = resolve_name_collisions(results)
    return Results(replace(result, draws=draws.get(result.run_id, {})) for result in apart)


def _results(results: Result | Audit | Results) -> Sequence[Result]:
    if isinstance(results, Audit):
        return results.results
    return [results] if isinstance(results, Result) else results


@contextmanager
def _runner_of(
    captions: Mapping[str, Captions],
    labels: Labels,
    human: Captions | None,
    objects: Objects | None,
    gold: Gold | None,
    out: str | Path | None,
    settings: Settings,
) -> Iterator[_InMemoryRunner]:
    """A runner of metrics on these data; its temporary files exist only inside the block."""
    if "paths" in settings:
        raise UsageError("setting 'paths': name the folder of results with out=FOLDER")
    with TemporaryDirectory(prefix="bias_pipeline-") as place:
        folder = Path(place)
        (folder / "captioner").mkdir()
        attribute = settings.get("attribute", "gender")
        unnamed = attribute if isinstance(attribute, str) else "gender"  # of labels without a name
        ids = _dataset(settings).get("id_column")
        check_aligned({**captions, "labels": labels, "human": human, "objects": objects}, ids)
        try:
            given = {
                "attributes": label_file(labels, folder, unnamed, ids),
                "captions": None if human is None else caption_file(human, folder, "human", ids),
                "instances": None if objects is None else object_file(objects, folder, ids),
                "gold": None if gold is None else gold_file(gold, folder),
            }
            named = {key: str(path) for key, path in given.items() if path is not None}
            files = {
                name: caption_file(source, folder / "captioner", name, ids)
                for name, source in captions.items()
            }
            dataset = {**_dataset(settings), **named}
            outputs = folder if out is None else Path(out)
            paths = {"outputs": str(outputs)}
            settings = {**settings, "dataset": dataset, "paths": paths}
            yield _InMemoryRunner(settings, files, folder, outputs)
        except BiasPipelineError as error:
            error.args = (_without_places(str(error), folder),)
            raise


def _without_places(message: str, folder: Path) -> str:
    """A message in which names of arguments replace temporary files."""
    place = re.escape(f"{folder}{os.sep}")
    file = rf"{place}(?:captioner/)?([\w.-]*)\.(?:parquet|jsonl)(?:, (?:line|row) \d+)?"
    return re.sub(place, "", re.sub(file, r"\1", message))


def _dataset(settings: Settings) -> Mapping[str, Any]:
    """The settings of the data; files are refused here, since they have arguments of their own."""
    dataset = settings.get("dataset", {})
    if not isinstance(dataset, Mapping):
        raise UsageError(
            f"dataset={dataset!r}: captions and labels are the data set here; give its settings, "
            "such as dataset={'strict': False}"
        )
    return dataset


@dataclass(frozen=True)
class _InMemoryRunner:
    """Runs the cells of one call, and reads each corpus once.

    Attributes:
        settings: the settings that all cells share.
        files: captioner to the file of its captions.
        folder: the folder for files of data in memory.
        outputs: where results are stored.
    """

    settings: Settings
    files: Mapping[str, Path]
    folder: Path
    outputs: Path = Path()
    _read: dict[str, Corpus] = field(default_factory=dict)

    @property
    def attributes(self) -> list[str]:
        """All attributes that have a configuration file."""
        return attribute_names()

    def corpus(self, attribute: str) -> Corpus:
        """The corpus of the first captioner."""
        return self._corpus(self._cell(next(iter(self.files)), attribute=attribute))

    def reach(self, attribute: str, settings: Mapping[str, str]) -> float:
        """Call :meth:`bias_pipeline.run.audit.Source.reach` for the first captioner."""
        if "text" in self.settings and FIRST_SENTENCE.keys() <= settings.keys():
            return math.nan
        chosen = {**self._labels_of(attribute), **_numbers(settings), "metric": "lic"}
        lic = self._cell(next(iter(self.files)), **chosen)
        return word_reach(lic, self._corpus(lic))

    def run_plans(self, plans: Mapping[str, Plan]) -> SweepOutcome:
        """The results of every metric that the data permit; raises an error if a metric fails."""
        results: list[Result] = []
        skipped: dict[str, str] = {}
        captioner = next(iter(self.files))
        for attribute, plan in plans.items():
            for metric, settings in plan.cells:
                chosen = {**_numbers(settings), "metric": metric, "seeds": plan.seeds}
                labels = self._labels_of(attribute) | self._gold_of(attribute, metric)
                try:
                    results.append(self.run(captioner, **labels, **chosen))
                except NotApplicableError as error:
                    words = {"attribute": attribute, "metric": metric, **settings}
                    cell_name = " ".join(f"{k}={v}" for k, v in words.items())
                    skipped[cell_name] = in_python(_without_places(str(error), self.folder))
        made = [result for result in results if result.ids]  # draws and predictions are not stored
        return SweepOutcome(self.outputs, results, skipped=skipped, made=made)

    def compare_captioners(self, metrics: Sequence[str]) -> tuple[list[Result], dict[str, str]]:
        """The results of both captioners, and the reason of each skipped cell."""
        results: list[Result] = []
        skipped: dict[str, str] = {}
        cells = {name: self._cell(name, metric=metrics[0]) for name in self.files}
        check_distinct({name: self._corpus(cell).digest for name, cell in cells.items()})
        for metric in metrics:
            try:
                for captioner in self.files:
                    results.append(self.run(captioner, metric=metric))
            except NotApplicableError as error:
                if isinstance(error, TooFewImagesError) and len(metrics) == 1:
                    raise  # a setting is wrong
                reason = in_python(_without_places(str(error), self.folder))
                skipped[f"metric={metric} captioner={captioner}"] = reason
        return results, skipped

    def noisy(self, attribute: str) -> bool:
        """Whether the settings ask how much additional label errors would move scores."""
        return (
            self._cell(next(iter(self.files)), **self._labels_of(attribute)).label_noise is not None
        )

    def _labels_of(self, attribute: str) -> dict[str, object]:
        """The settings for an attribute, without the label errors of other attributes."""
        dataset = self.settings["dataset"]
        with_errors = _attributes_with_errors(dataset.get("label_noise"))
        if not with_errors or attribute in with_errors:
            return {"attribute": attribute}
        return {"attribute": attribute, "dataset": {**dataset, "label_noise": None}}

    def _gold_of(self, attribute: str, metric: str) -> dict[str, object]:
        """The settings of the data, without gold labels if these do not correct the metric."""
        dataset = self.settings["dataset"]
        if not dataset.get("gold"):
            return {}
        cell = self._cell(next(iter(self.files)), attribute=attribute)
        with suppress(DataError):  # the gold labels are of another attribute
            if corrected_by_gold(metric) and cell.gold:
                return {}
        return {"dataset": {**dataset, "gold": None}}

    def metric(self, name: str) -> Metric:
        """A metric under the settings."""
        metric: Metric = self._cell(next(iter(self.files)), metric=name).build("metric")
        return metric

    def run(self, captioner: str, **chosen: object) -> Result:
        """The result and the draws of a cell."""
        here = self._cell(captioner, **chosen)
        result, cached = load_or_run(here, self._corpus(here))
        if not cached:
            return result
        store = ResultStore(here.tree["paths"]["outputs"])
        return replace(result, draws=store.draws(result))

    def _cell(self, captioner: str, **chosen: object) -> Cell:
        source = {"captioner": str(self.files[captioner])}
        return preset({**self.settings, **source, **chosen}, {"dataset": "coco", "logger": None})

    def _corpus(self, here: Cell) -> Corpus:
        others = here.tree["metric"].get("others")
        key = json.dumps([here.tree["captioner"], here.tree["attribute"], others])
        if key not in self._read:
            corpus = read_corpus(here.tree)
            mine = Path(corpus.file).is_relative_to(self.folder.resolve())
            self._read[key] = replace(corpus, file="") if mine else corpus
        return self._read[key]


def _attributes_with_errors(rates: object) -> list[str]:
    """The attributes for which label errors are given, in a file or by group.

    Example:
        >>> _attributes_with_errors({"male": 0.03, "female": 0.05})
        ['gender']
    """
    names = attribute_names()
    if isinstance(rates, str | Path):
        return [name for name in names if name in read_label_errors(Path(rates))]
    if not isinstance(rates, Mapping):
        return []
    cells = {name: preset({"attribute": name, "dataset": "coco"}) for name in names}
    return [name for name, cell in cells.items() if {*rates} & {*cell.build("attribute").groups}]


def _numbers(settings: Mapping[str, str]) -> dict[str, object]:
    """The overrides in which texts of numbers have become numbers.

    Example:
        >>> _numbers({"alignment": "matched", "encoder.order": "1"})
        {'alignment': 'matched', 'encoder.order': 1}
    """
    return {key: int(text) if text.isdecimal() else text for key, text in settings.items()}
