"""Records out of texts, with the model that ships or another one: one by one, many, and as they come.

    python examples/python/extract.py [MODEL]
"""

import asyncio
import dataclasses
import sys
from typing import Optional

import pawl


@dataclasses.dataclass
class Contact:  # a Pydantic model or a JSON Schema does as well
    name: str
    email: Optional[str]
    phone: Optional[str]


TEXTS = [
    "Ann Lee works at Harrow Ltd. Phone: 020 7946 0018.",
    "Write to Bo Ek at bo.ek@harrow.com.",
    "",
]


async def together(engine: pawl.Engine) -> None:
    print(await asyncio.gather(*(engine.aextract(text, Contact) for text in TEXTS[:2])))


with pawl.Engine(*sys.argv[1:2]) as engine:
    print(engine.extract(TEXTS[0], Contact))
    for row in engine.extract(TEXTS, Contact, errors="return"):
        print(row)
    for piece in engine.stream("A number: ", regex="[1-9][0-9]{2}( [0-9]{3}){4}", temperature=1):
        print(piece, end="", flush=True)
    print()
    asyncio.run(together(engine))
