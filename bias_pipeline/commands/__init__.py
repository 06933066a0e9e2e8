"""The commands; :mod:`bias_pipeline.commands.main` chooses the module of a command."""
