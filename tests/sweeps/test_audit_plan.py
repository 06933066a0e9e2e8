"""What an audit plans: more metrics in more time, the same for an attribute whatever the others."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from bias_pipeline.config.compose import cell
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.errors import NotApplicableError, SweepError, UsageError
from bias_pipeline.sweeps import audit as auditing
from bias_pipeline.sweeps.audit import plan_for, word_reach


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

    def reach(self, attribute: str) -> float:
        del attribute
        return 1.0

    def scored(self, plans: Mapping[str, auditing.Plan]) -> auditing.ScoredCells:
        raise AssertionError(plans)


def test_a_further_column_of_labels_changes_nothing_of_what_is_run_for_gender(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    minutes = 0.01  # too few for all metrics
    _, alone = auditing.planned(Columns(("gender",)), minutes)
    _, beside = auditing.planned(Columns(("gender", "race", "age")), minutes)
    assert alone["gender"].left_out
    assert beside["gender"] == alone["gender"]


@pytest.mark.parametrize(
    ("reach", "alignment"), [(1.0, "matched"), (0.95, "matched"), (0.94, "matched_both")]
)
def test_words_that_people_cannot_reach_are_removed_at_equal_speech(reach, alignment):
    plan = auditing.Plan(["lic"], [], 2, 1.0, ("lic",), reach)
    assert [dict(settings).get("alignment") for _, settings in plan.cells] == [None, alignment]


@pytest.mark.parametrize(("captioner", "reached"), [("faithful", True), ("verbose", False)])
def test_the_reach_is_that_of_the_words_that_lic_reads(captioner, reached):
    lic = cell(
        ["metric=lic", "alignment=matched", "dataset.n_images=300", f"captioner={captioner}"]
    )
    assert (word_reach(lic, lic.corpus()) >= 0.95) is reached


class Failing(Columns):
    """All of its cells fail."""

    def scored(self, plans: Mapping[str, auditing.Plan]) -> auditing.ScoredCells:
        return auditing.ScoredCells((), {}, SweepError.exit_code)


def test_where_cells_failed_it_is_not_said_that_no_metric_applies(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SweepError, match="jobs failed for the reasons above"):
        auditing.audited(Failing(("gender",)))


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
        auditing.planned(TakenOut(("gender",)))
