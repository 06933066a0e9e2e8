"""The plain files of which every variant is another way to write, and what a variant is."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from bias_pipeline.commands import arguments
from bias_pipeline.commands.arguments import Parser
from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.data.coco import CocoDataset
from bias_pipeline.errors import BiasPipelineError
from bias_pipeline.run import compose

IDS = range(100, 112)
CAPTIONS = {
    i: f"a {('man', 'woman')[i % 2]} with {('a kite', 'two dogs')[i % 3 == 0]}" for i in IDS
}
PEOPLE = {i: [f"a person stands near thing {i}", f"the street number {i}"] for i in IDS}
LABELS = {i: ("Male", "Female")[i % 2] for i in IDS} | {110: "Unsure", 111: "Both"}


def csv(columns: Mapping[str, Sequence[object]], sign: str = ",") -> str:
    """A table as text."""
    rows = zip(*columns.values(), strict=True)
    return "\n".join(sign.join(map(str, row)) for row in [list(columns), *rows]) + "\n"


PLAIN = {
    "mine.json": json.dumps([{"image_id": i, "caption": text} for i, text in CAPTIONS.items()]),
    "labels.csv": csv({"id": list(IDS), "gender": list(LABELS.values())}),
    "people.json": json.dumps(
        {
            "annotations": [
                {"id": 10 * i + k, "image_id": i, "caption": text}
                for i, texts in PEOPLE.items()
                for k, text in enumerate(texts)
            ]
        }
    ),
}

Content = str | bytes | Callable[[Path], None]


@dataclass(frozen=True)
class Variant:
    """One way in which files come."""

    name: str  # as docs/variants.md calls it
    files: Mapping[str, Content]  # what differs from the plain files, one of the same stem left out
    message: str = ""  # the note that says how it was read, or the sentence that refuses it
    words: Sequence[str] = ()  # options as of audit, or key=value
    code: int = 0  # where it scores as the plain files do, else the exit code
    without_people: bool = False  # whether there is no file of human captions

    def line(self) -> str:
        """Its line in docs/variants.md."""
        options = f" (`{' '.join(self.words)}`)" if self.words else ""
        return f"* {self.name}{options}" + (", exit code 2." if self.code == 2 else ".")


def read(folder: Path, variant: Variant) -> Corpus:
    """What a run reads of the files."""
    folder.mkdir(exist_ok=True)
    stems = {Path(name).stem for name in variant.files}
    stems |= {"people"} if variant.without_people else set()
    plain = {name: text for name, text in PLAIN.items() if Path(name).stem not in stems}
    places = {}
    for name, content in {**plain, **variant.files}.items():
        places[Path(name).stem] = path = folder / name
        if callable(content):
            content(path)
        else:
            path.write_bytes(content.encode() if isinstance(content, str) else content)
    return _dataset(places, variant.words).load(str(places["mine"]), _gender())


def _dataset(places: Mapping[str, Path], words: Sequence[str]) -> CocoDataset:
    """Built as a run builds it, but without composing a configuration for every variant."""
    parser = Parser("variant")
    arguments.add_column_options(parser)
    options, rest = parser.parse_known_args(list(words))
    settings: dict[str, Any] = {key: value for key, value in vars(options).items() if key != "map"}
    settings |= {word.removeprefix("dataset.").partition("=")[0]: True for word in rest}
    files: dict[str, Any] = {"attributes": str(places["labels"])}
    if "people" in places:
        files["captions"] = str(places["people"])
    return CocoDataset(str(places["labels"].parent), **files, **settings, label_map=options.map)


@cache
def _gender() -> Attribute:
    attribute: Attribute = compose.cell(["attribute=gender"]).build("attribute")
    return attribute


def check(folder: Path, variant: Variant) -> None:
    """Hold a variant to what it says of itself."""
    if variant.code:
        with pytest.raises(BiasPipelineError) as caught:
            read(folder / "own", variant)
        assert caught.value.exit_code == variant.code
        assert variant.message in str(caught.value)
        return
    corpus = read(folder / "own", variant)
    assert corpus.digest == read(folder / "plain", Variant("plain", {})).digest
    assert variant.message in "\n".join(corpus.notes)
