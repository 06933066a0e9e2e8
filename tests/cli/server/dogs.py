"""Photos of dogs by number, and servers that tell them apart."""

from collections.abc import Callable

from tests.chat_stub import Body, Reply, color_of, completion

N_PHOTOS = 14
SECRET = "sk-0123456789abcdef"
URL = "https://api.invalid/v1"
DOGS = {number: f"dog {number}" for number in range(1, N_PHOTOS + 1)}


def a_dog(body: Body) -> Reply:
    return completion(f"dog {color_of(body)}")


def unhelpful(reply: Reply) -> Callable[[Body], Reply]:
    return lambda body: reply if color_of(body) in (3, 4) else a_dog(body)
