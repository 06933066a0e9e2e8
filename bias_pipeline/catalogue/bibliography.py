"""What to cite: the sources of every metric, as BibTeX."""

from __future__ import annotations

from collections.abc import Iterable

from bias_pipeline.catalogue.registry import info_of


def bibtex(metrics: Iterable[str]) -> str:
    """BibTeX of the sources of some metrics, each once; unknown metrics have none.

    Example:
        >>> bibtex(["lic", "gone"]).startswith("@inproceedings{hirota2022lic,")
        True
    """
    known = [info for metric in metrics if (info := info_of(metric))]
    sources = dict.fromkeys(source for info in known for source in info.sources)
    return "\n".join(source.bibtex() for source in sources)
