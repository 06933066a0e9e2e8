"""A task for lmms-eval; ``--include_path`` takes this folder, or a folder that includes it."""
