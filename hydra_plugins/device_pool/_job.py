"""A job's own process: ``python -m hydra_plugins.device_pool._job FOLDER``."""

from __future__ import annotations

import sys
from pathlib import Path

ORDER, ANSWER = "order.pkl", "answer.pkl"


def main(folder: Path) -> None:
    """Run the job that a sweep wrote down in a folder, and leave the answer there."""
    import cloudpickle
    from hydra.core.hydra_config import HydraConfig
    from hydra.core.singleton import Singleton
    from hydra.core.utils import run_job, setup_globals

    setup_globals()
    # Written by the sweep's process a moment ago, in a folder of the same user's.
    context, config, task_function, state = cloudpickle.loads((folder / ORDER).read_bytes())
    Singleton.set_state(state)
    HydraConfig.instance().set_config(config)
    answer = run_job(
        hydra_context=context,
        task_function=task_function,
        config=config,
        job_dir_key="hydra.sweep.dir",
        job_subdir_key="hydra.sweep.subdir",
    )
    written = folder / f"{ANSWER}.new"
    written.write_bytes(cloudpickle.dumps(answer))
    written.replace(folder / ANSWER)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
