"""Runs the program for ``python -m bias_pipeline``."""

import sys

from bias_pipeline.commands.main import program

if __name__ == "__main__":
    sys.exit(program())
