"""The commands. The module :mod:`bias_pipeline.commands.main` finds the module of a command."""
