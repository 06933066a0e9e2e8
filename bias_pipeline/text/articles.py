"""Chooses "a" or "an" for English noun phrases."""

_CONSONANT_SOUND = ("uni", "use", "euro", "one")  # "a uniform", though it is written with a vowel


def with_article(words: str) -> str:
    """Put "a" or "an" before words.

    Example:
        >>> with_article("old man"), with_article("uniform"), with_article("red umbrella")
        ('an old man', 'a uniform', 'a red umbrella')
    """
    vowel = words[0] in "aeiou" and not words.startswith(_CONSONANT_SOUND)
    return f"an {words}" if vowel else f"a {words}"
