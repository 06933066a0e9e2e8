"""Tables of raters' answers, as ``rate`` writes them."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from bias_pipeline.corpus.image_ids import short_id
from bias_pipeline.datasets.tables import check_file, open_rows

CANNOT_TELL = "Unsure"  # as data sets write it
_WHAT = "answers: a table of image_id, attribute, value and rater"


def rater_answers(
    path: Path, attribute: str, values: Collection[str], images: Collection[str]
) -> dict[str, dict[str, str]]:
    """What raters answered about each image.

    Args:
        path: the table.
        attribute: that they were asked for.
        values: answers that they could give.
        images: ids of what they were asked about.

    Returns:
        Image id to rater to answer, the last one of each; images without an answer are absent.

    Raises:
        DataError: if the table is broken, or holds answers to another question or about others.
        ResourceError: if it is absent.
    """
    rows = open_rows(check_file(path), what=_WHAT)
    rows.require("image_id", "attribute", "value", "rater")
    votes: dict[str, dict[str, str]] = {}
    for number, row in rows.items:
        image = short_id(rows.id(number, row, "image_id"))
        question, value = (rows.text(number, row, name) for name in ("attribute", "value"))
        if question != attribute or value not in values:
            rows.refuse(
                number,
                f"{value!r} answers another question ({question}); ask for {attribute} "
                f"({', '.join(values)}), or remove the line",
            )
        if image not in images:
            rows.refuse(
                number,
                f"image {image} is none of the pictures that were built, or that filter kept; "
                "remove the line",
            )
        votes.setdefault(image, {})[rows.text(number, row, "rater")] = value
    return votes
