"""Imports what a small cell does, for processes that are forked from one that has: commands.fork.

Nothing here may start a thread: a lock that it held would stay shut in every fork.
"""

from importlib import import_module

for module in (
    "bias_pipeline.attack.logistic",
    "bias_pipeline.scenes.dataset",
    "bias_pipeline.attack.ngram",
    "bias_pipeline.run.launch",
    "bias_pipeline.metrics.counting.gender_error",
    "bias_pipeline.metrics.attack.lic",
    "bias_pipeline.report.sections",
    "bias_pipeline.run.loggers",
    "bias_pipeline.report.tables",
    "bias_pipeline.run.cell",
    "hydra._internal.core_plugins.basic_launcher",
    "hydra._internal.core_plugins.basic_sweeper",
    "hydra._internal.hydra",
    "hydra.core.override_parser.overrides_parser",
    "hydra.grammar.gen.OverrideParser",
    "pandas",
    "pyarrow.parquet",
    "scipy.optimize",
    "scipy.sparse",
):
    import_module(module)
