"""``rate``: serves a study until it is stopped, goes on after a kill, and refuses bad words."""

import json
import re
import signal
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import AbstractContextManager
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from bias_pipeline.io.files import read_csv
from bias_pipeline.people.commands.rated_items import known_answers, rated_captions
from bias_pipeline.people.commands.web import rate_parser
from bias_pipeline.run import compose
from tests.cli.commands import serve
from tests.photo_folder import write_photos

pytest.importorskip("starlette", reason="needs the extra web")

Browser = Callable[..., str]


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    return write_photos(tmp_path / "photos", 4)


def serving(
    folder: Path, *words: str, end: int = signal.SIGINT
) -> AbstractContextManager[tuple[str, subprocess.Popen[bytes]]]:
    """The address of a study in ``out`` of a folder, while it is served."""
    return serve(folder, "rate", *words, "--out", "out", end=end)


def browser(address: str) -> Browser:
    """Reads pages and sends forms, with cookies."""
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))

    def visit(path: str, **fields: str) -> str:
        data = urlencode(fields).encode() if fields else None
        with opener.open(address.partition("?")[0].rstrip("/") + path, data, timeout=20) as reply:
            return str(reply.read().decode("utf-8", "replace"))

    return visit


def answer(visit: Browser, place: int, value: str) -> None:
    page = visit(f"/item/{place}")
    picture = re.search(r'<img src="([^"]+)"', page)
    assert picture
    visit(picture[1])
    visit(f"/answer/{place}", form=form_in(page), value=value)


def form_in(page: str) -> str:
    """The token in a page's form."""
    form = re.search(r'name="form" value="(\w+)"', page)
    assert form
    return form[1]


def begin(visit: Browser, name: str, **fields: str) -> str:
    """Agree to take part; returns the page after it."""
    return visit("/start", name=name, agree="yes", form=form_in(visit("/")), **fields)


@pytest.mark.slow
def test_a_kill_loses_no_answer(photos, tmp_path):
    words = (str(photos), "--question", "A dog?", "--answers", "yes,no")
    with serving(tmp_path, *words, end=signal.SIGKILL) as (address, _):
        visit = browser(address)
        code = re.search(r'class="code">(\w+)<', begin(visit, "anna"))
        assert code
        for place in (1, 2, 3):
            answer(visit, place, "yes")
    with serving(tmp_path, *words) as (address, _):
        visit = browser(address)
        assert "3 of 4 answered" in begin(visit, "anna", code=code[1])
        answer(visit, 4, "no")
    rows = read_csv((tmp_path / "out" / "answers.csv").read_text())
    assert sorted(row["value"] for row in rows) == ["no", "yes", "yes", "yes"]


@pytest.fixture(scope="module")
def stopped_study(tmp_path_factory) -> dict[str, Any]:
    """What a study for others showed until ctrl-c, and what was printed."""
    folder = tmp_path_factory.mktemp("study")
    photos = write_photos(folder / "photos", 4)
    words = (str(photos), "--question", "?", "--host", "localhost", "--token")
    with serving(folder, *words) as (address, process):
        with pytest.raises(urllib.error.HTTPError) as refused:
            browser(address)("/")
        refused.value.close()
        page = browser(address)(f"/?token={address.partition('token=')[2]}")
    printed = (folder / "rate.log").read_text()
    end = {"code": process.returncode, "printed": printed, "refused": refused.value.code}
    return {"address": address, "page": page, **end}


def test_ctrl_c_ends_with_130_and_says_where_answers_are(stopped_study):
    assert (stopped_study["code"], "answers.csv: 0 answers" in stopped_study["printed"]) == (
        130,
        True,
    )


def test_a_closed_terminal_ends_it_as_sigterm_does(photos, tmp_path):
    with serving(tmp_path, str(photos), "--question", "?", end=signal.SIGHUP) as (_, process):
        pass
    lines = (tmp_path / "rate.log").read_text().splitlines()[2:]
    assert (process.returncode, lines) == (
        143,
        ["stopped; what was finished is kept", "out/answers.csv: 0 answers"],
    )


def test_the_link_for_others_holds_the_token(stopped_study):
    assert re.fullmatch(r"http://localhost:\d+/\?token=[\w-]{16}", stopped_study["address"])
    assert (stopped_study["refused"], "Before you begin" in stopped_study["page"]) == (403, True)


def test_agreement_is_printed(ok, photos, tmp_path):
    from bias_pipeline.data.photos import find_photos
    from bias_pipeline.people.web.study import AnswerStore, RatingQuestion, Study

    study = Study(RatingQuestion("A dog?", "dog", ("yes", "no")), find_photos(photos), {})
    store = AnswerStore(tmp_path / "study", study)
    for rater in ("anna", "ben"):
        for image in study.images:
            store.put(rater, image, "yes" if image < "3" else "no", None)
    store.close()
    assert "Krippendorff's alpha 1.00" in ok("rate", "--gather", str(tmp_path / "study"))


RATE = "PHOTOS --out o --question ?"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("", 2, "name a folder of photos"),
        ("PHOTOS", 2, "--out is missing"),
        ("PHOTOS --out o", 2, "name what is asked"),
        ("PHOTOS --out o --attribute mood", 2, "mood"),
        (f"{RATE} --answers a", 2, "two different answers"),
        (f"{RATE} --answers a,a", 2, "two different"),
        (f"{RATE} --answers a,Unsure", 2, "'Unsure' is always added"),
        ("PHOTOS --out o --attribute gender,race", 2, "gender,race: several values are a sweep"),
        ("PHOTOS --out o --attribute gender --answers a,b", 2, "an attribute has its groups"),
        (f"{RATE} --mask-captions", 2, "--mask-captions needs"),
        (f"{RATE} --host x", 2, "needs --token"),
        (f"{RATE} --host 0.0.0.0", 2, "--host takes"),
        (f"{RATE} --host localhost --token short", 2, "12 characters"),
        (f"{RATE} --port 70000", 2, "--port"),
        (f"{RATE} --crop person", 2, "--regions"),
        ("empty --out o --question ?", 5, "no photos in it"),
        (f"{RATE} --captions no.json", 5, "no.json"),
        (f"{RATE} --captions other.json", 3, "fits none"),
        ("--captions blank.json --out o --question ?", 3, "blank.json has no caption with words"),
        (f"{RATE} --crop person --regions regions.json", 3, "has no box of a person in any photo"),
        (f"{RATE} --gold gold.csv", 3, "not one of the ans"),
        (f"{RATE} --gold else.csv", 3, "no answers about these items"),
        (f"{RATE} --gold both.csv", 3, "both.csv, line 3: image id 1 has another answer above"),
        (f"{RATE} --consent file", 3, "is empty"),
        (f"{RATE} --consent bytes", 3, "bytes is not in UTF-8"),
        ("PHOTOS --out file --question ?", 5, "cannot be written"),
        ("PHOTOS --out file/p --question ? --port 0", 5, "cannot be written"),
        ("--gather empty", 5, "holds no study"),
        ("--gather empty --out o", 2, "takes no photos"),
    ],
)
def test_bad_input_is_one_sentence(words, code, message, ends, photos):
    Path("empty").mkdir()
    Path("other.json").write_text(json.dumps([{"image_id": 77, "caption": "a dog"}]))
    Path("blank.json").write_text(json.dumps([{"image_id": 1, "caption": " "}]))
    dog = {"id": 1, "image_id": 1, "category_id": 1, "bbox": [2, 2, 9, 9], "iscrowd": 0}
    Path("regions.json").write_text(
        json.dumps(
            {
                "images": [{"id": 1, "file_name": "1.png", "width": 41, "height": 31}],
                "categories": [{"id": 1, "name": "dog"}],
                "annotations": [dog],
            }
        )
    )
    for name, text in (
        ("gold.csv", "1,perhaps"),
        ("else.csv", "777,yes"),
        ("both.csv", "1,yes\n1,no"),
    ):
        Path(name).write_text(f"image_id,value\n{text}\n")
    Path("file").write_text(" \n")
    Path("bytes").write_bytes(b"\xff")
    assert message in ends(code, "rate", *words.replace("PHOTOS", str(photos)).split())


def test_known_answers_are_read_as_labels_are(tmp_path):
    from bias_pipeline.people.web.study import RatingQuestion

    path = tmp_path / "gold.csv"
    path.write_text("image_id,value\n1,Male\n2, female \n3,F\n4,woman\n5,unsure\n6,male\n")
    gender = compose.cell(["attribute=gender"]).build("attribute")
    known = known_answers(path, RatingQuestion("?", "gender", ("male", "female")), gender)
    assert list(known.values()) == ["male", "female", "female", "female", "Unsure", "male"]


def test_known_answers_are_those_of_the_photos_that_the_file_names(tmp_path):
    from bias_pipeline.people.web.study import RatingQuestion

    path = tmp_path / "gold.csv"
    path.write_text("image_id,file_name,value\n2,000001.jpg,male\n1,000002.jpg,female\n")
    gender = compose.cell(["attribute=gender"]).build("attribute")
    question = RatingQuestion("?", "gender", ("male", "female"))
    assert known_answers(path, question, gender, ["000001.jpg", "000002.jpg"]) == {
        "1": "male",
        "2": "female",
    }


def test_blank_captions_are_not_shown(tmp_path, capsys):
    path = tmp_path / "captions.json"
    path.write_text('[{"image_id": 1, "caption": " "}, {"image_id": 2, "caption": "a dog"}]')
    options = rate_parser().parse_args(["--captions", str(path)])
    assert rated_captions(options, compose.cell([])) == {"2": "a dog"}
    assert "1 caption is blank" in capsys.readouterr().out


def test_a_port_in_use_is_named(run, photos):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        code, printed = run("rate", str(photos), "--question", "?", "--out", "o", "--port", port)
    assert (code, "cannot be used" in printed) == (5, True), printed
    assert not Path("o").exists()
