"""A million captions through all counting metrics, on one core; fewer compared with plain pandas.

Usage: python -m benchmarks.counting [metrics|pandas]
"""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from benchmarks.record import beside, met, publish, table
from bias_pipeline.corpus.attribute import Attribute, TaskVocabulary
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import SIDES, UNSURE, Corpus, Grouping
from bias_pipeline.io.paths import choices_of, conf_dir
from bias_pipeline.metrics.base import Metric
from bias_pipeline.run.compose import cell
from bias_pipeline.text.mentions import attribute_mentions, task_mentions

CAPTIONS = 1_000_000
FEW_CAPTIONS = 400_000  # what plain pandas gets, which takes its time
REPEATS = 3
RESAMPLES = 1_000
COUNTING = "bias_pipeline.metrics.counting."
TARGET_S, TARGET_GB, TARGET_TIMES = 15.0, 2.0, 10.0
# Peak memory is in KiB on Linux and in bytes on macOS.
RSS_UNIT = 1 if sys.platform == "darwin" else 1024


def metrics() -> dict[str, Metric]:
    """Every metric of the package that counts groups, as ``metric=`` builds it."""
    names = choices_of(conf_dir() / "metric")
    built = {name: cell([f"metric={name}"]).build("metric") for name in names}
    return {name: one for name, one in built.items() if type(one).__module__.startswith(COUNTING)}


def corpus_of(n_captions: int, vocabulary: TaskVocabulary) -> Corpus:
    """Half of the captions are people's, half a captioner's, for half as many images.

    A caption names a man, a woman or a person, and up to three objects; so do the labels.
    """
    generator = np.random.default_rng(0)
    n = n_captions // 2
    tasks = tuple(name for name in vocabulary.tasks if name != "person")
    female = generator.random(n) < 0.4
    popularity = 1 / np.arange(1, len(tasks) + 1)
    task_rows = generator.choice(len(tasks), (n, 3), p=popularity / popularity.sum())
    sides = [_captions(generator, tasks, female, task_rows) for _ in range(2)]
    objects = [frozenset(["person", *(tasks[t] for t in row)]) for row in task_rows.tolist()]
    return Corpus(
        dataset="synthetic",
        captioner="synthetic",
        ids=tuple(map(str, range(n))),
        model=sides[0],
        human=sides[1],
        groupings={"gender": Grouping(("male", "female"), female.astype(np.int64), {})},
        objects=tuple(objects),
    )


def _captions(
    generator: np.random.Generator,
    tasks: tuple[str, ...],
    female: np.ndarray,
    task_rows: np.ndarray,
) -> Captions:
    n = len(female)
    who = np.where(generator.random(n) < 0.3, 2, female ^ (generator.random(n) < 0.05))
    named = generator.random(task_rows.shape) < 0.6
    nouns = np.array(["a man", "a woman", "a person"])[who]
    texts = [
        f"{noun} is standing in the street with {' and a '.join(words) or 'nothing'} ."
        for noun, words in zip(
            nouns.tolist(),
            (
                [tasks[t] for t, k in zip(r, m, strict=True) if k]
                for r, m in zip(task_rows, named, strict=True)
            ),
            strict=True,
        )
    ]
    return Captions.from_texts(texts)


def partly_unsure(corpus: Corpus) -> Corpus:
    """The same images; of one in 64 annotators could not tell the group."""
    gender = corpus.groupings["gender"]
    codes = np.where(np.arange(len(gender.codes)) % 64, gender.codes, UNSURE)
    return replace(corpus, groupings={"gender": replace(gender, codes=codes)})


def cpu_seconds(run: Callable[[], object]) -> float:
    """Seconds of CPU: on one core the time of an idle machine, even if this one is busy."""
    started = time.process_time()
    run()
    return time.process_time() - started


# --- the same counts, straightforwardly -----------------------------------------------------------


def in_pandas(
    corpus: Corpus,
    texts: dict[str, pd.Series],
    attribute: Attribute,
    vocabulary: TaskVocabulary,
) -> pd.DataFrame:
    """BA-> A→T, BA_MALS, gender error and co-occurrence of raw texts.

    Straightforward code: one regular expression for each group and object, data frames of flags,
    group-bys.
    """
    return _numbers(*pandas_frames(corpus, texts, attribute, vocabulary))


def pandas_frames(
    corpus: Corpus, texts: dict[str, pd.Series], attribute: Attribute, vocabulary: TaskVocabulary
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """The groups and objects of raw texts and labels; see :func:`in_pandas`."""
    words = {name: attribute.counted_words()[name] for name in ("male", "female")}
    tasks = {name: task_words for name, task_words in vocabulary.tasks.items() if name != "person"}
    return _frames(corpus, texts, words, tasks)


def _draw_images(
    frames: tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame],
) -> tuple[pd.DataFrame, ...]:
    rows = np.random.default_rng(0).integers(0, len(frames[0]), len(frames[0]))
    return tuple(frame.iloc[rows].reset_index(drop=True) for frame in frames)


def _frames(
    corpus: Corpus,
    texts: dict[str, pd.Series],
    words: dict[str, tuple[str, ...]],
    tasks: dict[str, tuple[str, ...]],
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Groups and objects of the captioner's captions, people's and the labels, a row per image."""
    codes = pd.Series(corpus.groupings["gender"].codes).map(dict(enumerate(words)))
    objects = corpus.objects or ()
    labels = pd.DataFrame({task: [task in labelled for labelled in objects] for task in tasks})
    sides = [_flags(texts[side], words, tasks) for side in SIDES]
    return sides[0], sides[1], labels.assign(group=codes)


def _numbers(model: pd.DataFrame, people: pd.DataFrame, labels: pd.DataFrame) -> pd.DataFrame:
    codes, named, said_by_people = labels["group"], model["group"], people["group"]
    tasks = [task for task in labels if task != "group"]
    rows = []
    for task in tasks:
        before, after = labels[task].groupby(codes).mean(), model[task].groupby(codes).mean()
        ratio = codes[labels[task]].value_counts(normalize=True)
        ratio_after = named[model[task]].value_counts(normalize=True)
        ratio_people = said_by_people[people[task]].value_counts(normalize=True)
        leaning = ratio[ratio > 0.5].index
        rows.append(
            {
                "task": task,
                "a_to_t": (np.sign(before - labels[task].mean()) * (after - before)).mean(),
                "mals": (ratio_after.reindex(leaning) - ratio[leaning]).sum(),
                "increase": (ratio_after - 0.5).abs().mean() - (ratio_people - 0.5).abs().mean(),
            }
        )
    return pd.DataFrame(rows).assign(error=(named.notna() & (named != codes)).mean())


def _flags(
    texts: pd.Series, words: dict[str, tuple[str, ...]], tasks: dict[str, tuple[str, ...]]
) -> pd.DataFrame:
    """Which objects captions name, and the one group."""
    texts = texts.str.lower()
    named = pd.DataFrame(
        {
            group: texts.str.contains(_pattern(words_of_name))
            for group, words_of_name in words.items()
        }
    )
    alone = named["male"] ^ named["female"]
    objects = {
        task: texts.str.contains(_pattern(words_of_name)) for task, words_of_name in tasks.items()
    }
    return pd.DataFrame(objects).assign(group=named.idxmax(axis=1).where(alone))


def _texts(captions: Captions) -> pd.Series:
    return pd.Series([captions.text(i) for i in range(len(captions))])


def _pattern(words: tuple[str, ...]) -> str:
    return r"\b(?:" + "|".join(sorted(words, key=len, reverse=True)) + r")\b"


def same_in_ours(corpus: Corpus, *overrides: str) -> float:
    """Seconds of the metrics of :func:`in_pandas`, without cached readings of captions."""
    same = ("ba_directional", "ba_mals", "gender_error", "cooccurrence")
    built = [cell([f"metric={name}", *overrides]).build("metric") for name in same]
    fresh = unread(corpus)
    return cpu_seconds(lambda: [metric.compute(fresh, splits=[]) for metric in built])


def unread(corpus: Corpus) -> Corpus:
    """The same captions without cached readings, which would make a later measurement faster."""
    return corpus.rewrite({side: replace(corpus.side(side)) for side in SIDES})


def main(only: str = "") -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
    parts = {"metrics": _metrics, "pandas": _beside_pandas}
    with threadpool_limits(1):  # BLAS counted the cores before; two threads on one would spin
        for name, part in parts.items():
            if only in ("", name):
                part()


def _metrics() -> None:
    """Time and memory of all metrics on a million captions."""
    built = metrics()
    example = cell(["metric=ba_directional"])
    attribute, vocabulary = example.build("attribute"), example.build("task")
    corpus = partly_unsure(corpus_of(CAPTIONS, vocabulary))
    loaded = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * RSS_UNIT / 1e9
    tasks = tuple(name for name in vocabulary.tasks if name != "person")
    seconds = {
        "reading captions": cpu_seconds(
            lambda: [
                (
                    attribute_mentions(captions, attribute, attribute.groups),
                    task_mentions(captions, vocabulary, tasks),
                )
                for captions in (corpus.model, corpus.human)
            ]
        )
    }
    for name, metric in built.items():
        seconds[name] = cpu_seconds(lambda m=metric: m.compute(corpus, splits=[]))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * RSS_UNIT / 1e9
    total = sum(seconds.values())
    lines = [[name, f"{value:.2f}"] for name, value in seconds.items()]
    verdicts = [
        [
            "**all**",
            f"**{total:.1f}** (target {TARGET_S:.0f}: {met(total <= TARGET_S)})",
        ],
        [
            "peak memory, GB",
            f"{peak:.2f} (target {TARGET_GB:.0f}: {met(peak <= TARGET_GB)})",
        ],
        ["of which the loaded corpus", f"{loaded:.2f}"],
    ]
    body = table(
        [f"{CAPTIONS:,} captions x {len(vocabulary.tasks)} objects", "CPU s"], [*lines, *verdicts]
    )
    body += (
        f"\nSeconds of CPU on one core, after loading: {CAPTIONS // 2:,} captions of a captioner "
        "and as many of people, 1,000 resamples of images for every number.\n"
    )
    publish("Counting metrics, one core", "python -m benchmarks.counting metrics", body)


def _beside_pandas() -> None:
    """Compare with the same numbers in plain pandas, without intervals and with."""
    example = cell(["metric=ba_directional"])
    attribute, vocabulary = example.build("attribute"), example.build("task")
    few = corpus_of(FEW_CAPTIONS, vocabulary)
    texts = {side: _texts(few.side(side)) for side in SIDES}
    # In turn, so that both sides have the same load on the machine.
    runs = [
        (
            cpu_seconds(lambda: in_pandas(few, texts, attribute, vocabulary)),
            same_in_ours(few, "stats.resamples=2"),
            same_in_ours(few),
        )
        for _ in range(REPEATS)
    ]
    plain, bare, ours = (min(times) for times in zip(*runs, strict=True))
    frames = pandas_frames(few, texts, attribute, vocabulary)
    drawn = min(cpu_seconds(lambda: _numbers(*_draw_images(frames))) for _ in range(REPEATS))
    whole = plain + RESAMPLES * drawn
    verdict = met(plain / bare >= TARGET_TIMES)
    lines = [
        ["numbers alone", f"{plain:.1f}", f"{bare:.2f}", f"{plain / bare:.0f} ({verdict})"],
        [
            f"with {RESAMPLES:,} resamples (pandas: one measured)",
            f"{whole:,.0f}",
            f"{ours:.2f}",
            f"{whole / ours:,.0f}",
        ],
    ]
    header = ["", "plain pandas (CPU s)", "here (CPU s)"]
    body = (
        f"BA->, BA_MALS, gender error and co-occurrence of {FEW_CAPTIONS:,} captions, seconds of "
        f"CPU on one core after loading, best of {REPEATS}. BA-> and BA_MALS here take the usual "
        "group of an object from other images than its change; pandas takes it from the same:\n\n"
        + table([*header, f"times as fast, target {TARGET_TIMES:.0f}"], lines)
    )
    row = beside(
        f"four counting metrics of {FEW_CAPTIONS:,} captions, after loading",
        f"{bare:.2f} s",
        "plain pandas",
        f"{plain:.1f} s",
        plain / bare,
        TARGET_TIMES,
    )
    publish(
        "Counting metrics beside pandas", "python -m benchmarks.counting pandas", body, peers=[row]
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
