"""extract.py MODEL TEXT: a record out of a text, with a model of the library transformers."""

import sys

import pawl
import torch
import transformers
from pawl.transformers import DecodeStats, decode

SCHEMA = {"type": "object", "required": ["name", "age"], "additionalProperties": False,
          "properties": {"name": {"type": "string", "maxLength": 30},
                         "age": {"type": ["integer", "null"], "minimum": 0, "maximum": 150}}}


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    model = transformers.AutoModelForCausalLM.from_pretrained(sys.argv[1]).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(sys.argv[1])
    vocabulary = pawl.Vocabulary.from_huggingface(tokenizer, padded_size=model.config.vocab_size)
    grammar = pawl.Compiler(vocabulary).json_schema(SCHEMA)
    prompt = torch.tensor([tokenizer.encode(sys.argv[2] + "\n")])
    stats = DecodeStats()
    output = model.generate(prompt, max_new_tokens=100, custom_generate=decode, grammar=grammar,
                            stats=stats)
    print(tokenizer.decode(output[0, prompt.shape[1]:], skip_special_tokens=True))
    print(f"{stats.tokens} tokens in {stats.calls} calls of the model", file=sys.stderr)


if __name__ == "__main__":
    main()
