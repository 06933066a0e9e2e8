"""A task for lmms-eval. Give ``--include_path`` this folder, or a folder that includes it."""
