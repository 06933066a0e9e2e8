"""Captions per second through a language model, compared with a plain loop and lm-scorer.

The plain loop takes one text after the other and the whole vocabulary at each of its tokens, as
lm-scorer's does with its default batch of one. lm-scorer reads GPT-2 only: it is measured on one of
the published size with random weights, where it is installed (``pip install lm-scorer``).

Usage: python -m benchmarks.likelihoods
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from benchmarks.record import beside, met, publish, real_data, table
from bias_pipeline.errors import ResourceError
from bias_pipeline.language.language_model import LanguageModel
from bias_pipeline.language.likelihoods import Likelihoods
from bias_pipeline.run.compose import cell

N_PLAIN = 32  # texts of the plain loop, which is slow
N_TEXTS = 256
TARGET = 3.0
GPT2_WORDS = 50_257  # of the published GPT-2
END = "<|endoftext|>"
HEADER = ["way", "texts", "texts a second", "texts a processor second", "times as fast"]


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
    tokenizer: Any = judge._tokenizer
    sums = []
    for text in texts:
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        row = torch.tensor([[tokenizer.bos_token_id, *ids, tokenizer.eos_token_id]])
        with torch.inference_mode():
            logs = network(row).logits.log_softmax(-1)[0, :-1]
        sums.append(float(logs.gather(-1, row[0, 1:, None]).sum()))
    return sums


def time_work(work: Callable[[], object]) -> tuple[float, float]:
    """Wall and processor seconds."""
    wall, processor = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - processor


def random_gpt2(folder: Path, texts: Sequence[str]) -> Path:
    """A GPT-2 of the published size with random weights, whose first words are those of texts."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    known = sorted({word for text in texts for word in text.split()})
    fillers = [f"word{number}" for number in range(GPT2_WORDS - len(known) - 1)]
    words = {word: number for number, word in enumerate([*known, *fillers, END])}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token=END))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    reader = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token=END, eos_token=END, unk_token=END
    )
    reader.save_pretrained(folder)
    torch.manual_seed(0)
    GPT2LMHeadModel(GPT2Config()).save_pretrained(folder)
    return folder


def beside_lm_scorer(texts: Sequence[str], few: Sequence[str]) -> tuple[str, list[list[str]]]:
    """Ours and lm-scorer's, on the same GPT-2; and the row of the faster of its ways."""
    if find_spec("lm_scorer") is None:
        return "lm-scorer is not installed; not measured.\n", []
    from lm_scorer.models.gpt2 import GPT2LMScorer

    with TemporaryDirectory() as folder:
        model = str(random_gpt2(Path(folder), texts))
        judge = LanguageModel(model, device="cpu")._load()
        scorers = {size: GPT2LMScorer(model, batch_size=size) for size in (1, len(few))}
        ours = judge.embed(few)
        theirs = scorers[1].sentence_score(list(few), log=True)
        np.testing.assert_allclose(theirs, ours[:, 1] + ours[:, 3], rtol=1e-3)
        rates = {
            f"lm-scorer, batches of {size}": (
                len(few),
                *time_work(lambda scorer=scorer: scorer.sentence_score(list(few))),  # type: ignore[misc]
            )
            for size, scorer in scorers.items()
        }
        rates["ours"] = (len(texts), *time_work(lambda: judge.embed(texts)))
    model = "GPT-2 of the published size (124 million weights, random)"
    body = f"{table(HEADER, lines_of(rates))}\n{model}; both agree to 0.1 %.\n"
    way = f"lm-scorer, batches of {len(few)}"
    mine, its = (n / cpu for n, _, cpu in (rates["ours"], rates[way]))
    shown = f"{mine:.1f} texts/s", way, f"{its:.1f} texts/s"
    return body, [beside("log probabilities of captions by GPT-2", *shown, mine / its)]


def lines_of(rates: Mapping[str, tuple[int, float, float]]) -> list[list[str]]:
    """The time of each way; the last column compares it with the first, by processor time."""
    n, _, processor = next(iter(rates.values()))
    plain = processor / n
    return [
        [what, str(n), f"{n / wall:.1f}", f"{n / cpu:.1f}", f"{plain / (cpu / n):.1f}"]
        for what, (n, wall, cpu) in rates.items()
    ]


def main() -> None:
    name = cell(["metric=gender_score"]).tree["metric"]["language_model"]
    try:
        judge = LanguageModel(name, device="cpu")._load()
    except ResourceError as error:
        print(f"not measured: {error}")
        return
    texts = captions(N_TEXTS)
    few = np.random.default_rng(1).choice(texts, N_PLAIN, replace=False).tolist()
    ours = judge.embed(few)
    np.testing.assert_allclose(plainly(judge, few), ours[:, 1] + ours[:, 3], rtol=1e-3)
    rates = {
        "one text after the other, all logits": (N_PLAIN, *time_work(lambda: plainly(judge, few))),
        "ours": (N_TEXTS, *time_work(lambda: judge.embed(texts))),
    }
    lines = lines_of(rates)
    body = table(HEADER, lines)
    verdict = met(float(lines[-1][-1]) >= TARGET)
    body += (
        f"\n{name}, float32, {torch.get_num_threads()} threads asked for; distinct captions. Both "
        f"ways agree to 0.1 %. Target {TARGET:g} times as fast by processor time, since the "
        f"machine is shared: {verdict}.\n\n"
    )
    more, peers = beside_lm_scorer(texts, few)
    publish("Language model", "python -m benchmarks.likelihoods", body + more, peers=peers)


if __name__ == "__main__":
    main()
