"""What users write, for mypy and pyright (scripts/check_types.sh): the types that come back are asserted."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any, AsyncIterator, Iterator, List, Optional, Union

import pydantic

import pawl


class Invoice(pydantic.BaseModel):
    vendor: str
    total: Optional[float]


@dataclasses.dataclass
class Contact:
    name: str


class Digits(pawl.Constraint):
    def __init__(self, vocabulary: pawl.Vocabulary, written: int = 0) -> None:
        self.vocabulary, self.written = vocabulary, written

    def look(self) -> pawl.Place:
        mask: pawl.Mask = pawl.mask_of_texts(self.vocabulary, "0123456789")
        return pawl.Place(mask=mask, accepting=self.written > 0)

    def advance(self, token: int) -> Optional[Digits]:
        return Digits(self.vocabulary, self.written + 1)

    def completion(self, most: int) -> Optional[List[int]]:
        return [] if self.written else self.vocabulary.fewest_tokens("0")


def constrained(engine: pawl.Engine) -> None:
    output: pawl.Output[Any] = engine.generate("Pi is 3.", constraint=Digits(engine.vocabulary), regex="[0-4]+")


def records(engine: pawl.Engine, texts: List[str]) -> None:
    one: Invoice = engine.extract("a text", Invoice)
    many: List[Invoice] = engine.extract(texts, Invoice, temperature=0.5, seed=3, max_tokens=100)
    some: List[Union[Contact, Exception]] = engine.extract(texts, Contact, errors="return")
    loose: Any = engine.extract("a text", {"type": "object"})
    iterator: Iterator[Invoice] = engine.extract_iter(iter(texts), Invoice)
    output: pawl.Output[Invoice] = engine.extract_outputs("a text", Invoice)
    vendor: str = output.value.vendor
    print(one.vendor, many[0].total, some, loose, iterator, vendor)


def texts(engine: pawl.Engine) -> None:
    output = engine.generate("A colour: ", choice=["red", "green"], temperature=1, seed=3)
    text: str = output.text
    outputs: List[pawl.Output[Any]] = engine.generate(["a", "b"], regex="[a-z]+", stop=["z"])
    piece: str = next(iter(engine.stream("Once ", max_tokens=5)))
    said: str = engine.chat([{"role": "user", "content": "Is it far?"}], top_p=0.9).text
    grammar: pawl.Grammar = engine.compiler.regex("a+")
    print(text, outputs, piece, said, engine.generate("Once ", grammar=grammar).finish_reason)


async def tasks(engine: pawl.Engine) -> None:
    one: Invoice = await engine.aextract("a text", Invoice)
    many: List[Invoice] = await engine.aextract(["a", "b"], Invoice)
    records: AsyncIterator[Invoice] = engine.aextract_iter(["a"], Invoice)
    async with engine.astream("Once ") as stream:
        async for piece in stream:
            print(piece.upper())
    print(one, many, [record async for record in records], stream.output.text)


def masks(vocabulary: pawl.Vocabulary) -> None:
    mask = pawl.allocate_mask(2, len(vocabulary))
    matcher = pawl.Matcher(pawl.Compiler(vocabulary).json_schema(Invoice))
    more: bool = matcher.fill_mask(mask, 1)
    print(more, matcher.allowed_tokens()[0] + 1)


if __name__ == "__main__":
    with pawl.Engine() as loaded:
        records(loaded, ["a text"])
        texts(loaded)
        asyncio.run(tasks(loaded))
        masks(loaded.vocabulary)
