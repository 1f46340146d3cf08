#!/usr/bin/env python3
"""Makes tests/data/models/default_configs.json: what transformers saves as config.json of each model family.

One object, a member for each architecture: the default configuration of its class.

Usage: make_default_configs.py [OUTPUT]
Needs transformers.
"""

import json
import re
import sys
import tempfile
from pathlib import Path

from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES,
)

ROOT = Path(__file__).resolve().parent.parent


def plain(name):
    return re.sub(r"_|For.*", "", name).lower()


def config_of(architecture, mapping):
    """Of the class that has the architecture's name; of a model of text and images and its text part the latter."""
    types = [key for key, names in mapping.items() if architecture in ([names] if isinstance(names, str) else names)]
    types.sort(key=lambda key: (plain(key.removesuffix("_text")) != plain(architecture), not key.endswith("_text")))
    return CONFIG_MAPPING[types[0]]() if types else None


def main():
    output = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "tests/data/models/default_configs.json"
    source = "".join(path.read_text() for path in sorted((ROOT / "src/model/families").glob("*.cc")))
    names = sorted(set(re.findall(r'"(\w+For(?:CausalLM|ConditionalGeneration))"', source)))
    lines = []
    for name in names:
        mapping = MODEL_FOR_CAUSAL_LM_MAPPING_NAMES if name.endswith("CausalLM") else \
            MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES
        config = config_of(name, mapping)
        if config is None:
            sys.exit(f"{name} is not known to transformers")
        config.architectures = [name]
        with tempfile.TemporaryDirectory() as folder:
            config.save_pretrained(folder)
            saved = json.loads((Path(folder) / "config.json").read_text())
        lines.append(f"{json.dumps(name)}: {json.dumps(saved)}")
    output.write_text("{" + ",\n".join(lines) + "}\n")


if __name__ == "__main__":
    main()
