"""Transforms of captions: tokenise, mask, align. Each is a pure ``Corpus -> Corpus``.

Special tokens that a transform puts into a caption ("<gender>", "<unk>") are written in angle
brackets. The tokenizer splits brackets off ordinary text, so none can come from a caption by
accident.
"""
