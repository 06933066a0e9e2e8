"""Language models as encoders, by name or folder, at the door."""

import io
import shutil
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from bias_pipeline.attack.language_models import Frozen
from bias_pipeline.commands.main import main
from tests.lic_folder import write_folder
from tests.tiny_models import (
    language_models,
    tiny_weights,
    write_bert,
    write_blip,
    write_clip,
    write_pair,
    write_resnet,
    write_sentence_parts,
)
from tests.tiny_picture_text import write_qwen

SMALL = ("dataset.n_images=80", "seeds=2", "trainer.max_epochs=2", "logger=csv",
         "metric.positions=1")  # fmt: skip


@pytest.fixture(scope="session")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bert(tmp_path_factory.mktemp("bert"))


@pytest.fixture(scope="module")
def finished_run(bert, tmp_path_factory) -> tuple[tuple[str, ...], str]:
    """The words of a finished run, and what was printed."""
    outputs, printed = tmp_path_factory.mktemp("finished"), io.StringIO()
    words = ("encoder=minilm", f"encoder.model={bert}", *SMALL, f"paths.outputs={outputs}")
    with redirect_stdout(printed):
        assert main(words) == 0
    return words, printed.getvalue()


def test_what_was_embedded_is_not_embedded_again(ok, finished_run, monkeypatch):
    """Another head needs its vectors; another score of the same attackers not even those."""
    words, output = finished_run
    assert "; 0 were embedded before" in output
    assert "embedded: 0 captions; " in ok(*words, "head=linear")
    monkeypatch.delattr(Frozen, "read")
    assert "nothing was embedded or trained" in ok(*words, "scoring=accuracy")


def test_other_weights_in_the_same_folder_are_another_run(ok, bert, tmp_path):
    folder = shutil.copytree(bert, tmp_path / "own")
    words = ("encoder=minilm", f"encoder.model={folder}", *SMALL, "seeds=1", "probe=convex")
    ok(*words)
    assert "not run again" in ok(*words)
    write_sentence_parts(folder)
    assert "not run again" not in ok(*words)


@pytest.mark.parametrize("encoder", ["mpnet", "distilroberta", "distilbert", "bert_frozen", "bert"])
def test_a_model_that_is_not_there_is_told_before_data_are_read(
    encoder, ends, tmp_path, monkeypatch
):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.delattr("bias_pipeline.scenes.dataset.ScenesDataset.load")
    output = ends(5, f"encoder={encoder}", "logger=csv")
    for part in ("revision main", str(tmp_path), "bias_pipeline models prefetch "):
        assert part in output


@pytest.mark.parametrize("encoder", ["minilm", "bert"])
def test_a_model_without_its_tokenizer_is_told_before_data_are_read(
    encoder, ends, tmp_path, monkeypatch
):
    monkeypatch.delattr("bias_pipeline.scenes.dataset.ScenesDataset.load")
    folder = write_bert(tmp_path / "half")
    (folder / "tokenizer.json").unlink()
    assert "fetch tokenizer.json" in ends(
        5, f"encoder={encoder}", f"encoder.model={folder}", "logger=csv"
    )


@pytest.mark.parametrize("head", ["mlp3", "lic_bert"])
def test_a_model_of_ones_own_is_trained_on(head, ok, bert):
    words = ("encoder=bert", f"encoder.model={bert}", f"head={head}", *SMALL, "seeds=1")
    assert f"encoder bert · head {head}" in ok(*words, "trainer.max_epochs=1", "probe.processes=1")


# models list, show, prefetch


@pytest.fixture
def nothing_fetched(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))


@pytest.mark.usefixtures("nothing_fetched")
def test_models_are_listed_with_metrics_and_the_command_that_fetches_them(ok):
    printed = ok("models", "list")
    assert "models prefetch google-bert/bert-base-uncased" in printed
    assert "gender_score.language_model" in printed
    assert "gemma-3-270m" in printed


@pytest.mark.usefixtures("nothing_fetched")
def test_captioners_of_papers_are_listed_with_what_is_at_hand(run, tmp_path, monkeypatch):
    write_folder(tmp_path / "lic" / "bias_data")
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setenv("BIAS_PIPELINE_DATA", str(tmp_path))
    code, output = run("models", "list")
    lines = output.splitlines()
    (sat,) = (line for line in lines if "SAT (Xu et al. 2015)" in line)
    (llava,) = (line for line in lines if " LLaVA (Liu et al. 2023b)" in line)
    assert (code, sat.split("  ")[-1]) == (0, "dataset=lic captioner=sat")
    assert llava.endswith("caption --model MODEL, a llava; absent")


def test_a_models_files_are_shown_with_their_digests(ok, bert):
    write_sentence_parts(bert)
    output = ok("models", "show", str(bert))
    for part in ("type:      bert", "mean, length 1", "not stated", "model.safetensors"):
        assert part in output


@pytest.mark.parametrize(
    ("write", "user"),
    [
        (write_clip, "encoder.model, embed --model"),
        (write_blip, "encoder.model, caption --model"),
        (write_pair, "caption"),
        (write_qwen, "encoder.model"),
    ],
)
def test_models_of_pictures_are_shown_too(write, user, ok, tmp_path):
    output = ok("models", "show", str(write(tmp_path / "model")))
    assert f"for:       {user}" in output
    assert "pooling" not in output


@pytest.mark.usefixtures("nothing_fetched")
def test_an_absent_model_hides_no_other(ends, bert):
    output = ends(5, "models", "show", "distilbert", str(bert), "bert")
    assert f"folder:    {bert}" in output
    assert [f"prefetch {name}" in output for name in ("distilbert/", "google-bert/")] == [True] * 2


@pytest.mark.usefixtures("nothing_fetched")
@pytest.mark.parametrize(
    ("words", "intended"),
    [
        ("models show minlm", "minilm"),
        ("models show sentence-transformers/all-mpnet-base-v3", "all-mpnet-base-v2"),
        ("encoder=mpnet encoder.model=mpnet", "all-mpnet-base-v2"),
    ],
)
def test_a_misspelt_model_is_told_with_the_one_that_was_meant(words, intended, ends):
    output = ends(5, *words.split()).replace("sentence-transformers/", "")
    assert f"did you mean '{intended}'?" in output


def test_what_a_metric_needs_is_shown(ok):
    output = ok("models", "show", "metric=gender_score", *tiny_weights())
    for folder in language_models():
        assert f"folder:    {folder}" in output


def test_networks_of_a_context_are_needed_too(ok, tmp_path):
    network = write_resnet(tmp_path / "resnet")
    context = f"metric.context=[{network},seen.csv]"
    output = ok("models", "show", "metric=gender_score", *tiny_weights(), context)
    assert f"folder:    {network}" in output
    assert "for:       encoder.backbone, metric.context" in output


def test_a_quantised_file_is_shown_by_its_digest(ok, tmp_path):
    import hashlib

    path = tmp_path / "own.gguf"
    path.write_bytes(b"GGUF and more")
    output = ok("models", "show", str(path))
    for part in (
        *("type:      gguf", "for:       metric.language_model", "the first run unpacks it there"),
        *(hashlib.sha256(b"GGUF and more").hexdigest()[:16], "revision:  none"),
    ):
        assert part in output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("show encoder=minilm encoder.model=BERT", "folder:    BERT"),
        ("show encoder=lstm", "needs no published weights"),
        ("prefetch BERT", "already present"),
    ],
)
def test_what_is_needed_is_told(ok, bert, words, message):
    words, message = (text.replace("BERT", str(bert)) for text in (words, message))
    assert message in ok("models", *words.split())


def test_a_misspelt_word_of_models_is_told(ends):
    assert "did you mean 'list'?" in ends(2, "models", "lst")
