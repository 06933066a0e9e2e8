"""Trainings in a process of their own that are killed between two epochs."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.cli.commands import wait_for
from tests.corpora import REPOSITORY

# Epochs of half a second, so that the first checkpoint is never that of the last epoch.
_SCRIPT = """\
import time
from pathlib import PosixPath
from bias_pipeline.attack.checkpoints import Learner
from {module} import {name}
Learner.on_train_epoch_start = lambda self: time.sleep(0.5)
if __name__ == "__main__":
    {name}{arguments}
"""


def kill_after_a_checkpoint(
    function: str, arguments: tuple[object, ...], checkpoints: Path
) -> None:
    """Call a function that trains, and kill it with all its processes once a checkpoint exists.

    Args:
        function: of several epochs, as ``module.name``.
        arguments: numbers and paths.
        checkpoints: the folder where they appear; the script is put beside it.
    """
    module, _, name = function.rpartition(".")
    script = checkpoints.with_name("run.py")
    script.parent.mkdir(exist_ok=True)
    script.write_text(_SCRIPT.format(module=module, name=name, arguments=arguments))
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    process = subprocess.Popen(
        [sys.executable, str(script)], cwd=script.parent, env=environment, start_new_session=True
    )
    try:
        # Whole ones; drafts have other names.
        wait_for(lambda: list(checkpoints.glob("*.ckpt")) or process.poll() is not None, 300)
        assert process.returncode is None
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
