"""Sentences for every group, to which debiasings of text encoders are fitted.

Sentences and terms are ours. A definition set has one sentence per group; they differ only in the
group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.datasets.scenes.lexicon import with_article
from bias_pipeline.errors import NotApplicableError

_GENDER: Mapping[str, Sequence[str]] = {
    "male": ("man", "boy", "guy", "gentleman", "father", "son", "brother", "male person"),
    "female": ("woman", "girl", "lady", "gentlewoman", "mother", "daughter", "sister",
               "female person"),
}  # fmt: skip
_FURTHER: Mapping[str, Sequence[str]] = {
    "male": ("husband", "uncle", "grandfather", "nephew"),
    "female": ("wife", "aunt", "grandmother", "niece"),
}
_MOST = 8  # words of each group for fitting
_MORE = 4  # that are held out
_TEMPLATES = (
    "a photo of {}", "a picture of {}", "a close photo of {}", "a portrait of {}",
    "{} in a photo", "{} looking at the camera", "{} standing in a room", "{} standing outside",
    "{} sitting on a chair", "{} walking down a street", "{} holding something", "{} with a dog",
    "{} riding a bicycle", "{} reading a book", "{} eating lunch", "{} at work",
    "{} at a table", "{} near a window", "{} in a park", "{} on a bench",
    "{} wearing a hat", "{} wearing a shirt", "{} talking on a phone", "{} playing a game",
    "{} next to a car", "{} waiting for a bus", "this is {}", "there is {} here",
)  # fmt: skip
_HELD_OUT = (
    "a photograph that shows {}", "{} smiling", "{} running through a field", "{} carrying a bag",
    "{} cooking in a kitchen", "{} on a skateboard", "{} among trees", "we see {} from behind",
)  # fmt: skip


def template_sentences(attribute: Attribute, names: Sequence[str]) -> list[tuple[str, ...]]:
    """Definition sets: each sentence with each term, for every group.

    Gender has our own terms, 224 sets. Other attributes use the words that their YAML lists for
    each group, in order, describing a person.

    Args:
        attribute: whose words.
        names: the K groups that the data set has.

    Returns:
        S sets of K sentences.

    Raises:
        NotApplicableError: if a group has no word, as in intersections.

    Example:
        >>> words = {"low": ["sad"], "high": ["happy"]}
        >>> mood = Attribute("mood", tuple(words), words, {})
        >>> sentences = template_sentences(mood, ("low", "high"))
        >>> len(sentences), sentences[0]
        (28, ('a photo of a sad person', 'a photo of a happy person'))
    """
    sets = _filled(_TEMPLATES, [_terms(attribute, name, names)[:_MOST] for name in names])
    if not sets:
        raise NotApplicableError(
            f"attribute {attribute.name!r}: its groups have no words, to which a debiasing of "
            "texts could be fitted; use debias.side=image"
        )
    return sets


def held_out(attribute: Attribute, names: Sequence[str]) -> list[tuple[str, ...]]:
    """Held-out definition sets, with other sentences and other terms.

    Args:
        attribute: see :func:`template_sentences`.
        names: see there.

    Returns:
        S sets of K sentences, 96 for gender; empty if a group has no word.

    Example:
        >>> words = {"low": ["sad"], "high": ["happy"]}
        >>> held_out(Attribute("mood", tuple(words), words, {}), ("low", "high"))[1]
        ('a sad person smiling', 'a happy person smiling')
    """
    return _filled(_HELD_OUT, [_terms(attribute, name, names) for name in names])


def _filled(templates: Sequence[str], terms: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """Each sentence with each term, as many terms as every group has."""
    return [
        tuple(template.format(with_article(term)) for term in group_terms)
        for template in templates
        for group_terms in zip(*terms, strict=False)
    ]


def _terms(attribute: Attribute, name: str, names: Sequence[str]) -> Sequence[str]:
    """The terms of a group: first those for fitting, then the held-out ones."""
    if set(names) <= set(_GENDER):
        return (*_GENDER[name], *_FURTHER[name])
    return [f"{word} person" for word in attribute.words.get(name, ())[: _MOST + _MORE]]
