"""The pages: consent first, one item a page, forms that other sites cannot send."""

import os
import re
from dataclasses import replace

import anyio
import pytest
from PIL import Image
from starlette.types import Message

from bias_pipeline.people.web.application import LONGEST_FORM, Picture, form_token
from bias_pipeline.people.web.rating import RatingPages
from bias_pipeline.people.web.study import AnswerStore, RatingQuestion, Study
from tests.people.web.conftest import Visitor, check_headers, check_plain


def test_nobody_sees_an_item_or_begins_before_consent_which_is_the_first_page(visit, store):
    visitor = visit()
    page = visitor.client.get("/")
    assert (page.status_code, "What is stored" in page.text) == (200, True)
    for address in ("/item/1", "/picture/1", "/end"):
        assert visitor.client.get(address).status_code == 403
    assert visitor.join("anna", agree="") == 400
    assert "Please agree" in visitor.page.text
    assert store.ratings() == []


def test_answers_lead_through_all_items_to_the_end(visit, study):
    anna, place = visit("anna"), "/item/1"
    for _ in study.images:
        place = anna.answer(int(place.rpartition("/")[2]), "yes")
    assert place == "/end"
    assert "6 of 6 answered" in anna.client.get("/end").text


def test_an_answer_is_about_the_picture_that_was_shown(visit, store, study):
    anna = visit("anna")
    for place in range(1, 7):
        image = study.order("anna")[place - 1]
        assert anna.client.get(f"/picture/{place}").content == study.picture(image)
        anna.answer(place, "yes" if place % 2 else "no")
        assert store.value("anna", image) == ("yes" if place % 2 else "no")


def test_raters_go_on_where_they_stopped_and_back_where_the_answer_can_change(visit, store, study):
    anna = visit("anna")
    assert ">next<" not in anna.client.get("/item/1").text  # no item is passed over
    anna.answer(1, "yes")
    assert anna.client.get("/").headers["location"] == "/item/2"
    assert 'value="yes" data-key="1" aria-pressed="true"' in anna.client.get("/item/1").text
    assert 'href="/item/1"' in anna.client.get("/item/2").text
    assert anna.answer(1, "no") == "/item/2"
    assert store.value("anna", study.order("anna")[0]) == "no"


def test_all_answers_can_be_looked_through_from_the_end(visit, study):
    anna = visit("anna")
    for place in range(1, 7):
        anna.answer(place, "yes")
    link = re.compile(r'href="(/item/\d)"[^>]*>(?:next|look)')
    address, shown = "/end", []
    while match := link.search(anna.client.get(address).text):
        shown.append(address := match[1])
    assert shown == [f"/item/{place}" for place in range(1, 7)]


def test_back_passes_over_a_picture_that_vanished(visit, study):
    anna = visit("anna")
    study.photos[study.order("anna")[1]].unlink()
    assert anna.client.get("/item/2").headers["location"] == "/item/3"
    assert 'href="/item/1"' in anna.client.get("/item/3").text


def test_two_raters_at_a_time_do_not_mix(visit, store, study):
    anna, ben = visit("anna"), visit("ben")
    for place in range(1, 4):
        anna.answer(place, "yes")
        ben.answer(place, "no")
    answers = {(one.rater, one.image_id, one.value) for one in store.ratings()}
    assert answers == {("anna", image, "yes") for image in study.order("anna")[:3]} | {
        ("ben", image, "no") for image in study.order("ben")[:3]
    }


def test_a_taken_name_needs_its_code(visit, monkeypatch):
    monkeypatch.setattr("bias_pipeline.people.web.rating._WRONG_CODE_S", 0)
    anna, other = visit("anna"), visit()
    assert other.join("anna") == 409
    assert "is taken" in other.page.text
    assert other.join("anna", anna.code) == 303


@pytest.mark.parametrize("name", ["", "=1+1", "a b", "<b>", "x" * 41, "-x", "ä"])
def test_names_are_plain(name, visit):
    visitor = visit()
    assert visitor.join(name) == 400
    assert "<b>" not in visitor.page.text


def test_a_rater_and_a_picture_that_was_sent_survive_a_restart(visit, study, store):
    anna = visit("anna")
    anna.answer(1, "yes")
    fields = {"form": anna.look(2), "value": "yes"}
    store.close()
    restarted = Visitor(RatingPages(AnswerStore(store.folder, study)))
    restarted.client.cookies = anna.client.cookies
    assert restarted.client.get("/").headers["location"] == "/item/2"
    assert restarted.client.post("/answer/2", data=fields).status_code == 303
    restarted.pages.store.close()


# --- what other sites and strangers try


def test_a_form_of_another_site_changes_nothing(visit, store):
    anna = visit("anna")
    for form in ("", "0" * 64, visit("ben").form(1)):
        reply = anna.client.post("/answer/1", data={"form": form, "value": "yes"})
        assert reply.status_code == 403
    assert store.ratings() == []


FOREIGN = [
    {"origin": "http://evil.example"},
    {"origin": "null"},
    {"origin": "http://127.0.0.1:3000"},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site", "sec-fetch-mode": "navigate"},
    {"origin": "http://127.0.0.1", "sec-fetch-site": "cross-site"},
]


@pytest.mark.parametrize("headers", FOREIGN)
def test_no_other_site_sends_a_form(headers, visit, store):
    anna = visit("anna")
    fields = {"form": anna.look(1), "value": "yes"}
    assert anna.client.post("/answer/1", data=fields, headers=headers).status_code == 403
    assert store.ratings() == []
    ours = {"origin": "http://127.0.0.1", "sec-fetch-site": "same-origin"}
    assert anna.client.post("/answer/1", data=fields, headers=ours).status_code == 303


def test_no_other_site_changes_who_answers(visit, store):
    """A foreign page can make a browser send a form, without its cookies and without a token."""
    anna = visit("anna")
    fields = {"name": "mallory", "agree": "yes", "token": ""}
    forged = {}, {"form": "0" * 64}, {"form": form_token("")}, {"form": anna.form(1)}
    for more in forged:
        reply = visit().client.post("/start", data={**fields, **more})
        assert (reply.status_code, "set-cookie" in reply.headers) == (403, False)
    anna.answer(1, "yes")
    assert [one.rater for one in store.ratings()] == ["anna"]


def test_two_open_first_pages_can_both_be_sent(visit):
    visitor = visit()
    assert visitor.client.get("/").text == visitor.client.get("/").text


@pytest.mark.parametrize("mode", ["no-cors", "cors"])
def test_no_other_site_embeds_a_picture(mode, visit):
    headers = {"sec-fetch-site": "same-site", "sec-fetch-mode": mode}
    assert visit("anna").client.get("/picture/1", headers=headers).status_code == 403


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "127.0.0.1@evil"])
def test_another_name_of_the_server_is_refused(host, visit):
    """So that a page whose name is bound anew to this machine (DNS rebinding) reads nothing."""
    reply = visit().client.get("/", headers={"host": host})
    assert (reply.status_code, "What is stored" in reply.text) == (421, False)


def test_pages_may_do_little(visit):
    anna = visit("anna")
    for address in ("/", "/item/1", "/keys.js", "/nowhere", "/picture/1"):
        check_headers(anna.client.get(address).headers)


def test_the_cookie_is_for_this_server_alone(visit):
    visitor = visit()
    visitor.join("anna")
    cookie = visitor.started.headers["set-cookie"].lower()
    assert ("httponly" in cookie, "samesite=strict" in cookie) == (True, True)


def test_pages_hold_no_script_and_no_style(visit):
    anna = visit("anna")
    for address in ("/item/1", "/end"):
        check_plain(anna.client.get(address).text)


@pytest.mark.parametrize(
    ("value", "files", "status"),
    [("yes", {"more": b"x"}, 415), ("x" * (LONGEST_FORM + 1), None, 413), ("perhaps", None, 400)],
    ids=["an upload", "a long form", "another answer"],
)
def test_a_form_that_is_no_answer_is_refused(value, files, status, visit, store):
    anna = visit("anna")
    fields = {"form": anna.look(1), "value": value}
    reply = anna.client.post("/answer/1", data=fields, files=files)
    assert (reply.status_code, store.ratings()) == (status, [])


def test_no_other_page_or_file_is_served(visit):
    anna = visit("anna")
    places = ("0", "7", "x", "1_0", "..%2f..%2fetc%2fpasswd", "9" * 10, "9" * 5000)
    for address in [f"/{page}/{place}" for page in ("item", "picture") for place in places]:
        assert anna.client.get(address).status_code == 404, address


def test_captions_and_questions_are_escaped(tmp_path):
    evil = "<script>alert(1)</script>"
    study = Study(RatingQuestion(evil, "x", (f'"{evil}', "no")), {}, {"1": evil})
    store = AnswerStore(tmp_path / "evil", study)
    visitor = Visitor(RatingPages(store))
    visitor.join("anna")
    text = visitor.client.get("/item/1").text
    assert evil not in text
    assert text.count("&lt;script&gt;") >= 3
    store.close()


def test_strangers_without_the_token_do_not_join(store):
    visitor = Visitor(RatingPages(store, "correct horse"))
    assert visitor.client.get("/").status_code == 403
    assert visitor.client.get("/?token=wrong").status_code == 403
    assert visitor.join("anna", token="wrong") == 403
    assert visitor.client.get("/?token=correct horse").status_code == 200
    assert visitor.join("anna", token="correct horse") == 303
    assert visitor.client.get("/item/1").status_code == 200


# --- pictures


def test_an_answer_to_a_picture_that_did_not_come_does_not_count(visit, store):
    anna = visit("anna")
    fields = {"form": anna.form(1), "value": "yes"}
    anna.client.head("/picture/1")  # which is no picture
    reply = anna.client.post("/answer/1", data=fields)
    assert (reply.status_code, "does not count" in reply.text) == (409, True)
    assert store.ratings() == []
    (address,) = re.findall(r'<img src="([^"]+)"', reply.text)
    anna.client.get(address)
    assert anna.client.post("/answer/1", data=fields).status_code == 303


def test_another_browser_of_the_rater_must_be_sent_the_picture_too(visit):
    anna, other = visit("anna"), visit()
    anna.look(1)
    other.join("anna", anna.code)
    fields = {"form": other.form(1), "value": "yes"}
    assert other.client.post("/answer/1", data=fields).status_code == 409


def test_a_browser_may_keep_a_picture_of_its_visit_alone(visit):
    anna, ben = visit("anna"), visit("ben")
    (address,) = re.findall(r'<img src="([^"]+)"', anna.client.get("/item/1").text)
    assert anna.client.get(address).headers["cache-control"].startswith("private, max-age=")
    assert anna.client.get("/picture/1").headers["cache-control"] == "no-store"
    assert ben.client.get(address).status_code == 404


@pytest.mark.parametrize("n_pieces", [0, 1, 2])
def test_a_picture_of_which_a_part_was_sent_was_not_delivered(n_pieces):
    delivered, pieces = [], []

    async def receive() -> Message:
        if not received:
            received.append(True)
            return {"type": "http.request", "body": b"", "more_body": False}
        if len(pieces) < n_pieces:
            await anyio.sleep_forever()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.body":
            pieces.append(message["body"])

    received: list[bool] = []
    picture = Picture(b"x" * 150_000, lambda: delivered.append(True), 0)
    anyio.run(picture, {"type": "http", "method": "GET"}, receive, send)
    assert (len(pieces), delivered) == (n_pieces, [])


# --- what goes wrong


def raise_full(*_: object, **__: object) -> None:
    raise OSError(28, os.strerror(28))


def test_a_full_disk_is_said_and_the_answer_can_be_given_again(visit, store, monkeypatch):
    anna = visit("anna")
    form = anna.look(1)
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", raise_full)
        reply = anna.client.post("/answer/1", data={"form": form, "value": "yes"})
    assert (reply.status_code, "could not be stored" in reply.text) == (507, True)
    assert str(store.folder) not in reply.text
    assert anna.answer(1, "yes") == "/item/2"


def test_a_full_disk_lets_nobody_begin(visit, store, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr("bias_pipeline.io.files.replace_file", raise_full)
        visitor = visit()
        assert visitor.join("anna") == 507
    assert "You cannot begin now" in visitor.page.text
    assert visitor.join("anna") == 303


def test_a_picture_that_vanishes_is_left_out(visit, study, capfd):
    anna = visit("anna")
    study.photos[study.order("anna")[0]].unlink()
    assert anna.client.get("/").headers["location"] == "/item/1"
    assert anna.client.get("/item/1").headers["location"] == "/item/2"
    assert "0 of 5 answered" in anna.client.get("/item/2").text
    assert "is left out" in capfd.readouterr().err


def test_pictures_hold_no_metadata(visit, study):
    anna = visit("anna")
    path = study.photos[study.order("anna")[0]]
    exif = Image.Exif()
    exif[0x010E] = "where it was taken"
    Image.new("RGB", (8, 8)).save(path, "JPEG", exif=exif)
    assert b"where it was taken" not in anna.client.get("/picture/1").content


def test_only_captions_have_no_picture(tmp_path):
    study = Study(RatingQuestion("A dog?", "dog", ("yes", "no")), {}, {"1": "a dog", "2": "a cat"})
    store = AnswerStore(tmp_path / "captions", study)
    visitor = Visitor(RatingPages(store))
    visitor.join("anna")
    text = visitor.client.get("/item/1").text
    assert ("<img" in text, "<blockquote>a " in text) == (False, True)
    assert visitor.client.get("/picture/1").status_code == 404
    store.close()


def test_items_have_both_where_both_are_given(study):
    both = replace(study, captions={"2": "a dog", "5": "a cat", "77": "elsewhere"})
    assert both.images == ("2", "5")
