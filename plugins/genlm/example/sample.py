"""sample.py MODEL PROMPT: integers under a model, weighted by AWRS, with Pawl's constraint."""

import asyncio
import sys

import pawl.genlm
from genlm.control import AWRS, PromptedLLM


async def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    llm = PromptedLLM.from_name(sys.argv[1], backend="hf")
    llm.set_prompt_from_str(sys.argv[2])
    compiler = pawl.genlm.compiler_of(llm.vocab)
    potential = pawl.genlm.Potential(compiler.regex("[0-9]{1,3}"), llm.vocab)
    sequences = await AWRS(llm, potential).smc(n_particles=10, ess_threshold=0.5, max_tokens=6)
    for text, weight in sequences.decoded_posterior.items():
        print(f"{weight:.3f} {text}")


if __name__ == "__main__":
    asyncio.run(main())
