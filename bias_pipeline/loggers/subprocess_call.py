"""Runs code that contacts a W&B server in a separate process, which can be killed if it hangs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module


def run_apart(
    module: str, function: str, order: object, timeout_s: float
) -> subprocess.CompletedProcess[str]:
    """Call one of our functions in another process.

    Args:
        module: in this folder, such as ``loggers``.
        function: its name; it takes no arguments and reads ``order``, as JSON, from standard input.
        order: plain data.
        timeout_s: seconds until the process is killed.

    Returns:
        Its exit code and what it printed.
    """
    return subprocess.run(  # noqa: S603 - our own code
        [sys.executable, "-m", "bias_pipeline.loggers.subprocess_call", module, function],
        input=json.dumps(order),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=timeout_s,
        check=False,
        # Without these, a service that this process started would do the work.
        env={k: v for k, v in os.environ.items() if not k.startswith("WANDB_SERVICE")},
    )


if __name__ == "__main__":
    getattr(import_module(f"bias_pipeline.loggers.{sys.argv[1]}"), sys.argv[2])()
