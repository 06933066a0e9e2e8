"""What debiased prompts still tell a generator of pictures: of the last token, and of all.

Usage: python -m experiments.vl_bias.prompts [OUTPUTS]

With OUTPUTS, where the small CLIP of scenes is kept, everything is computed and prompts.csv is
written; without it, the table is made from that. After Figure 11 of Chen and Dou, who show drawn
faces; here a linear attacker, fitted to the sentences that the debiasing was fitted to, is asked
of others, from the states that a generator with this text encoder would read.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from bias_pipeline.retrieval.debias.base import held_out, template_sentences
from bias_pipeline.retrieval.debias.export import READINGS, prompt_numbers, write_debias
from bias_pipeline.retrieval.debias.load_debias import debias_prompts
from bias_pipeline.run import compose
from experiments.study import markdown, rows_at, write_page

HERE = Path(__file__).resolve().parent
ROWS, PAGE = HERE / "prompts.csv", HERE / "PROMPTS.md"
CELL = ("metric=retrieval_fairness", "dataset=scenes")
METHODS: Mapping[str, tuple[str, ...]] = {
    "zero_neuron, k 10": ("debias=zero_neuron", "debias.k=10"),
    "zero_neuron, k 30": ("debias=zero_neuron", "debias.k=30"),
    "subspace, k 10": ("debias=subspace", "debias.k=10"),
    "mean_difference": ("debias=mean_difference",),
    "erasure": ("debias=erasure",),
}
POOLING = {"last": "the last token's state", "all": "the states of all tokens together"}
Texts = Sequence[Sequence[str]]


def run(outputs: Path) -> pd.DataFrame:
    """One line a method and reading, and first what there is without any."""
    return pd.DataFrame(_lines(outputs))


def _lines(outputs: Path) -> Iterator[dict[str, object]]:
    for name, words in METHODS.items():
        cell = compose.cell([*CELL, *words, f"paths.outputs={outputs}"])
        metric, corpus = cell.build("metric"), cell.corpus()
        model, names = _Prompts(metric.encoder.pretrained_model.folder), metric.names(corpus)
        texts_of_both = [
            make_texts(metric.attribute, names) for make_texts in (template_sentences, held_out)
        ]
        version = {"metric": metric.info.name, "metric_version": metric.info.version}
        if name == next(iter(METHODS)):
            yield {**version, "method": "none", "reading": "", **_group_left(model, *texts_of_both)}
        (split,) = metric.draw_splits(corpus, [0])
        dual = metric.debiased_encoder(corpus, split)
        for reading in READINGS:
            texts = metric.encoder.prompts()
            numbers = prompt_numbers(reading, texts, metric.debias, metric.attribute, names, 0)
            with tempfile.TemporaryDirectory() as place:
                write_debias(dual, Path(place, "mine"), {}, numbers)
                handle = debias_prompts(model.network, Path(place, "mine"))
            yield {
                **version,
                "method": name,
                "reading": reading,
                **_group_left(model, *texts_of_both),
            }
            handle.remove()


class _Prompts:
    """A text encoder as generators ask it: every prompt filled up to the full length."""

    def __init__(self, folder: Path) -> None:
        from transformers import AutoTokenizer, CLIPTextModel

        self.network: Any = CLIPTextModel.from_pretrained(folder).eval()
        self._tokens: Any = AutoTokenizer.from_pretrained(folder)

    def states(self, texts_by_group: Texts) -> dict[str, np.ndarray]:
        """(N, H) of the last tokens and (N, L * H) of all, of the sentences of all sets."""
        import torch

        texts = [text for group in texts_by_group for text in group]
        longest = self.network.config.max_position_embeddings
        tokens = self._tokens(
            texts, padding="max_length", truncation=True, max_length=longest, return_tensors="pt"
        )
        with torch.inference_mode():
            output = self.network(**{key: tokens[key] for key in ("input_ids", "attention_mask")})
        last = output.pooler_output.numpy()
        return {"last": last, "all": output.last_hidden_state.flatten(1).numpy()}


def _group_left(model: _Prompts, learnt: Texts, tested: Texts) -> dict[str, float]:
    """How often the attacker names the group of a sentence."""
    train_states, other = model.states(learnt), model.states(tested)
    accuracies = {}
    for key in POOLING:
        mean, spread = train_states[key].mean(axis=0), train_states[key].std(axis=0) + 1e-6
        groups, wanted = (
            np.tile(np.arange(len(texts[0])), len(texts)) for texts in (learnt, tested)
        )
        attacker = LogisticRegression(max_iter=2000).fit(
            (train_states[key] - mean) / spread, groups
        )
        accuracies[key] = float(attacker.score((other[key] - mean) / spread, wanted))
    return accuracies


def write(rows: pd.DataFrame) -> None:
    """Write the table."""
    rows = rows.fillna("")
    table = pd.DataFrame(
        {title: [f"{item:.3f}" for item in rows[key]] for key, title in POOLING.items()},
        index=pd.Index(
            [
                ", ".join(filter(None, item))
                for item in zip(rows["method"], rows["reading"], strict=True)
            ],
            name="debiasing, --prompts",
        ),
    )
    title = "Share of 192 held-out sentences whose group a linear attacker names; 0.5 is chance"
    write_page(PAGE, "Debiased prompts", __file__, {title: markdown(table)})


if __name__ == "__main__":
    write(rows_at(ROWS, run, sys.argv[1:]))
