"""``python -m experiments.chain``: see :mod:`experiments.chain.study`."""

from experiments.chain.study import main

main()
