"""Does an image captioner amplify societal bias? Every metric of the field on the same inputs.

``audit``, ``score``, ``compare`` and ``load`` take data in memory or files; see
:mod:`bias_pipeline.api`. They are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bias_pipeline.io.installation import check_python

check_python()

from bias_pipeline.vision.torchvision import complete_when_imported  # noqa: E402

if TYPE_CHECKING:
    from bias_pipeline.api import audit, compare, load, score

__version__ = "0.1.0"
__all__ = ["audit", "compare", "load", "score"]

complete_when_imported()


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from bias_pipeline import api

    return getattr(api, name)
