"""Replaces the words that name a group by words of another group, or by neutral words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from bias_pipeline.array_types import BoolArray
from bias_pipeline.corpus.attribute import Attribute, Naming
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.errors import NotApplicableError
from bias_pipeline.text.mentions import Listed, listed_words


def captions_naming(
    captions: Captions, attribute: Attribute, group: str, terms: Mapping[str, str]
) -> Captions:
    """Replace every word that names another group by a word of ``group``.

    As in metrics, the context of a word counts ("a black dog" names no group). All captions become
    lower-case words without punctuation, so that captions of annotators and models have the same
    form.

    Example:
        >>> words = {"male": ["he", "his", "man"], "female": ["she", "her", "woman"]}
        >>> gender = Attribute("gender", tuple(words), words, {})
        >>> captions = Captions.from_texts(["A man and his dog."])
        >>> captions_naming(captions, gender, "female", {}).text(0)
        'a woman and her dog'
    """
    matches = listed_words(captions, _naming(attribute))
    other = matches.names & (matches.groups != list(attribute.groups).index(group))
    term = term_of(group, attribute, terms)
    return _replace_words(matches, other, counterparts(attribute, group), term)


def term_of(group: str, attribute: Attribute, terms: Mapping[str, str]) -> str:
    """The word for a group.

    Example:
        >>> gender = Attribute("gender", ("male", "unsure"), {"male": ["man", "he"]}, {})
        >>> term_of("male", gender, {}), term_of("unsure", gender, {"unsure": "person"})
        ('man', 'person')
    """
    words = [terms[group]] if group in terms else attribute.words.get(group, ())
    if not words:
        raise NotApplicableError(
            f"attribute {attribute.name!r} lists no word for group {group!r}; give one with "
            f"metric.terms={{{group}: WORD}}"
        )
    return words[0]


def captions_naming_nobody(
    captions: Captions, attribute: Attribute, word: str, words: Mapping[str, str]
) -> Captions:
    """Replace every word that names a group by a neutral word.

    The captions have the form that :func:`captions_naming` gives.

    Example:
        >>> words = {"male": ["he", "his", "man"], "female": ["she", "her", "woman"]}
        >>> gender = Attribute("gender", tuple(words), words, {})
        >>> captions = Captions.from_texts(["A man and his dog."])
        >>> captions_naming_nobody(captions, gender, "person", {"his": "their"}).text(0)
        'a person and their dog'
    """
    matches = listed_words(captions, _naming(attribute))
    return _replace_words(matches, matches.names, words, word)


def _naming(attribute: Attribute) -> Naming:
    if attribute.is_crossed:
        raise NotApplicableError(
            f"attribute {attribute.name!r} is an intersection; no single word names its groups; "
            "choose one of its attributes"
        )
    (naming,) = attribute.namings()
    return naming


def _replace_words(
    listed: Listed, chosen: BoolArray, partner: Mapping[str, str], term: str
) -> Captions:
    """Replace the ``chosen`` (P,) words by their partners, or by ``term`` without a partner."""
    words, places = listed.captions, listed.places[chosen]
    types = {word: number for number, word in enumerate(words.types)}
    new = np.arange(len(words.types))
    for number in np.unique(words.tokens[places]).tolist():
        word = partner.get(words.types[number], term)
        new[number] = types.setdefault(word, len(types))
    tokens = words.tokens.copy()
    tokens[places] = new[tokens[places]]
    return replace(words, types=tuple(types), tokens=tokens).compact()


def counterparts(attribute: Attribute, group: str) -> dict[str, str]:
    """Map words of other groups to words of ``group``, if the groups' lists are equally long.

    The i-th words of two lists are counterparts. A word that occurs several times in a list has
    several counterparts. The most frequent counterpart is used, or the first of several that are
    equally frequent. So "her" becomes "his" and not "him".

    Example:
        >>> words = {"male": ["he", "him", "his", "his"], "female": ["she", "her", "her", "hers"]}
        >>> counterparts(Attribute("gender", tuple(words), words, {}), "male")
        {'she': 'he', 'her': 'his', 'hers': 'his'}
    """
    lists = [attribute.words.get(name, ()) for name in attribute.groups]
    group_words = attribute.words.get(group, ())
    if len({len(words) for words in lists}) > 1:
        return {}
    listed = Counter(group_words)
    partners: dict[str, str] = {}
    for words in lists:
        if words is group_words:
            continue
        for word, partner in zip(words, group_words, strict=True):
            if word not in partners or listed[partner] > listed[partners[word]]:
                partners[word] = partner
    return {_plain_text(word): _plain_text(partner) for word, partner in partners.items()}


def _plain_text(word: str) -> str:
    """A word as it is written in captions without punctuation."""
    return word.replace("-", " ")
