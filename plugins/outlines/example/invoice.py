"""invoice.py MODEL TEXT: an Invoice out of a text, with Outlines and a model of transformers."""

import sys

import outlines
import pawl.outlines
import pydantic
import transformers

pawl.outlines.register(max_string=60)


class Invoice(pydantic.BaseModel):
    number: str
    total: float


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    model = outlines.from_transformers(
        transformers.AutoModelForCausalLM.from_pretrained(sys.argv[1]),
        transformers.AutoTokenizer.from_pretrained(sys.argv[1]))
    generator = outlines.Generator(model, Invoice, backend="pawl")
    print(Invoice.model_validate_json(generator(sys.argv[2] + "\n", max_new_tokens=200)))


if __name__ == "__main__":
    main()
