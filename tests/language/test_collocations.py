"""What listed words stand beside."""

from bias_pipeline.corpus.attribute import Attribute, Context, LabelMap
from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.language.caption_words import Collocations, collocations
from bias_pipeline.run import compose
from experiments.race_words.study import HERE
from experiments.study import CAPTIONERS, rows_of

RACE = Attribute(
    "race", ("light", "dark"), {"light": "white", "dark": "black"}, {}, applies_to=Context("man")
)
LABELS = LabelMap("skin", {"l": "light", "d": "dark"}, ("",))


def corpus(*rows: tuple[str, tuple[str, ...], str]) -> Corpus:
    records = [
        Record(str(i), model, human, {"race": label})
        for i, (model, human, label) in enumerate(rows)
    ]
    groups = {"race": (("light", "dark"), LABELS)}
    return Corpus.build(records, dataset="toy", captioner="toy", groups=groups)


TOY = corpus(
    ("a black dog and a white dog", ("a man", "a black man"), "l"),
    ("a cat is black", ("a white dog",), "d"),
    ("man", (), "d"),
    ("a black man", (), ""),  # belongs to no group
)


def test_captions_words_and_what_follows_are_counted():
    model, human = collocations(TOY, RACE)
    assert model == Collocations("model", "race", 3, 2, 0, (("dog", 2), ("(end)", 1)))
    assert human == Collocations("human", "race", 3, 2, 1, (("dog", 1), ("man", 1)))


def test_both_attributes_of_an_intersection_are_told():
    cell = compose.cell(["attribute=[gender,race]", "dataset.n_images=1200"])
    result = collocations(cell.corpus(), cell.build("attribute"))
    assert [(item.attribute, item.side) for item in result] == [
        ("gender", "model"), ("gender", "human"), ("race", "model"), ("race", "human")
    ]  # fmt: skip


def test_the_study_says_what_the_documents_say():
    """No captioner names race; the sentences that rest on it are in README and docs."""
    rows = rows_of(HERE, lambda *_: None, []).set_index("captions of")
    assert set(rows.index) == {*CAPTIONERS, "people"}
    assert rows.loc[list(CAPTIONERS), "name a group"].sum() <= 2
    assert rows.loc["people", "name a group"] / rows.loc["people", "captions"] < 0.002
