"""Files, tables and highlighted captions of the words that leak an attribute."""

from dataclasses import replace

import pytest

from bias_pipeline.commands.main import main
from bias_pipeline.io.digests import sha256
from bias_pipeline.report.explain.linear import Example
from bias_pipeline.report.explain.words import EXACT, RevealingWord, RevealingWords
from bias_pipeline.report.page import html, report_of
from bias_pipeline.report.word_attribution import read_words, save_words, section, word_files
from bias_pipeline.stats.bootstrap import Interval
from tests.report.test_page import result
from tests.report.test_tables import HOSTILE

NASTY = [*HOSTILE, "'s", "-", "@", '"', "+1", "<gender>"]


GAIN = Interval(0.5, 0.4, 0.6)


def make_words(*names: str, method: str = EXACT) -> RevealingWords:
    listed = [
        RevealingWord(side, gram, 3, {"female": GAIN}, GAIN)
        for side in ("model", "human", "difference")
        for gram in [(), *((name,) for name in names)]
    ]
    words = tuple((name, 1.0) for name in names)
    examples = [Example("model", "7", "female", 1.25, words)] if words else []
    return RevealingWords(
        "gender", "scenes", "cap", ("male", "female"), 2, method, listed, examples
    )


def test_what_is_written_is_read(tmp_path):
    words = make_words("a", *(name for name in NASTY if " " not in name))
    assert repr(read_words(save_words(tmp_path, "run", words))) == repr(words)  # NaN is not NaN


def test_names_of_groups_may_have_blanks(tmp_path):
    words = make_words("a")
    listed = [replace(word, coefficients={"[new] east": GAIN}) for word in words.words]
    renamed = replace(words, groups=("north west", "[new] east"), words=listed)
    assert read_words(save_words(tmp_path, "run", renamed)).groups == renamed.groups


@pytest.mark.parametrize("name", ["=cmd()", "@x", "-2"])
def test_a_hostile_word_is_no_formula(name, tmp_path):
    text = save_words(tmp_path, "run", make_words(name)).read_text()
    assert f",'{name}," in text


def page_of(*words: str) -> str:
    return html(report_of([result()], {}, [section(make_words(*words))]))


def test_hostile_words_make_no_element():
    plain = page_of(*(f"word{k}" for k in range(len(NASTY))))
    assert page_of(*NASTY).count("<") == plain.count("<")


def test_an_example_is_highlighted():
    assert '<mark class="to2">dress</mark>' in page_of("dress")


def test_a_damaged_file_is_passed_over_and_told(tmp_path):
    (tmp_path / "words-x.csv").write_text("a,b\n1,2\n")
    (tmp_path / "words-y.csv").write_text("")
    save_words(tmp_path, "z", make_words("a"))
    present, unread = word_files(tmp_path)
    assert (len(present), len(unread), "words-x.csv" in unread[0]) == (1, 2, True)


def test_a_file_that_is_cut_between_two_lines_is_not_read(tmp_path):
    path = save_words(tmp_path, "run", make_words("a", "b"))
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-2]))
    present, unread = word_files(tmp_path)
    assert (present, "checksum" in unread[0]) == ([], True)


@pytest.mark.parametrize("text", ["side,ngram\nmodel,a\n", '"a\n', "\x00", "side,ngram\n=1,b\n"])
def test_a_foreign_file_with_a_fitting_checksum_ends_no_report(tmp_path, text):
    path = save_words(tmp_path, "run", make_words("a"))
    path.write_text(text)
    path.with_suffix(".sha256").write_text(f"{sha256(text.encode())}  {path.name}\n")
    assert len(word_files(tmp_path)[1]) == 1


def test_the_checksums_are_those_that_sha256sum_checks(tmp_path):
    path = save_words(tmp_path, "run", make_words("a"))
    lines = path.with_suffix(".sha256").read_text().splitlines()
    files = ("words-run.csv", "word_examples-run.csv")
    assert lines == [f"{sha256((tmp_path / name).read_bytes())}  {name}" for name in files]


def test_a_file_without_examples_is_read(tmp_path):
    path = save_words(tmp_path, "run", make_words("a"))
    (tmp_path / "word_examples-run.csv").unlink()
    assert read_words(path).examples == []


def test_the_door_writes_prints_and_reports(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    small = ["dataset.n_images=200", "seeds=1", "metric.positions=1"]
    code = main(["analysis", "words", *small, "captioner=amplifier,terse", "--resamples", "2"])
    assert (code, len(word_files(tmp_path / "outputs")[0])) == (0, 2)
    assert "What the captioner added" in capsys.readouterr().out


def test_the_door_explains_a_network(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    small = ["dataset.n_images=100", "seeds=1", "metric.positions=1", "trainer.max_epochs=1"]
    words = ["encoder=rnn", *small, "--resamples", "2", "--steps", "3", "--baseline", "mean"]
    assert main(["analysis", "words", *words]) == 0
    (path,) = (tmp_path / "outputs").glob("words-*.csv")
    assert "integrated gradients, mean baseline, 3 steps" in path.read_text()
    assert "What a word adds depends on the words around it" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("method", "says", "not_said"),
    [(EXACT, "(ngram)", "baseline"), ("integrated gradients", "(a network)", "n-gram")],
)
def test_a_section_says_what_its_words_are(method, says, not_said):
    built = section(make_words("dress", method=method))
    tables = [word for table in built.tables for word in (table.caption, *table.head)]
    text = " ".join([*built.texts, *tables])
    assert says in text
    assert not_said not in text


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["metric=gender_ratio"], "metric=lic"),
        (["encoder=lstm", "--steps", "0"], "at least 1"),
        (["encoder=lstm", "--baseline", "none"], "zero"),
        (["seeds=1,2"], "sweeps only over captioners"),
        (["captioner=amplifire"], "amplifier"),
        (["--resamples", "1"], "at least 2"),
    ],
)
def test_what_cannot_be_explained_is_refused(words, says, capsys):
    assert main(["analysis", "words", "dataset.n_images=60", *words]) == 2
    assert says in capsys.readouterr().err
