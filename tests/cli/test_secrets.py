"""Keys of the environment: nothing that a command writes or says holds one."""

from pathlib import Path

import pytest
from PIL import Image

from bias_pipeline.io.terminal import redact, redacted_data, secrets
from bias_pipeline.run.loggers import WandbLogger
from tests.cli.commands import SMALL, own_choice
from tests.run.test_loggers import result

KEY = "hf_aBcDeFgHiJ"

DEFAULTS = [
    "optional /metric@x: ${oc.env:HF_TOKEN}",
    "optional /metric@x: ['${oc.env:HF_TOKEN}']",
    "/metric@x: ${oc.env:HF_TOKEN}",
    "/metric@x: lic_${oc.env:HF_TOKEN}",
    "/metric@x: ${oc.env:HOME}",
    "/metric@x: ${oc.select:metric}",
    "/metric@${oc.env:HF_TOKEN}: lic",
    "/experiment/${oc.env:HF_TOKEN}",
    "optional /experiment/${oc.env:HF_TOKEN,a}",
    "override /encoder: ${oc.env:HF_TOKEN}",
]


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", KEY)
    secrets.cache_clear()


def leaks(folder: Path) -> list[str]:
    """Files below a folder that hold the key, in their name or content."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [str(path) for path in files if KEY.encode() in path.read_bytes() or KEY in path.name]


def with_defaults(folder: Path, entry: str) -> tuple[str, ...]:
    """Words of an experiment with a defaults list."""
    content = f"# @package _global_\ndefaults:\n  - {entry}\n"
    return *SMALL, own_choice(folder, "experiment", content), "experiment=own"


@pytest.mark.parametrize("entry", DEFAULTS)
def test_a_defaults_list_gets_nothing_of_the_environment(ends, tmp_path, entry):
    text = ends(2, *with_defaults(tmp_path, entry))
    assert "its defaults list names" in text
    assert (KEY in text, leaks(tmp_path)) == (False, [])


def test_a_defaults_list_may_name_the_choice_of_a_group(ok, tmp_path):
    ok(*with_defaults(tmp_path, "optional /text@x: ${experiment}"), "--cfg", "job")


@pytest.mark.parametrize("word", ["+metric@x='${oc.env:HF_TOKEN}'", "metric='${oc.env:HF_TOKEN}'"])
def test_a_choice_on_the_command_line_gets_no_key(run, tmp_path, word):
    code, text = run(*SMALL, word)
    assert (code, KEY in text, leaks(tmp_path)) == (2, False, [])


@pytest.mark.parametrize("more", [(), ("metric.positions=1,2",)])
def test_a_key_that_a_command_holds_is_nowhere_after_it(run, tmp_path, more):
    _, text = run(*SMALL, f"captioner={KEY}", *more)
    assert (KEY in text, "(HF_TOKEN)" in text, leaks(tmp_path)) == (False, True, [])


def test_a_key_in_a_setting_is_not_in_the_run(run, tmp_path):
    code, text = run(*SMALL, f"attribute.also_masked=[nurse,{KEY}]")
    assert (code, leaks(tmp_path)) == (0, []), text


@pytest.mark.parametrize("word", [f"attribute.name={KEY}", f"attribute.groups=[{KEY},male]"])
def test_a_key_by_which_a_run_would_be_named_is_refused(ends, tmp_path, word):
    text = ends(2, *SMALL, word)
    assert "holds the value of HF_TOKEN" in text
    assert (KEY in text, leaks(tmp_path)) == (False, [])


@pytest.mark.parametrize("word", [f"attribute.name={KEY}", f"attribute.also_masked=[{KEY}]"])
def test_a_configuration_is_shown_without_keys(ok, word):
    text = ok(*SMALL, word, "--cfg", "job")
    assert (KEY in text, "(HF_TOKEN)" in text) == (False, True)


@pytest.mark.parametrize("more", [(), ("--to-batch", "ask.jsonl")])
@pytest.mark.parametrize("option", ["--model", "--prompt"])
def test_a_key_as_a_model_or_a_prompt_is_refused(ends, tmp_path, option, more):
    Image.new("RGB", (8, 8)).save(tmp_path / "1.png")
    words = {"--model": "qwen", "--server": "http://127.0.0.1:9/v1", "--out": "out", option: KEY}
    given = [word for pair in words.items() for word in pair]
    text = ends(2, "caption", str(tmp_path), *given, *more)
    assert f"{option} holds the value of HF_TOKEN" in text
    assert (KEY in text, leaks(tmp_path)) == (False, [])


def test_no_key_reaches_weights_and_biases(tmp_path):
    first = result()
    first.manifest["config"] = {"captioner": KEY}
    WandbLogger(str(tmp_path)).log(first)
    assert leaks(tmp_path) == []


def test_a_password_in_an_address_is_nowhere_after_the_command(run, tmp_path, monkeypatch):
    monkeypatch.delenv("HF_TOKEN")
    secrets.cache_clear()
    server = f"logger.mlflow.uri=http://me:{KEY}@127.0.0.1:1"
    _, text = run(*SMALL, "logger=[csv,mlflow]", server)
    assert "http://(user and password)@127.0.0.1:1 does not answer" in text
    assert (KEY in text, leaks(tmp_path)) == (False, [])


def test_a_short_value_and_another_variable_stay(monkeypatch):
    monkeypatch.setenv("MY_KEY", "seven77")
    monkeypatch.setenv("MY_NAME", "what I am called")
    secrets.cache_clear()
    assert redact("seven77 what I am called") == "seven77 what I am called"


@pytest.mark.parametrize("name", ["A_KEY", "TOKEN", "x_secret", "DB_PASSWORD"])
def test_the_name_stands_for_the_value(monkeypatch, name):
    monkeypatch.setenv(name, "12345678")
    secrets.cache_clear()
    assert redacted_data({"12345678": ["a 12345678"]}) == {"12345678": [f"a ({name})"]}
