"""One small truth, written plainly and in an odd form that other programs have: the same numbers.

Each form is a function that writes some of the files anew; what it writes says the same.
"""

import json
import random
from collections.abc import Sequence
from pathlib import Path

from bias_pipeline.errors import BiasPipelineError
from tests.fuzz.caption_forms import CAPTION_FORMS, Form
from tests.fuzz.truth import OBJECTS, OTHER_NAMES, Files, Truth, numbers, plain_files


class OtherNumberError(Exception):
    """An odd form gave other numbers than the plain one, in silence."""


# Forms of issue C: names of objects.


def objects_by_other_names(files: Files, generator: random.Random) -> None:
    """Objects as Pascal, darknet and detectors name them, in a table or in COCO's form."""
    named = [
        (image, generator.choice([name, name.upper(), *OTHER_NAMES[name]]))
        for image, names in files.truth.objects.items()
        for name in names
    ]
    if generator.random() < 0.5:
        files.table(OBJECTS, "odd.csv", [("image_id", "category"), *named])
        return
    names = sorted({name for _, name in named}, key=lambda name: generator.random())
    content = {
        "images": [{"id": int(image)} for image in files.truth.objects],
        "categories": [{"id": number, "name": name} for number, name in enumerate(names)],
        "annotations": [
            {"image_id": int(image), "category_id": names.index(name)} for image, name in named
        ],
    }
    files.write(OBJECTS, "odd.json", json.dumps(content))


def unknown_objects(files: Files, generator: random.Random) -> None:
    """A name that no list has for more than a tenth of the objects."""
    chosen = generator.choice(["canapé", "Objekt", "12", "couch, tv", "['couch', 'tv']"])
    named = [
        (image, chosen if number % 5 == 0 else name)
        for number, (image, names) in enumerate(files.truth.objects.items())
        for name in names
    ]
    files.table(OBJECTS, "odd.csv", [("image_id", "category"), *named])


# Forms of issue F: human captions that describe nothing.


def stock_sentences(files: Files, generator: random.Random) -> None:
    """A sentence for many images, marked or not, as a further caption of them."""
    people = {image: [*texts] for image, texts in files.truth.people.items()}
    stock = generator.choice(["Quality issues are too severe.", "No caption", "N.A. - blurry?"])
    for image in generator.sample(list(people), generator.randint(12, len(people) // 2)):
        people[image].insert(generator.randrange(4), stock)
    if generator.random() < 0.5:
        files.people(people)
    else:
        files.people(people, is_precanned={stock}, is_rejected=set())


def rejected_captions(files: Files, generator: random.Random) -> None:
    """Texts of their own, which VizWiz's form marks as rejected."""
    people = {image: [*texts] for image, texts in files.truth.people.items()}
    rejected = {image: f"a woman and men {image}" for image in generator.sample(list(people), 20)}
    for image, text in rejected.items():
        people[image].insert(generator.randrange(4), text)
    files.people(people, is_rejected=set(rejected.values()))


def copies(files: Files, generator: random.Random) -> None:
    """Three captions an image that a program filled to five."""
    people = files.truth.people
    files.people({i: [*texts, *generator.choices(texts, k=2)] for i, texts in people.items()})


def one_caption_five_times(files: Files, generator: random.Random) -> None:
    """An image's only caption as often as a program wants captions."""
    times = generator.randint(2, 5)
    files.people({image: [*texts] * times for image, texts in files.truth.people.items()})


FORMS: dict[str, Sequence[Form]] = {
    "objects": (objects_by_other_names, unknown_objects),
    "stock": (stock_sentences, rejected_captions, copies),
    "copies": (one_caption_five_times,),
    **CAPTION_FORMS,
}
ONE_CAPTION = ("copies",)  # kinds whose truth has one caption by people an image


def truth_of(kind: str, generator: random.Random) -> Truth:
    """A truth that a kind of form can be written of."""
    each, quoting = 1 if kind in ONE_CAPTION else 3, 0.1 if kind == "quotes" else 0.0
    return Truth.draw(generator, each, quoting)


def compare(kind: str, folder: Path, generator: random.Random) -> str:
    """Write a truth plainly and oddly, and compare the numbers.

    Args:
        kind: of the odd form.
        folder: for the files.
        generator: decides everything.

    Returns:
        How the odd form ended: ``equal``, or the sentence that refused it.

    Raises:
        OtherNumberError: if the numbers differ.
    """
    files = plain_files(folder, truth_of(kind, generator))
    expected = numbers(files)
    form = generator.choice(FORMS[kind])
    form(files, generator)
    try:
        values = numbers(files)
    except BiasPipelineError as error:
        if not str(error).strip():
            raise OtherNumberError(f"{form.__name__}: refused without a word") from error
        return f"{form.__name__}: {error}"
    differing = {
        name: (expected.get(name), values.get(name))
        for name in expected.keys() | values.keys()
        if expected.get(name) != values.get(name)
    }
    if differing:
        name = min(differing)
        before, after = differing[name]
        raise OtherNumberError(
            f"{form.__name__}: {len(differing)} numbers differ, such as {name}: {after}, "
            f"not {before}"
        )
    return "equal"
