"""The same sentences of every group: what text encoders are debiased by.

Sentences and terms are ours. A definition set is one sentence of every group, alike but for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.datasets.scenes.english import with_article
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
_MOST = 8  # words of each group that are fitted to
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


def sentences(attribute: Attribute, names: Sequence[str]) -> list[tuple[str, ...]]:
    """Definition sets: each sentence with each of the terms, of every group.

    Of gender there are terms of our own, 224 sets. Other attributes take the words that their YAML
    lists for each group, in their order, said of a person.

    Args:
        attribute: whose words.
        names: the K groups that the data set has.

    Returns:
        S sets of K sentences.

    Raises:
        NotApplicableError: if a group has no word, as those of intersections have none.

    Example:
        >>> words = {"low": ["sad"], "high": ["happy"]}
        >>> mood = Attribute("mood", tuple(words), words, {})
        >>> len(sentences(mood, ("low", "high"))), sentences(mood, ("low", "high"))[0]
        (28, ('a photo of a sad person', 'a photo of a happy person'))
    """
    found = _filled(_TEMPLATES, [_terms(attribute, name, names)[:_MOST] for name in names])
    if not found:
        raise NotApplicableError(
            f"attribute {attribute.name!r}: no words tell its groups, by which texts could be "
            "debiased; debias.side=image does without"
        )
    return found


def held_out(attribute: Attribute, names: Sequence[str]) -> list[tuple[str, ...]]:
    """Definition sets that nothing is fitted to: other sentences, and further terms too.

    Args:
        attribute: see :func:`sentences`.
        names: see there.

    Returns:
        S sets of K sentences, of gender 96; none if a group has no word.

    Example:
        >>> words = {"low": ["sad"], "high": ["happy"]}
        >>> held_out(Attribute("mood", tuple(words), words, {}), ("low", "high"))[1]
        ('a sad person smiling', 'a happy person smiling')
    """
    return _filled(_HELD_OUT, [_terms(attribute, name, names) for name in names])


def _filled(templates: Sequence[str], terms: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """Each sentence with each of the terms, as many as every group has."""
    return [
        tuple(template.format(with_article(term)) for term in own)
        for template in templates
        for own in zip(*terms, strict=False)
    ]


def _terms(attribute: Attribute, name: str, names: Sequence[str]) -> Sequence[str]:
    """Those that are fitted to, then those that are held out."""
    if set(names) <= set(_GENDER):
        return (*_GENDER[name], *_FURTHER[name])
    return [f"{word} person" for word in attribute.words.get(name, ())[: _MOST + _MORE]]
