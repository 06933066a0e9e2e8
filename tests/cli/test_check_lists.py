"""``data check_lists``, and what a check changes: German captions of our own, and their English."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

# What is beside persons in ten German captions, and in the same ten in English.
SCENES = {
    "am Strand mit einem Hund": "on beaches with a dog",
    "auf einem Fahrrad im Park": "on a bicycle in parks",
    "in der Küche neben einem Herd": "in the kitchen beside a stove",
    "auf einer Bank unter Bäumen": "on a bench under trees",
    "mit einem Regenschirm im Regen": "with an umbrella in rain",
    "vor einem Bus an der Haltestelle": "before a bus at the stop",
    "mit einem Kuchen am Tisch": "with a cake at tables",
    "auf Skiern an einem Hang": "on skis on a slope",
    "mit einem Ball auf dem Rasen": "with a ball on the lawn",
    "neben einem Pferd im Stall": "beside a horse in stables",
}
# German plurals do not agree with the person's gender; articles and adjectives of singulars do.
PLURAL = {"male": "zwei Männer", "female": "zwei Frauen"}
SINGULAR = {"male": "ein Mann", "female": "eine Frau"}
ENGLISH = {"male": "two men", "female": "two women"}
LISTS = """
_target_: bias_pipeline.corpus.attribute.Attribute
name: geschlecht
language: de
groups: [male, female]
words: {male: "mann, männer", female: "frau, frauen"}
labels:
  coco:
    _target_: bias_pipeline.corpus.attribute.LabelMap
    field: gender
    groups: {male: male, female: female}
"""
CHECK = ("german.json", "english.json", "--attributes", "labels.csv")
LIST_OPTIONS = ("--only", "geschlecht", "--config-dir", "mine")


@pytest.fixture
def german(tmp_path: Path) -> Callable[[dict[str, str]], None]:
    """Write labels, lists, English captions, and German ones with these words for persons."""

    def write(persons: dict[str, str]) -> None:
        groups = {str(i): ("male", "female")[i % 2] for i in range(1, 401)}
        scenes = {i: list(SCENES)[int(i) // 2 % 10] for i in groups}
        texts = {
            "german.json": {i: f"{persons[g]} {scenes[i]}" for i, g in groups.items()},
            "english.json": {i: f"{ENGLISH[g]} {SCENES[scenes[i]]}" for i, g in groups.items()},
        }
        for name, captions in texts.items():
            lines = [{"image_id": int(i), "caption": text} for i, text in captions.items()]
            Path(name).write_text(json.dumps(lines, ensure_ascii=False), "utf-8")
        labels = [f"{i},{group}" for i, group in groups.items()]
        Path("labels.csv").write_text("\n".join(["id,gender", *labels]))
        place = Path("mine/attribute/geschlecht.yaml")
        place.parent.mkdir(parents=True)
        place.write_text(LISTS, "utf-8")

    return write


def lines_printed(text: str) -> str:
    """The lines for the attribute's YAML."""
    return text[text.index("english_check:") :]


def add_check(text: str) -> None:
    with Path("mine/attribute/geschlecht.yaml").open("a", encoding="utf-8") as file:
        file.write(lines_printed(text))


@pytest.fixture(autouse=True)
def counts_alone(plan):
    plan("gender_error", "declines")


def answers_of_audit(ok: Callable[..., str]) -> dict[str, dict[str, str]]:
    ok("audit", CHECK[0], *CHECK[2:], "--captions", CHECK[0], *LIST_OPTIONS, "--json", "a.json")
    return {one["question"]: one for one in json.loads(Path("a.json").read_text())["answers"]}


def test_lists_that_nobody_checked_are_read_from_a_folder_and_give_no_answer(ok, german):
    """A YAML of words is data, so no package is needed; nobody has checked what the lists hide."""
    german(PLURAL)
    answers = answers_of_audit(ok)
    assert "lists of language 'de' are unchecked against English" in answers["naming"]["reason"]
    assert {answer["attribute"] for answer in answers.values()} == {"geschlecht"}
    assert {answer["answer"] for answer in answers.values()} <= {"cannot_tell", "not_tested"}


def test_lists_whose_masked_captions_leak_no_more_than_english_ones_give_answers(ok, german):
    german(PLURAL)
    add_check(ok("data", "check_lists", *CHECK, *LIST_OPTIONS))
    answers = answers_of_audit(ok)
    assert answers["naming"]["answer"] == "no"
    assert answers["declining"]["answer"] == "not_tested"
    assert "phrases that decline are English" in answers["declining"]["reason"]


def test_lists_that_leave_the_articles_do_not_pass_and_the_audit_says_why(ends, ok, german):
    german(SINGULAR)
    add_check(ends(1, "data", "check_lists", *CHECK, *LIST_OPTIONS))
    reason = answers_of_audit(ok)["naming"]["reason"]
    assert reason.startswith("lists of language 'de' leak 100.0% against ")


def test_lists_that_changed_since_they_were_checked_give_no_answer(ok, german):
    german(PLURAL)
    add_check(ok("data", "check_lists", *CHECK, *LIST_OPTIONS))
    place = Path("mine/attribute/geschlecht.yaml")
    place.write_text(place.read_text("utf-8").replace("mann, männer", "männer"), "utf-8")
    assert "changed since their check" in answers_of_audit(ok)["naming"]["reason"]


def test_captions_in_the_wrong_order_of_languages_are_refused(ends, german):
    german(PLURAL)
    text = ends(3, "data", "check_lists", CHECK[1], CHECK[0], *CHECK[2:], *LIST_OPTIONS)
    assert "english.json: the word lists are of language 'de'" in text


def test_lists_whose_words_no_caption_has_are_refused(ends, german):
    german({"male": "zwei Herren", "female": "zwei Damen"})
    text = ends(3, "data", "check_lists", *CHECK, *LIST_OPTIONS)
    assert "no caption in one of the languages names a group" in text


def test_captions_are_compared_at_the_same_number_of_words(ends, german):
    """Longer English captions also leak more, and would let German grammar pass."""
    german(SINGULAR)
    lines = json.loads(Path("english.json").read_text("utf-8"))
    for line in lines:
        line["caption"] += " in a skirt" if "women" in line["caption"] else " in a beard"
    Path("english.json").write_text(json.dumps(lines), "utf-8")
    assert "(English 100.0%" not in ends(1, "data", "check_lists", *CHECK, *LIST_OPTIONS)


def test_a_language_without_blanks_is_refused(ends, german):
    german(PLURAL)
    text = Path("german.json").read_text("utf-8")
    lines = [{**line, "caption": line["caption"].replace(" ", "")} for line in json.loads(text)]
    Path("german.json").write_text(json.dumps(lines), "utf-8")
    message = ends(3, "data", "check_lists", *CHECK, *LIST_OPTIONS)
    assert "A language without blanks between words cannot be checked" in " ".join(message.split())


def test_lists_in_english_are_not_checked(ends, german):
    german(PLURAL)
    text = ends(2, "data", "check_lists", *CHECK, "--only", "gender")
    assert "gender is English" in text


@pytest.mark.parametrize("way", ["files", "keys"])
def test_compare_reads_lists_from_a_folder(ok, german, way):
    german(PLURAL)
    captions = Path("german.json").read_text("utf-8")
    Path("other.json").write_text(captions.replace("Männer mit", "Frauen mit"), "utf-8")
    words = {
        "files": ("--attributes", "labels.csv", "--metrics", "gender_error"),
        "keys": (
            *("dataset=coco", "dataset.attributes=labels.csv", "metric=gender_error"),
            *("attribute=geschlecht", "logger=csv"),
        ),
    }[way]
    text = ok("compare", "german.json", "other.json", *words, "--config-dir", "mine")
    assert "lists of language 'de' are unchecked against English" in " ".join(text.split())
