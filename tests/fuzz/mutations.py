"""Odd things put into files: into their bytes, or into the tree that a JSON file holds."""

import copy
import json
import pickle
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

MOST_BYTES = 1 << 20
PIECES = [
    *(b"", b"\x00", b"\n", b"\r", b",", b";", b'"', b"'", b"\\", b"[", b"]", b"{", b"}", b":"),
    *(b"\xff\xfe", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xc3", b"\\ud83d", b"\\u0000"),
    *(b"NaN", b"-Infinity", b"1e999", b"-1", b"0", b"9" * 400, b"1" + b"0" * 30, b"1.5", b"0x10"),
    *(b"null", b"true", b"[]", b"{}", b"[" * 300, b'{"a":' * 300, b"=cmd()", b"../../x"),
    *("\u202e\u200b\u0301 日本 ＝".encode(), b"\x1b[31m", b"x" * 70_000, b"Male", b"image_id"),
    # of pickles: a call, a class, a build, an extension, references, long things
    *(
        b"cos\nsystem\n(S'touch canary'\ntR",
        b"c__builtin__\nexec\n",
        b"\x8c\x02os\x8c\x06system\x93",
    ),
    *(b"R", b"b", b"o", b"i", b"\x81", b"\x92", b"\x82\x01", b"P1\n", b"Q", b"g0\n", b"h\x00"),
    *(
        b"\x80\x05",
        b"\x95" + b"\xff" * 8,
        b"\x8d" + b"\xff" * 8,
        b"\x8a\xff",
        b"0",
        b"1",
        b"2",
        b".",
    ),
]
ODD: list[Any] = [
    *(None, True, False, 0, -1, 1, 10**30, 0.5, -0.5, float("nan"), float("inf"), 1e308),
    *("", "x", "a\nb", "\x00", "\ud83d", "../../x", "=cmd()", "\x1b[31m", "\u202ex", "9" * 400),
    *([], {}, [[]], [{}], {"": 1}, {"a.b": 1}, [None], {"x": {"y": []}}, ["x"], [[1, 2], [3]]),
    *("Male", "male", "-5", "1e999", "nan", "2020-01-01", "x" * 70_000, [0] * 2000),
]


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place of a tree but its root."""
    items: Any = ()
    if isinstance(node, Mapping):
        items = node.items()
    elif isinstance(node, list):
        items = enumerate(node)
    for key, item in items:
        yield (*path, key)
        yield from places(item, (*path, key))


def value_at(tree: Any, path: tuple[Any, ...]) -> Any:
    """What stands at a place."""
    for key in path:
        tree = tree[key]
    return tree


def odd_tree(tree: Any, generator: random.Random, odd: Sequence[Any], keys: Sequence[str]) -> Any:
    """A copy with one to three odd things in it, at keys that are there or at ``keys``."""
    tree = copy.deepcopy(tree)
    for _ in range(generator.randint(1, 3)):
        known = list(places(tree))
        if not known:
            return generator.choice(odd)
        *above, key = generator.choice(known)
        parent = value_at(tree, tuple(above))
        chosen = generator.choice([*odd, value_at(tree, generator.choice(known))])
        kind = generator.randrange(6)
        if kind == 0:
            del parent[key]
        elif kind == 1 and isinstance(parent, dict):
            parent[generator.choice(keys)] = copy.deepcopy(chosen)
        elif kind == 2:
            parent[key] = [copy.deepcopy(parent[key]), copy.deepcopy(chosen)]
        else:
            parent[key] = copy.deepcopy(chosen)
    return tree


def odd_bytes(content: bytes, generator: random.Random) -> bytes:
    """A copy of which one to four pieces are cut, doubled, turned or replaced."""
    for _ in range(generator.randint(1, 4)):
        first = generator.randrange(len(content) + 1)
        last = min(len(content), first + int(2 ** generator.uniform(0, 10)))
        kind, piece = generator.randrange(5), content[first:last]
        if kind == 0:
            content = content[:first] + content[last:]
        elif kind == 1:
            content = content[:first] + piece * generator.choice([2, 3, 50]) + content[last:]
        elif kind == 2 and first < len(content):
            turned = content[first] ^ 1 << generator.randrange(8)
            content = content[:first] + bytes([turned]) + content[first + 1 :]
        else:
            content = (
                content[:first] + generator.choice(PIECES) + content[last if kind == 3 else first :]
            )
    return content[:MOST_BYTES]


def odd_file(name: str, content: bytes, generator: random.Random) -> bytes:
    """A file that is odd in its bytes or, if it holds a tree, in that."""
    if generator.random() < 0.4:
        return odd_bytes(content, generator)
    if name.endswith(".json"):
        return json.dumps(odd_tree(json.loads(content), generator, ODD, ("x", "image_id"))).encode()
    if name.endswith(".pkl"):
        tree = odd_tree(pickle.loads(content), generator, ODD, ("x", "img_id"))
        return pickle.dumps(tree, generator.randint(0, pickle.HIGHEST_PROTOCOL))
    return odd_bytes(content, generator)
