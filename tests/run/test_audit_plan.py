"""What an audit plans: more metrics in more time, the same for an attribute whatever the others."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.errors import NotApplicableError, SweepError, UsageError
from bias_pipeline.run import audit as auditing
from bias_pipeline.run.audit import plan_for, word_reach
from bias_pipeline.run.compose import cell
from bias_pipeline.run.outcomes import SweepOutcome


@pytest.fixture
def corpus(tmp_path, monkeypatch) -> Corpus:
    monkeypatch.chdir(tmp_path)
    return cell(["dataset.n_images=300"]).corpus()


@pytest.mark.parametrize(("seconds", "dbac"), [(1e6, True), (0.0, False)])
def test_less_time_means_fewer_metrics(corpus, seconds, dbac):
    assert ("dbac" in plan_for(corpus, seconds).metrics) == dbac


def test_attackers_of_captions_are_run_at_equal_speech_too(corpus):
    alone = corpus.rewrite({"human": Captions.from_texts([])})
    assert [plan_for(item, 1e6).matched for item in (corpus, alone)] == [("lic", "leakage"), ()]


def test_without_objects_tasks_are_attacked_at_equal_speech_in_the_time_of_the_metric(corpus):
    bare = replace(corpus, objects=None)
    assert plan_for(bare, 1e6).matched == ("lic", "leakage", "dbac")
    assert plan_for(bare, 0.0).matched == ("lic", "leakage")


@dataclass(frozen=True)
class Columns:
    """Cells of scenes whose label file has some attributes; nothing is run."""

    attributes: tuple[str, ...]

    def corpus(self, attribute: str) -> Corpus:
        if attribute not in self.attributes:
            raise NotApplicableError("no such column")
        return cell(["dataset.n_images=300", f"attribute={attribute}"]).corpus()

    def noisy(self, attribute: str) -> bool:
        del attribute
        return False

    def reach(self, attribute: str, settings: Mapping[str, str]) -> float:
        del attribute, settings
        return 1.0

    def run_plans(self, plans: Mapping[str, auditing.Plan]) -> SweepOutcome:
        raise AssertionError(plans)


def test_a_further_column_of_labels_changes_nothing_of_what_is_run_for_gender(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    minutes = 0.01  # too few for all metrics
    _, alone = auditing.plan_audit(Columns(("gender",)), minutes)
    _, beside = auditing.plan_audit(Columns(("gender", "race", "age")), minutes)
    assert alone["gender"].left_out
    assert beside["gender"] == alone["gender"]


@pytest.mark.parametrize(
    ("reach", "alignment"), [(1.0, "matched"), (0.95, "matched"), (0.94, "matched_both")]
)
def test_words_that_people_cannot_reach_are_removed_at_equal_speech(reach, alignment):
    plan = auditing.Plan(["lic"], [], 2, 1.0, ("lic",), reach)
    assert [dict(settings).get("alignment") for _, settings in plan.cells] == [None, alignment]


@pytest.mark.parametrize(
    ("whole", "first", "alignment"),
    [
        (0.34, 0.94, "matched_both"),
        (0.34, 0.97, "matched"),
        (0.34, 0.43, None),  # hardly better
        (0.34, math.nan, None),  # the user chose what is scored
        (0.96, 0.99, None),
    ],
)
def test_first_sentences_are_compared_too_where_people_reach_more_of_them(whole, first, alignment):
    plan = auditing.Plan(["lic"], [], 2, 1.0, ("lic",), whole, first)
    sentences = [dict(settings) for _, settings in plan.cells if "text.unit" in settings]
    assert [settings["alignment"] for settings in sentences] == ([alignment] if alignment else [])
    assert all(settings["text.preambles"] == "cut" for settings in sentences)


@pytest.mark.parametrize(("shares", "times"), [((0.96, 1.0), 1), ((0.4, 0.9), 2)])
def test_first_sentences_are_read_only_where_whole_captions_say_too_much(
    shares, times, tmp_path, monkeypatch
):
    reads: list[Mapping[str, str]] = []

    def reach(self: Columns, attribute: str, settings: Mapping[str, str]) -> float:
        reads.append(settings)
        return shares["text.unit" in settings]

    monkeypatch.chdir(tmp_path)
    _, usual = auditing.plan_audit(Columns(("gender",)))
    monkeypatch.setattr(Columns, "reach", reach)
    _, plans = auditing.plan_audit(Columns(("gender",)))
    assert len(reads) == times
    assert plans["gender"].by_sentence is (times == 2)
    assert (plans["gender"].seconds > usual["gender"].seconds) is (times == 2)


@pytest.mark.parametrize(("captioner", "reached"), [("faithful", True), ("verbose", False)])
def test_the_reach_is_that_of_the_words_that_lic_reads(captioner, reached):
    lic = cell(
        ["metric=lic", "alignment=matched", "dataset.n_images=300", f"captioner={captioner}"]
    )
    assert (word_reach(lic, lic.corpus()) >= 0.95) is reached


class Failing(Columns):
    """All of its cells fail."""

    def run_plans(self, plans: Mapping[str, auditing.Plan]) -> SweepOutcome:
        return SweepOutcome(Path(), exit_code=SweepError.exit_code)


def test_where_cells_failed_it_is_not_said_that_no_metric_applies(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SweepError, match="jobs failed for the reasons above"):
        auditing.run_audit(Failing(("gender",)))


def test_too_small_groups_are_named_with_the_labels_of_no_group(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    labels = "".join(f"{n},{'Male' if n % 2 else 'Female'}\n" for n in range(40))
    Path("labels.csv").write_text(f"id,bb_gender\n{labels}")
    Path("mine.json").write_text(
        json.dumps([{"image_id": n, "caption": "a person sits"} for n in range(40)])
    )
    files = ["dataset=coco", "captioner=mine.json", "dataset.attributes=labels.csv"]

    class TakenOut(Columns):
        def corpus(self, attribute: str) -> Corpus:
            if attribute not in self.attributes:
                raise NotApplicableError("no such column")
            return cell([*files, "dataset.label_map={Male: Unsure}"]).corpus()

    sizes = r"gender: 0 male, 20 female \(labels of no group: 20 'Male'\)"
    with pytest.raises(UsageError, match=sizes):
        auditing.plan_audit(TakenOut(("gender",)))
