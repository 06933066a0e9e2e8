"""A task for lmms-eval.

``lmms_eval --include_path`` takes this folder, or a folder whose task includes it.
"""
