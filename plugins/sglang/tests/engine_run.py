"""engine_run.py MODEL: SGLang's engine on a CPU with the backend pawl: every kind of constraint, several requests at a time, a bad
schema among them. On a machine without SGLang's kernels put plugins/sglang/tests/cpu_stub into PYTHONPATH."""

import json
import re
import sys

SCHEMA = {"type": "object", "required": ["name", "age"], "additionalProperties": False, "properties": {
    "name": {"type": "string", "maxLength": 12}, "age": {"type": "integer", "minimum": 0, "maximum": 99}}}
TAG = {"type": "structural_tag", "format": {"type": "tag", "begin": "<t>", "end": "</t>", "content": {
    "type": "regex", "pattern": "[0-9]{2}"}}}
CASES = [
    ({"json_schema": json.dumps(SCHEMA)}, lambda t: set(json.loads(t)) == {"name", "age"}),
    ({"regex": "[a-c]{3,5}-[0-9]{2}"}, lambda t: re.fullmatch("[a-c]{3,5}-[0-9]{2}", t)),
    ({"ebnf": 'root ::= "x" [0-9]{2,4} "y"'}, lambda t: re.fullmatch("x[0-9]{2,4}y", t)),
    ({"structural_tag": json.dumps(TAG)}, lambda t: re.fullmatch("<t>[0-9]{2}</t>", t)),
]


def main():
    import pawl.sglang

    pawl.sglang.register()
    import sglang

    engine = sglang.Engine(model_path=sys.argv[1], device="cpu", attention_backend="torch_native",
                           grammar_backend="pawl", disable_radix_cache=True, max_running_requests=8,
                           mem_fraction_static=0.2, max_total_tokens=4096, dtype="float32",
                           log_level="error", skip_server_warmup=True, disable_cuda_graph=True)
    try:
        count = 0
        for temperature in (0.0, 1.5):
            params = [{"max_new_tokens": 200, "temperature": temperature, **constraint}
                      for constraint, _ in CASES]
            outputs = engine.generate(prompt=["A record:"] * len(params), sampling_params=params)
            for (constraint, check), output in zip(CASES, outputs):
                assert check(output["text"]), (constraint, output)
                count += 1
        bad = {"max_new_tokens": 8, "json_schema": '{"minLength": "x"}'}
        try:
            refused = str(engine.generate(prompt="x", sampling_params=bad))
        except Exception as error:
            refused = str(error)
        assert "#/minLength" in refused, refused
        after = engine.generate(prompt="x", sampling_params={"max_new_tokens": 9, "regex": "ok"})
        assert after["text"] == "ok"
        print(f"{count + 1} constrained outputs valid, a bad schema refused by name, the engine went on")
    finally:
        engine.shutdown()


if __name__ == "__main__":
    main()
