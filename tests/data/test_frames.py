"""From Python: a table of any package holds what a mapping of image ids holds."""

import pandas as pd
import pyarrow as pa
import pytest

import bias_pipeline as bp
from bias_pipeline.errors import DataError, UsageError

IDS = [7, 8, 9, 10]
CAPTIONS = ["a man rides", "a woman rides", "a man sits", "a man eats"]
LABELS = ["male", "female", "female", "male"]
HUMAN = [["a man", "he rides"], ["a woman", "she"], ["a lady", "a man"], ["a man eats", "a man"]]
OBJECTS = [["dog", "cake"], ["dog"], [], ["cake"]]
ORDER = [2, 0, 3, 1]
PACKAGES = ("pandas", "pyarrow", "a batch", "a reader", "polars", "duckdb", "datasets", "a stream")


def module(name):
    return pytest.importorskip(name, reason=f"the package {name} is not installed")


def table_of(package, **columns):
    """The columns as a table of a package; the test is skipped where the package is absent."""
    table = pa.table(columns)
    if package == "pyarrow":
        return table
    if package == "a batch":
        return table.combine_chunks().to_batches()[0]
    if package == "a reader":
        return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(1))
    if package == "duckdb":
        return module("duckdb").from_arrow(table)
    if package in ("datasets", "a stream"):
        made = module("datasets").Dataset.from_dict(columns)
        return made if package == "datasets" else made.to_iterable_dataset()
    return module(package).DataFrame(columns)


def reorder(values):
    return [values[k] for k in ORDER]


def result(*data, metric="gender_error", **settings):
    """The digest of the data, and the numbers."""
    score = bp.score(metric, *data, stats={"resamples": 5}, **settings)
    return score.manifest["corpus"]["digest"], [(row.part, row.value) for row in score.rows]


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize("key", ["image_id", "id", "filename"])
def test_a_table_of_any_package_holds_what_a_mapping_holds(package, key):
    ids = [f"{number}.jpg" for number in IDS] if key == "filename" else IDS
    data = (
        table_of(package, **{key: ids, "caption": CAPTIONS}),
        table_of(package, **{key: reorder(ids), "gender": reorder(LABELS)}),
        table_of(package, **{key: ids, "caption": HUMAN}),
        table_of(package, **{key: reorder(ids), "category": reorder(OBJECTS)}),
    )
    mappings = (dict(zip(ids, one, strict=True)) for one in (CAPTIONS, LABELS, HUMAN, OBJECTS))
    assert result(*data) == result(*mappings)


@pytest.mark.parametrize("package", PACKAGES[:-1])
def test_rows_without_ids_are_aligned(package):
    data = (table_of(package, caption=CAPTIONS), table_of(package, gender=LABELS))
    assert result(*data) == result(CAPTIONS, LABELS)


@pytest.mark.parametrize("package", PACKAGES[1:6])
def test_rows_without_ids_that_are_not_aligned_are_refused(package):
    if package in ("a reader", "duckdb"):
        pytest.skip("the number of its rows is not known before they are read")
    with pytest.raises(UsageError, match=r"differ in length \(captions 3, labels 4\)"):
        bp.score("gender_error", table_of(package, caption=CAPTIONS[:3]), LABELS)


@pytest.mark.parametrize(
    "column",
    [
        pa.array,
        lambda cells: pa.chunked_array([cells[:1], cells[1:]]),
        lambda cells: module("polars").Series(cells),
        lambda cells: module("datasets").Dataset.from_dict({"x": cells})["x"],
    ],
    ids=["an array", "a chunked array", "polars", "datasets"],
)
def test_a_column_is_a_list(column):
    data = (column(CAPTIONS), {"gender": column(LABELS)}, column(HUMAN))
    assert result(*data) == result(CAPTIONS, LABELS, HUMAN)
    assert result(column(CAPTIONS), column(LABELS)) == result(CAPTIONS, LABELS)
    with pytest.raises(UsageError, match=r"differ in length \(captions 3, labels 4\)"):
        bp.score("gender_error", column(CAPTIONS[:3]), column(LABELS))


@pytest.mark.parametrize("package", PACKAGES)
def test_the_user_s_column_of_ids_counts(package):
    captions = table_of(package, photo_key=IDS, id=[1, 2, 3, 4], caption=CAPTIONS)
    labels = table_of(package, photo_key=reorder(IDS), gender=reorder(LABELS))
    expected = result(dict(zip(IDS, CAPTIONS, strict=True)), dict(zip(IDS, LABELS, strict=True)))
    assert result(captions, labels, dataset={"id_column": "photo_key"}) == expected


def test_names_of_files_count_more_than_the_places_of_rows_in_pandas():
    """Rows in two orders were matched by their places."""
    files = [f"{number}.jpg" for number in IDS]
    captions = pd.DataFrame({"file_name": files, "caption": CAPTIONS})
    labels = pd.DataFrame({"file_name": reorder(files), "gender": reorder(LABELS)})
    expected = result(
        dict(zip(files, CAPTIONS, strict=True)), dict(zip(files, LABELS, strict=True))
    )
    assert result(captions, labels) == expected
    assert result(captions.set_index("file_name"), labels.set_index("file_name")) == expected


def test_cells_of_several_kinds_in_pandas_are_texts():
    captions = pd.DataFrame({"image_id": [7, "8", 9, 10], "caption": CAPTIONS, "x": [object()] * 4})
    human = pd.DataFrame({"image_id": IDS, "caption": ["a man", {"a woman"}, ["a lady"], None]})
    labels = dict(zip(IDS, LABELS, strict=True))
    people = {7: "a man", 8: "a woman", 9: "a lady", 10: None}
    expected = result(dict(zip(IDS, CAPTIONS, strict=True)), labels, people)
    assert result(captions, labels, human) == expected


def test_chosen_rows_of_a_data_set_and_names_of_classes_are_read():
    datasets = module("datasets")
    classes = datasets.ClassLabel(names=["female", "male"])
    features = datasets.Features({"image_id": datasets.Value("int64"), "gender": classes})
    labels = datasets.Dataset.from_dict(
        {"image_id": [*IDS, 11], "gender": [1, 0, 0, 1, -1]}, features=features
    ).shuffle(seed=1)
    captions = datasets.Dataset.from_dict({"image_id": IDS, "caption": CAPTIONS}).select(ORDER[:3])
    expected = result(
        {IDS[k]: CAPTIONS[k] for k in ORDER[:3]},
        {**dict(zip(IDS, LABELS, strict=True)), 11: None},
        dataset={"strict": False},
    )
    for made in (labels, labels.to_iterable_dataset()):
        assert result(captions, made, dataset={"strict": False}) == expected


def test_a_stream_that_begins_with_none_is_read():
    def rows():
        yield {"image_id": 7, "caption": None}
        yield from ({"image_id": k, "caption": c} for k, c in zip(IDS[1:], CAPTIONS, strict=False))

    captions = module("datasets").IterableDataset.from_generator(rows)
    labels = dict(zip(IDS, LABELS, strict=True))
    expected = result(dict(zip(IDS, [None, *CAPTIONS], strict=False)), labels)
    assert result(captions, labels) == expected


def test_parts_of_a_data_set_are_to_be_chosen():
    datasets = module("datasets")
    parts = datasets.DatasetDict(test=table_of("datasets", image_id=IDS, caption=CAPTIONS))
    with pytest.raises(UsageError, match=r"^captions: the data set has the parts test; give one"):
        bp.score("gender_error", parts, LABELS)


def test_pictures_are_known_by_their_paths(tmp_path):
    datasets, image = module("datasets"), module("PIL.Image")
    paths = [str(tmp_path / f"{number}.png") for number in IDS]
    for path in paths:
        image.new("RGB", (2, 2)).save(path)
    features = datasets.Features({"image": datasets.Image(), "caption": datasets.Value("string")})
    captions = datasets.Dataset.from_dict({"image": paths, "caption": CAPTIONS}, features=features)
    expected = result(CAPTIONS, LABELS)[1]
    assert result(captions, dict(zip(paths, LABELS, strict=True)))[1] == expected


def test_columns_that_cannot_be_read_are_left_out():
    captions = module("duckdb").sql(
        "select 7::hugeint image_id, 'a man' caption, interval 3 month i, union_value(n:=2) u, "
        "date '2020-01-01' d, map {'a': 1} m, uuid() w"
    )
    assert result(captions, {7: "male"}) == result({7: "a man"}, {7: "male"})


@pytest.mark.parametrize("package", ["pandas", "pyarrow", "polars", "duckdb", "datasets"])
def test_a_fault_is_of_the_argument(package):
    labels = table_of(package, image_id=IDS, gender=["male", "maybe", "male", "female"])
    with pytest.raises(DataError, match=r"^labels: unknown labels in 'gender': 'maybe'"):
        bp.score("gender_error", dict(zip(IDS, CAPTIONS, strict=True)), labels)
    captions = table_of(package, image_id=[7, 7, 9, 10], caption=CAPTIONS)
    with pytest.raises(DataError, match=r"^captions: image id 7 occurs twice with different"):
        bp.score("gender_error", captions, dict(zip(IDS, LABELS, strict=True)))


def test_tables_are_audited_and_compared():
    people = [f"a {word} with a {thing}" for word in ("man", "woman") for thing in range(30)]
    captions = table_of("polars", image_id=range(60), caption=people)
    others = table_of("polars", image_id=range(60), caption=["a man with a dog"] * 60)
    labels = table_of("polars", image_id=range(60), gender=["male"] * 30 + ["female"] * 30)
    assert bp.audit(captions, labels, minutes=0.01).answers
    comparison = bp.compare(captions, others, labels, metric="gender_error")
    assert comparison.frame().winner.tolist()[0] == "first"
    assert comparison.arrow()["winner"].to_pylist()[0] == "first"


def test_results_are_tables_of_arrow_too(tmp_path):
    score = bp.score("gender_error", CAPTIONS, LABELS, out=tmp_path)
    table = score.arrow()
    assert table.column_names == [*score.frame().columns]
    assert table["value"].to_pylist()[0] == 0.25
    assert table["seed_std"].null_count == table.num_rows  # nothing was trained
    assert table["seeds"].to_pylist()[0] == [0, 12, 456, 789, 100]
    assert bp.load(tmp_path).arrow()["value"].to_pylist() == table["value"].to_pylist()


IN_SETS = {"image_id": IDS, "gender": ["male", "female"] * 2, "set": ["a", "a", "b", "b"]}
MEN_AND_WOMEN = dict(zip(IDS, ["a man sits", "a woman sits", "a man", "a person"], strict=True))
BY_COLUMN = {name: dict(zip(IDS, IN_SETS[name], strict=True)) for name in ("gender", "set")}


@pytest.mark.parametrize(
    "labels",
    [
        *PACKAGES,
        BY_COLUMN,
        {name: pd.Series(column) for name, column in BY_COLUMN.items()},
        {one: {name: column[one] for name, column in BY_COLUMN.items()} for one in IDS},
        pd.DataFrame(IN_SETS).astype({"set": "category"}).set_index("image_id"),
    ],
    ids=[*PACKAGES, "mappings", "columns of pandas", "a mapping of images", "categories"],
)
def test_sets_of_pictures_are_read_in_every_form(labels):
    table = table_of(labels, **IN_SETS) if isinstance(labels, str) else labels
    rows = [dict(zip(IN_SETS, row, strict=True)) for row in zip(*IN_SETS.values(), strict=True)]
    expected = result(MEN_AND_WOMEN, rows, metric="counterfactual")
    assert result(MEN_AND_WOMEN, table, metric="counterfactual") == expected


def test_an_absent_set_is_no_set():
    numbers = pa.table({**IN_SETS, "set": [1.0, 1.0, float("nan"), float("nan")]})
    listed = {**IN_SETS, "set": [1.0, 1.0, None, None]}
    rows = [dict(zip(listed, row, strict=True)) for row in zip(*listed.values(), strict=True)]
    digests = [result(MEN_AND_WOMEN, labels)[0] for labels in (numbers, rows)]
    assert digests[0] == digests[1]
