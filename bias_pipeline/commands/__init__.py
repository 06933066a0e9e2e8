"""The commands, one module each; :mod:`bias_pipeline.commands.main` chooses."""
