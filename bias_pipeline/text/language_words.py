"""Knows the common words of languages in captions, and the scripts of languages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from bias_pipeline.corpus.attribute import words_of

LATIN = "Latin"

# Code of ISO 639 to words of captions: mostly function words; lists share words
_WORDS: Mapping[str, str] = {
    "de": (
        "der, die, das, den, dem, des, ein, eine, einen, einem, einer, eines, und, mit, auf, im, "
        "in, an, am, zu, zum, zur, von, vom, ist, sind, wird, werden, neben, vor, hinter, über, "
        "unter, bei, beim, aus, für, sich, nicht, während, auch, als, er, sie, es, ihr, ihre, "
        "sein, seine, seinem, seiner, zwei, drei, vier, mehrere, einige, andere, sitzt, steht, "
        "stehen, sitzen, hält, trägt, fährt, läuft, geht, liegt, spielt, spielen, mann, männer, "
        "frau, frauen, kind, kinder, junge, mädchen, person, personen, menschen, leute, hund"
    ),
    "fr": (
        "le, la, les, l, un, une, des, du, de, d, et, est, sont, dans, sur, avec, en, au, aux, à, "
        "qui, que, se, s, son, sa, ses, leur, leurs, par, pour, près, devant, derrière, sous, "
        "pendant, deux, trois, plusieurs, autre, homme, hommes, femme, femmes, fille, garçon, "
        "enfant, enfants, personne, personnes, gens, chien, assis, assise, debout, porte, tient, "
        "joue, marche"
    ),
    "es": (
        "el, la, los, las, un, una, unos, unas, de, del, y, e, en, con, a, al, es, está, están, "
        "que, se, su, sus, por, para, sobre, junto, frente, mientras, dos, tres, varios, varias, "
        "hombre, hombres, mujer, mujeres, niño, niña, niños, persona, personas, gente, perro, "
        "sentado, sentada, pie, calle"
    ),
    "it": (
        "il, lo, la, i, gli, le, l, un, uno, una, di, del, della, dei, delle, e, è, sono, in, nel, "
        "nella, con, su, sul, sulla, a, al, alla, che, si, suo, sua, per, da, mentre, vicino, due, "
        "tre, uomo, uomini, donna, donne, bambino, bambina, bambini, ragazzo, ragazza, persona, "
        "persone, gente, cane, seduto, seduta, piedi, strada"
    ),
    "pt": (
        "o, a, os, as, um, uma, uns, umas, de, do, da, dos, das, e, é, em, no, na, nos, nas, num, "
        "numa, com, ao, à, que, se, seu, sua, por, para, está, estão, sobre, enquanto, dois, duas, "
        "três, homem, homens, mulher, mulheres, menino, menina, pessoa, pessoas, criança, "
        "crianças, cachorro, cão, sentado, sentada, rua"
    ),
    "nl": (
        "de, het, een, en, met, op, in, van, aan, bij, naar, is, zijn, staat, staan, zit, zitten, "
        "loopt, rijdt, houdt, draagt, die, dat, te, voor, achter, naast, over, onder, uit, door, "
        "er, zich, haar, hun, terwijl, twee, drie, man, mannen, vrouw, vrouwen, jongen, meisje, "
        "kind, kinderen, mensen, persoon, hond"
    ),
    "sv": (
        "en, ett, och, på, i, med, av, är, som, till, för, vid, sig, den, det, sin, sitt, sina, "
        "bredvid, framför, medan, står, sitter, håller, går, två, tre, man, män, kvinna, kvinnor, "
        "pojke, flicka, barn, människor, person, personer, hund"
    ),
    "da": (
        "en, et, og, på, i, med, af, er, som, til, for, ved, sig, den, det, der, sin, sit, sine, "
        "foran, mens, står, sidder, holder, går, to, tre, mand, mænd, kvinde, kvinder, dreng, "
        "pige, barn, børn, mennesker, person, personer, hund"
    ),
    "cs": (
        "a, v, ve, na, s, se, si, je, jsou, do, z, ze, od, pro, při, u, k, ke, za, před, nad, pod, "
        "vedle, stojí, sedí, drží, jede, který, která, dva, dvě, tři, muž, muži, žena, ženy, "
        "chlapec, dívka, dítě, děti, lidé, pes"
    ),
    "pl": (
        "i, w, na, z, ze, się, do, od, dla, przy, u, za, przed, nad, pod, obok, jest, są, stoi, "
        "siedzi, trzyma, jedzie, który, która, dwa, dwie, dwoje, trzy, mężczyzna, mężczyźni, "
        "kobieta, kobiety, chłopiec, dziewczyna, dziecko, dzieci, ludzie, pies"
    ),
}
# Languages too alike for such words to tell them apart
_ALSO = {"no": "da", "nb": "da", "nn": "da"}

# Ranges of code points to scripts; the languages of each script
_KANA = (0x3040, 0x30FF, "Kana")
_RANGES = (
    (0x0041, 0x024F, LATIN),
    (0x0370, 0x03FF, "Greek"),
    (0x0400, 0x052F, "Cyrillic"),
    (0x0590, 0x05FF, "Hebrew"),
    (0x0600, 0x077F, "Arabic"),
    (0x0900, 0x097F, "Devanagari"),
    (0x0980, 0x09FF, "Bengali"),
    (0x0B80, 0x0BFF, "Tamil"),
    (0x0E00, 0x0E7F, "Thai"),
    (0x1E00, 0x1EFF, LATIN),
    _KANA,
    (0x3400, 0x9FFF, "Han"),
    (0xAC00, 0xD7AF, "Hangul"),
)
_SCRIPTS: Mapping[str, frozenset[str]] = {
    "el": frozenset({"Greek"}),
    **dict.fromkeys(("ru", "uk", "bg", "be", "mk", "kk"), frozenset({"Cyrillic"})),
    "sr": frozenset({"Cyrillic", LATIN}),
    **dict.fromkeys(("he", "yi"), frozenset({"Hebrew"})),
    **dict.fromkeys(("ar", "fa", "ur", "ps"), frozenset({"Arabic"})),
    **dict.fromkeys(("hi", "mr", "ne"), frozenset({"Devanagari"})),
    "bn": frozenset({"Bengali"}),
    "ta": frozenset({"Tamil"}),
    "th": frozenset({"Thai"}),
    "zh": frozenset({"Han"}),
    "ja": frozenset({"Kana", "Han"}),
    "ko": frozenset({"Hangul"}),
    **dict.fromkeys(("en", *_WORDS, *_ALSO), frozenset({LATIN})),
}
_PARTS = re.compile(r"[^\W\d_]+")


def known_languages(besides: str) -> list[str]:
    """The languages whose words are known, except ``besides``.

    Example:
        >>> "da" in known_languages("no"), "da" in known_languages("de")
        (False, True)
    """
    return [code for code in _WORDS if code != _ALSO.get(besides, besides)]


@cache
def usual_words(language: str) -> frozenset[str]:
    """The common words of a language, or an empty set if they are not known."""
    return frozenset(words_of(_WORDS.get(_ALSO.get(language, language), "")))


def has_usual_word(text: str, language: str) -> bool:
    """Whether some part of the text is a common word; French ``l'homme`` has two parts."""
    return not usual_words(language).isdisjoint(_PARTS.findall(text.lower()))


def scripts_of(language: str) -> frozenset[str]:
    """The scripts in which a language is written; empty if they are not known."""
    return _SCRIPTS.get(language, frozenset())


def script(text: str) -> str:
    """The script of the first letter, or Kana if any letter is Kana; empty if unknown.

    Example:
        >>> script("«une"), script("男性が"), script("мужчина"), script("42")
        ('Latin', 'Kana', 'Cyrillic', '')
    """
    letters = [ord(sign) for sign in text if sign.isalpha()]
    if any(_KANA[0] <= letter <= _KANA[1] for letter in letters):
        return _KANA[2]
    first = next(iter(letters), -1)
    return next((name for low, high, name in _RANGES if low <= first <= high), "")
