#!/usr/bin/env python3
"""Writes the metaschemas of the JSON Schema drafts to a folder, for --ref-dir.

    pip install jsonschema-specifications
    scripts/get_metaschemas.py --out DIR

They are third-party documents and no part of this repository.
"""

import argparse
import json
import re
from pathlib import Path

from jsonschema_specifications import REGISTRY


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    folder = Path(parser.parse_args().out)
    folder.mkdir(parents=True, exist_ok=True)
    count = 0
    for uri in REGISTRY:
        name = re.sub(r"[^A-Za-z0-9.-]+", "_", uri.split("://")[-1].strip("#/")) + ".json"
        (folder / name).write_text(json.dumps(REGISTRY.contents(uri), indent=2) + "\n")
        count += 1
    print(f"{count} documents in {folder}")


if __name__ == "__main__":
    main()
