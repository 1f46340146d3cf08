"""Of the corpus for the LSP tier: each attribute that is named here exists."""

import collections
import dataclasses
import enum
import os.path
import re
from typing import Any, Generic, Iterable, Optional, TypeVar, Union

T = TypeVar("T")


class Color(enum.Enum):
    RED = 1
    GREEN = 2

    def shown(self) -> str:
        return self.name.lower()


@dataclasses.dataclass
class Item:
    title: str
    price: float = 0.0
    color: Color = Color.RED
    tags: list[str] = dataclasses.field(default_factory=list)

    def label(self) -> str:
        return self.title.upper() + self.color.shown()

    def cheaper(self, other: "Item") -> bool:
        return self.price < other.price


class Proxy:
    def __init__(self, target: object) -> None:
        self._target = target

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target, name)


class Stack(Generic[T]):
    def __init__(self) -> None:
        self.items: list[T] = []

    def push(self, item: T) -> "Stack[T]":
        self.items.append(item)
        return self

    def pop(self) -> T:
        return self.items.pop()


class Shop:
    limit = 10

    def __init__(self, name: str) -> None:
        self.name = name
        self.stock: dict[str, Item] = {}
        self.sold = collections.Counter()

    def add(self, item: Item) -> None:
        self.stock[item.title] = item
        self.newest = item

    def find(self, title: str) -> Optional[Item]:
        return self.stock.get(title)

    @property
    def total(self) -> float:
        return sum(item.price for item in self.stock.values())

    @classmethod
    def empty(cls) -> "Shop":
        made = cls("none")
        made.stock.clear()
        return made


def untyped(thing, *more, **named):
    thing.anything()
    return more[0].whatever or named.get("x")


def either(item: Item, shop: Shop, choose: bool) -> Union[Item, Shop]:
    return item if choose else shop


def maybe(flag, item: Item):
    found = untyped(flag) or item
    found.something_else()
    other = item if flag else flag
    return other.strange


def report(shop: Shop, lines: Iterable[str]) -> str:
    shop.add(Item("pen", 1.5))
    pen = shop.find("pen")
    text = shop.name.title()
    if pen is not None:
        text += pen.label() + str(pen.price.is_integer())
        pen.tags.append("new")
        text += pen.color.name + pen.tags[0].strip().replace("a", "b")
    for line in lines:
        match = re.match(r"(\w+)", line)
        if match:
            text += match.group(1) + line.strip().split(",")[0].upper()
    stack: Stack[Item] = Stack()
    text += stack.push(Item("x")).pop().title
    first = stack.items[0] if stack.items else Item("none")
    text += first.title.center(10) + f"{first.price.hex()} {first.label()}"
    proxy = Proxy(shop)
    proxy.whatever_it_has()
    counts = collections.Counter(text)
    common = counts.most_common(1)
    text += os.path.join("a", common[0][0]).lower()
    choice = either(first, shop, True)
    if isinstance(choice, Item):
        text += choice.title
    else:
        text += str(choice.total) + choice.newest.title
    # shop.nothing is said in a comment
    with open(os.path.join("a", "b"), encoding="utf-8") as file:
        text += file.read().rstrip() + str(file.closed)
    words = {word.lower(): len(word) for word in text.split()}
    ordered = sorted(words.items(), key=lambda pair: pair[1])
    shop.sold.update(words.keys())
    return "\n".join(key for key, _ in ordered) + Shop.empty().name + str(Shop.limit.bit_length())
