#!/usr/bin/env python3
"""Makes the tiny random models of tests/data/models/families: one for each model family.

Each folder is a checkpoint as `transformers` saves it in bf16, golden.safetensors as
make_model_goldens.py describes it, and model.gguf, made from the folder by llama.cpp's converter
where that knows the family. Prompts are longer than windows and original contexts.

Usage: make_family_goldens.py [--converter LLAMA_CPP] [--output FOLDER] [--f32 FOLDER] [NAME...]
Needs torch, transformers, safetensors and tokenizers; for --converter also gguf and a checkout of
llama.cpp (or its copy in the source package of llama-cpp-python).
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
import transformers
from make_model_goldens import CONTINUATION, goldens
from safetensors.torch import load_file, save_file

VOCABULARY = 96
SMALL = dict(vocab_size=VOCABULARY, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
             num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=256,
             bos_token_id=1, eos_token_id=2, pad_token_id=0)
HEADS = dict(SMALL, head_dim=8)
EXPERTS = dict(HEADS, num_experts=8, num_experts_per_tok=2, moe_intermediate_size=16)
MINISTRAL_ROPE = dict(rope_type="yarn", rope_theta=10000.0, factor=8.0, beta_fast=32.0, beta_slow=1.0,
                      original_max_position_embeddings=16, mscale=1.0, mscale_all_dim=1.0,
                      llama_4_scaling_beta=0.1)
FOUR = ["sliding_attention"] * 3 + ["full_attention"]

# name: (configuration, model, settings, more); `more`: incremental answers, a wrapper.
MODELS = {
    "gemma": ("Gemma", dict(HEADS)),
    "phi3": ("Phi3", dict(SMALL, sliding_window=19)),
    # As Phi-4-mini: a part of each head is rotated, and long texts have other frequencies.
    "phi3-long": ("Phi3", dict(
        SMALL, hidden_size=64, original_max_position_embeddings=24, tie_word_embeddings=True,
        rope_parameters=dict(rope_type="longrope", rope_theta=10000.0, partial_rotary_factor=0.75,
                             short_factor=[1.0, 1.1, 1.2, 1.3, 1.4, 1.5],
                             long_factor=[1.0, 2.1, 3.3, 5.0, 9.0, 14.0]))),
    "smollm3": ("SmolLM3", dict(SMALL, num_hidden_layers=4)),
    "granite": ("Granite", dict(SMALL, embedding_multiplier=12.0, logits_scaling=4.0,
                                residual_multiplier=0.22, attention_multiplier=0.25)),
    "olmo2": ("Olmo2", dict(SMALL)),
    "olmo3": ("Olmo3", dict(SMALL, num_hidden_layers=4, sliding_window=13, rope_parameters={
        "full_attention": dict(rope_type="yarn", factor=8.0, rope_theta=10000.0, beta_fast=32.0,
                               beta_slow=1.0, original_max_position_embeddings=16,
                               attention_factor=1.2),
        "sliding_attention": dict(rope_type="default", rope_theta=10000.0)})),
    "exaone4": ("Exaone4", dict(SMALL, num_hidden_layers=4, sliding_window=13,
                                layer_types=FOUR)),
    "ernie4_5": ("Ernie4_5", dict(HEADS, use_bias=True)),
    # The context is one that the converter insists on.
    "hunyuan": ("HunYuanDenseV1", dict(HEADS, max_position_embeddings=32768, rope_parameters=dict(
        rope_type="dynamic", alpha=50.0, factor=1.0, rope_theta=10000.0, beta_fast=32,
        beta_slow=1, mscale=1.0, mscale_all_dim=1.0))),
    "seed_oss": ("SeedOss", dict(HEADS)),
    "glm4": ("Glm4", dict(HEADS)),
    "ministral3": ("Ministral3", dict(HEADS, rope_parameters=MINISTRAL_ROPE)),
    "starcoder2": ("Starcoder2", dict(SMALL)),
    "qwen3_vl": ("Qwen3VL", dict(HEADS, rope_parameters=dict(
        rope_type="default", rope_theta=10000.0, mrope_section=[2, 1, 1], mrope_interleaved=True))),
    "mistral3": ("Mistral3", dict(HEADS, model_type="mistral", sliding_window=None,
                                  rope_parameters=dict(rope_type="default", rope_theta=10000.0))),
    "qwen2_moe": ("Qwen2Moe", {**SMALL, **dict(
        num_experts=8, num_experts_per_tok=2, moe_intermediate_size=16,
        shared_expert_intermediate_size=24)}),
    "qwen3_moe": ("Qwen3Moe", dict(EXPERTS, norm_topk_prob=True)),
    # A layer without experts, which llama.cpp's files cannot have.
    "qwen3_moe-dense": ("Qwen3Moe", dict(EXPERTS, mlp_only_layers=[1])),
    "gpt_oss": ("GptOss", dict(
        HEADS, num_local_experts=4, num_experts_per_tok=2, intermediate_size=32, hidden_size=32,
        sliding_window=13, rope_parameters=dict(
            rope_type="yarn", factor=8.0, rope_theta=10000.0, beta_fast=32.0, beta_slow=1.0,
            truncate=False, original_max_position_embeddings=16))),
}
TWO = ["sliding_attention", "full_attention"]
MODELS["gemma4"] = ("Gemma4", dict(
    HEADS, global_head_dim=16, sliding_window=13, num_hidden_layers=4, layer_types=TWO * 2,
    num_kv_shared_layers=2, vocab_size_per_layer_input=VOCABULARY, hidden_size_per_layer_input=8,
    use_double_wide_mlp=True, final_logit_softcapping=20.0))
MODELS["gemma4-experts"] = ("Gemma4", dict(
    HEADS, global_head_dim=16, sliding_window=13, layer_types=TWO, hidden_size_per_layer_input=0,
    enable_moe_block=True, num_experts=4, top_k_experts=2, moe_intermediate_size=16,
    attention_k_eq_v=True, num_global_key_value_heads=1))
GPT_OSS = MODELS["gpt_oss"][1]
MODELS["gpt_oss-mxfp4"] = ("GptOss", GPT_OSS)
# Without inputs of layers, in a model of text and images.
MODELS["gemma4_unified"] = ("Gemma4Unified", dict(
    HEADS, global_head_dim=16, sliding_window=13, layer_types=TWO, attention_k_eq_v=True,
    num_global_key_value_heads=1, final_logit_softcapping=20.0, model_type="gemma4_unified_text"))
MODELS["gemma4-images"] = ("Gemma4Images", dict(
    HEADS, global_head_dim=16, sliding_window=13, layer_types=TWO, hidden_size_per_layer_input=8,
    vocab_size_per_layer_input=VOCABULARY, model_type="gemma4_text"))
MODELS["qwen3_5-images"] = ("Qwen3_5", dict(
    SMALL, head_dim=16, linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=8,
    linear_value_head_dim=8, layer_types=["linear_attention", "full_attention"],
    model_type="qwen3_5_text"))
# Vision towers of models of text and images: as small as can be, or none.
VISION = {
    "Gemma4Unified": None, "Gemma4Images": None,
    "Qwen3_5": dict(depth=1, hidden_size=8, intermediate_size=8, num_heads=2, out_hidden_size=32,
                    num_position_embeddings=4, patch_size=2, spatial_merge_size=1,
                    temporal_patch_size=1),
    "Qwen3VL": dict(depth=1, hidden_size=8, intermediate_size=8, num_heads=2, out_hidden_size=32,
                    deepstack_visual_indexes=[0], num_position_embeddings=4, patch_size=2,
                    spatial_merge_size=1, temporal_patch_size=1),
    "Mistral3": dict(hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=2,
                     head_dim=4, image_size=8, patch_size=4, model_type="pixtral"),
}
INCREMENTAL = {"phi3-long"}
PROMPTS = (1, 11, 29)


def model_class(name):
    kind = MODELS[name][0]
    return getattr(transformers, kind.removesuffix("Images") + ("ForConditionalGeneration" if kind in VISION
                                         else "ForCausalLM"))


FP4 = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0,
                    -6.0])


def to_mxfp4(weights):
    """Blocks and scales of [experts, inputs, outputs], and the weights that they stand for."""
    rows = weights.transpose(1, 2)
    groups = rows.reshape(*rows.shape[:2], -1, 32)
    exponents = torch.floor(torch.log2(groups.abs().amax(-1))) - 2
    scaled = groups / torch.exp2(exponents)[..., None]
    index = (scaled[..., None] - FP4).abs().argmin(-1)
    exact = (FP4[index] * torch.exp2(exponents)[..., None]).reshape(rows.shape).transpose(1, 2)
    blocks = (index[..., 0::2] + 16 * index[..., 1::2]).to(torch.uint8)
    return blocks, (exponents + 127).to(torch.uint8), exact.contiguous()


def build(name, seed):
    kind, settings = MODELS[name]
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    if kind in VISION:
        config = getattr(transformers, kind.removesuffix("Images") + "Config")(
            text_config=settings, vision_config=VISION[kind],
            image_token_id=0 if kind.startswith("Gemma") else 3,  # 0: no prompt has it
            tie_word_embeddings=kind.startswith("Gemma"))
    else:
        text = kind + ("TextConfig" if kind == "Gemma4" else "Config")
        config = getattr(transformers, text)(**settings)
    model = model_class(name)._from_config(config, attn_implementation="eager")
    gemma = kind.startswith("Gemma")
    gemma4 = kind.startswith("Gemma4")
    final = 8.0 if kind == "Gemma" else 1.0 if gemma4 else 0
    for key, tensor in model.named_parameters():
        normal = torch.randn(tensor.shape, generator=generator)
        if gemma and "embed_tokens" in key:
            tensor.data = 0.1 * normal
        elif gemma4 and key.endswith("q_norm.weight"):
            tensor.data = 0.3 + 0.1 * normal  # nothing else makes scores small
        elif key.endswith("norm.weight") or "layernorm" in key and key.endswith("weight"):
            one = 0.0 if kind == "Gemma" or kind == "Qwen3_5" and "linear" not in key else 1.0
            tensor.data = one + (final if key.endswith("model.norm.weight") else 0) + 0.2 * normal
        elif key.endswith(("router.scale", "per_expert_scale")):
            tensor.data = 1.0 + 0.2 * normal
        elif tensor.dim() == 1 or key.endswith("bias"):
            tensor.data = 0.2 * normal
        elif "embed_tokens" in key or "lm_head" in key:
            tensor.data = (0.5 if kind != "Granite" else 0.08) * normal
        else:
            tensor.data = 1.5 / tensor.shape[-1] ** 0.5 * normal
    for key, buffer in model.named_buffers():
        if key.endswith("layer_scalar"):
            buffer.data = 0.7 + 0.05 * torch.randn(buffer.shape, generator=generator)
            buffer.data = buffer.data.to(torch.bfloat16).float()
    model.tie_weights()
    for key, parameter in model.named_parameters():
        parameter.data = parameter.data.to(torch.bfloat16).float()
        if name.endswith("mxfp4") and key.endswith(("gate_up_proj", "down_proj")):
            parameter.data = to_mxfp4(parameter.data)[2]
    return model.eval(), generator


class TextOnly:
    """A model of text and images as the golden's writer calls it."""

    def __init__(self, model):
        self.model = model
        text = getattr(model.config, "text_config", model.config)
        self.config = text

    def __call__(self, *args, **more):
        return self.model(*args, **more)


def write_tokenizer(folder, size):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    names = (["<pad>", "<s>", "</s>"] + letters + [f"<{i}>" for i in range(size)])[:size]
    tokenizer = Tokenizer(models.BPE(vocab={n: i for i, n in enumerate(names)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<pad>", "<s>", "</s>"])
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(dict(
        tokenizer_class="GPT2Tokenizer", bos_token="<s>", eos_token="</s>", pad_token="<pad>")))


# The converter knows tokenizers by a hash of what they answer; here all are "gpt-2".
CONVERT = """
import importlib, json, pkgutil, runpy, sys
root = sys.argv.pop(1)
sys.path[:0] = [root + "/gguf-py", root]
import conversion, transformers
class Auto:
    @staticmethod
    def from_pretrained(folder, *args, **more):
        return transformers.PreTrainedTokenizerFast(
            tokenizer_file=str(folder) + "/tokenizer.json", bos_token="<s>", eos_token="</s>")
transformers.AutoTokenizer = Auto
def vocabulary(self):
    tokens, types, _ = self.get_vocab_base()
    self.gguf_writer.add_tokenizer_model("gpt2")
    self.gguf_writer.add_tokenizer_pre("gpt-2")
    self.gguf_writer.add_token_list(tokens)
    self.gguf_writer.add_token_types(types)
    self.gguf_writer.add_token_merges([])
    self.gguf_writer.add_bos_token_id(1)
    self.gguf_writer.add_eos_token_id(2)
for module in pkgutil.iter_modules(conversion.__path__):
    try:
        importlib.import_module("conversion." + module.name)
    except Exception:
        pass
for module in list(sys.modules.values()):
    if not getattr(module, "__name__", "").startswith("conversion"):
        continue
    for kind in list(vars(module).values()):
        if isinstance(kind, type):
            if "get_vocab_base_pre" in vars(kind):
                kind.get_vocab_base_pre = lambda self, tokenizer: "gpt-2"
            if "set_vocab" in vars(kind):
                kind.set_vocab = vocabulary
runpy.run_path(root + "/convert_hf_to_gguf.py", run_name="__main__")
"""


# Names of layers that the converter knows for these families.
OLD_NAMES = {"GraniteMoeHybridForCausalLM": {"linear_attention": "mamba", "full_attention": "attention"}}


def convert(folder, converter, out, kind="bf16"):
    """A GGUF file, or why there is none."""
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "model"
        shutil.copytree(folder, copy)
        config = json.loads((copy / "config.json").read_text())
        write_tokenizer(copy, config.get("text_config", config)["vocab_size"])
        old = OLD_NAMES.get(config["architectures"][0], {})
        if old:
            config["layer_types"] = [old[name] for name in config["layer_types"]]
            (copy / "config.json").write_text(json.dumps(config))
        command = [sys.executable, "-c", CONVERT, str(converter), str(copy), "--outfile",
                   str(out), "--outtype", kind]
        if config["architectures"][0].startswith(("Qwen3_5", "Qwen3Next")):
            command.append("--no-mtp")  # it expects blocks that guess several tokens
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode != 0:
            return "no GGUF: " + run.stderr.strip().splitlines()[-1][:150]
    return "GGUF"


def make(name, folder, converter):
    for seed in range(1, 200):
        model, generator = build(name, seed)
        spec = dict(prompts=PROMPTS, incremental=name in INCREMENTAL, margin=2e-4)
        tensors, margin = goldens(TextOnly(model), generator, spec)
        texts = [tensors.get(f"greedy.{i}", torch.zeros(1)).tolist() for i in range(3)]
        if margin > 2e-4 and min(len(set(text)) for text in texts) > 8:
            break
    else:
        raise SystemExit(f"{name}: no seed without near ties")
    target = folder / name
    shutil.rmtree(target, ignore_errors=True)
    model.to(torch.bfloat16).save_pretrained(target)
    weights = target / "model.safetensors"
    text = {k: v for k, v in load_file(weights).items()
            if not any(part in k for part in ("vision_tower", "visual", "multi_modal_projector"))}
    if name.endswith("mxfp4"):
        for key in [k for k in text if k.endswith(("gate_up_proj", "down_proj"))]:
            blocks, scales, _ = to_mxfp4(text.pop(key).float())
            text[key + "_blocks"], text[key + "_scales"] = blocks, scales
        config = json.loads((target / "config.json").read_text())
        config["quantization_config"] = {"quant_method": "mxfp4"}
        (target / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    save_file(text, weights, metadata={"format": "pt"})
    save_file(tensors, target / "golden.safetensors")
    told = convert(target, converter, target / "model.gguf") if converter else ""
    for file in target.iterdir():
        file.chmod(0o644)
    size = sum(f.stat().st_size for f in target.iterdir())
    print(f"{name}: seed {seed}, margin {margin:.4f}, {size / 1024:.0f} KiB, {told}", flush=True)


def arguments():
    here = Path(__file__).resolve().parent.parent / "tests" / "data" / "models" / "families"
    parser = argparse.ArgumentParser()
    parser.add_argument("--converter", type=Path)
    parser.add_argument("--output", type=Path, default=here)
    parser.add_argument("--f32", type=Path, help="only GGUF files of type F32 of the models that are there, to this folder; "
                        "with --output tests/data/models also of those that make_model_goldens.py makes")
    parser.add_argument("names", nargs="*")
    return parser.parse_args()


def make_all(models, make):
    """What the command line asks for, of these models."""
    given = arguments()
    given.output.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    for name in given.names or models:
        if given.f32 and "edit" in models.get(name, {}):
            continue  # the converter takes it for one with experts
        if given.f32:
            told = convert(given.output / name, given.converter, given.f32 / (name + ".gguf"), "f32")
            print(f"{name}: {told}", flush=True)
        else:
            make(name, given.output, given.converter)


def main():
    assert CONTINUATION == 64
    make_all(MODELS, make)


if __name__ == "__main__":
    main()
