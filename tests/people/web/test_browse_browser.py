"""``browse`` in a real browser: keys alone, a phone, going back, no JavaScript."""

from collections.abc import Iterator

import pytest

from tests.cli.commands import wait_for
from tests.cli.test_browse import browsing
from tests.people.web.chromium import ENTER, LEFT, RIGHT, SLOW_IN_CHROMIUM, TAB
from tests.people.web.test_browse_images import SMALL, compute_run
from tests.people.web.test_browser import PHONE, browse, driver

pytestmark = SLOW_IN_CHROMIUM
__all__ = ["browse", "driver"]  # fixtures


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The address of a folder of runs that is served, and that of a run's images."""
    root = tmp_path_factory.mktemp("runs")
    run = compute_run(root, "metric=lic", "captioner=amplifier", *SMALL).run_id
    compute_run(root, "metric=lic", "captioner=faithful", *SMALL)
    with browsing(root) as (address, _):
        yield address, f"{address}run/{run}/images"


def test_the_keyboard_is_enough(browse, pages):
    """From the table to an image, to the next page and back, without a pointer."""
    browser = browse()
    browser.go_to(pages[0])
    browser.press("/amplifier" + ENTER)
    browser.wait_for_text("1 to 1 of 1 headline")
    browser.run("document.querySelector('tbody a').focus()")
    browser.press(ENTER)
    browser.wait_for_text("Leakage for Image Captioning: amplifier")
    browser.run("document.querySelector('a.button').focus()")
    browser.press(ENTER)
    browser.wait_for_text("1 to 50 of")
    browser.press(RIGHT)
    browser.wait_for_text("51 to 100 of")
    browser.press(LEFT)
    browser.wait_for_text("1 to 50 of")


def test_every_link_and_field_is_reached_with_tab(browse, pages):
    browser = browse()
    browser.go_to(pages[0])
    n_targets = browser.run("return document.querySelectorAll('a, input, select, button').length")
    reached = set()
    for _ in range(n_targets):
        browser.press(TAB)
        reached.add(
            browser.run(
                "return [...document.querySelectorAll('a, input, select, button')]"
                ".indexOf(document.activeElement)"
            )
        )
    assert reached == set(range(n_targets))


def test_keys_in_a_field_are_text(browse, pages):
    browser = browse()
    browser.go_to(pages[1])
    browser.press("/umb" + LEFT + RIGHT + "/")
    assert browser.run("return document.activeElement.value") == "umb/"
    assert browser.address == pages[1]


def test_a_page_loads_its_pictures_and_style(browse, pages):
    """So the policy of content lets in what the page needs."""
    browser = browse()
    browser.go_to(pages[1])
    wait_for(lambda: browser.run("return document.querySelector('img').naturalWidth") > 100)
    assert browser.run("return getComputedStyle(document.querySelector('mark')).borderRadius") != (
        "0px"
    )


@pytest.mark.parametrize("place", [0, 1])
def test_a_phone_shows_all_without_scrolling_sideways(place, browse, pages):
    browser = browse(PHONE)
    browser.go_to(pages[place])
    if place:
        browser.click("summary")  # of the filters, which a wide page shows at once
    assert browser.run("return window.innerWidth") == PHONE[0]
    assert browser.run("return document.documentElement.scrollWidth") <= PHONE[0]
    heights = browser.run(
        "return [...document.querySelectorAll('button, input, select')].map(b => b.offsetHeight)"
    )
    assert min(heights) >= 44  # as large as a finger


def test_going_back_and_a_link_lead_to_the_same_view(browse, pages):
    browser, other = browse(), browse()
    browser.go_to(f"{pages[1]}?group=female")
    filtered = browser.text
    browser.click("ol.images a")
    browser.wait_for_text("What attackers guessed")
    browser.back()
    browser.wait_for_text("those of this list")
    other.go_to(browser.address)
    assert (browser.text, other.text) == (filtered, filtered)


def test_everything_is_read_without_javascript(browse, pages):
    browser = browse(scripts=False)
    browser.go_to(pages[0])
    browser.click("tbody a")
    browser.wait_for_text("Leakage for Image Captioning")
    browser.click("a.button")
    browser.wait_for_text("1 to 50 of")
    browser.press(RIGHT)  # which a script would turn into the next page
    assert browser.address == pages[1]
    browser.click("[rel=next]")
    browser.wait_for_text("51 to 100 of")
    # The driver takes what a style shows of closed details for hidden, so the test looks itself.
    assert browser.run("return document.querySelector('button').checkVisibility()")
    browser.run("document.querySelector('button').click()")
    browser.wait_for_text("1 to 50 of")
    browser.click("ol.images a")
    browser.wait_for_text("What attackers guessed")
