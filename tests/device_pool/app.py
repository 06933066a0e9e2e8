"""A Hydra application of somebody else's, which knows nothing of bias_pipeline."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig


@hydra.main(version_base="1.3", config_path=None)
def main(config: DictConfig) -> str:
    """Note which device was seen and when; end by a signal if told to."""
    began = time.time()
    if config.get("dies"):
        os.kill(os.getpid(), signal.SIGKILL)
    if config.get("fails"):
        raise ValueError("as it was told to")
    time.sleep(config.get("seconds", 0.3))
    device = os.environ["CUDA_VISIBLE_DEVICES"]
    note = {"device": device, "began": began, "ended": time.time(), "job": config.job}
    folder = Path(HydraConfig.get().runtime.output_dir)
    (folder / "note.json").write_text(json.dumps(note))
    return device


if __name__ == "__main__":
    main()
