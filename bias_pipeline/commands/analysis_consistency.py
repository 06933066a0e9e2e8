"""``analysis consistency``: whether attackers, or metrics, agree; see ``steadiness``."""

from __future__ import annotations

from bias_pipeline.commands.steadiness import consistency_command as command
from bias_pipeline.commands.steadiness import consistency_parser as parser

__all__ = ["command", "parser"]
