"""A task of lmms-eval; ``lmms_eval --include_path`` takes this folder or one that includes it."""
