"""``rate`` in a real browser: keys alone, a phone, two raters, a kill, a reload, going back."""

import json
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from PIL import Image

from bias_pipeline.commands.main import main
from bias_pipeline.io.files import read_csv
from tests.cli.test_rate import serving
from tests.people.web.chromium import ENTER, LEFT, SLOW_IN_CHROMIUM, TAB, Chromium, chromedriver
from tests.photo_folder import write_photos

pytestmark = SLOW_IN_CHROMIUM
N_PHOTOS = 4
DESK, PHONE = (1000, 800), (360, 640)
Browse = Callable[..., Chromium]


@pytest.fixture(scope="module")
def driver() -> Iterator[str]:
    with chromedriver() as address:
        yield address


@pytest.fixture
def browse(driver: str) -> Iterator[Browse]:
    """Opens browsers, which end with the test."""
    with ExitStack() as stack:

        def open_browser(size: tuple[int, int] = DESK, *, scripts: bool = True) -> Chromium:
            browser = Chromium(driver, size, scripts=scripts)
            stack.callback(browser.close)
            return browser

        yield open_browser


@pytest.fixture
def words(tmp_path: Path) -> tuple[str, ...]:
    """What starts a study."""
    photos = write_photos(tmp_path / "photos", N_PHOTOS)
    return str(photos), "--question", "A dog?", "--answers", "yes,no"


def values(folder: Path) -> list[str]:
    """The answers in the order of the table."""
    return [row["value"] for row in read_csv((folder / "out" / "answers.csv").read_text())]


def join(browser: Chromium, address: str, name: str) -> str:
    """Agree, with the keyboard alone; returns the code."""
    browser.go_to(address)
    browser.press(TAB + name + TAB + TAB + " " + TAB + ENTER)
    browser.wait_for_text(f"Welcome, {name}")
    code = re.search(r"\b[0-9a-f]{8}\b", browser.text)
    assert code
    browser.click("#go")
    browser.wait_for_text("0 of")
    return code[0]


def test_the_keyboard_is_enough(browse, words, tmp_path):
    browser = browse()
    with serving(tmp_path, *words) as (address, _):
        join(browser, address, "anna")
        for number, key in enumerate("1231", 1):
            browser.press(key)
            browser.wait_for_text("Thank you" if number == N_PHOTOS else f"{number} of 4 answered")
    assert values(tmp_path) == ["yes", "no", "Unsure", "yes"]


def test_a_page_loads_its_picture_style_and_script(browse, words, tmp_path):
    """So the policy of content lets in what the page needs."""
    browser = browse()
    with serving(tmp_path, *words) as (address, _):
        join(browser, address, "anna")
        assert browser.run("return document.querySelector('img').naturalWidth") > 30
        assert browser.run("return getComputedStyle(document.querySelector('main')).maxWidth") != (
            "none"
        )


def test_a_phone_shows_all_without_scrolling_sideways(browse, words, tmp_path):
    browser = browse(PHONE)
    with serving(tmp_path, *words) as (address, _):
        join(browser, address, "anna")
        assert browser.run("return window.innerWidth") == PHONE[0]
        assert browser.run("return document.documentElement.scrollWidth") <= PHONE[0]
        heights = browser.run(
            "return [...document.querySelectorAll('button')].map(b => b.offsetHeight)"
        )
        assert min(heights) >= 44  # as large as a finger
        browser.click("button[value=no]")
        browser.wait_for_text("1 of 4 answered")
    assert values(tmp_path) == ["no"]


def test_two_raters_at_a_time(browse, words, tmp_path):
    anna, ben = browse(), browse()
    with serving(tmp_path, *words) as (address, _):
        join(anna, address, "anna")
        join(ben, address, "ben")
        for number in (1, 2):
            for browser, key in ((anna, "1"), (ben, "2")):
                browser.press(key)
                browser.wait_for_text(f"{number} of 4 answered")
    assert values(tmp_path) == ["yes", "yes", "no", "no"]


def test_a_kill_in_between_loses_nothing(browse, words, tmp_path):
    browser = browse()
    with serving(tmp_path, *words, end=signal.SIGKILL) as (address, _):
        code = join(browser, address, "anna")
        browser.press("1")
        browser.wait_for_text("1 of 4 answered")
    with serving(tmp_path, *words) as (address, _):  # at another port
        browser.go_to(address)  # the cookie of a name holds for all its ports
        browser.wait_for_text("1 of 4 answered")
        other = browse()
        other.go_to(address)
        other.press(TAB + "anna" + TAB + code + TAB + " " + TAB + ENTER)
        other.wait_for_text("1 of 4 answered")
    assert values(tmp_path) == ["yes"]


def test_a_reload_and_the_back_button(browse, words, tmp_path):
    browser = browse()
    with serving(tmp_path, *words) as (address, _):
        join(browser, address, "anna")
        browser.press("1")
        browser.wait_for_text("1 of 4 answered")
        browser.reload()
        browser.wait_for_text("1 of 4 answered")
        assert browser.address.endswith("/item/2")
        browser.back()
        browser.wait_for_text("1 of 4 answered")
        pressed = "return document.querySelector('[aria-pressed=true]').value"
        assert (browser.address.endswith("/item/1"), browser.run(pressed)) == (True, "yes")
        browser.press("2")
        browser.wait_for_text("A dog?")
        browser.press(LEFT)
        browser.wait_for_text("A dog?")
    assert values(tmp_path) == ["no"]


def test_a_key_that_is_held_down_answers_one_page(browse, words, tmp_path):
    browser = browse()
    with serving(tmp_path, *words) as (address, _):
        join(browser, address, "anna")
        repeated = "new KeyboardEvent('keydown', {key: '1', repeat: true, bubbles: true})"
        browser.run(f"document.body.dispatchEvent({repeated})")
        browser.press("2")
        browser.wait_for_text("1 of 4 answered")
    assert values(tmp_path) == ["no"]


def test_a_key_pressed_twice_is_one_answer(browse, words, tmp_path):
    browser = browse()
    with serving(tmp_path, *words) as (address, _):
        join(browser, address, "anna")
        browser.run("for (const _ of [1, 2]) document.querySelector('button[value=yes]').click()")
        browser.wait_for_text("1 of 4 answered")
        assert browser.address.endswith("/item/2")
    assert values(tmp_path) == ["yes"]


@pytest.fixture
def machine_labels(tmp_path: Path) -> tuple[str, ...]:
    """What starts a draw of 12 of 60 photos: men are red, and the machine errs in every tenth."""
    (tmp_path / "photos").mkdir()
    swap = {"male": "female", "female": "male"}
    labels, captions = ["id,gender"], []
    for i in range(1, 61):
        group = "male" if i % 3 else "female"
        Image.new("RGB", (40, 30), "red" if i % 3 else "blue").save(tmp_path / f"photos/{i}.png")
        labels.append(f"{i},{group if i % 10 else swap[group]}")
        captions.append({"image_id": i, "caption": f"a {'man' if i % 3 else 'woman'} sits"})
    (tmp_path / "machine.csv").write_text("\n".join(labels))
    (tmp_path / "mine.json").write_text(json.dumps(captions))
    files = "--machine", "machine.csv", "--captions", "mine.json"
    return "photos", "--attribute", "gender", "--gold-size", "12", *files


def test_drawn_photos_are_labelled_and_an_audit_reads_the_answers(
    browse, machine_labels, tmp_path, monkeypatch
):
    browser = browse()
    monkeypatch.chdir(tmp_path)
    red_of_picture = (
        "const c = document.createElement('canvas').getContext('2d');"
        "c.drawImage(document.querySelector('img'), 0, 0);"
        "return c.getImageData(9, 9, 1, 1).data[0]"
    )
    with serving(tmp_path, *machine_labels) as (address, _):
        join(browser, address, "anna")
        for number in range(1, 13):
            browser.press("")  # waits for the picture
            browser.press("1" if browser.run(red_of_picture) > 99 else "2")
            browser.wait_for_text("Thank you" if number == 12 else f"{number} of 12 answered")
    answers = read_csv(Path("out/answers.csv").read_text())
    assert all((row["value"] == "male") == (int(row["image_id"]) % 3 > 0) for row in answers)
    chances = {int(row["image_id"]): float(row["chance"]) for row in answers}
    assert len(chances) == 12
    assert chances == {i: 1.0 if i % 10 == 0 else 6 / 54 for i in chances}
    words = ["audit", "mine.json", "--attributes", "machine.csv", "--gold", "out/answers.csv"]
    assert main([*words, "--out", "audit", "--minutes", "0.01"]) == 0
    rows = read_csv(Path("audit/table.csv").read_text())
    corrected = {row["part"] for row in rows if row["metric"] == "gender_error"}
    assert {"score", "score:machine", "score:gold"} <= corrected
