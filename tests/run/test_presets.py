"""What is composed without Hydra is what Hydra composes."""

import pytest

from bias_pipeline.errors import UsageError
from bias_pipeline.io.paths import choices_of, conf_dir
from bias_pipeline.run.compose import cell
from bias_pipeline.run.hydra_composer import Loader
from bias_pipeline.run.presets import preset

# Every choice of every group, several groups at a time: Hydra takes its time.
GROUPS = ("metric", "encoder", "head", "attribute", "alignment", "scoring", "split", "trainer")
CHOICES = {group: choices_of(conf_dir() / group) for group in GROUPS}
MOST = max(map(len, CHOICES.values()))
EACH: list[dict[str, object]] = [
    {group: names[turn % len(names)] for group, names in CHOICES.items()} for turn in range(MOST)
]
MIXED: list[dict[str, object]] = [
    *({"metric": name} for name in ("leakage", "dbac")),  # they override other groups
    *({"experiment": name} for name in ("survivors", "relic_age", "relic_race_bert_frozen")),
    {"experiment": "dbac_table5", "encoder": "minilm", "metric": "lic"},
    *({"metric": "dbac", "masking": name} for name in ("tasks_only", "rest_only")),
    {"attribute": ["gender", "race"], "metric": "dbac"},
    {"metric": "dbac", "scoring": "accuracy", "encoder": "bilstm", "head": "linear"},
    {"logger": "csv", "text": {"lowercase": ["human"]}},
    {"seeds": [0, 12], "stats": {"resamples": 100}, "dataset": "coco", "captioner": "x.json"},
    {"metric": "imagecaptioner2", "encoder": "sat", "encoder.backbone": "annotations"},
    {"stats.resamples": 30, "stats": {"level": 0.9}, "metric.sides": ["model"]},
]


@pytest.fixture(autouse=True)
def hydras_own(monkeypatch):
    """Hydra merges the files, and nothing of ours does it in its place."""
    monkeypatch.setattr("bias_pipeline.run.hydra_composer._MERGED", {})
    monkeypatch.setattr(Loader, "_merged_over_base", lambda *_: None)
    monkeypatch.setattr(Loader, "_merged_files", lambda *_: None)


def words(settings: dict[str, object]) -> list[str]:
    """The same settings as overrides of the command line."""
    overrides = []
    for key, value in settings.items():
        if isinstance(value, dict):
            overrides += words({f"{key}.{name}": below for name, below in value.items()})
        else:
            text = str(value).replace(" ", "").replace("'", "")
            overrides.append(f"{key}={text}")
    return overrides


@pytest.mark.parametrize("settings", [*EACH, *MIXED], ids=str)
def test_it_is_what_hydra_composes(settings):
    result, expected = preset(settings), cell(words(settings))
    assert result.tree == expected.tree
    assert result.used == expected.used


def test_choices_bear_the_names_that_rows_show():
    built, composed = preset({"metric": "dbac"}), cell(["metric=dbac"])
    groups = ("encoder", "head", "masking", "alignment", "scoring")
    assert [built.choice(group) for group in groups] == [composed.choice(group) for group in groups]


def test_a_group_that_nothing_lists_can_be_chosen():
    settings: dict[str, object] = {"masking": "tasks_only", "task": "coco_objects"}
    assert preset(settings).tree["task"] == preset({"metric": "dbac"}).tree["task"]


def test_values_of_one_cell_are_not_those_of_the_next():
    preset({"metric": "lic", "seeds": 3, "sides": ["model"]})
    assert preset({"metric": "lic"}).tree == cell(["metric=lic"]).tree


def test_a_key_of_the_metric_is_the_metrics():
    assert preset({"metric": "lic", "sides": ["model"]}).tree["metric"]["sides"] == ["model"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"encoder": "lsmt"}, "did you mean 'lstm'"),
        ({"encodr": "lstm"}, "did you mean 'encoder'"),
        ({"stats": {"resample": 3}}, "did you mean 'resamples'"),
        ({"seeds": 0}, "seeds"),
        ({"seeds": range(10**8)}, "more than 10,000 values"),
        ({"attribute": ["gender"]}, "one attribute or two"),
    ],
)
def test_mistakes_are_told(settings, message):
    with pytest.raises(UsageError, match=message):
        preset(settings)


@pytest.mark.parametrize("alignment", ["constant", "contextual"])
@pytest.mark.parametrize("metric", [["metric=dbac"], ["metric=lic", "metric.sides=[human]"]])
@pytest.mark.parametrize("experiment", ["dbac_table8", "dbac_table17"])
def test_the_sweep_that_a_comment_names_is_composed(experiment, metric, alignment):
    cell([f"experiment={experiment}", f"alignment={alignment}", *metric]).build("metric")


@pytest.mark.parametrize(
    "words",
    [["metric=lic", "metric.sides=[human]", "encoder=lstm", "head=mlp3"], ["metric=dpa"]],
)
def test_the_other_columns_of_dbacs_table_3_are_composed(words):
    cell(["experiment=language_bias", "split=dbac", *words]).build("metric")


@pytest.mark.parametrize("experiment", ["imagecaptioner2_table7", "imagecaptioner2_table7_lic"])
def test_table_7_leaves_people_and_pictures_as_they_are(experiment):
    """So it has one D a version, and no region of a painting is masked."""
    composed = cell([f"experiment={experiment}"])
    chosen = {key: composed.choices[key] for key in ("alignment", "image_masking", "split")}
    assert chosen["alignment"] == "none"
    assert chosen["split"] == "ic2"
    assert chosen["image_masking"] == "none" or experiment.endswith("_lic")


def test_table_7_is_of_paintings_that_no_speaker_learnt_from():
    composed = cell(["experiment=imagecaptioner2_table7"])
    assert "train" not in composed.tree["dataset"]["split"]
