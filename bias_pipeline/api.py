"""From Python: data in memory or files in, results with tables out. No Hydra.

The functions are those that ``bias_pipeline`` itself offers::

    import bias_pipeline as bp

Below them is what the commands run, with the same defaults (``conf/``) and the same numbers.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from bias_pipeline.analysis.doubts import COVERAGE, LIMITS, Limits
from bias_pipeline.analysis.namesakes import told_apart
from bias_pipeline.commands.auditing import Audit, Plan, audited
from bias_pipeline.commands.compare import Comparison, compared
from bias_pipeline.config.compose import Cell, read_corpus
from bias_pipeline.config.presets import preset
from bias_pipeline.datasets.memory import caption_file, label_file, object_file
from bias_pipeline.errors import BiasPipelineError, NotApplicableError, UsageError
from bias_pipeline.io.extras import REPORT
from bias_pipeline.report.content import finished_runs
from bias_pipeline.report.page import write_page
from bias_pipeline.results.settings import Results
from bias_pipeline.results.store import Result, ResultStore
from bias_pipeline.sweeps.job import finish

if TYPE_CHECKING:
    from bias_pipeline.corpus.corpus import Corpus
    from bias_pipeline.datasets.memory import Captions, Labels, Objects

Settings = Mapping[str, Any]


def score(
    metric: str,
    captions: Captions,
    labels: Labels,
    human: Captions | None = None,
    objects: Objects | None = None,
    *,
    captioner: str = "captions",
    out: str | Path | None = None,
    **settings: Any,
) -> Result:
    """One metric of one captioner.

    Args:
        metric: its name, as of ``python -m bias_pipeline metrics``.
        captions: what the captioner wrote: image id to caption, a list aligned with the others, a
            DataFrame with columns ``id`` and ``caption``, or a file.
        labels: image id to label, a list, a DataFrame with a column an attribute, or a file.
        human: what people wrote: image id to captions, lists, a DataFrame with a line a caption,
            or a file.
        objects: image id to the names of the objects in the image, lists, a DataFrame with columns
            ``id`` and ``category``, or a file.
        captioner: its name in results; that of the file where ``captions`` is one.
        out: folder that keeps the result, and attackers' predictions for the next call.
        settings: what differs from the defaults: a choice (``attribute="race"``,
            ``encoder="lstm"``), values (``seeds=10``, ``stats={"resamples": 100}``), or a parameter
            of the metric (``sides=["model"]``).

    Returns:
        The result; :meth:`~bias_pipeline.results.store.Result.frame` is its table.

    Raises:
        BiasPipelineError: in one sentence, if data or settings are wrong.

    Example:
        >>> captions = ["a man rides", "a woman rides", "a man sits", "a man eats"]
        >>> found = score("gender_error", captions, ["male", "female", "female", "male"])
        >>> found.frame()[["part", "value"]].values.tolist()[0]
        ['score', 0.25]
    """
    with _desk({captioner: captions}, labels, human, objects, out, settings) as desk:
        return desk.run(captioner, metric=metric)


def audit(
    captions: Captions,
    labels: Labels,
    human: Captions | None = None,
    objects: Objects | None = None,
    *,
    captioner: str = "captions",
    minutes: float | None = None,
    least_coverage: float = COVERAGE,
    out: str | Path | None = None,
    **settings: Any,
) -> Audit:
    """Every metric that the data permit, under every attribute that the labels carry.

    Args:
        captions: see :func:`score`.
        labels: see :func:`score`; labels without a name are of ``attribute``, else of gender.
        human: see :func:`score`.
        objects: see :func:`score`.
        captioner: see :func:`score`.
        minutes: to stay within; 1, and above 10,000 captions 5, if left out.
        least_coverage: share of the labelled images that a conclusion must rest on.
        out: folder that keeps results and a report, ``report.html``.
        settings: see :func:`score`; seeds and metrics are chosen by the time there is.

    Returns:
        The results; as text their answers in sentences, and ``frame()`` their table.

    Raises:
        BiasPipelineError: in one sentence, if data or settings are wrong.
    """
    if out is not None:
        REPORT.require()
    settings = {**settings, "dataset": {"strict": False, **settings.get("dataset", {})}}
    with _desk({captioner: captions}, labels, human, objects, out, settings) as desk:
        found = audited(desk, minutes, Limits(coverage=least_coverage))
    if out is not None:
        write_page(Path(out), Path(out) / "report.html")
    return found


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
    out: str | Path | None = None,
    **settings: Any,
) -> Comparison:
    """Is the first captioner fairer than the second? Paired over images and seeds.

    Args:
        a: what the first captioner wrote, see :func:`score`; or results of it, as :func:`score`,
            :func:`audit` and :func:`load` return them.
        b: the same of the second.
        labels: see :func:`score`; of results there is no need.
        human: see :func:`score`.
        objects: see :func:`score`.
        metric: one or several, by name.
        names: of the captioners in results; of a file its own name.
        margin: by how much ``a`` may be worse, in the metric's unit.
        least_coverage: share of the labelled images that a number must rest on.
        alike: share by which words a caption and vocabularies may differ where attackers read.
        out: see :func:`score`.
        settings: see :func:`score`.

    Returns:
        What is decided; as text in sentences, and ``frame()`` its table.

    Raises:
        BiasPipelineError: in one sentence, if nothing can be compared.
    """
    limits = Limits(coverage=least_coverage, speech=alike)
    if isinstance(a, Result | Audit | Results) and isinstance(b, Result | Audit | Results):
        return compared([*_results(a), *_results(b)], margin=margin, limits=limits)
    if isinstance(a, Result | Audit | Results) or isinstance(b, Result | Audit | Results):
        raise UsageError("compare: give captions of both captioners, or results of both")
    if labels is None or len(set(names)) < 2:
        raise UsageError("compare: captions need labels and two names, compare(a, b, labels)")
    metrics = [metric] if isinstance(metric, str) else metric
    both = dict(zip(names, (a, b), strict=True))
    with _desk(both, labels, human, objects, out, settings) as desk:
        found = [desk.run(name, metric=own) for own in metrics for name in names]
    return compared(found, margin=margin, limits=limits)


def load(folder: str | Path = "outputs") -> Results:
    """All finished runs of a folder, as the commands, or ``out=``, left them.

    Captioners of one name, such as ``A/model.json`` and ``B/model.json``, are called as tables and
    reports call them: ``A_model`` and ``B_model``.

    Returns:
        The results; ``frame()`` is the table of all.

    Raises:
        BiasPipelineError: if there are none.
    """
    results, draws = finished_runs(Path(folder))
    apart, _ = told_apart(results)
    return Results(replace(result, draws=draws.get(result.run_id, {})) for result in apart)


def _results(own: Result | Audit | Results) -> Sequence[Result]:
    if isinstance(own, Audit):
        return own.results
    return [own] if isinstance(own, Result) else own


@contextmanager
def _desk(
    captions: Mapping[str, Captions],
    labels: Labels,
    human: Captions | None,
    objects: Objects | None,
    out: str | Path | None,
    settings: Settings,
) -> Iterator[_Desk]:
    """A desk with these data, for as long as their files are there."""
    with TemporaryDirectory(prefix="bias_pipeline-") as place:
        folder = Path(place)
        (folder / "captioner").mkdir()
        attribute = str(settings.get("attribute", "gender"))
        try:
            given = {
                "attributes": label_file(labels, folder, attribute),
                "captions": None if human is None else caption_file(human, folder, "human"),
                "instances": None if objects is None else object_file(objects, folder),
            }
            named = {key: str(path) for key, path in given.items() if path is not None}
            files = {
                name: caption_file(own, folder / "captioner", name)
                for name, own in captions.items()
            }
            dataset = {**settings.get("dataset", {}), **named}
            paths = {"outputs": str(folder if out is None else Path(out))}
            yield _Desk({**settings, "dataset": dataset, "paths": paths}, files, folder)
        except BiasPipelineError as error:  # whoever gave no file knows none
            raise type(error)(str(error).replace(f"{folder}{os.sep}", "")) from None


@dataclass(frozen=True)
class _Desk:
    """Cells of one call; corpora are read once, and anew by the next call.

    Attributes:
        settings: what all cells share.
        files: captioner to the file of its captions.
        folder: where data that came from memory lie.
    """

    settings: Settings
    files: Mapping[str, Path]
    folder: Path
    _read: dict[str, Corpus] = field(default_factory=dict)

    def corpus(self, attribute: str) -> Corpus:
        """What is scored of the first captioner."""
        return self._corpus(self._cell(next(iter(self.files)), attribute=attribute))

    def scored(self, attribute: str, plan: Plan) -> tuple[Sequence[Result], int]:
        """The results that the data permit; nothing fails without raising."""
        found = []
        for metric in plan.metrics:
            with suppress(NotApplicableError):
                chosen = {"attribute": attribute, "metric": metric, "seeds": plan.seeds}
                found.append(self.run(next(iter(self.files)), **chosen))
        return found, 0

    def run(self, captioner: str, **chosen: object) -> Result:
        """The result of a cell, with its draws."""
        here = self._cell(captioner, **chosen)
        result, cached = finish(here, self._corpus(here))
        if not cached:
            return result
        store = ResultStore(here.tree["paths"]["outputs"])
        return replace(result, draws=store.draws(result.run_id))

    def _cell(self, captioner: str, **chosen: object) -> Cell:
        own = {"captioner": str(self.files[captioner])}
        return preset({**self.settings, **own, **chosen}, {"dataset": "coco", "logger": None})

    def _corpus(self, here: Cell) -> Corpus:
        others = here.tree["metric"].get("others")
        key = json.dumps([here.tree["captioner"], here.tree["attribute"], others])
        if key not in self._read:
            corpus = read_corpus(here.tree)
            mine = Path(corpus.file).is_relative_to(self.folder.resolve())
            self._read[key] = replace(corpus, file="") if mine else corpus
        return self._read[key]
