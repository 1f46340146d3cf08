"""Which tokens may come next: compiles a schema, prints the mask at each step, always takes the
first token that is allowed.

    python examples/python/mask.py [tokenizer.json]
"""

import sys

import pawl

if len(sys.argv) > 1:
    vocabulary = pawl.Vocabulary.from_tokenizer_json(sys.argv[1])
else:
    # Six tokens; the last one is the end of output.
    vocabulary = pawl.Vocabulary([b"{", b"}", b'"a"', b":", b"1", b"<end>"], [5], [5])

schema = {"type": "object", "properties": {"a": {"enum": [1, 11]}}, "required": ["a"],
          "additionalProperties": False}
grammar = pawl.Compiler(vocabulary).json_schema(schema, whitespace="compact")

matcher = pawl.Matcher(grammar)
mask = pawl.allocate_mask(1, len(vocabulary))
output = b""
while not matcher.terminated:
    matcher.fill_mask(mask)
    token = matcher.allowed_tokens()[0]
    words = [hex(word) for word in mask.view("uint32")[0][:4]]
    print(f"{output!r:12} {words} takes token {token}")
    matcher.accept(token)
    if not vocabulary.is_end(token):
        output += vocabulary.bytes(token)
print(output.decode())
