"""The counting metrics on the real captioners: published cells, and worked cases end to end."""

import ast
import csv
import json
from functools import cache

import pytest

from bias_pipeline.corpus.attribute import Attribute, LabelMap, TaskVocabulary
from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.metrics.base import Metric
from bias_pipeline.metrics.counting.ba_directional import DirectionalBiasAmplification
from bias_pipeline.metrics.counting.ba_mals import BiasAmplificationMALS
from bias_pipeline.metrics.counting.cooccurrence import Cooccurrence
from bias_pipeline.metrics.counting.gender_error import GenderError
from bias_pipeline.run import compose
from bias_pipeline.stats.bootstrap import Bootstrap
from tests.corpora import DATA
from tests.oracles import oracle

pytestmark = pytest.mark.real

FEW = Bootstrap(resamples=2)
LABELS = LabelMap("gender", {"Male": "male", "Female": "female"})

# ImageCaptioner2, Table 3: men by women, and error in per cent.
PUBLISHED = {
    "nic_st10": (2.47, 14.3),
    "sat": (2.06, 7.3),
    "fc": (2.07, 10.1),
    "att2in": (2.06, 4.1),
    "transformer": (2.18, 3.6),
    "oscar": (2.06, 1.4),
    "nic_plus": (2.89, 12.9),
}
MISFITS = {("transformer", "ratio"): "2.235 here; no variant explains the published 2.18"}
ORACLE_NAMES = {"nic_st10": "NIC", "sat": "SAT", "oscar": "OSCAR"}
# The files of the others are read in make slow.
ALL = [
    name if name in ORACLE_NAMES else pytest.param(name, marks=pytest.mark.slow)
    for name in PUBLISHED
]


@pytest.fixture(autouse=True)
def _real_data() -> None:
    if not (DATA / "lic").is_dir():
        pytest.skip(f"no real captions at {DATA}; set BIAS_PIPELINE_DATA to have this test run")


def words(captioner: str) -> list[str]:
    return ["dataset=lic", f"dataset.root={DATA}/lic/bias_data", f"captioner={captioner}"]


@cache
def corpus_by(captioner: str) -> Corpus:
    return compose.cell([*words(captioner), "metric=gender_error"]).corpus()


@cache
def values(captioner: str, metric: str) -> dict[str, float]:
    cell = compose.cell([*words(captioner), f"metric={metric}", "stats.resamples=2"])
    return parts(cell.build("metric"), corpus_by(captioner))


def parts(metric: Metric, corpus: Corpus) -> dict[str, float]:
    score = metric.compute(corpus, splits=[])
    return {name: part.value for name, part in score.parts.items()}


@pytest.mark.parametrize("captioner", ALL)
def test_the_published_gender_error(captioner):
    tolerance = oracle("gender_error_ratio")["published_tolerance"]["error"]
    result = 100 * values(captioner, "gender_error")["score"]
    assert result == pytest.approx(PUBLISHED[captioner][1], abs=tolerance)


@pytest.mark.parametrize("captioner", ALL)
def test_the_published_gender_ratio(captioner):
    if (captioner, "ratio") in MISFITS:
        pytest.xfail(MISFITS[captioner, "ratio"])
    tolerance = oracle("gender_error_ratio")["published_tolerance"]["ratio"]
    model = values(captioner, "gender_ratio")["model"]
    assert model == pytest.approx(PUBLISHED[captioner][0], abs=tolerance)


@pytest.mark.parametrize("captioner", ORACLE_NAMES)
def test_gender_words_count_as_the_reference_code_counts(captioner):
    published = oracle("gender_error_ratio")["captioners"][ORACLE_NAMES[captioner]]
    error, ratio, rates = (
        values(captioner, f) for f in ("gender_error", "gender_ratio", "group_accuracy")
    )
    ours = {
        "ratio_male_over_female": ratio["model"],
        "gt_ratio_female_over_male": 1 / ratio["human"],
        "error_over_all_images_percent": 100 * error["score"],
        "error_over_gendered_captions_percent": 100 * error["named"],
        "outcome_divergence": rates["divergence"],
    }
    for group in ("male", "female"):
        ours[f"{group}_correct"] = rates[f"group:{group}"]
        ours[f"{group}_incorrect"] = rates[f"incorrect:{group}"]
        ours[f"{group}_other"] = rates[f"other:{group}"]
    assert ours == pytest.approx({key: published[key] for key in ours}, abs=1e-9)


@pytest.mark.slow
def test_the_th10_file_is_not_behind_the_published_nic():
    assert values("nic", "gender_ratio")["model"] == pytest.approx(3.189, abs=5e-4)
    assert values("nic", "gender_error")["score"] == pytest.approx(0.16438, abs=5e-6)


# --- worked cases, from captions to numbers -----------------------------------------------------


def gender(masculine: list[str], feminine: list[str]) -> Attribute:
    words = {"male": masculine, "female": feminine}
    return Attribute("gender", ("male", "female"), words, {"toy": LABELS})


def inflections(name: str) -> list[str]:
    """A category in the endings of the worked cases' rule: no synonyms."""
    return [name, f"{name}s", f"{name}es"]


def categories(name: str) -> TaskVocabulary:
    listed = oracle(name)["categories"]
    return TaskVocabulary("coco", {task: inflections(task) for task in listed})


def corpus_of(records: list[Record]) -> Corpus:
    groups = {"gender": (("male", "female"), LABELS)}
    return Corpus.build(records, dataset="toy", captioner="toy", groups=groups)


@cache
def objects_of_images() -> dict[int, set[str]]:
    instances = json.loads((DATA / "coco/annotations/instances_val2014.json").read_text())
    names = {c["id"]: c["name"] for c in instances["categories"]}
    objects: dict[int, set[str]] = {}
    for one in instances["annotations"]:
        objects.setdefault(one["image_id"], set()).add(names[one["category_id"]])
    return objects


@cache
def labelled_images(captioner: str) -> Corpus:
    captions = json.loads((DATA / "captioners" / f"{captioner}.json").read_text())
    with (DATA / "coco/attributes/images_val2014.csv").open(newline="") as file:
        labels = {int(line["id"]): line["bb_gender"] for line in csv.DictReader(file)}
    texts = {c["image_id"]: c["caption"] for c in captions}
    records = []
    for i, label in labels.items():
        if label in LABELS.groups:
            # "person" marks the objects as known where an image has no other.
            objects = frozenset(objects_of_images().get(i, set()) | {"person"})
            records.append(Record(str(i), texts[i], labels={"gender": label}, objects=objects))
    return corpus_of(records)


@pytest.mark.parametrize(("captioner", "name"), [("nic", "NIC"), ("sat", "SAT")])
def test_labels_from_objects(captioner, name):
    listed = oracle("gender_error_ratio")
    attribute = gender(listed["masculine"], listed["feminine"])
    vocabulary = categories("counting_real_coco_objects")
    case = oracle("counting_real_coco_objects")["captioners"][name]
    options = {"attribute": attribute, "task": vocabulary, "stats": FEW, "exclude_tasks": ()}
    directed = parts(DirectionalBiasAmplification(**options), labelled_images(captioner))
    mals = parts(BiasAmplificationMALS(**options), labelled_images(captioner))
    ours = {
        "BA_arrow_AtoT_WR": directed["a_to_t"],
        "BA_arrow_TtoA_WR": directed["t_to_a:published:images"],
        "bog_task_to_attribute": directed["t_to_a:published:named"],
        "BA_MALS_joint_predictions": mals["published:joint"],
        "BA_MALS_gtA_predT": mals["published:task"],
        "BA_MALS_predA_gtT": mals["published:group"],
    }
    assert ours == pytest.approx({key: case["expected"][key] for key in ours}, abs=1e-9)
    assert mals["undefined"] >= case["n_objects_never_predicted"]
    assert directed["mentions:model"] == pytest.approx(case["n_object_mentions"] / 10_780)


@cache
def captions_of_people() -> dict[str, tuple[str, ...]]:
    with (DATA / "relic/age_dataset.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {row["img_id"]: tuple(ast.literal_eval(row["caption_list"])) for row in rows}


@cache
def described_images(captioner: str) -> Corpus:
    texts = json.loads((DATA / "captioners" / f"{captioner}.json").read_text())
    predicted = {c["image_id"]: c["caption"] for c in texts}
    unread = {"gender": "Male"}  # groups are read from captions
    people = captions_of_people().items()
    return corpus_of([Record(image, predicted[int(image)], x, unread) for image, x in people])


@pytest.mark.parametrize(("captioner", "name"), [("nic", "NIC"), ("sat", "SAT")])
def test_labels_from_human_captions(captioner, name):
    listed = oracle("counting_real_human_captions")["extraction"]["gender_words"]
    attribute = gender(listed["masculine"], listed["feminine"])
    vocabulary = categories("counting_real_human_captions")
    case = oracle("counting_real_human_captions")["captioners"][name]
    counted = {"attribute": attribute, "task": vocabulary, "stats": FEW, "exclude_tasks": ()}
    options = {**counted, "labels": "union", "groups": "captions", "unclear": "skip"}
    corpus = described_images(captioner)
    directed = DirectionalBiasAmplification(**options).compute(corpus, splits=[])
    mals = parts(BiasAmplificationMALS(**options), corpus)
    ours = {
        "BA_arrow_AtoT_WR": directed.parts["a_to_t"].value,
        "BA_arrow_TtoA_WR": directed.parts["t_to_a:published:images"].value,
        "BA_MALS_joint_predictions": mals["published:joint"],
        "BA_MALS_gtA_predT": mals["published:task"],
        "BA_MALS_predA_gtT": mals["published:group"],
    }
    assert directed.parts["a_to_t"].n_images == case["n_used"]
    assert ours == pytest.approx({key: case["expected"][key] for key in ours}, abs=1e-9)
    saved_parts = parts(DirectionalBiasAmplification(**options, undefined="keep"), corpus)
    expected = case["expected"]["bog_task_to_attribute"]
    assert saved_parts["t_to_a:published:images"] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("captioner", "name"), [("nic", "NIC"), ("sat", "SAT")])
def test_the_ratio_to_men_of_objects(captioner, name):
    words = oracle("gender_error_ratio")
    case = oracle("gender_groups_cooccurrence")["cooccurrence"][name]
    metric = Cooccurrence(
        gender(words["masculine"], words["feminine"]),
        FEW,
        TaskVocabulary("words", {word: [word] for word in case}),
        exclude_tasks=(),
    )
    result = parts(metric, labelled_images(captioner))
    expected = {f"object:{word}:model": item["to_m"] for word, item in case.items()}
    assert {key: result[key] for key in expected} == pytest.approx(expected, abs=1e-9)


def test_lics_masking_list_fits_the_published_error_too():
    gender_error = GenderError(compose.cell([]).build("attribute"), FEW, words="lic")
    percent = 100 * parts(gender_error, labelled_images("sat"))["score"]
    assert round(percent, 1) == PUBLISHED["sat"][1]
