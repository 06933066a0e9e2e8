"""The same captions told of another group: every word that names a group gives way to another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.errors import NotApplicableError
from bias_pipeline.text.mentions import listed_words


def told_of(
    captions: Captions, attribute: Attribute, group: str, terms: Mapping[str, str]
) -> Captions:
    """Captions in which every word that names another group is one of this group.

    Words are those by which metrics know that a group is named, in their context ("a black dog"
    names nobody). All captions come out as lower-case words without signs, so those of people and
    models are alike in form.

    Args:
        captions: raw captions.
        attribute: of the group.
        group: whom they are to be told of.
        terms: group to the word that stands for whoever has no :func:`counterparts`; the first
            word that is listed for it if left out.

    Raises:
        NotApplicableError: if the attribute is an intersection, whose groups no one word names.

    Example:
        >>> words = {"male": ["he", "his", "man"], "female": ["she", "her", "woman"]}
        >>> gender = Attribute("gender", tuple(words), words, {})
        >>> told = told_of(Captions.from_texts(["A man and his dog."]), gender, "female", {})
        >>> told.text(0)
        'a woman and her dog'
    """
    if attribute.crossed:
        raise NotApplicableError(
            f"attribute {attribute.name!r} is made of several, and no one word names a group of "
            "it; choose one of them"
        )
    (naming,) = attribute.namings()
    found = listed_words(captions, naming)
    words = found.captions
    other = found.names & (found.groups != list(attribute.groups).index(group))
    places = found.places[other]
    partner = counterparts(attribute, group)
    term = terms.get(group, attribute.words[group][0])
    types = {word: number for number, word in enumerate(words.types)}
    new = np.arange(len(words.types))
    for number in np.unique(words.tokens[places]).tolist():
        word = partner.get(words.types[number], term)
        new[number] = types.setdefault(word, len(types))
    tokens = words.tokens.copy()
    tokens[places] = new[tokens[places]]
    return replace(words, types=tuple(types), tokens=tokens).compact()


def counterparts(attribute: Attribute, group: str) -> dict[str, str]:
    """Words of other groups to those of one, where an attribute's lists are read side by side.

    That is where all are equally long: the i-th words are counterparts. A word that stands several
    times has several; it becomes the one that is listed oftenest itself, then the first, so "her"
    is "his" and not "him".

    Example:
        >>> words = {"male": ["he", "him", "his", "his"], "female": ["she", "her", "her", "hers"]}
        >>> counterparts(Attribute("gender", tuple(words), words, {}), "male")
        {'she': 'he', 'her': 'his', 'hers': 'his'}
    """
    lists = [attribute.words.get(name, ()) for name in attribute.groups]
    own = attribute.words.get(group, ())
    if len({len(words) for words in lists}) > 1:
        return {}
    listed = Counter(own)
    found: dict[str, str] = {}
    for words in _others(lists, own):
        for word, partner in zip(words, own, strict=True):
            if word not in found or listed[partner] > listed[found[word]]:
                found[word] = partner
    return {_plain(word): _plain(partner) for word, partner in found.items()}


def _others(lists: Sequence[Sequence[str]], own: Sequence[str]) -> list[Sequence[str]]:
    return [words for words in lists if words is not own]


def _plain(word: str) -> str:
    """As captions have it without signs."""
    return word.replace("-", " ")
