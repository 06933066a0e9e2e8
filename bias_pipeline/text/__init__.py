"""Transforms tokenise, mask or align captions. Each is a pure function ``Corpus -> Corpus``.

Transforms put special tokens ("<gender>", "<unk>") in angle brackets into captions. The tokenizer
separates brackets from the text of a caption, so no text can become a special token by accident.
"""
