"""Does ``anonymous score`` find the planted order of captioners, and do attackers follow people?

Usage: python -m experiments.anonymous.study [OUTPUTS DATA]

With OUTPUTS (a folder for pictures and caches) and DATA (that holds ``coco`` and ``captioners``)
everything missing in the committed rows is computed, so a stopped study resumes. Without them,
tables and figure are made from the rows.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pandas as pd

from bias_pipeline.array_types import IntArray
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.data.rating_tables import CANNOT_TELL
from bias_pipeline.metrics.catalogue import metric_class
from bias_pipeline.people.anonymous import (
    GT,
    LARGEST,
    PEOPLE,
    AnonymousRow,
    anonymous_attack,
    anonymous_corpus,
    anonymous_rows,
    human_scores,
)
from bias_pipeline.people.anonymous_pictures import (
    AnonymousPictures,
    built_pictures,
    write_unmarked,
)
from bias_pipeline.report.table import p_cell
from bias_pipeline.run import compose
from bias_pipeline.run.cell import run_cell
from bias_pipeline.scenes.captioners import captions_without_marks
from bias_pipeline.scenes.dataset import ScenesDataset
from bias_pipeline.scenes.slots import BiasSettings
from bias_pipeline.scenes.world import generate
from bias_pipeline.stats.bootstrap import Estimate
from bias_pipeline.stats.compare import pearson
from bias_pipeline.text.mentions import named_group
from experiments.assumed_group.study import FILES as CAPTIONERS
from experiments.assumed_group.study import write_common
from experiments.study import markdown, printed_table, pyplot, read_rows, save_figure, write_results

HERE = Path(__file__).resolve().parent
ORDER, NAMED, ROWS = HERE / "order.csv", HERE / "named.csv", HERE / "rows.csv"
GROUPS = ("male", "female")
STRENGTHS = tuple(round(0.1 * step, 1) for step in range(9))  # nine captioners, as in the paper
FAMILIES: Mapping[str, Sequence[str]] = {  # which dials have the strength
    "both": ("t_to_a", "a_to_t"),
    "assumes": ("t_to_a",),
    "imagines": ("a_to_t",),
}
SEED = 1  # of the anonymous scenes; the labelled ones have 0
POOL, TRIALS = 4000, 100
PICTURES, RATERS, ERRORS = (25, 50, 100, 200, 500, 1000), (1, 3, 5), (0.1, 0.3)
N_ANONYMOUS, N_LABELLED, SIDE = 1000, 2000, 64
_LIC = (
    "metric=lic",
    "encoder=ngram",
    "metric.learning_curve=false",
    "metric.positions=2",
    "seeds=3",
)
ATTACKERS: Mapping[str, Sequence[str]] = {
    "lic": _LIC,
    "imagecaptioner2": ("metric=imagecaptioner2", "seeds=1"),
}
_TITLES = {"people": "GT", "lic": "LIC", "imagecaptioner2": "ImageCaptioner2"}
_COLUMNS = (("lic", LARGEST), ("imagecaptioner2", LARGEST), ("lic", "score"))
_FAMILY_TITLES = {"both": "assume and imagine", "assumes": "assume", "imagines": "imagine"}


def dials(family: str, strength: float) -> BiasSettings:
    """Of a captioner."""
    return BiasSettings(**dict.fromkeys(FAMILIES[family], strength))


def named_groups(captions: Sequence[str]) -> IntArray:
    """(N,) the number of the group that each caption names, below 0 if it names none or several."""
    attribute = compose.cell([]).build("attribute")
    return named_group(Captions.from_texts(captions), attribute, GROUPS)


def answers(
    codes: IntArray, n_raters: int, error: float, chance: np.random.Generator
) -> dict[str, dict[str, str]]:
    """What simulated raters say of captions.

    Args:
        codes: (N,) the group that each caption names, below 0 for none.
        n_raters: of each caption.
        error: how often a rater gives one of the two other answers instead.
        chance: of errors.

    Returns:
        Caption to rater to answer.
    """
    right = np.where(codes < 0, 2, codes)[:, None]  # (N, 1), 2: cannot tell
    shape = (len(codes), n_raters)
    wrong = (right + chance.integers(1, 3, shape)) % 3
    given = np.where(chance.random(shape) < error, wrong, right)
    values = (*GROUPS, CANNOT_TELL)
    return {
        str(i): {str(rater): values[answer] for rater, answer in enumerate(line)}
        for i, line in enumerate(given.tolist())
    }


def order(done: pd.DataFrame) -> pd.DataFrame:
    """How often people's scores put captioners into the planted order; missing lines are added."""
    world = generate(POOL, SEED)
    codes = np.stack(
        [
            named_groups([*captions_without_marks(world, dials("assumes", strength)).values()])
            for strength in STRENGTHS
        ]
    )
    for n_pictures, n_raters, error in product(PICTURES, RATERS, ERRORS):
        if not _absent(done, pictures=n_pictures, raters=n_raters, error=error):
            continue
        chance = np.random.default_rng([n_pictures, n_raters, int(100 * error)])
        trials = [
            _ordered_shares(codes, n_pictures, n_raters, error, chance) for _ in range(TRIALS)
        ]
        pairs, neighbours, whole = np.mean(trials, axis=0).tolist()
        line = {"pictures": n_pictures, "raters": n_raters, "error": error, "trials": TRIALS}
        fresh = {**line, "pairs": pairs, "neighbours": neighbours, "whole": whole}
        done = _append_lines(done, [fresh], ORDER)
    return done


def _ordered_shares(
    codes: IntArray, n_pictures: int, n_raters: int, error: float, chance: np.random.Generator
) -> tuple[float, float, float]:
    """Shares of pairs and of neighbours in the planted order, ties half, and whether all are."""
    rows = chance.choice(codes.shape[1], n_pictures, replace=False)
    scores = [
        human_scores(answers(of_one[rows], n_raters, error, chance), GROUPS)[GT].value
        for of_one in codes
    ]
    signs = np.array([np.sign(two - one) for one, two in combinations(scores, 2)])
    steps = np.sign(np.diff(scores))
    return float((signs + 1).mean() / 2), float((steps + 1).mean() / 2), float((steps > 0).all())


def columns(done: pd.DataFrame, outputs: Path) -> pd.DataFrame:
    """Table 5 of each family of captioners; missing lines are added."""
    pictures = _draw_pictures(outputs)
    for metric, family in product((PEOPLE, *ATTACKERS), FAMILIES):
        for strength in STRENGTHS:
            if not _absent(done, family=family, strength=strength, metric=metric):
                continue
            name = f"{family}_{strength:g}".replace(".", "")
            captions = pictures.captions(name)
            if metric == PEOPLE:
                fresh = _people(name, family, strength, captions)
            else:
                fresh = _attacker_rows(metric, name, family, strength, pictures, captions, outputs)
            done = _store(done, fresh, family, strength)
            print(metric, name, flush=True)
    return done


def _draw_pictures(outputs: Path) -> AnonymousPictures:
    """The anonymous pictures, and all captioners' captions of them."""
    root = outputs / "anonymous"
    captioners = {
        f"{family}_{strength:g}".replace(".", ""): dict.fromkeys(FAMILIES[family], strength)
        for family, strength in product(FAMILIES, STRENGTHS)
    }
    if not root.exists():
        root.mkdir(parents=True)
        scenes = ScenesDataset(str(root), N_ANONYMOUS, SEED, captioners)
        write_unmarked(scenes, root, [*captioners], SIDE)
    return built_pictures(root)


def _people(
    name: str, family: str, strength: float, captions: Mapping[str, str]
) -> list[AnonymousRow]:
    """What three simulated raters name, who err independently for each captioner."""
    chance = np.random.default_rng([list(FAMILIES).index(family), int(10 * strength)])
    votes = answers(named_groups([*captions.values()]), 3, 0.1, chance)
    return anonymous_rows(name, "gender", PEOPLE, human_scores(votes, GROUPS))


def _attacker_rows(
    metric: str,
    name: str,
    family: str,
    strength: float,
    pictures: AnonymousPictures,
    captions: Mapping[str, str],
    outputs: Path,
) -> Iterator[AnonymousRow]:
    """What attackers make of the captions, and the score of LIC on labelled scenes."""
    planted = [f"+dataset.captioners.{name}.{dial}={strength}" for dial in FAMILIES[family]]
    words = [*ATTACKERS[metric], *planted, f"captioner={name}", f"dataset.n_images={N_LABELLED}"]
    cell = compose.cell([*words, f"paths.outputs={outputs}", f"paths.cache={outputs / 'cache'}"])
    built, reference, text = cell.build("metric"), cell.corpus(), cell.build("text")
    anonymous = anonymous_corpus(name, captions, pictures.photos, text.scored)
    transforms = [text, cell.build("masking")]
    score = anonymous_attack(built, transforms, reference, anonymous, cell.seeds)
    yield from anonymous_rows(name, "gender", metric, {LARGEST: score})
    if metric == "lic":
        result = run_cell(reference, built, cell.seeds, run_id=name)
        (row,) = (row for row in result.rows if row.part == "score")
        yield AnonymousRow(
            name, "gender", metric, "score", "scenes",
            row.value, row.ci_low, row.ci_high, row.seed_std, row.n_images,
        )  # fmt: skip


def order_table(lines: pd.DataFrame) -> str:
    """How often the nine captioners stand in the planted order."""
    shown = lines.assign(
        **{
            "raters, error": lines["raters"].astype(str)
            + ", "
            + lines["error"].map("{:.0%}".format)
        }
    )
    tables = [
        shown.pivot(index="raters, error", columns="pictures", values=value) * 100
        for value in ("whole", "pairs")
    ]
    return "\n".join(
        f"{title}, in per cent of {TRIALS} draws:\n\n{markdown(table, 0)}"
        for title, table in zip(("All nine in order", "Pairs in order"), tables, strict=True)
    )


def published_captioners(done: pd.DataFrame, data: Path, outputs: Path) -> pd.DataFrame:
    """Real captions of images whose gender annotators could not tell; missing lines are added.

    Words that name a group stand for raters.
    """
    labels = outputs / "common.csv"
    write_common(data, data / "coco/attributes/images_val2014.csv", labels)
    for name, stem in CAPTIONERS.items():
        if not _absent(done, family="published", captioner=name, metric="lic"):
            continue
        words = [
            *_LIC,
            "dataset=coco",
            "dataset.strict=false",
            f"dataset.attributes={labels}",
            f"dataset.captions={data / 'coco/annotations/captions_val2014.json'}",
            f"captioner={data / 'captioners' / stem}.json",
        ]
        cell = compose.cell([*words, f"paths.cache={outputs / 'cache'}"])
        reference, text = cell.corpus(), cell.build("text")
        unsure = np.flatnonzero(reference.groupings["gender"].unsure).tolist()
        captions = {reference.ids[row]: reference.model.of_image(row)[0] for row in unsure}
        nowhere = {image: Path(image) for image in captions}  # LIC looks at no picture
        anonymous = anonymous_corpus(name, captions, nowhere, text.scored)
        transforms = [text, cell.build("masking")]
        score = anonymous_attack(cell.build("metric"), transforms, reference, anonymous, cell.seeds)
        votes = answers(named_groups([*captions.values()]), 1, 0.0, np.random.default_rng(0))
        rows = [
            *anonymous_rows(name, "gender", PEOPLE, human_scores(votes, GROUPS)),
            *anonymous_rows(name, "gender", "lic", {LARGEST: score}),
        ]
        done = _store(done, rows, "published", np.nan)
        print("published", name, flush=True)
    return done


def published_table(rows: pd.DataFrame) -> str:
    """LIC without labels on real captions, beside what the paper's raters named."""
    chosen = rows[(rows["family"] == "published") & rows["part"].isin([GT, LARGEST])]
    table = chosen.pivot(index="captioner", columns="metric", values="value") * 100
    printed = printed_table("imagecaptioner2", "5", "").reindex(table.index)
    table["GT, printed"], table["LIC, printed"] = printed["gt"], printed["lic"]
    table = table.rename(columns={"people": "words name a gender", "lic": "LIC here"})
    pairs = (("LIC here", "words name a gender"), ("LIC here", "GT, printed"),
             ("words name a gender", "GT, printed"), ("LIC here", "LIC, printed"))  # fmt: skip
    correlations = {pair: pearson(*(table[name].tolist() for name in pair)) for pair in pairs}
    lines = [
        f"* {one} with {two}: {_correlation_text(correlation)}"
        for (one, two), correlation in correlations.items()
    ]
    return markdown(table, 1) + "\n" + "\n".join(lines) + "\n"


def _absent(done: pd.DataFrame, **key: object) -> bool:
    return not len(done) or not np.logical_and.reduce([done[k] == v for k, v in key.items()]).any()


def _append_lines(
    done: pd.DataFrame, lines: Sequence[Mapping[str, object]], path: Path
) -> pd.DataFrame:
    """All lines, also on disk."""
    whole = pd.concat([done, pd.DataFrame(lines)], ignore_index=True)
    whole.to_csv(path, index=False, float_format="%.6g")
    return whole


def _stored_rows() -> pd.DataFrame:
    """What people name and what attackers make of it, of all captioners."""
    named_rows, rows = (
        read_rows(path) if path.exists() else pd.DataFrame({"metric": []}) for path in (NAMED, ROWS)
    )
    return pd.concat([named_rows.assign(metric=PEOPLE), rows], ignore_index=True)


def _store(
    done: pd.DataFrame, rows: Iterable[AnonymousRow], family: str, strength: float
) -> pd.DataFrame:
    """All lines, also on disk: people's apart from those of metrics, which have a version."""
    lines = [{"family": family, "strength": strength, **asdict(row)} for row in rows]
    whole = pd.concat([done, pd.DataFrame(lines)], ignore_index=True)
    people = whole["metric"] == PEOPLE
    attacked = whole[~people]
    versions = [metric_class(name).info.version for name in attacked["metric"]]
    whole[people].drop(columns=["metric", "metric_version"], errors="ignore").to_csv(
        NAMED, index=False, float_format="%.6g"
    )
    attacked.assign(metric_version=versions).to_csv(ROWS, index=False, float_format="%.6g")
    return whole


def columns_table(rows: pd.DataFrame) -> str:
    """GT and what attackers make of the captions, by strength, in per cent."""
    chosen = rows[rows["part"].isin([GT, LARGEST]) & rows["family"].isin(FAMILIES)]
    table = chosen.pivot(index=["family", "strength"], columns="metric", values="value") * 100
    return markdown(table[list(_TITLES)].rename(columns=_TITLES).reindex(FAMILIES, level=0), 1)


def correlation_table(rows: pd.DataFrame) -> str:
    """Pearson of each column with GT over the nine captioners of a family."""
    lines = [
        {
            "captioners": family,
            "column": _TITLES[metric] + ("" if part == LARGEST else " on labelled scenes"),
            "Pearson": _correlation_text(_correlate(rows, family, metric, part)),
            "range": f"{100 * np.ptp(_column(rows, family, metric, part)):.2f}",
        }
        for family, (metric, part) in product(FAMILIES, _COLUMNS)
    ]
    return markdown(pd.DataFrame(lines).set_index("captioners"))


def _column(rows: pd.DataFrame, family: str, metric: str, part: str) -> list[float]:
    chosen = rows[(rows["family"] == family) & (rows["metric"] == metric) & (rows["part"] == part)]
    return chosen.sort_values("strength")["value"].tolist()


def _correlate(rows: pd.DataFrame, family: str, metric: str, part: str) -> Estimate:
    people = _column(rows, family, PEOPLE, GT)
    values = _column(rows, family, metric, part)
    return pearson(values, people)


def _correlation_text(one: Estimate) -> str:
    if np.isnan(one.value):
        return "the column is constant"
    return f"{one.value:.2f} [{one.ci_low:.2f}, {one.ci_high:.2f}], p {p_cell(one.p_value)}"


def figure(lines: pd.DataFrame, rows: pd.DataFrame) -> None:
    """How often all nine are in order, and attackers against people."""
    plt = pyplot("anonymous")
    fig, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.8), layout="constrained")
    for error, style in zip(ERRORS, ("-", "--"), strict=True):
        for n_raters, shade in zip(RATERS, (0.7, 0.4, 0.0), strict=True):
            one = lines[(lines["error"] == error) & (lines["raters"] == n_raters)]
            label = f"{n_raters} rater{'s' if n_raters > 1 else ''}, {error:.0%} errors"
            left.plot(one["pictures"], 100 * one["whole"], style, color=str(shade), label=label)
    left.set_xscale("log")
    left.set_xticks(PICTURES, list(map(str, PICTURES)))
    left.minorticks_off()
    left.set_xlabel("pictures")
    left.set_ylabel("draws with all nine captioners in order, per cent")
    left.legend(frameon=False, fontsize=8)
    for (family, marker), shade in zip(
        zip(FAMILIES, "os^", strict=True), (0.0, 0.4, 0.7), strict=True
    ):
        people = [100 * value for value in _column(rows, family, PEOPLE, GT)]
        largest = [100 * value for value in _column(rows, family, "lic", LARGEST)]
        right.plot(people, largest, marker, color=str(shade), label=_FAMILY_TITLES[family])
    right.set_xlabel("captions from which raters name a gender, per cent")
    right.set_ylabel("LIC: attackers' largest probability, per cent")
    right.legend(frameon=False, fontsize=8)
    save_figure(fig, HERE / "order.svg")


def main(arguments: Sequence[str]) -> None:
    """Compute what is missing, then write tables and figure."""
    lines = read_rows(ORDER) if ORDER.exists() else pd.DataFrame()
    rows = _stored_rows()
    if arguments:
        lines = order(lines)
        outputs, data = map(Path, arguments)
        rows = published_captioners(columns(rows, outputs), data, outputs)
    tables = {
        "Does the human score find the planted order?": order_table(lines),
        "Does an attacker follow people?": correlation_table(rows),
        "The columns of Table 5, in per cent": columns_table(rows),
        "Published captioners on images whose gender annotators could not tell": published_table(
            rows
        ),
    }
    write_results(HERE, tables)
    figure(lines, rows)


if __name__ == "__main__":
    main(sys.argv[1:])
