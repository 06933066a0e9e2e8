"""T→A as people are masked step by step: DBAC's Table 4 on scenes, where the truth is known.

Usage: python -m experiments.progressive_masking.study [--out DIR --model FOLDER [--pictures]]
           [--share mass|pixels]
       python -m experiments.progressive_masking.study --real DATA --out DIR

With --out and --model a captioner (any of `caption`; the chain's SAT is DIR/model) captions the
data set of `python -m experiments.chain --out DIR` at four steps, its maps are compared with the
masks (looks.csv, maps.png), and every metric scores the captions (rows.csv). With --real the
published captions of masked photos are scored (real_rows.csv). Always, tables and figure are made
from these files. What is there already is not done again.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from textwrap import wrap

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from experiments.chain.study import caption, naming_of, run_once
from experiments.study import (
    cell,
    lic_data,
    markdown,
    pyplot,
    read_rows,
    save_figure,
    sweep,
    write_page,
)

HERE = Path(__file__).resolve().parent
ROWS, LOOKS, REAL_ROWS = HERE / "rows.csv", HERE / "looks.csv", HERE / "real_rows.csv"
PAGE, FIGURE, MAPS = HERE / "RESULTS.md", HERE / "steps.svg", HERE / "maps.png"
STAGES = {
    "original": "none",
    "part": "person_part",
    "segment": "person_segment",
    "box": "person_box",
}
LINES = 3  # pictures whose maps are shown
TARGET = "image_masking.target=foreground"
ATTRIBUTES = ("gender", "race_unsure")
SHARES = {"mass": "attribution_score", "pixels": "pixel_share"}
# Study, its metric, its part, its name in the table.
SHOWN = (
    ("attribution", "attribution_score", "Attribution score (map)"),
    ("attribution", "pixel_share", "Attribution score (places)"),
    ("attribution", "uniform_share", "of a uniform map"),
    ("naming", "rightly", "Captions that name the right gender, of those that name one gender"),
    ("naming", "men", "Captions that name men, of those that name one gender"),
    ("lic lstm", "score", "LIC, LSTM"),
    ("lic", "score", "LIC, n-grams"),
    ("matched", "score", "LIC at equal style"),
    ("dpa lstm", "t_to_a", "DPA T→A, LSTM"),
    ("dpa", "t_to_a", "DPA T→A, n-grams"),
    ("ba_directional", "t_to_a", "BA→ T→A"),
    ("dbac lstm", "t_to_a", "DBAC T→A, LSTM"),
    ("dbac", "t_to_a", "DBAC T→A, n-grams"),
    ("labels", "t_to_a", "DBAC T→A, prior=labels"),
    ("imagecaptioner2", "score", "ImageCaptioner2"),
)
METRICS = ("lic", "dpa", "ba_directional", "dbac")
REAL_SHOWN = (("gender_error", "score", "Wrong gender"),)
# Section 5.2 without its data set and with n-grams, as REAL has no pictures and networks take days.
PROTOCOL = (
    "alignment=contextual", "split=dbac", "++scoring.average=captions", "text.declined=keep",
    "text.stock=keep",
    "encoder=ngram",
)  # fmt: skip
SETTINGS = ("experiment=dbac_table4", "logger=csv")
REAL = {
    "sat": "SAT, whole photo", "sat_masked_seg_person": "SAT, outline masked",
    "sat_masked_person": "SAT, box masked", "oscar": "Oscar, whole photo",
    "oscar_masked_person": "Oscar, person masked (kind unstated)",
}  # fmt: skip


def looks(folder: Path, model: Path) -> pd.DataFrame:
    """What captions name and where the captioner looked, at every step."""
    frames = []
    for stage, masking in STAGES.items():
        masked = () if masking == "none" else (
            f"image_masking={masking}", TARGET,
            "--regions", str(folder / "annotations" / "instances.json"),
        )  # fmt: skip
        naming = naming_of(folder, caption(folder, model, stage, *masked))
        row = {"study": "naming", "attribute": "gender", "captioner": stage}
        shares = {"rightly": naming.rightly, "men": naming.men}
        lines = [{**row, "part": k, **_share(n, naming.naming)} for k, n in shares.items()]
        frames.append(pd.DataFrame(lines))
        frames += [attribution(folder, model, stage, attribute) for attribute in ATTRIBUTES]
    return pd.concat(frames, ignore_index=True)


def scores(folder: Path, *, pictures: bool) -> pd.DataFrame:
    """Rows of every metric at every step, by n-grams and by the paper's LSTM.

    Args:
        folder: of the data set.
        pictures: whether ImageCaptioner2 is run too, whose attacker sees pictures.
    """
    outputs = folder / "runs"
    scored = (*SETTINGS, f"dataset.root={folder}", f"paths.cache={folder / 'cache'}")
    captions = (*scored, "encoder=ngram")
    by_metric = sweep("captions", outputs, *captions)
    paper = sweep("paper", outputs, *scored)
    paper = paper[paper["encoder"] == "lstm"]
    frames = [
        by_metric.assign(study=by_metric["metric"]),
        paper.assign(study=paper["metric"] + " lstm"),
        sweep("labels", outputs, *captions, "metric=dbac", "metric.prior=labels"),
        sweep("matched", outputs, *captions, "metric=lic", "alignment=matched"),
    ]
    if pictures:
        words = ("metric=imagecaptioner2", "encoder=sat", "head=answers", "seeds=1")
        frames.append(
            sweep(
                "imagecaptioner2", outputs, *scored, *words, "metric.leaks=[]",
                "metric.learning_curve=false",
            )
        )  # fmt: skip
    rows = pd.concat(frames, ignore_index=True)
    return rows[rows["part"].isin([part for _, part, _ in SHOWN])]


def attribution(folder: Path, model: Path, stage: str, attribute: str) -> pd.DataFrame:
    """The mean attribution scores of one step, with intervals over pictures."""
    maps, notes = folder / f"maps_{stage}_{attribute}", folder / "annotations"
    data = (
        "dataset=coco", f"dataset.attributes={folder / 'attributes.csv'}",
        f"dataset.captions={notes / 'captions.json'}", f"dataset.images={folder / 'images'}",
        f"dataset.instances={notes / 'instances.json'}",
        f"captioner={folder / 'captioners' / stage}.json", f"attribute={attribute}",
        f"image_masking={STAGES[stage]}", TARGET,
    )  # fmt: skip
    words = ("--model", str(model), "--people", "foreground", "--out", str(maps))
    run_once(maps, "explain", "gradcam", *data, *words)
    table = pd.read_parquet(maps / "attribution.parquet")
    lines = []
    for part in (*SHARES.values(), "uniform_share"):
        values = table[part].dropna()
        half = 1.96 * values.std() / np.sqrt(len(values))
        lines.append(
            {
                "study": "attribution", "attribute": attribute, "captioner": stage, "part": part,
                "value": values.mean(), "ci_low": values.mean() - half,
                "ci_high": values.mean() + half, "n_images": len(values),
                "coverage": table["word"].notna().mean(), "unit": "fraction",
            }
        )  # fmt: skip
    return pd.DataFrame(lines)


def real(data: Path, outputs: Path) -> pd.DataFrame:
    """Rows of the published captions of whole and masked photos; only gender is labelled."""
    words = (*lic_data(data), *PROTOCOL, f"captioner={','.join(REAL)}", "logger=csv", "seeds=3")
    rows = sweep("real", outputs, *words, "metric=lic,dpa,ba_directional,dbac,gender_error")
    return rows[rows["part"].isin([part for _, part, _ in SHOWN])]


def _share(count: int, total: int) -> dict[str, object]:
    """A share with Wilson's interval, as a row has them."""
    interval = binomtest(count, total).proportion_ci(method="wilson")
    return {
        "value": count / total, "ci_low": interval.low, "ci_high": interval.high,
        "n_images": total, "unit": "fraction",
    }  # fmt: skip


def table(rows: pd.DataFrame, attribute: str, share: str) -> pd.DataFrame:
    """The table of one attribute: a line for each number, a column for each step."""
    hidden = {*SHARES.values()} - {SHARES[share]}
    lines = {}
    for study, part, title in SHOWN:
        selected = rows[
            (rows["study"] == study) & (rows["part"] == part) & (rows["attribute"] == attribute)
        ].set_index("captioner")
        if part not in hidden and len(selected):
            lines[title] = {
                stage: cell(selected.loc[stage]) if stage in selected.index else "–"
                for stage in STAGES
            }
    return pd.DataFrame(lines).T.rename_axis(attribute)


def real_table(rows: pd.DataFrame) -> pd.DataFrame:
    """The published captions: a line for each number, a column for each captioner."""
    lines = {}
    for metric, part, title in (*REAL_SHOWN, *(shown for shown in SHOWN if shown[0] in METRICS)):
        selected = rows[(rows["metric"] == metric) & (rows["part"] == part)].set_index("captioner")
        lines[title] = {REAL[name]: cell(selected.loc[name]) for name in REAL}
    return pd.DataFrame(lines).T.rename_axis("gender")


def draw(rows: pd.DataFrame, share: str) -> None:
    """Every number over the four steps, with intervals."""
    plt = pyplot("progressive_masking")
    hidden = {*SHARES.values(), "uniform_share"} - {SHARES[share]}
    studies = {*rows["study"]}
    shown = [one for one in SHOWN if one[0] in studies and one[1] not in hidden]
    fig, axes = plt.subplots(3, -(-len(shown) // 3), figsize=(15, 9), layout="constrained")
    for ax, (study, part, title) in zip(axes.flat, shown, strict=False):
        for attribute, colour in zip(ATTRIBUTES, ("#1f6f8b", "#c2571a"), strict=True):
            selected = rows[
                (rows["study"] == study) & (rows["part"] == part)
                & (rows["attribute"] == attribute)
            ].set_index("captioner").reindex(list(STAGES))  # fmt: skip
            value = 100 * selected["value"]
            if value.notna().any():
                spread = [value - 100 * selected["ci_low"], 100 * selected["ci_high"] - value]
                ax.errorbar(list(STAGES), value, spread, marker="o", color=colour, label=attribute)
        ax.set_title("\n".join(wrap(title, 32)), fontsize=9)
        ax.tick_params(labelsize=8)
    for ax in axes.flat[len(shown) :]:
        ax.axis("off")
    axes.flat[0].legend(fontsize=8)
    save_figure(fig, FIGURE)


def draw_maps(folder: Path) -> None:
    """The maps of the first word of a few pictures, a line each, at the four steps."""
    from PIL import Image

    drawn = [sorted((folder / f"maps_{stage}_gender" / "maps").glob("*_0_*")) for stage in STAGES]
    images = [path.name.split("_")[0] for path in drawn[0]][:LINES]
    lines = []
    for image in images:
        steps = [
            next(path for path in paths if path.name.startswith(f"{image}_")) for paths in drawn
        ]
        lines.append(np.hstack([np.asarray(Image.open(path)) for path in steps]))
    whole = Image.fromarray(np.vstack(lines))
    whole.resize((whole.width // 2, whole.height // 2)).quantize(64).save(MAPS)


def write(share: str) -> None:
    """Write the page and the figure from the committed rows."""
    rows = pd.concat([read_rows(LOOKS), read_rows(ROWS)], ignore_index=True)
    tables = {
        f"Scenes, {attribute} (per cent, 95 % intervals)": markdown(table(rows, attribute, share))
        for attribute in ATTRIBUTES
    }
    if REAL_ROWS.exists():
        tables["Published captions of masked photos"] = markdown(real_table(read_rows(REAL_ROWS)))
    write_page(PAGE, "Results", __file__, tables)
    draw(rows, share)


def main() -> None:
    """Measure what is named, and write the page and the figure."""
    parser = argparse.ArgumentParser("python -m experiments.progressive_masking.study")
    parser.add_argument("--out", type=Path, help="the folder that experiments.chain wrote")
    parser.add_argument("--model", type=Path, help="the captioner, such as DIR/model")
    parser.add_argument("--real", type=Path, metavar="DATA", help="score published captions")
    parser.add_argument(
        "--pictures", action="store_true", help="ImageCaptioner2 too, which takes much longer"
    )
    parser.add_argument("--share", choices=sorted(SHARES), default="mass")
    options = parser.parse_args()
    if options.real:
        outputs = (options.out or Path("outputs/progressive_masking")).absolute()
        real(options.real, outputs).to_csv(REAL_ROWS, index=False, float_format="%.6g")
    elif options.out and options.model:
        looks(options.out, options.model).to_csv(LOOKS, index=False, float_format="%.6g")
        draw_maps(options.out)
        rows = scores(options.out, pictures=options.pictures)
        rows.to_csv(ROWS, index=False, float_format="%.6g")
    write(options.share)


if __name__ == "__main__":
    main()
