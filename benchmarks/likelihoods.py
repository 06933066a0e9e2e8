"""Captions a second through a language model, beside the plain loop over the same model.

The plain loop takes one text after the other and the whole vocabulary at each of its tokens, as
lm-scorer's does with its default batch of one.

Usage: python -m benchmarks.likelihoods
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from benchmarks.record import publish, real_data, table
from bias_pipeline.config.compose import cell
from bias_pipeline.inference.language_model import LanguageModel
from bias_pipeline.models.likelihoods import Likelihoods

N_PLAIN = 32  # texts of the plain loop, which is slow
N_TEXTS = 256
TARGET = 3.0


def captions(n: int) -> list[str]:
    """Distinct captions in the order of the alphabet, as one block holds them."""
    data = real_data()
    words = ["dataset=lic", f"dataset.root={data}", "captioner=sat"] if data else []
    model = cell(words).corpus().model
    distinct = sorted({model.text(row).lower() for row in range(len(model))})
    generator = np.random.default_rng(0)
    return sorted(generator.choice(distinct, n, replace=False).tolist())


def plainly(judge: Likelihoods, texts: Sequence[str]) -> list[float]:
    """Log P of the whole of each text, the end included."""
    network: Any = judge._network
    own: Any = judge._tokenizer
    found = []
    for text in texts:
        ids = own(text, add_special_tokens=False)["input_ids"]
        row = torch.tensor([[own.bos_token_id, *ids, own.eos_token_id]])
        with torch.inference_mode():
            logs = network(row).logits.log_softmax(-1)[0, :-1]
        found.append(float(logs.gather(-1, row[0, 1:, None]).sum()))
    return found


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Wall and processor seconds."""
    wall, processor = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - processor


def main() -> None:
    name = cell(["metric=gender_score"]).tree["metric"]["language_model"]
    judge = LanguageModel(name, device="cpu")._load()
    texts = captions(N_TEXTS)
    few = np.random.default_rng(1).choice(texts, N_PLAIN, replace=False).tolist()
    ours = judge.embed(few)
    np.testing.assert_allclose(plainly(judge, few), ours[:, 1] + ours[:, 3], rtol=1e-3)
    rates = {
        "one text after the other, all logits": (N_PLAIN, *timed(lambda: plainly(judge, few))),
        "ours": (N_TEXTS, *timed(lambda: judge.embed(texts))),
    }
    per_text = {what: processor / n for what, (n, _, processor) in rates.items()}
    plain, own = per_text.values()
    lines = [
        [what, str(n), f"{n / wall:.1f}", f"{n / processor:.1f}", f"{plain / (processor / n):.1f}"]
        for what, (n, wall, processor) in rates.items()
    ]
    header = ["way", "texts", "texts a second", "texts a processor second", "times as fast"]
    body = table(header, lines)
    verdict = "met" if plain / own >= TARGET else "missed"
    body += (
        f"\n{name}, float32, {torch.get_num_threads()} threads asked for; distinct captions. Both "
        f"ways agree to 0.1 %. Target {TARGET:g} times as fast by processor time, since the "
        f"machine is shared: {verdict}.\n"
    )
    publish("Language model", "python -m benchmarks.likelihoods", body)


if __name__ == "__main__":
    main()
