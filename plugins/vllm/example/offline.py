"""offline.py MODEL: three constrained outputs of a model, with vLLM's offline engine."""

import sys

import pawl.vllm

pawl.vllm.register()

import vllm  # noqa: E402
from vllm.sampling_params import StructuredOutputsParams  # noqa: E402


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    # "close": an output whose tokens are nearly spent is closed with a short valid end.
    llm = vllm.LLM(sys.argv[1], structured_outputs_config={"backend": "pawl"},
                   additional_config={"pawl": {"close": True}})
    schema = {"type": "object", "required": ["name", "age"], "additionalProperties": False,
              "properties": {"name": {"type": "string", "maxLength": 20},
                             "age": {"type": "integer", "minimum": 0, "maximum": 120}}}
    for constraint in ({"json": schema}, {"regex": r"\+[1-9][0-9]{1,2} [0-9]{3}-[0-9]{4}"},
                       {"choice": ["red", "green", "blue"]}):
        params = vllm.SamplingParams(max_tokens=80, temperature=1.0, seed=3,
                                     structured_outputs=StructuredOutputsParams(**constraint))
        print(llm.generate(["Ann Lee is 41 years old."], params)[0].outputs[0].text)


if __name__ == "__main__":
    main()
