"""Faults of JSON files: each is refused with its place, or read as it is meant."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bias_pipeline.data.coco_files import human_captions
from bias_pipeline.errors import DataError, ResourceError
from bias_pipeline.io.json_files import expect, load_json

WHAT = "COCO results: [{...}]"
IN_PROCESS = settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def read(folder: Path, content: str | bytes, **limits: int) -> object:
    """What load_json makes of a file with that content."""
    path = folder / "results.json"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return load_json(path, what=WHAT, **limits)


def refusal_of(folder: Path, content: str | bytes, **limits: int) -> str:
    """The message with which a file of that content is refused."""
    with pytest.raises(DataError) as caught:
        read(folder, content, **limits)
    return str(caught.value)


@pytest.mark.parametrize(
    ("content", "value"),
    [
        ('[{"image_id": 7, "score": 0.5}]', [{"image_id": 7, "score": 0.5}]),
        (b"\xef\xbb\xbf[1]", [1]),
        ('["NaN", "Infinity"]', ["NaN", "Infinity"]),
        ('{"a": {"a": [{"a": 1}, {"a": 2}]}}', {"a": {"a": [{"a": 1}, {"a": 2}]}}),
        ('{"\\udc00": ["a \\ud800 b"]}', {"\ufffd": ["a \ufffd b"]}),
        ('["\\ud83d\\ude00"]', ["\U0001f600"]),
    ],
    ids=[
        "a good file", "a byte order mark", "those words in captions",
        "one key in several objects", "lone surrogates are replaced", "surrogate pairs",
    ],
)  # fmt: skip
def test_a_file_is_read(tmp_path, content, value):
    assert read(tmp_path, content) == value


def test_every_message_names_the_file_and_the_expected_format(tmp_path):
    message = refusal_of(tmp_path, "[")
    assert message.startswith(str(tmp_path / "results.json"))
    assert f"expected {WHAT}" in message


def test_truncated_file_is_refused(tmp_path):
    whole = '[{"image_id": 7, "caption": "a \\"dog\\"", "score": [true, null]}]'
    for cut in range(1, 59):
        assert refusal_of(tmp_path, whole[:cut]), cut


FAULTS: list[tuple[str | bytes, str]] = [
    ('[{"image_id": 7, "caption": "a dog on', "cut off"),
    ('[{"image_id": 7}]}', "A bracket is closed that was not opened: take it away"),
    ('[\n {"a": 1},\n {a: 2}\n]', "line 3, column 3"),
    ("[" + "1," * 500 + "dog, 1]", "dog, "),  # the surroundings
    ('[{"id": 1, "x": {"id": 2}},\n{"id": 3, "id": 4}]', 'column 11: key "id" occurs twice'),
    ('{"x": {"id": 1}, "id": 2, "id": 3}', 'column 27: key "id" occurs twice'),
    ('{"id": 1, "\\u0069d": 2}', "occurs twice"),
    ('{"\\ud800": 1, "\\ud801": 2}', "two keys"),
    ('{"a": 1}\n{"a": 2}\n', "JSON Lines"),
    ("[{'a': 1}]", "write it with json.dump"),
    ('[{"a": None}]', "write it with json.dump"),
    ("[1, 2, ]", "Take away the comma"),
    ("", "is empty"),
    ("  \n ", "only white space"),
    ("<html>", "web page"),
    ("version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
    (b"\x1f\x8b\x08\x00", "gzip"),
    (b"\x80\x04]\x94.", "a pickle"),
    ("[1]".encode("utf-16"), "save it as UTF-8"),
    (b'["caf\xe9"]', "Save the file as UTF-8"),
    (b'[\n"caf\xe9"]', "line 2, byte 5: not UTF-8"),
    ('["a\nb"]', "JSON library"),
    ("[1, " + "9" * 5000 + "]", "line 1, column 5"),
    ('["' + '\\"' * 500_000 + '", NaN]', "column 1000006: NaN"),
]


@pytest.mark.parametrize(("content", "words"), FAULTS, ids=[words for _, words in FAULTS])
def test_a_fault_is_named_with_its_place_or_what_helps(tmp_path, content, words):
    assert words in refusal_of(tmp_path, content)


def test_surroundings_are_at_most_80_characters(tmp_path):
    message = refusal_of(tmp_path, "[" + "1," * 500 + "x" + ",1" * 500 + "]")
    assert len(message.split("near '")[1].split("';")[0]) == 80


@pytest.mark.parametrize("literal", ["NaN", "Infinity", "-Infinity"])
def test_constants_outside_json_are_refused_with_their_place(tmp_path, literal):
    message = refusal_of(tmp_path, f'[{{"text": "NaN Infinity -Infinity"}},\n {literal}]')
    assert f"line 2, column 2: {literal} is not JSON" in message


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("absent.json", r"absent\.json: there is no such file"),
        (".", "is a folder"),
        ("a\0b", "cannot be read"),
    ],
)
def test_a_file_that_cannot_be_opened_is_a_resource_error(tmp_path, name, message):
    with pytest.raises(ResourceError, match=message):
        load_json(tmp_path / name, what=WHAT)


def test_right_to_left_override_is_escaped_in_messages(tmp_path):
    assert "\u202e" not in refusal_of(tmp_path, '["\u202egod", x]')


@pytest.mark.parametrize("opening", ["[", '{"a":', '[{"a":'])
def test_nesting_of_ten_thousand_levels_is_refused(tmp_path, opening):
    closing = opening.replace('"a":', "")[::-1].translate(str.maketrans("[{", "]}"))
    content = opening * 10_000 + "1" + closing * 10_000
    assert "nest deeper than 100 levels" in refusal_of(tmp_path, content)


def test_nesting_at_the_limit_is_read(tmp_path):
    assert read(tmp_path, "[[[]]]", max_depth=3) == [[[]]]


@pytest.mark.parametrize(
    ("content", "limits", "words"),
    [
        ('["[[[", [[]]]', {"max_depth": 2}, "line 1, column 10"),
        ("[12]", {"max_bytes": 3}, "4 bytes are more than the 3"),
    ],
)
def test_a_file_over_a_limit_is_refused(tmp_path, content, limits, words):
    assert words in refusal_of(tmp_path, content, **limits)


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False, width=32),
    lambda part: st.lists(part) | st.dictionaries(st.text(), part),
    max_leaves=20,
)


@IN_PROCESS
@given(value=ANY.filter(lambda value: "Infinity" not in json.dumps(value)))
def test_whatever_json_dump_writes_is_read_back(tmp_path, value):
    assert read(tmp_path, json.dumps(value)) == value


JSON_PIECES = ["[", "]", "{", "}", '"a"', '"', ":", ",", "1", "-", "NaN", "null", "\\ud800", "e9"]
JSON_PIECES += [" "]


@IN_PROCESS
@given(
    content=st.binary() | st.lists(st.sampled_from(JSON_PIECES)).map(lambda p: "".join(p).encode())
)
def test_any_bytes_are_read_or_refused(tmp_path, content):
    try:
        value = read(tmp_path, content)
    except DataError:
        return
    assert json.loads(json.dumps(value)) == value


@pytest.mark.parametrize(
    ("value", "kind"),
    [({}, dict), ([], list), ("", str), (0, int), (0.5, float), (3, float), (True, bool)],
)
def test_expect_passes_what_is_expected(value, kind):
    assert expect(value, kind, Path("a.json"), "x") is value


@pytest.mark.parametrize(
    ("value", "kind"), [([], dict), (None, str), (True, int), (True, float), (1.0, int), (1, bool)]
)
def test_expect_refuses_everything_else(value, kind):
    with pytest.raises(DataError):
        expect(value, kind, Path("a.json"), "x")


@pytest.mark.parametrize(
    ("value", "kind", "place", "message"),
    [
        (7, str, "annotations[17].caption", "[17].caption must be a string, found an integer: 7"),
        ({}, list, "", "a.json: the top level must be a list, found an object"),
    ],
)
def test_expect_names_place_expectation_and_finding(value, kind, place, message):
    with pytest.raises(DataError, match=re.escape(message)):
        expect(value, kind, Path("a.json"), place)


def test_expect_cuts_long_values():
    with pytest.raises(DataError) as caught:
        expect("x" * 10_000, int, Path("a.json"), "x")
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("as_written", [str, int])
def test_annotation_ids_that_differ_in_the_last_of_many_digits_are_two(tmp_path, as_written):
    annotations = [
        {"id": as_written("1" * 30 + str(n)), "image_id": 7, "caption": caption}
        for n, caption in enumerate(("a kite", "a boat"))
    ]
    path = tmp_path / "captions.json"
    path.write_text(json.dumps({"annotations": annotations}))
    assert human_captions(path) == ({"7": ("a kite", "a boat")}, 0)
