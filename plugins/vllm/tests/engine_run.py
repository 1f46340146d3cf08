"""engine_run.py MODEL: vLLM's engine on a CPU with the backend pawl: every kind of constraint, greedy and sampled, many requests at a
time, a bad schema among them; a second engine over the same requests in another order gives the same greedy outputs."""

import json
import re
import sys

import pawl.vllm

pawl.vllm.register()

import vllm  # noqa: E402
from vllm.sampling_params import StructuredOutputsParams  # noqa: E402

SCHEMA = {"type": "object", "required": ["name", "age"], "additionalProperties": False, "properties": {
    "name": {"type": "string", "maxLength": 12}, "age": {"type": "integer", "minimum": 0, "maximum": 99},
    "tags": {"type": "array", "maxItems": 3, "items": {"enum": ["a", "b"]}}}}
TAG = {"type": "structural_tag", "format": {"type": "tag", "begin": "<t>", "end": "</t>", "content": {
    "type": "json_schema", "json_schema": {"type": "integer", "minimum": 0, "maximum": 9}}}}


def is_record(text):
    value = json.loads(text)
    return set(value) <= set(SCHEMA["properties"]) and 0 <= value["age"] <= 99


CASES = [
    ({"json": SCHEMA}, is_record),
    ({"regex": r"\+[1-9][0-9]{1,2} [0-9]{3}-[0-9]{4}"},
     lambda t: re.fullmatch(r"\+[1-9][0-9]{1,2} [0-9]{3}-[0-9]{4}", t)),
    ({"choice": ["red", "green", "blue"]}, lambda t: t in ("red", "green", "blue")),
    ({"grammar": 'root ::= "x" [0-9]{2,4} "y"'}, lambda t: re.fullmatch("x[0-9]{2,4}y", t)),
    ({"grammar": 'start: "<" WORD ">"\nWORD: /[a-z]{1,5}/'}, lambda t: re.fullmatch("<[a-z]{1,5}>", t)),
    ({"structural_tag": json.dumps(TAG)}, lambda t: re.fullmatch(r"<t>\s*[0-9]\s*</t>", t)),
]


def params(constraint, temperature, seed):
    return vllm.SamplingParams(max_tokens=200, temperature=temperature, seed=seed,
                               structured_outputs=StructuredOutputsParams(**constraint))


def main():
    llm = vllm.LLM(sys.argv[1], structured_outputs_config={"backend": "pawl"}, max_model_len=512,
                   enforce_eager=True, max_num_seqs=16, dtype="float32", disable_log_stats=True)
    runs = [(constraint, check, temperature, seed) for constraint, check in CASES
            for temperature, seed in ((0.0, None), (1.5, 1), (1.5, 2))]
    checked = 0
    texts = {}
    for order in (runs, runs[::-1]):
        outputs = llm.generate(["A record:"] * len(order),
                               [params(c, t, s) for c, _, t, s in order], use_tqdm=False)
        for (constraint, check, temperature, seed), output in zip(order, outputs):
            text = output.outputs[0].text
            assert check(text), (constraint, text)
            key = json.dumps(constraint, sort_keys=True), seed
            if temperature == 0:
                assert texts.setdefault(key, text) == text
            checked += 1
    for bad, message in (({"json": {"minLength": "x"}}, "#/minLength"), ({"regex": "(a"}, "byte")):
        try:
            refused = str(llm.generate(["x"], params(bad, 0, None), use_tqdm=False))
        except Exception as error:
            refused = str(error)
        assert message in refused, refused
    after = llm.generate(["x"], params({"choice": ["ok"]}, 0, None), use_tqdm=False)
    assert after[0].outputs[0].text == "ok"
    print(f"{checked + 1} constrained outputs valid, bad schemas refused by name, the engine went on")


if __name__ == "__main__":
    main()
