"""How often the headline of a whole audit calls a fair captioner biased.

Usage: python -m experiments.descriptions.headlines [DATA]

With DATA every audit that is missing in headlines.csv is run and appended, so a stopped study goes
on where it was. Prints how many headlines are a Yes, by number of images.
"""

from __future__ import annotations

import csv
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import bias_pipeline as bp
from bias_pipeline.report.verdict import JUDGED, verdict
from bias_pipeline.results.settings import with_settings
from experiments.descriptions.speakers import FAIR, STYLES
from experiments.descriptions.study import Case, Study, case_of

ROWS = Path(__file__).with_name("headlines.csv")
AUDITS = {1500: 10, 500: 30}  # draws of each fair speaker and style: 400 in all
ALPHA = 0.05


def cases() -> Iterator[Case]:
    """All draws, one of each speaker and style at a time."""
    for seed in range(max(AUDITS.values())):
        for n_images, draws in AUDITS.items():
            for speaker in FAIR if seed < draws else ():
                for style in STYLES:
                    yield Case(speaker, style, n_images, seed)


def row(study: Study, case: Case) -> dict[str, object]:
    """The p of each question of an audit, corrected for all of them; empty where none is a Yes."""
    started = time.process_time()
    drawn = study.speakers.draw(case.speaker, case.style, case.n_images, case.seed)
    pictures = study.pictures
    done = bp.audit(
        drawn.model,
        {picture: pictures.group(picture) for picture in drawn.model},
        drawn.human,
        {picture: sorted(pictures.objects[picture]) for picture in drawn.model},
        minutes=5,
    )
    conclusion = verdict(with_settings(done.results))
    (attribute,) = conclusion.attributes
    p_values = conclusion.overall
    yes = [question for question in JUDGED if conclusion.answer(question, attribute) == "more"]
    overall = {
        question: f"{p_values[question, attribute]:.4g}"
        if question in yes and (question, attribute) in p_values
        else ""
        for question in JUDGED
    }
    seconds = f"{time.process_time() - started:.1f}"
    return {**vars(case), **overall, "questions": len(conclusion.overall), "seconds": seconds}


def known_rows() -> list[dict[str, str]]:
    """The audits of headlines.csv."""
    if not ROWS.is_file():
        return []
    with ROWS.open(newline="") as file:
        return list(csv.DictReader(file))


def main(data: Path) -> None:
    """Append all missing rows."""
    study = Study(data)
    known = set(map(case_of, known_rows()))
    for case in cases():
        if case in known:
            continue
        line = row(study, case)
        new = not ROWS.is_file()
        with ROWS.open("a", newline="") as file:
            writer = csv.DictWriter(file, list(line), lineterminator="\n")
            if new:
                writer.writeheader()
            writer.writerow(line)


def print_counts() -> None:
    """How many headlines are a Yes, and on which question."""
    rows = known_rows()
    for n_images in AUDITS:
        of_size = [r for r in rows if int(r["n_images"]) == n_images]
        yes = [q for r in of_size for q in JUDGED if r[q] and float(r[q]) < ALPHA]
        biased = sum(any(r[q] and float(r[q]) < ALPHA for q in JUDGED) for r in of_size)
        rows_yes = sum(any(r[q] for q in JUDGED) for r in of_size)
        print(
            f"{n_images} images: {len(of_size)} audits, {biased} headlines say bias "
            f"({', '.join(sorted(yes)) or 'none'}), {rows_yes} have a Yes in a row"
        )


if __name__ == "__main__":
    if sys.argv[1:]:
        main(Path(sys.argv[1]))
    print_counts()
