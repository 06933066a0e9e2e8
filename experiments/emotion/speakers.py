"""Small speakers of the affective world: SAT, and emotion-grounded SAT, which is told the emotion.

They are fitted to one world and write about another, which attackers then see.
"""

from __future__ import annotations

import csv
import json
import math
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from bias_pipeline.published.artemis import EMOTIONS, FILES, by_painting, read_release
from bias_pipeline.scenes.affect_world import FEELINGS, SLOTS, THOUGHT

SIDE = 32
N_TRAIN, N_TEST = 2000, 3000
TRAINED = (
    *("dataset.labels=caption", "dataset.cleaning=null", f"encoder.side={SIDE}"),
    *("encoder.width=8", "encoder.dropout=0.1", "trainer.max_epochs=5"),
)
# Captioner to its network and the emotion that it is told; words are the likeliest ones, or drawn.
GREEDY: dict[str, tuple[str, str | None]] = {
    "sat": ("sat", None),
    "eg_img2emo": ("eg", "predicted"),
    "eg_voting": ("eg", "votes.csv"),
}
SPEAKERS = {**GREEDY, **{f"{name}_drawn": speaker for name, speaker in GREEDY.items()}}


def read_as_artemis(folder: Path) -> list[str]:
    """The overrides that read a drawn world."""
    return [
        *("dataset=artemis", "attribute=emotion", f"dataset.root={folder}"),
        f"dataset.images={folder / 'wikiart'}",
    ]


def make(outputs: Path) -> None:
    """Draw both worlds, fit both networks, and write the three speakers' captions."""
    train, test = outputs / "train", outputs / "test"
    for folder, n_images, seed in ((test, N_TEST, 0), (train, N_TRAIN, 1)):
        if not folder.is_dir():
            sizes = ("--n-images", str(n_images), "--seed", str(seed), "--side", str(SIDE))
            _run("data", "draw", "--world", "affect", *sizes, "--out", str(folder))
    for network, grounding in (("eg", ["encoder.grounding=emotion"]), ("sat", [])):
        if not (outputs / network).is_dir():
            words = [*read_as_artemis(train), "captioner=none", *TRAINED, *grounding]
            _run("fit", "sat", *words, "--out", str(outputs / network))
    write_votes(test)
    for name, (network, emotion) in SPEAKERS.items():
        file = test / "captioners" / f"{name}.json"
        if not file.is_file():
            written = str(outputs / "captions" / name)
            words = ["--model", str(outputs / network), "--batch", "256", "--out", written]
            words += ["--temperature", "1" if name.endswith("_drawn") else "0"]
            words += [] if emotion is None else ["--emotion", str(_place(test, emotion))]
            _run("caption", str(test / "wikiart" / "Drawn"), *words)
            _run("caption", "--gather", written, "--to", str(file))


def _place(test: Path, emotion: str) -> str | Path:
    return test / emotion if emotion.endswith(".csv") else emotion


def votes(folder: Path) -> dict[str, str]:
    """Picture to the emotion of most annotators; of a tie the first of ArtEmis' list."""
    chosen = {}
    for painting, rows in by_painting(read_release(folder / FILES[1], 1).annotations).items():
        felt = [row.emotion for row in rows]
        chosen[painting.partition("/")[2]] = max(EMOTIONS, key=felt.count)
    return chosen


def write_votes(folder: Path) -> None:
    """The votes as a table for ``caption --emotion``."""
    with (folder / "votes.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("image_id", "emotion"), *votes(folder).items()])


def facts(outputs: Path) -> pd.DataFrame:
    """How speakers write: of the emotion that most annotators felt, and of others.

    Columns: captions that differ; of the words for a feeling the share that are of that emotion;
    the share of captions with a thought; of these thoughts the share that are typical of that
    emotion; of Img2Emo's guesses the share that are right.
    """
    test = outputs / "test"
    felt = votes(test)
    texts: dict[str, list[tuple[str, str]]] = {}
    for name in SPEAKERS:
        rows = json.loads((test / "captioners" / f"{name}.json").read_text())
        texts[name] = [(felt[str(row["image_id"])], row["caption"]) for row in rows]
    people = read_release(test / FILES[1], 1).annotations
    texts["people"] = [(felt[row.painting.partition("/")[2]], row.text) for row in people]
    table = pd.DataFrame({name: _habits(pairs) for name, pairs in texts.items()}).T
    right, most = guessed_right(outputs / "eg", test)
    table.loc["eg_img2emo", "guesses right"] = right
    table.loc["the most frequent emotion", "guesses right"] = most
    return table.rename_axis("captioner").reset_index()


def _habits(pairs: Sequence[tuple[str, str]]) -> dict[str, float]:
    """The columns of :func:`facts` for captions, each with its picture's emotion."""
    words = {
        word: emotion
        for emotion, synonyms in FEELINGS.items()
        for word in "|".join(synonyms).split("|")
    }
    named = [words[w] == emotion for emotion, text in pairs for w in text.split() if w in words]
    thoughts = [
        emotion.replace(" ", "_") in lean
        for emotion, text in pairs
        for option, lean in zip(SLOTS[THOUGHT].options, SLOTS[THOUGHT].leans, strict=True)
        if option in text
    ]
    return {
        "different captions": len({text for _, text in pairs}),
        "feelings of the emotion": sum(named) / len(named),
        "thoughts": len(thoughts) / len(pairs),
        "thoughts of the emotion": sum(thoughts) / len(thoughts) if thoughts else math.nan,
    }


def guessed_right(model: Path, folder: Path) -> tuple[float, float]:
    """Shares of pictures: Img2Emo's guess is most annotators'; the most frequent emotion."""
    import torch

    from bias_pipeline.data.photos import find_photos
    from bias_pipeline.models.pretrained import find_pretrained
    from bias_pipeline.models.sampling import Decoding
    from bias_pipeline.pictures.captioners.fitted import KINDS, FittedCaptioner

    voted = {image: emotion.replace(" ", "_") for image, emotion in votes(folder).items()}
    pretrained = find_pretrained(str(model), KINDS)
    speaker = FittedCaptioner(pretrained, torch.device("cpu"), Decoding(), emotion="predicted")
    photos = find_photos(folder / "wikiart" / "Drawn")
    guesses = speaker.emotions([speaker.read(path) for path in photos.values()])
    right = [voted[image] == guess for image, guess in zip(photos, guesses, strict=True)]
    most = pd.Series(list(voted.values())).value_counts(normalize=True).iloc[0]
    return sum(right) / len(right), float(most)


def _run(*words: str) -> None:
    print("python -m bias_pipeline", *words, flush=True)
    command = [sys.executable, "-m", "bias_pipeline", *words]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - our own
