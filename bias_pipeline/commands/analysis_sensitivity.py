"""``analysis sensitivity``: how much scores vary with the attacker; see ``steadiness``."""

from __future__ import annotations

from bias_pipeline.commands.steadiness import sensitivity_command as command
from bias_pipeline.commands.steadiness import sensitivity_parser as parser

__all__ = ["command", "parser"]
