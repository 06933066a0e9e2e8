"""``analysis metrics``: the same as ``metrics``."""

from __future__ import annotations

from bias_pipeline.commands.metrics import command, parser

__all__ = ["command", "parser"]
