"""Our docstrings as mkdocstrings reads them.

References (``:func:`name```) become code, as Markdown knows no roles, and ``Example:`` the
section that Google's style calls ``Examples:``.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

_ROLE = re.compile(r":[a-z]+:`~?([^`]+)`")


class Docstrings(griffe.Extension):
    """Rewrites the docstrings of everything that is documented."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite one."""
        if obj.docstring:
            text = _ROLE.sub(lambda match: f"`{match[1].rpartition('.')[2]}`", obj.docstring.value)
            obj.docstring.value = re.sub(r"(?m)^Example:$", "Examples:", text)
