"""The contents of a data set: images, captions, labels, objects, coverage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from bias_pipeline.corpus.corpus import SIDES, Corpus
from bias_pipeline.corpus.pictures import Elsewhere
from bias_pipeline.io.terminal import print_table, print_text
from bias_pipeline.text.scored_text import declined_images


def inventory(corpus: Corpus) -> dict[str, str]:
    """Facts on a corpus, name to value, in reading order."""
    facts = {"images": str(len(corpus))}
    for side in SIDES:
        captions = corpus.side(side)
        described = len(np.unique(captions.image_rows))
        facts[f"{side} captions"] = f"{len(captions)} of {described} images"
        facts[f"blank {side} captions"] = _blanks(corpus, side)
    facts["captions that decline"] = str(int(declined_images(corpus).sum()))
    for attribute, grouping in corpus.groupings.items():
        labelled = grouping.codes >= 0
        for code, group in enumerate(grouping.names):
            facts[f"{attribute} {group}"] = str(int((grouping.codes == code).sum()))
        for label, count in sorted(grouping.strata.items()):
            facts[f"{attribute}: {label or 'empty'} (no group)"] = str(count)
        silent = int((~labelled).sum()) - sum(grouping.strata.values())
        if silent:
            facts[f"{attribute}: unlabelled"] = str(silent)
        facts["coverage of the score"] = _coverage(corpus, labelled)
    facts["images with objects"] = (
        "objects unknown" if corpus.objects is None else str(sum(map(bool, corpus.objects)))
    )
    if corpus.pictures is not None:
        n_elsewhere = sum(isinstance(file, Elsewhere) for file in corpus.pictures.files)
        shown = "images with boxes alone" if n_elsewhere else "images with a picture"
        facts[shown] = str(int(corpus.pictures.present.sum()))
    return facts


def _blanks(corpus: Corpus, side: str) -> str:
    count = corpus.blanks.get(side, 0)
    return f"{count} ({count / (count + len(corpus.side(side))):.1%})" if count else "0"


def _coverage(corpus: Corpus, labelled: np.ndarray) -> str:
    """How many of the labelled images both sides describe."""
    both = np.ones(len(corpus), bool)
    for side in SIDES:
        both &= np.bincount(corpus.side(side).image_rows, minlength=len(corpus)) > 0
    total = int(labelled.sum())
    share = f" ({(both & labelled).sum() / total:.0%})" if total else ""
    return f"{int((both & labelled).sum())} of {total}{share}"


def print_inventory(corpora: Sequence[Corpus]) -> None:
    """Print the facts, one column a captioner, and the notes of reading."""
    facts: list[Mapping[str, str]] = [inventory(corpus) for corpus in corpora]
    header = [f"dataset {corpora[0].dataset}", *(corpus.captioner for corpus in corpora)]
    names = dict.fromkeys(name for column in facts for name in column)
    print_table(header, [[n, *(column.get(n, "–") for column in facts)] for n in names], keys=1)
    for note in dict.fromkeys(note for corpus in corpora for note in corpus.notes):
        who = ", ".join(corpus.captioner for corpus in corpora if note in corpus.notes)
        print_text(f"{who}: {note}")
