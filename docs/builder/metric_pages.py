"""A page for each metric, generated from its card, and the list of them."""

from __future__ import annotations

from bias_pipeline.metrics.base import QUESTIONS
from bias_pipeline.metrics.catalogue import infos
from bias_pipeline.studies.metric_cards import INTRODUCTION, card
from docs.builder.formulas import FORMULAS, Formula
from docs.builder.mathml import block
from docs.builder.sources import REPOSITORY


def metric_pages() -> dict[str, str]:
    """The pages by path."""
    pages = {f"docs/metrics/{name}.md": metric_page(name) for name in infos()}
    return {"docs/metrics.md": index(), **pages}


def index() -> str:
    """All metrics by the question they answer, and how to read a card."""
    lists = [f"### {question}\n\n{_items(key)}" for key, question in QUESTIONS.items()]
    return "\n".join([INTRODUCTION, "## All metrics\n", *lists])


def _items(question: str) -> str:
    """The metrics that answer a question, one a line."""
    return "".join(
        f"* [`{name}`](metrics/{name}.md): {info.title}; {info.direction}\n"
        for name, info in infos().items()
        if info.question == question
    )


def title_of(page: str) -> str:
    """The heading of a page of docs/."""
    text = (REPOSITORY / "docs" / f"{page}.md").read_text(encoding="utf-8")
    return text.partition("\n")[0].removeprefix("# ")


def metric_page(name: str) -> str:
    """One metric: its question, formula, an example by hand, and its card.

    Args:
        name: as in ``metric=``.
    """
    info = infos()[name]
    heading, _, rest = card(name).partition("\n\n")
    return "\n\n".join(
        [
            heading.replace("## ", "# ", 1),
            f"**{QUESTIONS[info.question]}**",
            *(_formula(FORMULAS[name]) if name in FORMULAS else ()),
            "## Card",
            rest.replace("docs/dbac.md", "the page on DBAC"),
            "## When it misleads",
            "[Pitfalls](../footguns.md) has cases, each with a command that shows it. [Which "
            "metric](../which_metric.md) says what moves a score besides bias, and from how many "
            "images it finds a bias. `python -m bias_pipeline metrics` lists what each metric "
            "detects.",
        ]
    )


def _formula(formula: Formula) -> list[str]:
    """A formula, what its letters mean, and an example."""
    more = f"Choices and parts: [{title_of(formula.page)}](../{formula.page}.md)."
    return [
        "## Formula",
        *map(block, formula.lines),
        f"{formula.where} {more}",
        "## By hand",
        f"{formula.by_hand}\n\n```pycon\n{formula.code}\n```",
    ]
