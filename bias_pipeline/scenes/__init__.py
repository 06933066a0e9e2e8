"""The built-in data set ``scenes``: simulated pictures with captions by annotators and captioners.

The default world shows people who do things. The affective world has pictures that evoke emotions.

The generator is our own. The generator consists of a grammar and word lists, and uses no
third-party text. We know exactly which things are more frequent in which group, and how much each
simulated captioner amplifies these differences (see :mod:`bias_pipeline.scenes.truth`).
"""
