"""Where long work is: how it is told, and when."""

import io
import json
import os
import sys
import time
from pathlib import Path

import pytest

from bias_pipeline.io import progress
from bias_pipeline.io.progress import Bar, bar, track
from bias_pipeline.run.launch import parse_sweep
from bias_pipeline.run.sweep_bar import SweepBar, costs_of_sweep
from tests.corpora import leaky_corpus

LIC = (2.0, "ngram")
CHEAP_AND_DEAR = [(0.5, "ngram"), (12.0, "ngram")]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def await_text(stream: io.StringIO, *texts: str) -> None:
    """Until a stream holds them, however busy the machine is."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and not all(text in stream.getvalue() for text in texts):
        time.sleep(0.02)


def end_job(folder: Path, number: int, status: str, seconds: float = 1.0) -> None:
    (folder / str(number)).mkdir(exist_ok=True)
    outcome = {"status": status, "seconds": seconds}
    (folder / str(number) / "outcome.json").write_text(json.dumps(outcome))


def aged(bar: Bar, monkeypatch: pytest.MonkeyPatch, seconds: float) -> Bar:
    monkeypatch.setattr(bar, "_start", time.monotonic() - seconds)
    return bar


def test_a_log_has_a_line_from_time_to_time(monkeypatch):
    log = io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    monkeypatch.setattr(progress, "LINE_S", 0.05)
    with bar("lic sat") as opened:
        opened.total = 3
        await_text(log, 2 * "lic sat: 0 of 3\n")  # one step, however long, is not silent
    assert set(log.getvalue().splitlines()) == {"lic sat: 0 of 3"}


def test_what_is_short_says_nothing(monkeypatch):
    for stream in (io.StringIO(), Terminal()):
        monkeypatch.setattr(sys, "stderr", stream)
        with bar("lic sat"):
            assert list(track("abc", 3)) == ["a", "b", "c"]
        assert stream.getvalue() == ""


def test_a_terminal_shows_the_sweep_and_the_cell(monkeypatch):
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(progress, "PATIENCE_S", 0)
    monkeypatch.setattr(progress, "DRAW_S", 0.05)
    with bar("cells") as outer:
        outer.total = 7
        with bar("lic sat"):
            list(track("a", 1))
            await_text(screen, "cells: 0 of 7", "lic sat: 1 of 1")
    assert "cells: 0 of 7" in screen.getvalue()
    assert "lic sat: 1 of 1" in screen.getvalue()


def test_a_bar_within_another_is_told_with_it():
    with bar("cells") as outer:
        outer.total = 7
        with bar("lic sat") as inner:
            assert outer.sentence() == "cells: 0 of 7, now lic sat"
            inner.total, inner.done = 40, 10
            assert outer.sentence().startswith("cells: 0 of 7, now lic sat 25 %")
        assert outer.sentence() == "cells: 0 of 7"


def test_two_bars_of_the_same_things_are_one_counter():
    with bar("pictures") as outer:
        outer.total = 1276
        with bar("images") as inner:
            inner.total, inner.done = 1276, 447
            assert outer.sentence().startswith("pictures: 447 of 1276")
            assert outer.sentence().count(" of ") == 1


@pytest.mark.parametrize(
    ("total", "done", "sentence"),
    [(5, 2, "x: 2 of 5, about 45 s left"), (4, 1, "x: 1 of 4")],
    ids=["of the steps so far", "the first step tells nothing"],
)
def test_the_time_left(total, done, sentence, monkeypatch):
    progress = aged(Bar("x"), monkeypatch, 30.0)
    progress.total, progress.done = total, done
    assert progress.sentence() == sentence


@pytest.mark.parametrize(
    ("cells", "first", "before", "seconds", "left"),
    [
        ([LIC, (2.0, "lstm")] * 2, ["done"], 10.0, 210.0, 10 + 200),
        ([LIC] * 3, ["failed"], 1.0, 61.0, 60),
        ([LIC] * 4, ["cached", "cached"], 1.0, 60.0, 60),
    ],
    ids=["a cell of every encoder is waited for", "failed cells tell nothing", "nor cached ones"],
)
def test_the_time_left_of_a_sweep(cells, first, before, seconds, left, tmp_path, monkeypatch):
    progress = aged(SweepBar(tmp_path, cells), monkeypatch, before)
    for number, status in enumerate(first):
        end_job(tmp_path, number, status, before)
    progress.update()
    assert progress.seconds_left() is None
    aged(progress, monkeypatch, seconds)
    end_job(tmp_path, len(first), "done", seconds - before)
    progress.update()
    assert progress.seconds_left() == pytest.approx(left, abs=2)


def test_nothing_is_told_where_all_steps_so_far_are_done():
    bar = Bar("lic")
    bar.total = bar.done = 3  # what is found later is not known
    assert bar.seconds_left() is None


def test_a_sweep_is_followed_by_what_its_jobs_leave(tmp_path):
    sweep_bar = SweepBar(tmp_path, [LIC] * 3)
    assert sweep_bar.place() == "job 1 of 3"
    end_job(tmp_path, 0, "done")
    sweep_bar.update()
    assert sweep_bar.place() == "job 2 of 3"
    end_job(tmp_path, 1, "failed")
    end_job(tmp_path, 2, "done")
    sweep_bar.update()
    assert sweep_bar.place() == "job 3 of 3"


def test_a_dear_metric_takes_more_of_the_time_left_and_its_cell_shortens_it(tmp_path, monkeypatch):
    progress = aged(SweepBar(tmp_path, CHEAP_AND_DEAR), monkeypatch, 1.0)
    end_job(tmp_path, 0, "done")
    progress.update()
    before = progress.seconds_left() or 0
    assert before > 20
    aged(progress, monkeypatch, 21.0)
    progress.update()
    assert progress.seconds_left() == pytest.approx(before - 20, abs=1)


def test_metrics_whose_models_are_absent_take_no_time(tmp_path, monkeypatch):
    words = ["captioner=terse,faithful", "metric=lic,gender_score"]
    costs = costs_of_sweep(parse_sweep([*words, "seeds=1"]), None)
    progress = aged(SweepBar(tmp_path, costs), monkeypatch, 60.0)
    for number, status in enumerate(["done", "failed"]):
        end_job(tmp_path, number, status, 60.0)
    progress.update()
    assert progress.seconds_left() == pytest.approx(60, abs=2)


def test_the_cells_of_a_sweep_are_those_of_its_command():
    words = ["metric=lic,dbac", "captioner=terse,faithful", "limit=300"]
    costs = costs_of_sweep(parse_sweep([*words, "seeds=2"]), None)
    (lic, _), (lic_again, _), (dbac, _), (dbac_again, _) = costs
    assert lic == lic_again < dbac == dbac_again


def test_a_slow_start_on_few_captions_announces_no_hours(tmp_path, monkeypatch):
    """Under load its first cells took 20 s each, of 1 s; they say nothing of attacks."""
    words = ["metric=declines,gender_error,lic,dbac"]
    few = leaky_corpus(300)
    costs = costs_of_sweep(parse_sweep([*words, "seeds=2"]), few)
    progress = aged(SweepBar(tmp_path, costs), monkeypatch, 20.0)
    for number, seconds in enumerate([20.0, 40.0]):
        aged(progress, monkeypatch, seconds)
        end_job(tmp_path, number, "done", 20.0)
        progress.update()
        assert progress.seconds_left() is None
    aged(progress, monkeypatch, 60.0)
    end_job(tmp_path, 2, "done", 20.0)
    progress.update()
    assert 5 < (progress.seconds_left() or 0) < 40


def test_the_last_cell_of_two_processes_has_its_own_time_left(tmp_path, monkeypatch):
    """Four cells of 10 s and one of 60 s that a second process began at the start."""
    costs = [(5.0, "ngram")] * 4 + [(30.0, "ngram")]
    progress = aged(SweepBar(tmp_path, costs), monkeypatch, 25.0)
    begin_job(tmp_path, 4, 25.0)
    for number in range(2):
        end_job(tmp_path, number, "done", 10.0)
    begin_job(tmp_path, 2, 5.0)
    progress.update()
    assert progress.seconds_left() == pytest.approx(60 - 25, abs=1)  # cells 2 and 3 end before
    aged(progress, monkeypatch, 40.0)
    begin_job(tmp_path, 4, 40.0)
    for number in (2, 3):
        end_job(tmp_path, number, "done", 10.0)
    progress.update()
    assert progress.seconds_left() == pytest.approx(60 - 40, abs=1)


def begin_job(folder: Path, number: int, ago: float) -> None:
    (folder / str(number)).mkdir(exist_ok=True)
    os.utime(folder / str(number), (time.time() - ago,) * 2)


def test_attackers_that_cells_share_count_once():
    words = ["captioner=terse", "limit=300", "seeds=2"]
    corpus = leaky_corpus(5000)
    both, leakage = (
        costs_of_sweep(parse_sweep([*words, f"metric={names}"]), corpus)
        for names in ("lic,leakage", "leakage")
    )
    assert leakage[0][0] == pytest.approx(both[0][0])  # alone it trains them
    assert both[1][0] < both[0][0] / 2
