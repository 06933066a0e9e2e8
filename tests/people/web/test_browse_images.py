"""``browse``: from a number to the images, captions and guesses behind it, on runs of scenes."""

import html
import json
import re
import shutil
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

pytest.importorskip("starlette", reason="needs the extra web")

from starlette.testclient import TestClient

from bias_pipeline.data.photos import find_photos
from bias_pipeline.io.digests import seal, sha256_of, unseal
from bias_pipeline.people.commands.web import ScoredFiles
from bias_pipeline.people.image_scores import ImageScores
from bias_pipeline.people.web.browsing import BrowsePages
from bias_pipeline.people.web.captions_behind import Library
from bias_pipeline.people.web.evidence import scores_of
from bias_pipeline.people.web.run_folder import RunFolder
from bias_pipeline.results.parquet import EXCLUSIVE
from bias_pipeline.results.rows import Result
from bias_pipeline.results.store import RESULT, ResultStore
from bias_pipeline.run import compose, corpora
from bias_pipeline.run.job import load_or_run
from bias_pipeline.stats.scores import ScoreTable
from bias_pipeline.stats.scoring import Lic
from tests.cli.commands import wait_for
from tests.people.web.conftest import HOSTS
from tests.photo_folder import write_photos

Runs = tuple[Path, Result, Result, Result]
SMALL = ("limit=160", "seeds=2", "logger=[]", "metric.learning_curve=false", "metric.positions=2")


def compute_run(root: Path, *words: str) -> Result:
    """The result of a cell that is run as on the command line."""
    overrides = [*words, f"paths.outputs={root}"]
    cell = compose.cell(overrides)
    run_id = load_or_run(cell, cell.corpus(), overrides=overrides)[0].run_id
    result = ResultStore(root).read(run_id)
    assert result is not None
    return result


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    root = tmp_path_factory.mktemp("runs")
    lic = compute_run(root, "metric=lic", "captioner=amplifier", *SMALL)
    other = compute_run(root, "metric=lic", "captioner=faithful", *SMALL)
    error = compute_run(root, "metric=gender_error", "captioner=stereotyper", *SMALL[:3])
    return root, lic, other, error


def client_of(
    root: Path, data: Path | None = None, photos: Mapping[str, Path] | None = None
) -> TestClient:
    pages = BrowsePages(RunFolder(root), Library(ScoredFiles(data, photos or {})))
    return TestClient(pages.application(HOSTS), base_url="http://127.0.0.1", follow_redirects=False)


@pytest.fixture(scope="module")
def client(runs: Runs) -> TestClient:
    return client_of(runs[0])


@pytest.fixture
def runs_copy(runs: Runs, tmp_path: Path) -> Path:
    """The runs, to be damaged."""
    shutil.copytree(runs[0], tmp_path / "runs")
    return tmp_path / "runs"


def images(text: str) -> list[str]:
    """The ids of the images on a page."""
    return re.findall(r'<p class="head"><a [^>]*>(\w+)</a>', text)


def shares_added(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"adds ([+-][\d.e-]+)<", text)]


def count(text: str) -> int:
    match = re.search(r"of ([\d,]+) images|no images fit", text)
    assert match
    return int((match[1] or "0").replace(",", ""))


def run_of_files(root: Path, files: Path, words: str) -> str:
    """The id of a run on captions and labels of sixty images in files."""
    files.mkdir()
    labels = [f"{i},{'Male' if i % 2 else 'Female'}\n" for i in range(60)]
    (files / "labels.csv").write_text("id,bb_gender\n" + "".join(labels))
    people = ["woman", "man", "man"]
    captions = [{"image_id": i, "caption": f"a {people[i % 3]} {words} {i}"} for i in range(60)]
    (files / "mine.json").write_text(json.dumps(captions))
    overrides = (f"dataset.attributes={files}/labels.csv", f"captioner={files}/mine.json")
    return compute_run(root, "metric=gender_error", "dataset=coco", "logger=[]", *overrides).run_id


# --- what an image adds


@pytest.mark.parametrize("part", ["score", "model", "human"])
def test_what_images_add_is_the_score(part, runs):
    root, lic, *_ = runs
    (value,) = (row.value for row in lic.rows if row.part == part)
    assert scores_of(lic, root).shares(part).sum() == pytest.approx(value, abs=1e-12)


def test_without_an_image_the_score_lacks_what_it_added(runs):
    """Against the metric's own arithmetic, its mean over captions."""
    root, lic, *_ = runs
    ids = sorted({str(one) for one in scores_of(lic, root).ids.to_pylist()})
    model = [p for p in ResultStore(root).predictions(lic.run_id, ids) if p.name == "model"]
    table = ScoreTable.from_predictions(model, Lic())
    config = {**lic.manifest["config"], "scoring": {"_target_": "x.Lic", "average": "captions"}}
    scores = scores_of(replace(lic, manifest={**lic.manifest, "config": config}), root)
    assert scores is not None
    place = scores.ids.to_pylist().index(ids[7])
    row = list(table.images).index(7)
    tested = np.isfinite(table.values)
    expected = np.mean(np.nan_to_num(table.values)[row] / tested.sum(axis=0))
    assert scores.side_shares["model"][place] == pytest.approx(expected)


def test_images_that_raise_the_score_most_come_first(client, runs):
    address = f"/run/{runs[1].run_id}/images"
    score = next(row.value for row in runs[1].rows if row.part == "score")
    first = client.get(address).text
    assert f"all together {100 * score:.2f}" in first
    up, down = shares_added(first), shares_added(client.get(f"{address}?sort=share").text)
    assert len(up) == len(down) == 50
    assert up == sorted(up, reverse=True)
    assert down == sorted(down)
    assert up[0] > 0 > down[0]


def test_pages_show_every_image_once(client, runs):
    address = f"/run/{runs[1].run_id}/images?page="
    first = client.get(address + "1").text
    n_pages = -(-count(first) // 50)
    ids = [i for page in range(1, n_pages + 1) for i in images(client.get(f"{address}{page}").text)]
    assert len(ids) == len(set(ids)) == count(first)


# --- filters


def test_filters_by_group_word_and_guess_are_true_of_all_that_they_show(client, runs):
    address = f"/run/{runs[1].run_id}/images"
    text = client.get(f"{address}?group=female&guess=right&word=WOMAN").text
    captions = re.findall(r'<p class="caption">(.*?)</p>', text)
    assert 0 < count(text) < count(client.get(address).text)
    assert all('<mark class="g1">woman</mark>' in caption.lower() for caption in captions)
    assert set(re.findall(r'</a> <span class="chip">(\w+)<', text)) == {"female"}
    assert all(int(share) >= 50 for share in re.findall(r"guesses (\d+) % right", text))


@pytest.mark.parametrize(
    ("name", "values"),
    [("group", ["male", "female"]), ("guess", ["right", "wrong"]),
     ("names", ["right", "wrong", "none", "several"])],
)  # fmt: skip
def test_the_values_of_a_filter_split_the_images(name, values, client, runs):
    address = f"/run/{runs[1].run_id}/images"
    counts = [count(client.get(f"{address}?{name}={value}").text) for value in values]
    assert sum(counts) == count(client.get(address).text)


def test_a_phrase_is_searched_as_one_and_an_object_is_in_every_image_that_is_shown(client, runs):
    address = f"/run/{runs[1].run_id}/images"
    text = client.get(f"{address}?word=potted+plant").text
    captions = re.findall(r'<p class="caption">(.*?)</p>', text)
    assert captions
    assert all("potted plant" in re.sub("<.*?>", "", caption).lower() for caption in captions)
    corpus = compose.cell(runs[1].manifest["overrides"]).corpus()
    text = client.get(f"{address}?object=umbrella").text
    ids = images(text)
    assert ids
    assert all("umbrella" in corpus.objects[corpus.ids.index(i)] for i in ids)


def test_a_concept_is_said_of_a_person_in_every_caption_that_is_shown(client, runs):
    run = runs[1].run_id
    text = client.get(f"/run/{run}/images?concept=young").text
    captions = re.findall(r'<p class="caption">(.*?)</p>', text)
    assert 0 < count(text) < count(client.get(f"/run/{run}/images").text)
    underlined = [re.findall(r"<u>(?:<mark[^>]*>)?([^<]+)", caption) for caption in captions]
    assert all(underlined)
    words = {word.lower().strip(".,") for each in underlined for word in each}
    assert words <= {"young", "boy", "girl", "boys", "girls", "teenage", "teenager", "child", "kid",
                     "kids", "little", "toddler", "children", "baby", "youth"}  # fmt: skip
    assert '<option value="young" selected>' in text


def test_a_class_has_the_images_of_its_concepts(client, runs):
    address = f"/run/{runs[1].run_id}/images"
    queries = ("class=age", "concept=young", "concept=old", "concept=adult")
    counts = [count(client.get(f"{address}?{query}").text) for query in queries]
    assert max(counts[1:]) <= counts[0] <= sum(counts[1:])
    both = count(client.get(f"{address}?class=age&concept=young&group=female").text)
    assert 0 < both < counts[1]


def test_a_concept_does_not_count_where_no_person_is_described(tmp_path):
    run = run_of_files(tmp_path / "runs", tmp_path / "files", "beside an old truck")
    text = client_of(tmp_path / "runs").get(f"/run/{run}/images?concept=old").text
    assert count(text) == 0
    text = client_of(tmp_path / "runs").get(f"/run/{run}/images?word=old").text
    assert count(text) == 60


def test_concepts_are_indexed_once_and_only_when_asked_for(tmp_path, monkeypatch):
    from bias_pipeline.people.web import captions_behind

    run = run_of_files(tmp_path / "runs", tmp_path / "files", "who is old")
    reads: list[int] = []
    usual = captions_behind.describe_captions

    def read(captions, table):
        reads.append(len(captions))
        return usual(captions, table)

    monkeypatch.setattr(captions_behind, "describe_captions", read)
    client = client_of(tmp_path / "runs")
    assert count(client.get(f"/run/{run}/images").text) == 60
    assert reads == []
    for query in ("concept=old", "class=age", "concept=old&page=2"):
        assert count(client.get(f"/run/{run}/images?{query}").text) == 60
    assert reads == [60]


def test_descriptions_lead_to_the_captions_that_say_them(tmp_path):
    result = compute_run(tmp_path, "metric=descriptions", "captioner=stereotyper", "logger=[]")
    client = client_of(tmp_path)
    text = html.unescape(client.get(f"/run/{result.run_id}?find=young").text)
    address = f"/run/{result.run_id}/images?concept=young"
    assert address in text
    (row,) = (line for line in result.rows if line.part == "own:young")
    assert count(client.get(address).text) > 0.02 * row.n_images


def test_the_error_leads_to_the_images_that_it_counts(client, runs):
    error = runs[3].run_id
    text = html.unescape(client.get(f"/run/{error}").text)
    assert f"/run/{error}/images?group=female&names=wrong" in text
    assert f"/run/{error}/images?names=wrong" in text
    values = {row.part: row.value for row in runs[3].rows}
    listed = client.get(f"/run/{error}/images?names=wrong").text
    assert count(listed) == round(values["score"] * runs[3].rows[0].n_images)


# --- captions, pictures, guesses


def test_an_image_has_its_picture_people_s_captions_and_guesses(client, runs):
    run = runs[1].run_id
    link = re.search(rf'href="(/run/{run}/image/\d+)"', client.get(f"/run/{run}/images").text)
    assert link
    text = client.get(link[1]).text
    picture = re.search(r'<img src="(/picture/[^"]+)"', text)
    assert picture
    assert client.get(picture[1]).content[:2] == b"\xff\xd8"  # a JPEG
    people = text.partition("Human captions")[2].partition("</ul>")[0]
    assert people.count("<li>") == 5
    assert text.count('<th scope="row">model</th>') == 2  # seeds


def test_two_captioners_stand_side_by_side(client, runs):
    _, lic, other, _ = runs
    text = client.get(f"/run/{lic.run_id}/images?beside={other.run_id}").text
    first = text.partition('<ol class="images"')[2].partition("</li>")[0]
    assert re.findall(r'<p class="note">(\w+)</p>', first) == ["amplifier", "faithful"]
    address = f"/run/{other.run_id}/images?page="
    n_pages = -(-count(client.get(f"{address}1").text) // 50)
    captions = {}
    for page in (client.get(f"{address}{number}").text for number in range(1, n_pages + 1)):
        written = re.findall(r'<p class="caption">(.*?)</p>', page)
        captions |= dict(zip(images(page), written, strict=True))
    assert captions[images(text)[0]] == re.findall(r'<p class="caption">(.*?)</p>', first)[1]


def test_a_run_s_page_adds_up_its_guesses_beforehand(runs_copy, runs, monkeypatch):
    """So the page of its images does not read the file, which is gone by then."""
    added_up: list[ImageScores | None] = []
    monkeypatch.setattr(
        "bias_pipeline.people.web.image_pages.scores_of",
        lambda *of: added_up.append(scores_of(*of)) or added_up[-1],
    )
    client = client_of(runs_copy)
    client.get(f"/run/{runs[1].run_id}")
    wait_for(lambda: added_up)
    (runs_copy / runs[1].run_id / EXCLUSIVE).unlink()
    assert len(shares_added(client.get(f"/run/{runs[1].run_id}/images").text)) == 50


# --- what is large


def test_a_run_that_takes_long_to_read_stops_no_other_page(runs_copy, runs, monkeypatch):
    ready = threading.Event()

    def slow(result: Result, root: Path) -> ImageScores | None:
        if result.run_id == runs[1].run_id:
            assert ready.wait(60)
        return scores_of(result, root)

    monkeypatch.setattr("bias_pipeline.people.web.image_pages.scores_of", slow)
    monkeypatch.setattr("bias_pipeline.people.web.shared_reads._PATIENCE_S", 0.2)
    client, address = client_of(runs_copy), f"/run/{runs[1].run_id}/images"
    for _ in range(5):
        reply = client.get(address)
        assert (reply.status_code, reply.headers["refresh"]) == (503, "3")
        assert "this page loads itself again" in reply.text
    for other in ("/", f"/run/{runs[1].run_id}"):
        assert client.get(other).status_code == 200
    wait_for(lambda: client.get(f"/run/{runs[2].run_id}/images").status_code == 200)
    ready.set()
    wait_for(lambda: len(shares_added(client.get(address).text)) == 50)


def test_more_guesses_than_memory_should_hold_are_not_shown(runs_copy, runs, monkeypatch):
    monkeypatch.setattr("bias_pipeline.people.web.evidence.MOST_GUESSES", 10)
    client = client_of(runs_copy)
    text = client.get(f"/run/{runs[1].run_id}/images").text
    assert re.search(r"has [\d,]+ guesses of attackers, more than the 10 that are added up", text)
    assert (len(images(text)), shares_added(text)) == (50, [])
    assert "is not a mean of guesses" not in text


def test_captions_of_more_images_than_memory_should_hold_are_not_shown(
    runs_copy, runs, monkeypatch
):
    monkeypatch.setattr("bias_pipeline.people.web.captions_behind.MOST_IMAGES", 10)
    text = client_of(runs_copy).get(f"/run/{runs[1].run_id}/images").text
    assert "this run scored 160 images; captions and pictures are shown only of runs" in text
    assert len(shares_added(text)) == 50


def test_a_run_that_was_done_again_shows_its_new_guesses(runs_copy, runs):
    """And not those that were added up before."""
    client, run = client_of(runs_copy), runs[1].run_id
    before = shares_added(client.get(f"/run/{run}/images").text)
    path = runs_copy / run / EXCLUSIVE
    table = pq.read_table(path)
    table = table.slice(0, len(table) // 2)
    pq.write_table(table, path)
    result = runs_copy / run / RESULT
    content = unseal(json.loads(result.read_text()), within="manifest")
    content["manifest"]["files"][EXCLUSIVE] = sha256_of(path)
    result.write_bytes(seal(content, within="manifest"))
    client.get("/")
    assert shares_added(client.get(f"/run/{run}/images").text) != before


# --- what goes wrong


def test_changed_data_show_numbers_alone(runs_copy, runs):
    path = runs_copy / runs[1].run_id / RESULT
    content = unseal(json.loads(path.read_text()), within="manifest")
    content["manifest"]["corpus"]["digest"] = "0" * 64
    path.write_bytes(seal(content, within="manifest"))
    text = client_of(runs_copy).get(f"/run/{runs[1].run_id}/images").text
    assert "their digest differs" in text
    assert "<img" not in text
    assert len(shares_added(text)) == 50


def test_a_damaged_file_of_guesses_is_named(runs_copy, runs):
    path = runs_copy / runs[1].run_id / EXCLUSIVE
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    client = client_of(runs_copy)
    text = client.get(f"/run/{runs[1].run_id}/images").text
    assert "is damaged (its checksum does not fit)" in text
    assert len(images(text)) == 50
    text = client.get(f"/run/{runs[1].run_id}/image/3").text
    assert "is damaged (its checksum does not fit)" in text
    assert "What attackers guessed" not in text


def test_a_run_that_names_no_files_has_numbers_alone(runs_copy, runs):
    store = ResultStore(runs_copy)
    result = store.read(runs[3].run_id)
    assert result is not None
    shutil.rmtree(runs_copy / result.run_id)
    manifest = {key: value for key, value in result.manifest.items() if key != "overrides"}
    store.save(replace(result, manifest=manifest))
    text = client_of(runs_copy).get(f"/run/{result.run_id}/images").text
    assert "was made in Python and names no files" in text


def test_files_are_taken_from_another_folder(tmp_path):
    """``--data DIR`` finds files of the same names, wherever they were."""
    root, files = tmp_path / "runs", tmp_path / "old"
    run = run_of_files(root, files, "number")
    files.rename(tmp_path / "new")
    corpora._corpora.clear()
    assert "mine.json" in client_of(root).get(f"/run/{run}/images").text.partition("</form>")[0]
    text = client_of(root, tmp_path / "new").get(f"/run/{run}/images").text
    assert "number 0" in re.sub("<.*?>", "", text)


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("images?group=purple", 400),
        ("images?part=ece", 400),
        ("images?concept=%3Cscript%3Ealert(1)%3C/script%3E", 400),
        ("images?class=nil", 400),
        ("images?sort=colour", 400),
        *((f"images?{wrong}", 404) for wrong in ("beside=absent", "page=999")),
        *((f"image/{image}", 404) for image in ("99999", "x", "9" * 5000)),
        (f"images?page={'9' * 200}", 404),
        (f"images?group={'x' * 5000}", 400),
    ],
)
def test_an_address_that_is_wrong_is_one_sentence(address, status, client, runs):
    assert client.get(f"/run/{runs[1].run_id}/{address}").status_code == status


def test_no_other_file_is_a_picture(client, runs):
    for place in ("99999", "9" * 5000, "-1", "..%2f..%2fetc%2fpasswd", "x"):
        assert client.get(f"/picture/{runs[1].run_id}/{place}").status_code == 404


def test_photos_of_a_folder_stand_beside_captions_that_were_scored_alone(tmp_path):
    run = run_of_files(tmp_path / "runs", tmp_path / "files", "skis")
    photos = find_photos(write_photos(tmp_path / "photos", 6))
    client = client_of(tmp_path / "runs", photos=photos)
    listed = client.get(f"/run/{run}/images").text
    shown = re.findall(rf"/thumbnail/{run}/\d+", listed)
    assert len(shown) == 6
    assert {client.get(address).headers["content-type"] for address in shown} == {"image/jpeg"}
    assert "/thumbnail/" not in client_of(tmp_path / "runs").get(f"/run/{run}/images").text


def test_captions_are_escaped(tmp_path):
    evil = "<script>alert(1)</script> a man <img src=x onerror=alert(1)>"
    run = run_of_files(tmp_path / "runs", tmp_path / "files", evil)
    client = client_of(tmp_path / "runs")
    for address in (f"/run/{run}/images", f"/run/{run}/image/3"):
        text = client.get(address).text
        assert "&lt;script&gt;" in text
        assert "<img src=x" not in text
        assert text.count("<script") == 1


def test_a_manifest_cannot_pass_flags(runs):
    """A run folder of others names data, never code (``--include``, ``--config-dir``)."""
    manifest = {**runs[1].manifest, "overrides": ["--config-dir=/tmp", "metric=lic", *SMALL]}
    behind = ScoredFiles()(replace(runs[1], manifest=manifest))
    assert len(behind.corpus) == 160
