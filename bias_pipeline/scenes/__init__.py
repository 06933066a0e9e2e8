"""The embedded data set ``scenes``, with captions by people and by captioners.

The default world shows people doing things. The affective world has pictures that make people feel
something.

The generator is our own: a grammar and word lists, without third-party text. We know exactly which
things are more frequent in which group, and how much each simulated captioner amplifies this (see
:mod:`bias_pipeline.scenes.truth`).
"""
