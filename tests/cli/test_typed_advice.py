"""What messages advise is typed as it is printed, and helps."""

import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bias_pipeline.commands.audit_settings import in_options

N = 120
IDS = range(1, N + 1)


def sexes(male: str, female: str) -> list[str]:
    return [(male, female)[k % 2] for k in IDS]


def captions(texts: Sequence[str]) -> str:
    rows = [{"image_id": k, "caption": text} for k, text in zip(IDS, texts, strict=True)]
    return json.dumps(rows)


TEXTS = [f"a {('man', 'woman')[k % 2]} with a dog" for k in IDS]


@pytest.fixture
def write_files(tmp_path: Path) -> Any:
    """A function that writes labels and captions; returns the words of a dry audit of them."""

    def write(labels: Sequence[str] | None = None, texts: Sequence[str] = TEXTS) -> list[str]:
        lines = [f"{k},{one}" for k, one in zip(IDS, labels or sexes("M", "F"), strict=True)]
        (tmp_path / "labels.csv").write_text("\n".join(["image_id,sex", *lines]))
        (tmp_path / "mine.json").write_text(captions(texts))
        # Not relative to the folder of a test: a process reads what it is told once
        labelled = ["--attributes", str(tmp_path / "labels.csv"), "--label-column", "sex"]
        mine = str(tmp_path / "mine.json")
        return ["audit", mine, *labelled, "--minutes", "0.01", "--dry-run"]

    return write


def maps(text: str, **groups: str) -> list[str]:
    """The maps that a message advises, as a shell reads them, with groups for labels."""
    advised = re.findall(r"--map[= ](?:'[^']*'|\S+)=GROUP\S*", text)
    words = shlex.split(" ".join(advised).replace(" (", ""))
    for label, group in groups.items():
        words = [word.replace(f"{label}=GROUP", f"{label}={group}") for word in words]
    assert "GROUP" not in " ".join(words), words
    return words


@pytest.mark.parametrize(("male", "female"), [("1", "-1"), ("-1", "-2"), ("+", "-"), ("0", "1")])
def test_the_maps_that_a_refusal_prints_are_typed_as_printed(ends, ok, write_files, male, female):
    words = write_files(sexes(male, female))
    advised = maps(ends(3, *words), **{female: "female", male: "male"})
    assert "gender (male 60, female 60)" in ok(*words, *advised)


@pytest.mark.parametrize("sign", [("--map", "-1=female"), ("--map=-1=female",)])
@pytest.mark.parametrize("command", ["audit", "compare", "data validate"])
def test_a_label_may_begin_with_a_sign(ok, write_files, command, sign, tmp_path):
    audit = [*write_files(sexes("1", "-1")), *sign, "--map", "1=male"]
    (tmp_path / "other.json").write_text(captions(["a man" for _ in IDS]))
    data = ["dataset=coco", f"dataset.attributes={audit[3]}", *audit[4:6], *audit[9:]]
    quick = ["metric=gender_error", "logger=csv", "stats.resamples=10"]
    words = {
        "audit": audit,
        "compare": ["compare", audit[1], str(tmp_path / "other.json"), *data, *quick],
        "data validate": ["data", "validate", f"captioner={audit[1]}", *data],
    }
    ok(*words[command])


def test_a_map_makes_no_other_label_ambiguous(ends, ok, write_files):
    labels = ["mixed" if k % 10 == 0 else one for k, one in zip(IDS, sexes("m", "w"), strict=True)]
    words = write_files(labels)
    advised = maps(ends(3, *words), mixed="Both", w="female")
    assert "gender (male 48, female 60)" in ok(*words, *advised)


def test_all_unknown_labels_are_advised_at_once(ends, ok, write_files):
    labels = [f"{('male', 'female')[k % 2]} rated {k % 20}" for k in IDS]
    words = write_files(labels)
    groups = {f"{one} rated {k}": one for one in ("female", "male") for k in range(20)}
    text = ends(3, *words)
    advised = re.findall(r"--map '([^']+)=GROUP'", text)
    assert len(advised) == 20
    typed = [word for label in advised for word in ("--map", f"{label}={groups[label]}")]
    assert "gender (male 60, female 60)" in ok(*words, *typed)


def test_stock_sentences_are_kept_as_the_note_advises(ok, write_files, tmp_path):
    people = [
        {"image_id": k, "caption": text}
        for k, one in zip(IDS, TEXTS, strict=True)
        for text in (f"{one} by day {k}", "Quality is too poor." if k % 3 else f"{one} {k}")
    ]
    (tmp_path / "people.json").write_text(json.dumps({"annotations": people}))
    words = [*write_files(), "--captions", str(tmp_path / "people.json")]
    text = ok(*words)
    advised = re.search(r"describe nothing .*\((--stock keep) keeps them\)", text)
    assert advised
    assert "text.stock" not in text
    assert "describe nothing" not in ok(*words, *advised[1].split())


def test_a_preamble_is_cut_as_the_note_advises(ok, write_files):
    words = write_files(texts=[f"The image depicts {text}." for text in TEXTS])
    text = ok(*words)
    advised = re.search(r"(--preambles cut) removes them", text)
    assert advised
    assert "text.preambles" not in text
    assert "they were cut" in ok(*words, *advised[1].split())


@pytest.mark.parametrize("unit", ["sentence", "subject"])
def test_units_of_captions_are_options(ok, write_files, unit):
    words = write_files(texts=[f"{text}. A tree stands there." for text in TEXTS])
    assert f"--unit {unit}: words a caption that are scored: 5.0 of 9.0" in ok(
        *words, "--unit", unit
    )


def test_refusals_are_kept_as_the_message_advises(ends, ok, write_files):
    words = write_files(texts=["I'm sorry, but I can't help." if k % 4 else TEXTS[0] for k in IDS])
    text = ends(3, *words)
    assert "dataset.blank_limit" not in text
    advised = re.search(r"with (--declined keep), or raise (--blank-limit)", text)
    assert advised, text
    ok(*words, *advised[1].split())
    ok(*words, advised[2], "0.9")


def test_one_of_several_captions_is_chosen_as_the_message_advises(ends, ok, write_files, tmp_path):
    words = write_files()
    rows = json.loads(captions(TEXTS)) + json.loads(captions([f"{t} there" for t in TEXTS]))
    (tmp_path / "mine.json").write_text(json.dumps(rows))
    advised = re.search(r"choose one with (--multi-caption)\b(?!=)", ends(3, *words))
    assert advised
    text = ok(*words, advised[1])
    assert "number 0 of each is scored, 120 others are not (--caption-index)" in text
    assert "number 1 of each" in ok(*words, advised[1], "--caption-index", "1")
    assert "--multi-caption" in ends(2, *words, "--caption-index", "1")


def test_the_report_and_the_baseline_advise_the_options_that_the_screen_advises(
    ok, write_files, tmp_path
):
    words = write_files(texts=[f"The image depicts {text}." for text in TEXTS])
    words.remove("--dry-run")
    text = ok(*words, "--out", str(tmp_path / "out"), "--json", str(tmp_path / "out.json"))
    assert "--preambles cut removes them" in text
    assert re.search(r"skipped: dbac, [\w, ]*\(gender\)|skipped: dbac[\w, ]*: ", text), text
    assert not re.search(r"skipped: [^:]*(metric|label_column)=", text)
    for file in ("out/report.html", "out.json"):
        content = (tmp_path / file).read_text()
        assert "--preambles cut removes them" in content
        assert "text.preambles=cut" not in content


@pytest.mark.parametrize("value", ["semicolon", "none"])
def test_what_is_between_captions_is_said_as_the_message_advises(ends, ok, write_files, value):
    texts = ["; ".join([text] * (1 + k % 7)) for k, text in enumerate(TEXTS)]
    words = write_files(texts=texts)
    advised = re.findall(r"--separator \w+", ends(3, *words))
    assert [one.split()[1] for one in advised] == ["semicolon", "none"]
    several = ["--multi-caption"] if value == "semicolon" else []
    ok(*words, "--separator", value, *several)


def test_a_printed_command_keeps_its_keys():
    command = "no time; python -m bias_pipeline metric=lic text.unit=sentence"
    assert in_options(command) == command


@pytest.mark.parametrize(
    ("word", "advised"),
    [
        ("+experiment=relic_gender", "experiment=relic_gender"),
        ("++experiment=relic_gender", "experiment=relic_gender"),
        ("+attribute=gender", "attribute=gender"),
        ("+stats.resamples=10", "stats.resamples=10"),
        ("~logger", "logger=csv"),
        ("~logger=csv", "logger=csv"),
    ],
)
def test_signs_are_refused_with_the_word_to_write(ends, ok, word, advised):
    text = ends(2, "metric=gender_error", word, "--cfg", "job")
    assert re.search(rf"write {re.escape(advised)}[, ]", text), text
    ok("metric=gender_error", advised, "--cfg", "job")


def test_what_is_not_set_cannot_be_taken_out(ends):
    assert "limit is not set, so nothing can be taken out" in ends(2, "~limit", "--cfg", "job")


def test_labels_of_faces_are_told_as_such(ends, ok, tmp_path, write_files):
    words = write_files()
    names = [f"detected_faces/COCO_val2014_{k:012d}_face0.jpg" for k in IDS]
    lines = [f"{name},{one}" for name, one in zip(names, sexes("Male", "Female"), strict=True)]
    table = "\n".join(["face_name_align,sex", *lines])
    (tmp_path / "labels.csv").write_text(table)
    named = ("--id-column", "face_name_align")
    text = ends(3, *words, *named)
    assert "these labels are of faces, not of images: take '_face0' out" in text
    assert "sed 's/_face0//'" in text
    (tmp_path / "labels.csv").write_text(table.replace("_face0", ""))  # what sed does
    assert "gender (male 60, female 60)" in ok(*words, *named)
