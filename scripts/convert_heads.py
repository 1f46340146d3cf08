#!/usr/bin/env python3
"""Turns the tensors of a draft head (EAGLE-3, Medusa, Hydra) from PyTorch's format into model.safetensors, for `--draft-model`.

What torch.save has written is a program that makes tensors. It is read with weights_only, which makes nothing else.

Usage: convert_heads.py FOLDER
FOLDER has config.json and pytorch_model.bin, medusa_lm_head.pt or hydra_lm_head.pt. Needs torch and safetensors.
Exit status 0: model.safetensors is there; 1: not.
"""

import argparse
import sys
from pathlib import Path

FILES = ("pytorch_model.bin", "medusa_lm_head.pt", "hydra_lm_head.pt")


def tensors_of(stored, torch):
    """By name; a dictionary may be wrapped in another one."""
    for key in ("state_dict", "model"):
        if isinstance(stored, dict) and isinstance(stored.get(key), dict):
            stored = stored[key]
    if not isinstance(stored, dict) or not all(isinstance(value, torch.Tensor) for value in stored.values()):
        return None
    # Tensors that share memory are written each by itself.
    return {name: value.detach().contiguous().clone() for name, value in stored.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    found = [folder / name for name in FILES if (folder / name).is_file()]
    if len(found) != 1:
        print(f"convert_heads: {folder}: has {len(found)} of {', '.join(FILES)}; expected one", file=sys.stderr)
        return 1
    target = folder / "model.safetensors"
    if target.exists():
        print(f"convert_heads: {target}: is there already", file=sys.stderr)
        return 1
    try:
        import torch
        from safetensors.torch import save_file
    except ImportError as error:
        print(f"convert_heads: {error}", file=sys.stderr)
        return 1
    try:
        stored = torch.load(found[0], map_location="cpu", weights_only=True)
    except Exception as error:  # torch has no class of its own for files that are none
        print(f"convert_heads: {found[0]}: torch does not read it ({type(error).__name__}: {error})", file=sys.stderr)
        return 1
    tensors = tensors_of(stored, torch)
    if not tensors:
        print(f"convert_heads: {found[0]}: holds no tensors by name", file=sys.stderr)
        return 1
    save_file(tensors, target)
    print(f"{target}: {len(tensors)} tensors")
    return 0


if __name__ == "__main__":
    sys.exit(main())
