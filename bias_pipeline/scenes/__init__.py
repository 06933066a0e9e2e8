"""The embedded data set ``scenes``, described by people and by captioners.

The default world shows people doing things. The affective world has pictures that make people feel
something.

The generator is our own: a grammar and word lists, without third-party text. We know exactly which
things lean towards which group, and how much each simulated captioner amplifies the leaning (see
:mod:`bias_pipeline.scenes.truth`).
"""
