"""Does an image captioner amplify societal bias? Every metric of the field on the same inputs.

The functions ``audit``, ``score``, ``compare`` and ``load`` take data in memory or files; see
:mod:`bias_pipeline.api`. They are imported on first use.
"""

import sys

# With `python -m`, a file in the current folder, which may be a stranger's, can replace any module.
# So the folder is removed before anything else is imported, even `__future__`. If this package
# lies in that folder, the processes that it starts still find it.
if (
    sys.version_info >= (3, 11)
    and sys.argv[:1] == ["-m"]  # Python's value until the package runs
    and sys.orig_argv[-len(sys.argv)].removeprefix("-m") == __name__
    and not sys.flags.safe_path
):
    started_in = sys.path.pop(0)
    if __file__ == f"{started_in}/{__name__}/__init__.py" and started_in not in sys.path:
        sys.path.append(started_in)
    del started_in

from typing import TYPE_CHECKING

from bias_pipeline.io.installation import check_python

check_python()

from bias_pipeline.models.torchvision import complete_when_imported  # noqa: E402

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
