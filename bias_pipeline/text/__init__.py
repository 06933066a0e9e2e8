"""Transforms of captions, which tokenise, mask or align them. Each is a pure ``Corpus -> Corpus``.

Special tokens that a transform puts into a caption ("<gender>", "<unk>") stand in angle brackets.
The tokenizer splits brackets from ordinary text, so no special token can come from a caption by
accident.
"""
