"""Faults E1, E7 and E8 of JSON files: each is refused with its place, or read as it is meant."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bias_pipeline.datasets.coco_files import human_captions
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


def refused(folder: Path, content: str | bytes, **limits: int) -> str:
    """The message with which a file of that content is refused."""
    with pytest.raises(DataError) as caught:
        read(folder, content, **limits)
    return str(caught.value)


def test_good_file_is_read(tmp_path):
    assert read(tmp_path, '[{"image_id": 7, "score": 0.5}]') == [{"image_id": 7, "score": 0.5}]


def test_every_message_names_the_file(tmp_path):
    assert refused(tmp_path, "[").startswith(str(tmp_path / "results.json"))


def test_every_message_names_the_expected_format(tmp_path):
    assert f"expected {WHAT}" in refused(tmp_path, "[")


def test_e1_truncated_file_is_refused(tmp_path):
    whole = '[{"image_id": 7, "caption": "a \\"dog\\"", "score": [true, null]}]'
    for cut in range(1, 59):
        assert refused(tmp_path, whole[:cut]), cut


def test_e1_truncated_file_is_called_cut_off(tmp_path):
    assert "cut off" in refused(tmp_path, '[{"image_id": 7, "caption": "a dog on')


def test_e1_line_and_column_are_told(tmp_path):
    assert "line 3, column 3" in refused(tmp_path, '[\n {"a": 1},\n {a: 2}\n]')


def test_e1_surroundings_are_at_most_80_characters(tmp_path):
    message = refused(tmp_path, "[" + "1," * 500 + "x" + ",1" * 500 + "]")
    assert len(message.split("near '")[1].split("';")[0]) == 80


def test_e1_surroundings_hold_the_fault(tmp_path):
    assert "dog, " in refused(tmp_path, "[" + "1," * 500 + "dog, 1]")


def test_e1_byte_order_mark_is_accepted(tmp_path):
    assert read(tmp_path, b"\xef\xbb\xbf[1]") == [1]


@pytest.mark.parametrize("literal", ["NaN", "Infinity", "-Infinity"])
def test_e1_constants_outside_json_are_refused_with_their_place(tmp_path, literal):
    message = refused(tmp_path, f'[{{"text": "NaN Infinity -Infinity"}},\n {literal}]')
    assert f"line 2, column 2: {literal} is not JSON" in message


def test_e1_those_words_in_captions_are_text(tmp_path):
    assert read(tmp_path, '["NaN", "Infinity"]') == ["NaN", "Infinity"]


def test_e1_duplicate_key_is_refused(tmp_path):
    message = refused(tmp_path, '[{"id": 1, "x": {"id": 2}},\n{"id": 3, "id": 4}]')
    assert 'line 2, column 11: key "id" occurs twice' in message


def test_e1_key_of_an_inner_object_is_not_taken_for_the_duplicate(tmp_path):
    message = refused(tmp_path, '{"x": {"id": 1}, "id": 2, "id": 3}')
    assert 'column 27: key "id" occurs twice' in message


def test_e1_duplicate_key_written_in_two_ways_is_refused(tmp_path):
    assert "occurs twice" in refused(tmp_path, '{"id": 1, "\\u0069d": 2}')


def test_same_key_in_two_objects_is_no_duplicate(tmp_path):
    assert read(tmp_path, '{"a": {"a": [{"a": 1}, {"a": 2}]}}') == {
        "a": {"a": [{"a": 1}, {"a": 2}]}
    }


@pytest.mark.parametrize(
    ("content", "hint"),
    [
        ('{"a": 1}\n{"a": 2}\n', "JSON Lines"),
        ("[{'a': 1}]", "write it with json.dump"),
        ('[{"a": None}]', "write it with json.dump"),
        ("[1, 2, ]", "Take away the comma"),
        ("  \n ", "only white space"),
        ("<html>", "web page"),
        ("version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
        (b"\x1f\x8b\x08\x00", "gzip"),
        (b"\x80\x04]\x94.", "a pickle"),
        ("[1]".encode("utf-16"), "save it as UTF-8"),
        (b'["caf\xe9"]', "Save the file as UTF-8"),
        ('["a\nb"]', "JSON library"),
    ],
)
def test_e1_the_hint_fits_the_fault(tmp_path, content, hint):
    assert hint in refused(tmp_path, content)


def test_e1_bytes_outside_utf8_are_refused_with_their_offset(tmp_path):
    assert "byte 6 (line 2)" in refused(tmp_path, b'[\n"caf\xe9"]')


def test_e1_empty_file_is_refused(tmp_path):
    assert "is empty" in refused(tmp_path, "")


def test_missing_file_is_a_resource_error_that_names_it(tmp_path):
    with pytest.raises(ResourceError, match=r"absent\.json: there is no such file"):
        load_json(tmp_path / "absent.json", what=WHAT)


def test_folder_is_a_resource_error(tmp_path):
    with pytest.raises(ResourceError, match="is a folder"):
        load_json(tmp_path, what=WHAT)


def test_impossible_path_is_a_resource_error():
    with pytest.raises(ResourceError, match="cannot be read"):
        load_json(Path("a\0b"), what=WHAT)


def test_e7_lone_surrogates_are_replaced(tmp_path):
    assert read(tmp_path, '{"\\udc00": ["a \\ud800 b"]}') == {"\ufffd": ["a \ufffd b"]}


def test_e7_surrogate_pairs_are_kept(tmp_path):
    assert read(tmp_path, '["\\ud83d\\ude00"]') == ["\U0001f600"]


def test_e7_keys_that_become_equal_are_refused(tmp_path):
    assert "two keys" in refused(tmp_path, '{"\\ud800": 1, "\\ud801": 2}')


def test_e7_right_to_left_override_is_escaped_in_messages(tmp_path):
    assert "\u202e" not in refused(tmp_path, '["\u202egod", x]')


@pytest.mark.parametrize("opening", ["[", '{"a":', '[{"a":'])
def test_e8_nesting_of_ten_thousand_levels_is_refused(tmp_path, opening):
    closing = opening.replace('"a":', "")[::-1].translate(str.maketrans("[{", "]}"))
    content = opening * 10_000 + "1" + closing * 10_000
    assert "nest deeper than 100 levels" in refused(tmp_path, content)


def test_e8_nesting_at_the_limit_is_read(tmp_path):
    assert read(tmp_path, "[[[]]]", max_depth=3) == [[[]]]


def test_e8_nesting_one_over_the_limit_is_refused_at_that_bracket(tmp_path):
    assert "line 1, column 10" in refused(tmp_path, '["[[[", [[]]]', max_depth=2)


def test_e8_file_over_the_size_limit_is_refused(tmp_path):
    assert "4 bytes are more than the 3" in refused(tmp_path, "[12]", max_bytes=3)


def test_e8_integer_of_thousands_of_digits_is_refused_with_its_place(tmp_path):
    assert "line 1, column 5" in refused(tmp_path, "[1, " + "9" * 5000 + "]")


def test_e8_place_of_a_fault_behind_a_long_string_is_found(tmp_path):
    message = refused(tmp_path, '["' + '\\"' * 500_000 + '", NaN]')
    assert "column 1000006: NaN" in message


@IN_PROCESS
@given(
    value=st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.text()
        | st.floats(allow_nan=False, width=32),
        lambda part: st.lists(part) | st.dictionaries(st.text(), part),
        max_leaves=20,
    ).filter(lambda value: "Infinity" not in json.dumps(value))
)
def test_e1_whatever_json_dump_writes_is_read_back(tmp_path, value):
    assert read(tmp_path, json.dumps(value)) == value


JSON_PIECES = [
    "[",
    "]",
    "{",
    "}",
    '"a"',
    '"',
    ":",
    ",",
    "1",
    "-",
    "NaN",
    "null",
    "\\ud800",
    "e9",
    " ",
]


@IN_PROCESS
@given(
    content=st.binary() | st.lists(st.sampled_from(JSON_PIECES)).map(lambda p: "".join(p).encode())
)
def test_e1_any_bytes_are_read_or_refused(tmp_path, content):
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


def test_expect_names_place_expectation_and_finding():
    with pytest.raises(DataError) as caught:
        expect(7, str, Path("a.json"), "annotations[17].caption")
    assert (
        str(caught.value) == "a.json: annotations[17].caption must be a string, found an integer: 7"
    )


def test_expect_calls_the_top_level_so():
    with pytest.raises(DataError, match="the top level must be a list, found an object"):
        expect({}, list, Path("a.json"), "")


def test_expect_cuts_long_values():
    with pytest.raises(DataError) as caught:
        expect("x" * 10_000, int, Path("a.json"), "x")
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("as_written", [str, int])
def test_annotation_ids_that_differ_in_the_last_of_many_digits_are_two(tmp_path, as_written):
    captions = ("a kite", "a boat")
    annotations = [
        {"id": as_written("1" * 30 + str(n)), "image_id": 7, "caption": caption}
        for n, caption in enumerate(captions)
    ]
    path = tmp_path / "captions.json"
    path.write_text(json.dumps({"annotations": annotations}))
    assert human_captions(path) == ({"7": captions}, 0)
