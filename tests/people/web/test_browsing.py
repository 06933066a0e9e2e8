"""``browse``: the table of runs and a run's page, for readers and against strangers."""

import json
import re
import shutil
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="needs the extra web")

from starlette.testclient import TestClient

from bias_pipeline.commands.main import main
from bias_pipeline.metrics.attack.lic import LIC
from bias_pipeline.people.commands.web import ScoredFiles
from bias_pipeline.people.web.browsing import BrowsePages
from bias_pipeline.people.web.captions_behind import Library
from bias_pipeline.people.web.run_folder import RunFolder, RunIndex
from bias_pipeline.results.rows import Result
from bias_pipeline.results.settings import with_settings
from bias_pipeline.results.store import RESULT, ResultStore
from tests.people.web.conftest import HOSTS, check_headers, check_plain
from tests.report.test_page import directional, result

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>"


def client_of(root: Path, token: str = "") -> TestClient:
    """A browser on the pages of a folder."""
    pages = BrowsePages(RunFolder(root), Library(ScoredFiles()), token)
    application = pages.application(HOSTS)
    return TestClient(application, base_url="http://127.0.0.1", follow_redirects=False)


def save(root: Path, *results: Result) -> Path:
    for one in results:
        ResultStore(root).save(replace(one, manifest={**one.manifest, "corpus": {}}))
    return root


@pytest.fixture
def root(tmp_path: Path) -> Path:
    values = {"sat": 0.3, "oscar": 0.1, "updn": 0.2}
    return save(tmp_path / "runs", *(result(name, value=value) for name, value in values.items()))


def captioners(text: str) -> list[str]:
    return re.findall(r'data-name="captioner">(\w+)', text)


# --- the table


def test_every_headline_is_a_line_with_its_interval_and_arrows_are_about_a_run_alone(root):
    before = client_of(root).get("/").text
    assert captioners(before) == ["oscar", "sat", "updn"]
    assert "30.0 [50.0, 50.0] ↑" in before
    save(root, result("other", value=0.0))
    after = client_of(root).get("/").text
    lines = [re.findall(r"[\d.]+ \[[\d., ]+\] .", text) for text in (before, after)]
    assert set(lines[0]) <= set(lines[1])
    assert "each number by itself" in after


def test_both_directions_are_lines(tmp_path):
    one = directional("sat")
    rows = [replace(row, run_id="sat") for row in one.rows]
    text = client_of(save(tmp_path / "runs", replace(one, rows=rows))).get("/").text
    assert [direction in text for direction in ("A→T", "T→A")] == [True, True]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("sort=value", ["oscar", "updn", "sat"]),
        ("sort=-value", ["sat", "updn", "oscar"]),
        ("captioner=sat", ["sat"]),
        ("find=OSC+lic", ["oscar"]),
        ("find=dbac", []),
    ],
)
def test_lines_are_sorted_and_filtered(query, names, root):
    assert captioners(client_of(root).get(f"/?{query}").text) == names


def test_an_absent_number_is_last_in_either_order(root):
    save(root, result("none", value=float("nan")))
    client = client_of(root)
    for order in ("value", "-value"):
        assert captioners(client.get(f"/?sort={order}").text)[-1] == "none"


def test_settings_that_differ_are_shown(root):
    other = result("sat", value=0.5)
    rows = [replace(row, run_id="run-other", encoder="lstm") for row in other.rows]
    save(root, Result("run-other", rows, other.manifest))
    assert re.search(r'data-name="settings" class="words">lstm<', client_of(root).get("/").text)


def test_a_page_has_fifty_lines_and_leads_to_the_others(tmp_path):
    client = client_of(save(tmp_path / "runs", *(result(f"c{n:03}") for n in range(60))))
    first, second = client.get("/?find=c").text, client.get("/?find=c&page=2").text
    assert (len(captioners(first)), len(captioners(second))) == (50, 10)
    assert 'href="/?find=c&amp;page=2" data-key="ArrowRight"' in first
    assert 'rel="next"' not in second


# --- what is kept of the folder


def settings_of(index: RunIndex) -> dict[str, dict[str, str]]:
    return {run: dict(result.settings) for run, result in index.runs.items()}


def variant(number: int, metric: str, encoder: str) -> Result:
    one = result(f"c{number}")
    name = f"run-{number}"
    rows = [replace(row, run_id=name, metric=metric, encoder=encoder) for row in one.rows]
    return Result(name, rows, one.manifest)


def test_only_what_changed_is_read_and_compared_again(tmp_path, monkeypatch):
    encoders = ("ngram", "lstm", "bert")
    names = [(n, ("lic", "leakage")[n % 2], encoders[n % 3]) for n in range(12)]
    root = save(tmp_path / "runs", *(variant(*name) for name in names))
    folder = RunFolder(root)
    read, compared = [], []
    monkeypatch.setattr(
        folder.store, "read", lambda run: (read.append(run), ResultStore(root).read(run))[1]
    )
    monkeypatch.setattr(
        "bias_pipeline.people.web.run_folder.with_settings",
        lambda results: (compared.append(len(results)), with_settings(results))[1],
    )
    before = folder.index
    folder.refresh()
    assert (folder.index is before, read, compared) == (True, [], [])
    save(root, variant(12, "lic", "sbert"))
    shutil.rmtree(root / "run-0")
    (root / "run-1" / RESULT).touch()
    folder.refresh()
    assert (sorted(read), sorted(compared)) == (["run-1", "run-12"], [6, 6])
    assert settings_of(folder.index) == settings_of(RunFolder(root).index)
    everything = with_settings(map(ResultStore(root).read, sorted(folder.index.runs)))
    assert settings_of(folder.index) == {one.run_id: dict(one.settings) for one in everything}


def test_those_who_wait_for_a_look_at_the_folder_share_the_next(root, monkeypatch):
    folder, looks = RunFolder(root), []

    def look() -> None:
        looks.append(time.sleep(0.2))

    monkeypatch.setattr(folder, "_look", look)
    threads = [threading.Thread(target=folder.refresh) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(looks) == 2


def test_a_run_that_ends_later_appears_and_a_folder_that_vanishes_is_one_sentence(root):
    client = client_of(root)
    save(root, result("late"))
    assert "late" in captioners(client.get("/").text)
    shutil.rmtree(root)
    reply = client.get("/")
    assert (reply.status_code, "cannot be read (No such file" in reply.text) == (409, True)


def test_too_little_memory_is_one_sentence(root, monkeypatch):
    def run_out_of_memory(*_: object) -> None:
        raise MemoryError

    client = client_of(root)
    monkeypatch.setattr("bias_pipeline.people.web.browsing.shown_lines", run_out_of_memory)
    reply = client.get("/")
    assert (reply.status_code, "too little memory" in reply.text) == (409, True)


# --- a run


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("run-noted", "Leakage: noted"),
        ("run-noted", "one caption is odd"),
        ("run-noted", "group:a"),
        ("run-noted", "lower is fairer"),
        ("run-sat?find=group", "1 to 1 of 1 number"),
    ],
)
def test_a_run_has_its_headline_notes_and_numbers(address, words, root):
    save(root, result("noted", note="one caption is odd"))
    assert words in client_of(root).get(f"/run/{address}").text


def test_numbers_of_an_older_metric_are_named(root):
    old, new = result("old", metric_version=1), result("new", metric_version=LIC.info.version)
    client = client_of(save(root, old, new))
    assert "of version 1 of lic; today" in client.get("/run/run-old").text
    assert "of version" not in client.get("/run/run-new").text


def test_nothing_names_places_of_the_machine(root):
    one = result("placed", note="see /home/kim/secret/captions.json")
    save(root, replace(one, manifest={**one.manifest, "overrides": ["a=/home/kim/x"]}))
    assert "/home/kim" not in client_of(root).get("/run/run-placed").text


# --- what goes wrong


def test_a_run_of_another_version_is_left_out_and_named(root):
    path = root / "run-sat" / RESULT
    path.write_text(json.dumps({**json.loads(path.read_text()), "schema": 99}))
    text = client_of(root).get("/").text
    assert captioners(text) == ["oscar", "updn"]
    assert "its schema is not 1" in text


def test_a_killed_run_is_named_and_an_export_is_none(root):
    assert main(["report", str(root), "--export", str(root / "paper")]) == 0
    (root / ".lic-x.0123abc.tmp").mkdir()
    (root / "half").mkdir()
    (root / "half" / "rows.csv").touch()
    text = client_of(root).get("/").text
    assert "lic-x was not finished; run the job again" in text
    assert f"half has no {RESULT}; run the job again" in text
    assert "paper has no" not in text


@pytest.mark.parametrize(
    ("address", "status"),
    [
        *((address, 404) for address in ("/run/absent", "/?page=9", "/?page=x")),
        *((address, 400) for address in ("/?sort=colour", f"/?find={'x' * 201}")),
    ],
)
def test_an_address_that_is_wrong_is_one_sentence(address, status, root):
    reply = client_of(root).get(address)
    assert (reply.status_code, 'class="fault"' in reply.text) == (status, True)


# --- what strangers try


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", ""])
def test_another_name_of_the_server_is_refused(host, root):
    reply = client_of(root).get("/", headers={"host": host})
    assert (reply.status_code, "sat" in reply.text) == (421, False)


def test_pages_may_do_little_and_hold_no_script_and_no_style(root):
    client = client_of(root)
    for address in ("/", "/run/run-sat", "/nowhere", "/style.css"):
        reply = client.get(address)
        check_headers(reply.headers)
        if not address.endswith(".css"):
            check_plain(reply.text)


def test_nothing_can_be_sent_and_a_name_never_becomes_a_path(root):
    client = client_of(root)
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        assert client.request(method, "/", files={"x": b"x"}).status_code == 405
    for name in ("..", "..%2f..%2fetc%2fpasswd", "%2e%2e", ".claims", "run-sat%2fresult.json"):
        reply = client.get(f"/run/{name}")
        assert reply.status_code in (200, 404)
        assert "root:" not in reply.text
        assert "schema" not in reply.text


def test_what_data_hold_is_escaped(tmp_path):
    one = result(HOSTILE, note=HOSTILE)
    rows = [replace(row, run_id="run-evil", part=row.part + HOSTILE) for row in one.rows]
    client = client_of(save(tmp_path / "runs", Result("run-evil", rows, one.manifest)))
    for address in ("/", "/run/run-evil", f"/?find={HOSTILE}", f"/run/{HOSTILE}"):
        assert "<script>" not in client.get(address).text.replace('<script src="/keys.js"', "")
        assert "<img" not in client.get(address).text


def test_the_token_leads_to_the_page_and_leaves_the_address(root):
    client = client_of(root, "correct horse")
    for address in ("/", "/run/run-sat", "/?token=wrong"):
        reply = client.get(address)
        assert (reply.status_code, "sat" in reply.text) == (403, False)
    reply = client.get("/run/run-sat?find=group&token=correct horse")
    assert reply.headers["location"] == "http://127.0.0.1/run/run-sat?find=group"
    assert "httponly" in reply.headers["set-cookie"].lower()
    assert client.get("/run/run-sat").status_code == 200
