"""Pictures of people, edited until a CLIP with altered neurons sees in them what it should.

Usage: python -m experiments.vl_bias.editing.study [OUTPUTS]

With OUTPUTS, where the small CLIP of scenes and a decoder of its people are kept, everything is
computed, and rows.csv and grid.png are written; a stopped study goes on. Without it, the tables are
made from rows.csv. After Figures 10 and 11 of Chen and Dou, who show single faces; here a
classifier of pixels, which knows nothing of the CLIP, says of how many pictures the group changes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from PIL import Image
from scipy.stats import binomtest
from sklearn.linear_model import LogisticRegression

from bias_pipeline.array_types import BoolArray, Float32Array, Float64Array, IntArray
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.data.generator import generator
from bias_pipeline.data.regions import crop_person
from bias_pipeline.models.clip import ClipPhotos
from bias_pipeline.retrieval.debias.base import Examples, means_of
from bias_pipeline.retrieval.debias.methods import (
    ZeroNeuron,
    most_relevant,
    relevance,
    reversed_neurons,
)
from bias_pipeline.run import compose
from bias_pipeline.scenes.slots import shares
from experiments.study import markdown, pyplot, rows_at, write_page
from experiments.vl_bias.editing.decoder import PeopleDecoder, fit_decoder
from experiments.vl_bias.editing.latents import edited_latents
from experiments.vl_bias.study import share_of_men

HERE = Path(__file__).resolve().parent
ROWS, PAGE, GRID = HERE / "rows.csv", HERE / "RESULTS.md", HERE / "grid.png"
CELL = ("metric=retrieval_fairness", "encoder=clip", "dataset=scenes", "debias=none")
DECODED = ("dataset.seed=2000", "dataset.n_images=3000")  # neither the CLIP's scenes nor the edited
EACH = 80  # pictures of each group: two for each of 40 tasks
SIZES = (1, 10, 50)  # neurons, the paper's; of vectors of 64 numbers here
PENALTIES = (0.003, 0.03)
SHOWN = 0.003  # penalty of the grid
REVERSED, TEXT = "10", "11"  # figures
NEURONS = {REVERSED: SIZES, TEXT: (0, *SIZES)}
TITLES = {
    REVERSED: "Figure 10: the picture's own vector with its neurons reversed",
    TEXT: "Figure 11: the vector of a text about a person, without its neurons",
}
_MIDDLE = slice(16, 48)  # columns of pixels with a person
GROUP_TEXTS = ("a photo of a man", "a photo of a woman")
SHARES = {
    "changed": "group changes, by pixels",
    "man to woman": "men become women",
    "woman to man": "women become men",
    "text": "the other group's text is nearer",
    "his tasks": "men afterwards, texts of men's tasks",
    "her tasks": "men afterwards, texts of women's tasks",
}
MEANS = {"cosine": "cosine to what is wanted", "distance": "distance from the first latent"}


@dataclass(frozen=True, eq=False)
class Setup:
    """What pictures are made of, and what reads them.

    Attributes:
        net: the CLIP's picture half.
        decoder: the generator.
        judge: of pixels; it was fitted to the real pictures that the decoder was fitted to.
        learnt: vectors of real pictures, from which a picture's neurons are chosen.
        sentences: vectors of definition sets, from which a text's neurons are chosen.
        start: (N, L) latents of the pictures that are edited.
        groups: (N,) 0 for men, 1 for women.
        queries: (N, D) the vector of a neutral text for each.
        men_do: (N,) whether the CLIP's captions had men do what that text says more than women.
        group_texts: (2, D) vectors of :data:`GROUP_TEXTS`.
    """

    net: ClipPhotos
    decoder: PeopleDecoder
    judge: LogisticRegression
    learnt: Examples
    sentences: Examples
    start: Float32Array
    groups: IntArray
    queries: Float64Array
    men_do: BoolArray
    group_texts: Float64Array

    def draw(self, latents: Float32Array) -> Float32Array:
        """(N, 3, 64, 64) what the decoder makes of latents."""
        with torch.inference_mode():
            pictures: Float32Array = self.decoder(torch.from_numpy(latents)).numpy()
        return pictures

    def vectors(self, pictures: Float32Array) -> Float64Array:
        """(N, D) of length 1, what the CLIP makes of pictures."""
        return self.net.describe(list(pictures)).astype(np.float64)

    def wanted_vectors(self, figure: str, neurons: int) -> Float64Array:
        """(N, D) the vectors that edited pictures should have."""
        if figure == TEXT:
            if not neurons:
                return self.queries
            return ZeroNeuron(k=neurons).fit(self.sentences)(self.queries)
        vectors = self.vectors(self.draw(self.start))
        nobody = np.full(len(vectors), -1)
        shown = Examples(vectors, self.groups, nobody, self.learnt.names, 0)
        chosen = most_relevant(relevance(self.learnt), neurons)
        return reversed_neurons(shown, means_of(self.learnt), chosen)


def setup_of(outputs: Path) -> Setup:
    """Everything, fitted first if it is absent."""
    cell = compose.cell([*CELL, f"paths.outputs={outputs}"])
    metric, corpus = cell.build("metric"), cell.corpus()
    (split,) = metric.draw_splits(corpus, [0])
    dual = metric.debiased_encoder(corpus, split)
    net = ClipPhotos(metric.encoder.pretrained_model, torch.device("cpu"), normalize=True)
    codes, names = (getattr(corpus.groupings["gender"], key) for key in ("codes", "names"))

    others = compose.cell([*CELL, *DECODED, f"paths.outputs={outputs}"]).corpus()
    genders = others.groupings["gender"].codes
    rows = np.flatnonzero(genders >= 0)
    pictures = people(others, rows, net)
    decoder = fit_decoder(pictures, outputs / "decoder.safetensors")
    judge = LogisticRegression(C=0.01, max_iter=200).fit(pixels(pictures), genders[rows])

    candidates = people(corpus, split.test, net)
    groups, latents = codes[split.test], decoder.latents(candidates)
    with torch.inference_mode():
        redrawn = decoder(torch.from_numpy(latents)).numpy()
    clear = judge.predict(pixels(redrawn)) == groups
    print(f"decoder: the judge reads {clear.mean():.3f} of {len(clear)} pictures rightly")
    chosen = np.concatenate([np.flatnonzero(clear & (groups == k))[:EACH] for k in (0, 1)])

    tasks, men = generator().activities(), share_of_men(0.5)
    queries = dual.texts.embed(list(tasks.values())).astype(np.float64)
    order = np.resize(np.arange(len(tasks)), EACH)
    order = np.concatenate([order, order])
    men_do = np.array([men[task] for task in tasks]) > shares("gender")[0]
    learnt = dual.images.embed(corpus.pictures.take(split.train)).astype(np.float64)
    return Setup(
        net,
        decoder,
        judge,
        Examples(learnt, codes[split.train], np.full(len(learnt), -1), names, 0),
        Examples.of_texts(dual.texts.embed, metric.attribute, names, 0),
        latents[chosen],
        groups[chosen],
        queries[order],
        men_do[order],
        dual.texts.embed(list(GROUP_TEXTS)).astype(np.float64),
    )


def people(corpus: Corpus, rows: IntArray, net: ClipPhotos) -> Float32Array:
    """(N, 3, 64, 64) the people of some scenes, as the CLIP takes them."""
    crops = [crop_person(corpus.pictures, row, "person") for row in rows.tolist()]
    return np.stack([net.prepare(crop) for crop in crops])


def pixels(pictures: Float32Array) -> Float32Array:
    """(N, P) what the judge reads."""
    return pictures.reshape(len(pictures), -1)


class Setting(NamedTuple):
    """Which neurons are altered, and what a change costs."""

    figure: str
    neurons: int
    penalty: float


def edit_latents(setup: Setup, setting: Setting, folder: Path) -> Float32Array:
    """(N, L) edited latents; those in the folder if they are there."""
    figure, neurons, penalty = setting
    file = folder / f"figure{figure}_{neurons}_{penalty:g}.npy"
    if file.exists():
        return np.load(file)
    print(f"figure {figure}, {neurons} neurons, penalty {penalty:g}", flush=True)
    wanted = setup.wanted_vectors(figure, neurons)
    latents = edited_latents(setup.decoder, setup.net.states, setup.start, wanted, penalty=penalty)
    folder.mkdir(parents=True, exist_ok=True)
    np.save(file, latents)
    return latents


def run(outputs: Path) -> pd.DataFrame:
    """A row a figure, number of neurons, penalty and number; writes the grid too."""
    torch.manual_seed(0)
    setup = setup_of(outputs)
    latents = outputs / "latents"
    draw(setup, latents)
    return pd.DataFrame(_rows(setup, latents))


def _rows(setup: Setup, folder: Path) -> Iterator[dict[str, object]]:
    men = setup.groups == 0
    before = _nearer(setup.vectors(setup.draw(setup.start)), setup.group_texts)
    for figure, penalty in product(NEURONS, PENALTIES):
        for neurons in NEURONS[figure]:
            setting = Setting(figure, neurons, penalty)
            latents = edit_latents(setup, setting, folder)
            pictures = setup.draw(latents)
            vectors, guesses = setup.vectors(pictures), setup.judge.predict(pixels(pictures))
            changed = guesses != setup.groups
            wanted = setup.wanted_vectors(figure, neurons)
            flags = {
                "changed": changed,
                "man to woman": changed[men],
                "woman to man": changed[~men],
                "text": _nearer(vectors, setup.group_texts) != before,
            }
            if figure == TEXT:
                flags["his tasks"] = guesses[setup.men_do] == 0
                flags["her tasks"] = guesses[~setup.men_do] == 0
            cosines = (vectors * wanted).sum(axis=1) / np.linalg.norm(wanted, axis=1)
            means = {
                "cosine": cosines.mean(),
                "distance": np.linalg.norm(latents - setup.start, axis=1).mean(),
            }
            for part, values in flags.items():
                yield {**setting._asdict(), "part": part, **_share(values)}
            for part, value in means.items():
                yield {**setting._asdict(), "part": part, "value": value, "n": len(latents)}


def _nearer(vectors: Float64Array, texts: Float64Array) -> IntArray:
    """(N,) which text is nearer."""
    return np.argmax(vectors @ texts.T, axis=1)


def _share(flags: BoolArray) -> dict[str, object]:
    """A share with Wilson's 95 % interval."""
    interval = binomtest(int(flags.sum()), len(flags)).proportion_ci(method="wilson")
    return {"value": flags.mean(), "low": interval.low, "high": interval.high, "n": len(flags)}


def draw(setup: Setup, folder: Path) -> None:
    """Three men and three women, and what becomes of each, for one penalty."""
    rows = [*range(3), *range(EACH, EACH + 3)]
    sheets = {"the picture": setup.draw(setup.start[rows])}
    for figure, sizes in NEURONS.items():
        for neurons in sizes:
            latents = edit_latents(setup, Setting(figure, neurons, SHOWN), folder)
            done = "reversed" if figure == REVERSED else "removed"
            title = f"{neurons} {done}" if neurons else "text"
            sheets[f"Figure {figure}:\n{title}"] = setup.draw(latents[rows])
    fig, axes = pyplot("editing").subplots(
        len(rows), len(sheets), figsize=(6.4, 9.4), layout="constrained"
    )
    for column, (title, pictures) in enumerate(sheets.items()):
        axes[0, column].set_title(title, fontsize=8)
        for ax, picture in zip(axes[:, column], pictures[..., _MIDDLE], strict=True):
            ax.imshow((picture.transpose(1, 2, 0) + 1) / 2, interpolation="nearest")
            ax.axis("off")
    fig.savefig(GRID, dpi=80, metadata={"Software": None})
    small = Image.open(GRID).convert("RGB").quantize(256)
    small.save(GRID, optimize=True)


def write(rows: pd.DataFrame) -> None:
    """Write the tables."""
    rows["figure"] = rows["figure"].astype(str)
    tables = {}
    for figure, title in TITLES.items():
        lines = {}
        chosen = rows[rows["figure"] == figure]
        for (penalty, neurons), group in chosen.groupby(["penalty", "neurons"]):
            parts = group.set_index("part")
            lines[f"{penalty:g}, {neurons}"] = {
                **{
                    n: _percent(parts.loc[part])
                    for part, n in SHARES.items()
                    if part in parts.index
                },
                **{name: f"{parts.loc[part, 'value']:.2f}" for part, name in MEANS.items()},
            }
        table = pd.DataFrame(lines).T.rename_axis("penalty, neurons")
        tables[f"{title} (shares in per cent, 95 % intervals)"] = markdown(table)
    write_page(PAGE, "Edited pictures", __file__, tables)


def _percent(line: pd.Series) -> str:
    value, low, high = (100 * line[key] for key in ("value", "low", "high"))
    return f"{value:.1f} [{low:.1f}, {high:.1f}]"


if __name__ == "__main__":
    write(rows_at(ROWS, run, sys.argv[1:]))
