"""Turns a command line into a checked configuration, and runs nothing.

Only this module, hydra_composer.py, hydra_allowlist.py, job.py and launch.py use Hydra.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict, get_type_hints

from bias_pipeline.attack.encoder import Encoder, Head, NetEncoder
from bias_pipeline.attack.probe import Probe
from bias_pipeline.attack.recipe import TrainerFlags
from bias_pipeline.corpus.attribute import Attribute, TaskVocabulary
from bias_pipeline.corpus.gold_labels import GoldLabels
from bias_pipeline.corpus.regrouping import LabelNoise
from bias_pipeline.corpus.split import SplitRule, seeds_of
from bias_pipeline.data.base import Dataset
from bias_pipeline.data.image_masking import ImageMasking
from bias_pipeline.declared import Configurable, ConfiguredAs, Count, OneLine, Range, Share, Text
from bias_pipeline.errors import (
    AbsentModelError,
    ResourceError,
    UnlabelledError,
    UsageError,
    did_you_mean,
    inflect,
)
from bias_pipeline.io.paths import group_choices
from bias_pipeline.metrics import catalogue
from bias_pipeline.metrics.base import WEIGHTS, Metric, MetricInfo
from bias_pipeline.results.identity import groups_used, keys_of, run_id, set_by
from bias_pipeline.run.corpora import read_once
from bias_pipeline.run.loggers import ResultLogger
from bias_pipeline.run.overrides import (
    check_names,
    options_of,
    other_overrides,
    representative_overrides,
)
from bias_pipeline.run.references import References
from bias_pipeline.run.targets import (
    build,
    by_content,
    check_nodes,
    check_value,
    resolve,
)
from bias_pipeline.run.yaml_files import as_written
from bias_pipeline.stats.bootstrap import Bootstrap
from bias_pipeline.stats.scoring import Scoring
from bias_pipeline.text.scored_text import ScoredText
from bias_pipeline.text.tokenize import Tokenize
from bias_pipeline.text.transform import TextTransform

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from bias_pipeline.corpus.corpus import Corpus
    from bias_pipeline.run.hydra_composer import Loader

Samples = Literal["mean", "first"]
ErrorFile = Annotated[str, Text(r"[^\x00-\x1f]+", "a file, or shares of wrong labels by group")]
LabelFile = Annotated[str, Text(r"[^\x00-\x1f]+", "a file")]
LabelNoiseRates = ErrorFile | Mapping[str, Share | Mapping[str, Share]] | None
AS_READ = ScoredText()
INVOCATION = "BIAS_PIPELINE_INVOCATION"
NEEDED = ("metric", "dataset", "attribute", "seeds", "paths")

Uuid = Annotated[str, Text(r"[A-Za-z0-9_.:-]+", "the number or UUID of a device")]
Folder = Annotated[str, Text(r"[^\x00-\x1f\x7f-\x9f\u2028\u2029]+", "a folder on one line")]


class ConfigSchema(TypedDict, total=False):
    """The keys of a configuration, without Hydra's own keys. Users may add keys."""

    metric: Metric
    dataset: Dataset
    captioner: str | int | float | None
    limit: Count | None
    processes: Literal["auto"] | Count
    devices: Sequence[Annotated[int, Range(low=0)] | Uuid] | None
    attribute: Attribute
    task: TaskVocabulary
    text: Tokenize
    masking: TextTransform
    image_masking: ImageMasking
    alignment: TextTransform
    encoder: Encoder
    prompt: Mapping[Literal["template"], OneLine]
    debias: Configurable  # the metric that uses a value declares which values are allowed
    head: Head
    probe: Probe
    scoring: Scoring
    split: SplitRule
    stats: Bootstrap
    trainer: Annotated[Mapping[str, Any], ConfiguredAs(TrainerFlags)]
    logger: Mapping[str, ResultLogger] | None
    paths: Mapping[str, Folder]


@dataclass(frozen=True)
class Cell:
    """The checked configuration of one cell."""

    tree: Mapping[str, Any]  # the configuration as resolved plain data
    used: frozenset[str]  # top-level keys that the metric reaches
    choices: Mapping[str, str]  # the chosen file of each configuration group
    # Paths in the metric's tree to the keys that set their values
    keys: Mapping[str, str] = field(default_factory=dict)
    overrides: Sequence[str] = ()  # as given, for the manifest

    @cached_property
    def seeds(self) -> tuple[int, ...]:
        return _seeds(self.tree["seeds"])

    def build(self, key: str) -> Any:
        return instantiate(self.tree[key], key)

    def loggers(self) -> Sequence[ResultLogger]:
        return list(self.build("logger").values()) if self.tree.get("logger") else []

    @property
    def runs_networks(self) -> bool:
        """Whether attackers or judges are networks, which use several cores by themselves."""
        return isinstance(self._encoder, NetEncoder) or WEIGHTS in self.metric.needs

    @property
    def metric(self) -> MetricInfo:
        """The metric's description, without building it."""
        info: MetricInfo = resolve(self.tree["metric"]["_target_"]).info
        return info

    def run_id(self, corpus: Corpus) -> str:
        """The name of the cell's run on a corpus, which depends on all that decides numbers."""
        return run_id(
            by_content(self.tree["metric"]),
            corpus,
            metric=self.metric.name,
            attribute=self.tree["attribute"]["name"],
            metric_version=self.metric.version,
            seeds=self.seeds,
            label_noise=self.label_noise,
            gold=self.gold,
        )

    @cached_property
    def gold(self) -> GoldLabels | None:
        """The true labels of some images, from the configuration, or None without them."""
        file = self.tree["gold"]
        if file is None:
            return None
        if self.tree["label_noise"] is not None:
            raise UsageError(
                "dataset.gold corrects the errors of labels, and dataset.label_noise adds some; "
                "give one of both"
            )
        from bias_pipeline.data.gold_files import read_gold

        dataset = self.build("dataset")
        return read_gold(Path(file), dataset.name, self.build("attribute"))

    @cached_property
    def label_noise(self) -> LabelNoise | None:
        """The shares of further label errors, from the configuration, or None without them."""
        rates, attribute = self.tree["label_noise"], self.build("attribute")
        if isinstance(rates, str):
            from bias_pipeline.data.rating_tables import read_label_errors

            path = Path(rates)
            tables = read_label_errors(path)
            if attribute.name not in tables and not attribute.is_crossed:
                raise UsageError(
                    f"dataset.label_noise: {path} has no line on attribute {attribute.name!r}; "
                    f"{did_you_mean(attribute.name, tables)}"
                )
            rates = tables.get(attribute.name, {})
        return None if rates is None else LabelNoise.from_rates(attribute, rates)

    def require(self) -> None:
        """Refuse, before data are read, an encoder or a metric whose needs are not met."""
        if self._encoder:
            if self._encoder.sees and not self.metric.image:
                raise UsageError(
                    f"metric={self.metric.name} uses captions only, but encoder="
                    f"{self.choice('encoder')} needs pictures; choose metric=imagecaptioner2, "
                    "or an encoder of texts"
                )
            self._encoder.require()
        try:
            _require_metric(json.dumps(self.tree["metric"]))
        except ResourceError as error:
            raise AbsentModelError(str(error)) from error

    @cached_property
    def _encoder(self) -> Encoder | None:
        return self.build("encoder") if "encoder" in self.used else None

    def corpus(self) -> Corpus:
        """The corpus that is scored; a process reads each corpus once."""
        keys = ("dataset", "attribute", "captioner", "limit", "text", "samples")
        others = {"metric": {"others": self.tree["metric"].get("others") or {}}}
        tree = {key: self.tree.get(key) for key in keys} | others
        return read_once(json.dumps(tree), partial(read_corpus, tree))

    @property
    def attackers(self) -> str:
        """The settings that decide the attackers, as JSON; empty if no attacker is trained."""
        decides = catalogue.attackers(self.tree["metric"])
        others = ("dataset", "captioner", "limit", "samples", "seeds")
        return decides and json.dumps([decides, *map(self.tree.get, others)], sort_keys=True)

    def expected_seconds(self, *, trained: bool = False) -> float:
        """The processor seconds of the cell, from measured rates of encoders with known cost."""
        return catalogue.seconds_of(
            self.metric.name,
            self.corpus(),
            len(self.seeds),
            self.tree["metric"],
            noisy=self.label_noise is not None,
            matched=self.choice("alignment").startswith("matched"),
            trained=trained,
        )

    def choice(self, group: str) -> str:
        """The file that is chosen from a group; empty if the metric does not use the group."""
        return self.choices.get(group, "") if group in self.used else ""


@lru_cache(maxsize=64)  # the cells of a sweep repeat most metrics
def _require_metric(settings: str) -> None:
    """Refuse a metric whose needs are not met under its settings, given as JSON."""
    instantiate(json.loads(settings), "metric").require()


def cell(words: Sequence[str]) -> Cell:
    """The cell that overrides describe. Commands other than ``run`` use this function."""
    options = options_of(words)
    check_names(options)
    return composed_cell(list(options.overrides), options)


def read_corpus(tree: Mapping[str, Any]) -> Corpus:
    """The corpus of a checked configuration, read from its files."""
    reader = instantiate(tree["dataset"], "dataset")
    name = tree["captioner"] or reader.captioners()[0]
    attribute = instantiate(tree["attribute"], "attribute")
    others = instantiate(tree["metric"].get("others") or {}, "metric.others")
    scored = instantiate(tree["text"], "text").scored
    return corpus_of(
        reader,
        str(name),
        attribute,
        tree.get("limit"),
        list(others.values()),
        scored,
        tree["samples"],
    )


def corpus_of(
    dataset: Dataset,
    captioner: str,
    attribute: Attribute,
    limit: int | None = None,
    others: Sequence[Attribute] = (),
    scored: ScoredText = AS_READ,
    samples: Samples = "mean",
) -> Corpus:
    """The corpus of a captioner in the form that is scored, with notes on its captions."""
    from bias_pipeline.text.caption_language import (
        language_notes,
        language_shares,
        notes_on_lists,
    )
    from bias_pipeline.text.image_fit import misfit_notes

    try:
        readers = dataset.samples(captioner)
        used = readers if samples == "mean" else readers[:1]
        drawn = [reader.read(captioner, attribute, limit, others) for reader in used]
    except UnlabelledError as error:
        raise UsageError(
            f"{error}; {dataset.name} has labels of {_labelled_attributes(dataset)}"
        ) from error
    corpus, *more = (
        replace(
            scored.apply(sample, dataset.blank_limit),
            edits=tuple(scored.apply(edit, dataset.blank_limit) for edit in sample.edits),
        )
        for sample in drawn
    )
    notes = notes_on_lists(attribute)
    notes += language_notes(language_shares(corpus, attribute), attribute)
    notes += misfit_notes(corpus, attribute)
    if len(readers) > 1:
        done = "scores are means over them" if more else "the first of each is scored"
        notes.append(
            f"{inflect(len(readers), 'captions')} an image: {done} (metric.samples={samples})"
        )
    return replace(corpus, samples=tuple(more), notes=(*corpus.notes, *notes))


def _labelled_attributes(dataset: Dataset) -> str:
    trees = {name: cell([f"attribute={name}"]).tree for name in group_choices("attribute")}
    attributes = [
        name for name, tree in trees.items() if dataset.name in tree["attribute"].get("labels", ())
    ]
    return ", ".join(attributes) or "no attribute"


def composed_cell(overrides: Sequence[str], options: Namespace) -> Cell:
    """The cell of overrides that have one value each."""
    return Sweep([overrides], options)[0]


@dataclass(frozen=True)
class Sweep(Sequence[Cell]):
    """The cells of a command in order; each cell is composed when it is needed."""

    jobs: Sequence[Sequence[str]]  # the overrides of each cell, with one value each
    options: Namespace  # Hydra's flags
    overrides: Sequence[str] = ()  # of all cells, with `all` replaced by its values
    words: Sequence[str] = ()  # the command line

    def __len__(self) -> int:
        return len(self.jobs)

    def __getitem__(self, number: int) -> Cell:  # type: ignore[override]
        overrides = self.jobs[number]
        return replace(checked_cell(*self.loader.task(overrides)), overrides=tuple(overrides))

    def __getstate__(self) -> dict[str, object]:
        """The state for a helper process, which composes the cells itself."""
        return {"jobs": self.jobs, "options": self.options}

    @cached_property
    def loader(self) -> Loader:
        """The loader that composes the cells, each once."""
        return composer(self.options)

    @cached_property
    def config(self) -> DictConfig:
        return self.loader.job(representative_overrides(self.overrides))

    @cached_property
    def first_cell(self) -> Cell:
        return cell_of(self.config)

    @cached_property
    def sample(self) -> Sequence[Cell]:
        """The first cell, and a cell for each further value of each key in the sweep.

        Of several captioners only the first is composed, because the data set checks captioners'
        names.
        """
        named = [
            representative_overrides([word])[0] if word.startswith("captioner=") else word
            for word in self.overrides
        ]
        others = other_overrides(named)
        return [self.first_cell, *(checked_cell(*self.loader.task(words)) for words in others)]

    @property
    def devices(self) -> list[str]:
        """The GPUs of the command's processes, one for each; empty if no GPU is named."""
        return [str(device) for device in self.config.devices or ()]

    @property
    def processes(self) -> int | str:
        """The number of processes that the command may use; ``auto`` is one per core."""
        if self.devices:
            return len(self.devices)
        if self.config.processes == "auto" and any(cell.runs_networks for cell in self.sample):
            return 1  # networks use several cores by themselves
        return self.config.processes


def composer(options: Namespace) -> Loader:
    """A loader of configurations that reads each file once and composes each job once."""
    from bias_pipeline.run.hydra_composer import loader_of

    os.environ.setdefault(INVOCATION, new_invocation())
    return loader_of(options.config_dir)


def cell_of(config: DictConfig) -> Cell:
    """The checked cell of a configuration that Hydra composed."""
    return checked_cell(as_written(config), config.hydra.runtime.choices)


def checked_cell(written: Mapping[str, Any], choices: Mapping[str, Any]) -> Cell:
    """The cell of a configuration given as plain data; its references are resolved first."""
    for key in written:
        if not isinstance(key, str):
            raise UsageError(
                f"{key} is not the name of a key; a key at the top of a configuration is a text"
            )
    written = {key: node for key, node in written.items() if key != "hydra"}
    references = References(written)
    tree = references.resolve()
    if references.faults:
        raise UsageError(f"{references.faults[0]}; {_misfit(references.faults[0])}")
    tree["samples"] = _take_setting(tree, "metric", "samples", Samples, "mean")
    tree["label_noise"] = _take_setting(tree, "dataset", "label_noise", LabelNoiseRates, None)
    tree["gold"] = _take_setting(tree, "dataset", "gold", LabelFile | None, None)
    try:
        check_task(tree)
    except UsageError as error:
        place, equals, rest = str(error).partition("=")
        raise UsageError(f"{set_by(written, place)}{equals}{rest}") from error
    used, keys = groups_used(written, "metric"), keys_of(written, "metric")
    return Cell(tree, frozenset(used), {str(k): str(v) for k, v in choices.items()}, keys)


def _take_setting(
    tree: Mapping[str, Any], group: str, name: str, kind: Any, usual: object
) -> object:
    """Remove a setting from a group's node; returns its checked value, or ``usual`` if absent."""
    node = tree.get(group)
    value = node.pop(name, usual) if isinstance(node, dict) else usual
    check_value(value, kind, f"{group}.{name}")
    return value


def check_task(tree: Mapping[str, Any]) -> None:
    """Refuse targets that are not allowed, and values that no parameter declares."""
    for key in NEEDED:
        if tree.get(key) is None:
            raise UsageError(f"{key} is missing; the configuration needs it")
    kinds = get_type_hints(ConfigSchema, include_extras=True)
    for key, place in tree["paths"].items() if isinstance(tree["paths"], Mapping) else ():
        if not isinstance(place, str) or not place:
            raise UsageError(f"paths.{key}={place!r} must name a folder (put a number in quotes)")
    check_value(tree["paths"], kinds["paths"], "paths")
    check_nodes(tree)
    for key, value in tree.items():
        check_value(value, kinds.get(key, Any), key)
    _seeds(tree["seeds"])


def _seeds(value: object) -> tuple[int, ...]:
    listed = value if isinstance(value, list) else [value]
    if not isinstance(value, int | list) or not all(type(seed) is int for seed in listed):
        raise UsageError(f"seeds={value}: give a positive number or a list of distinct seeds >= 0")
    return seeds_of(value)


def _misfit(message: str) -> str:
    if "'task." in message or "'task'" in message:
        return "this masking needs a list of tasks: add +task=coco_objects"
    return "the chosen attribute, masking and encoder may not fit together"


def instantiate(node: Any, key: str) -> Any:
    """Build the object that a checked node describes; its errors become a UsageError."""
    try:
        return build(node)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{key}: {error}") from error


def new_invocation() -> str:
    """A new, unique name for the folder of this invocation."""
    return f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
