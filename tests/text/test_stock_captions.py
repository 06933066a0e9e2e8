"""Human captions that describe nothing: what is left out, what stays, and the same numbers."""

import json
from collections.abc import Sequence

import pytest

import bias_pipeline as bp
from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.corpus.records import StockCaption
from bias_pipeline.data.coco_files import human_captions
from bias_pipeline.errors import DataError
from bias_pipeline.results.rows import Result
from bias_pipeline.run import compose
from bias_pipeline.text.scored_text import ScoredText
from bias_pipeline.text.stock_captions import without_stock
from tests.corpora import make_corpus

STOCK = "Quality issues are too severe."
DROP, KEEP = ScoredText(), ScoredText(stock="keep")


def corpus(*captions: Sequence[str]) -> Corpus:
    """An image for each list of human captions."""
    return make_corpus(
        [
            Record(str(i), "a dog", tuple(texts), {"gender": "mf"[i % 2]})
            for i, texts in enumerate(captions)
        ]
    )


def texts(scored: Corpus) -> list[tuple[str, ...]]:
    return [scored.human.of_image(row) for row in range(len(scored))]


def distinct_captions(n: int, each: int = 2) -> list[list[str]]:
    return [[f"a kite {i} {k}" for k in range(each)] for i in range(n)]


@pytest.mark.parametrize(
    ("n_stock", "n_others", "dropped"),
    [(10, 90, True), (9, 91, False), (10, 490, False), (11, 489, True)],
)
def test_a_stock_sentence_is_in_ten_images_and_two_in_a_hundred(n_stock, n_others, dropped):
    scored = DROP.apply(
        corpus(*([STOCK, f"a dog {i}"] for i in range(n_stock)), *distinct_captions(n_others))
    )
    assert all((STOCK not in each) == dropped for each in texts(scored)[:n_stock])
    assert len(scored.human) == 2 * (n_stock + n_others) - dropped * n_stock
    assert any("describe nothing" in note for note in scored.notes) == dropped


@pytest.mark.parametrize(("n_next", "dropped"), [(10, True), (11, False)])
def test_a_stock_sentence_is_three_times_as_frequent_as_the_next(n_next, dropped):
    lists = [*([STOCK, f"a dog {i}"] for i in range(30)), *distinct_captions(60)]
    lists += [["a red kite", f"a cat {i}"] for i in range(n_next)]
    assert (len(DROP.apply(corpus(*lists)).human) < 2 * len(lists)) == dropped


def test_case_and_signs_do_not_matter():
    written = [STOCK, STOCK.lower().rstrip("."), f"  {STOCK.upper()} "]
    lists = [*([written[i % 3], f"a dog {i}"] for i in range(12)), *distinct_captions(40)]
    assert [len(each) for each in texts(DROP.apply(corpus(*lists)))] == [1] * 12 + [2] * 40


def test_a_second_stock_sentence_is_the_next_without_the_first():
    lists = [
        *([(STOCK, "No caption")[i > 35], f"a dog {i}"] for i in range(48)),
        *distinct_captions(60),
    ]
    scored = DROP.apply(corpus(*lists))
    assert len(scored.human) == 2 * len(lists) - 48
    assert any(f"{STOCK!r}, 'No caption'" in note for note in scored.notes)


def test_what_describes_somebody_is_no_stock_sentence():
    persons = compose.cell(["metric=gender_error"]).build("text").scored
    lists = [*(["A man.", f"a dog {i}"] for i in range(40)), *distinct_captions(60)]
    assert len(persons.apply(corpus(*lists)).human) == 200
    nobody = [*(["A photo of a person.", f"a dog {i}"] for i in range(40)), *distinct_captions(60)]
    assert len(persons.apply(corpus(*nobody)).human) == 160


def test_where_all_captions_are_the_same_none_stands_out():
    scored = DROP.apply(corpus(*([STOCK, STOCK] for _ in range(40))))
    assert texts(scored) == [(STOCK,)] * 40


def test_an_image_without_another_caption_has_none():
    scored = DROP.apply(corpus(*([STOCK] for _ in range(20)), *distinct_captions(80)))
    assert texts(scored)[:20] == [()] * 20
    assert any(n.startswith("warning: 20 of 180 human captions (11.1%)") for n in scored.notes)


def test_too_many_are_refused_with_what_scores_them():
    lists = [*([STOCK] for _ in range(60)), *distinct_captions(20)]
    with pytest.raises(DataError, match=r"60 of 100 human captions .* text\.stock=keep"):
        DROP.apply(corpus(*lists))
    assert len(KEEP.apply(corpus(*lists)).human) == 100


@pytest.mark.parametrize("suffix", ["json", "csv"])
@pytest.mark.parametrize("mark", ["is_precanned", "is_rejected"])
def test_captions_that_their_file_marks_are_left_out(tmp_path, mark, suffix):
    """VizWiz's form; a rejected text may be a caption of another image."""
    rows = [
        {"id": k, "image_id": k // 2, "caption": f"a dog {k % 3}", mark: k == 3} for k in range(80)
    ]
    path = tmp_path / f"people.{suffix}"
    if suffix == "json":
        path.write_text(json.dumps({"annotations": rows}))
    else:
        lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
        path.write_text("\n".join(lines))
    captions, _ = human_captions(path)
    assert [text for each in captions.values() for text in each if isinstance(text, StockCaption)]
    raw = corpus(*captions.values())
    assert texts(DROP.apply(raw))[1] == ("a dog 2",)
    assert texts(DROP.apply(raw))[0] == ("a dog 0", "a dog 1")
    assert len(KEEP.apply(raw).human) == 80
    assert without_stock(raw.take(raw.source_order[2:])).notes == ()


def test_equal_captions_of_an_image_are_one():
    lists = [["a kite"] * 5, ["a dog", "a dog", "a cat", "a cow", "a pig"], ["a bus", "a bus"]]
    scored = DROP.apply(corpus(*lists))
    assert [len(each) for each in texts(scored)] == [1, 5, 2]
    assert "1 image has human captions" in scored.notes[-1]
    assert [len(each) for each in texts(KEEP.apply(corpus(*lists)))] == [5, 5, 2]
    assert [len(each) for each in texts(DROP.apply(corpus(["a", "a"], ["b", "c"])))] == [1, 2]


def filled_lists(n: int, at_end: bool) -> list[list[str]]:
    """Lists of three captions that were filled to five."""
    lists = []
    for i in range(n):
        three = [f"a kite {i} {k}" for k in range(3)]
        copies = [three[i % 3], three[(i + 1) % 3]]
        lists.append([*three, *copies] if at_end or i else [three[0], *three, three[1]])
    return lists


@pytest.mark.parametrize(("n", "at_end", "each"), [(30, True, 3), (29, True, 5), (30, False, 5)])
def test_copies_that_fill_lists_are_left_out(n, at_end, each):
    scored = DROP.apply(corpus(*filled_lists(n, at_end)))
    assert {len(listed) for listed in texts(scored)} == {each}


def test_a_file_without_them_is_the_same_object_and_has_the_same_digest():
    raw = corpus(*distinct_captions(40))
    assert without_stock(raw) is raw
    assert DROP.apply(raw).digest == KEEP.apply(raw).digest == raw.digest


def scores(human: dict[int, list[str]], metric: str, **settings: object) -> Result:
    captions = {i: f"a {('man', 'woman')[i % 2]} with a kite {i % 7}" for i in human}
    labels = {i: ("Male", "Female")[i % 2] for i in human}
    return bp.score(metric, captions, labels, human=human, stats={"resamples": 20}, **settings)


def test_a_quality_without_a_second_caption_has_no_score():
    five = {i: [f"a {('man', 'woman')[i % 2]} with kite {i % 7}"] * 5 for i in range(40)}
    one = {i: listed[:1] for i, listed in five.items()}
    result = scores(five, "quality")
    assert [row.part for row in result.rows] == [row.part for row in scores(one, "quality").rows]
    assert "score" not in [row.part for row in result.rows]
    assert any("no image has two human captions" in note for note in result.manifest["notes"])
    with_copies = scores(five, "quality", text={"stock": "keep"})
    assert "score" in [row.part for row in with_copies.rows]


def test_the_setting_is_in_the_identity_by_the_captions_alone():
    plain = {i: [f"a kite {i}", f"a {('man', 'woman')[i % 2]} {i}"] for i in range(40)}
    stock = {i: [*listed, STOCK] for i, listed in plain.items()}
    ids = [
        scores(human, "gender_error", text={"stock": how}).run_id
        for human in (plain, stock)
        for how in ("drop", "keep")
    ]
    assert ids[0] == ids[1] == ids[2] != ids[3]


def test_published_protocols_keep_them():
    for name in ("relic_gender", "dbac_table5", "imagecaptioner2_table2", "gender_score_table2"):
        tree = compose.cell([f"experiment={name}", "dataset.root=."]).tree["text"]
        assert tree["stock"] == tree["declined"] == "keep"
