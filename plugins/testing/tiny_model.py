"""tiny_model.py OUT [--gguf FILE] [--seed N]: a random Llama over the tokenizer of the model that ships.

What plugins are tested with: a model that knows nothing writes whatever its constraint lets through. OUT becomes a folder that
transformers, vLLM and SGLang load; --gguf also writes the same weights for llama.cpp (needs the package gguf).
"""

import argparse
import json
import os
import shutil

SHIPPED = os.path.join(os.path.dirname(__file__), "..", "..", "models", "tiny-extract")
TEMPLATE = ("{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n"
            "{% endfor %}assistant: ")


def tokenizer_files(out):
    """The shipped tokenizer as transformers reads it, with names for the end and for padding."""
    os.makedirs(out, exist_ok=True)
    shutil.copy(os.path.join(SHIPPED, "tokenizer.json"), out)
    config = json.load(open(os.path.join(SHIPPED, "config.json")))
    tokens = json.load(open(os.path.join(SHIPPED, "tokenizer.json")))
    names = {token["id"]: token["content"] for token in tokens["added_tokens"]}
    end = config["eos_token_id"]
    end = end[0] if isinstance(end, list) else end
    bos = config.get("bos_token_id")
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": names[end],
                "pad_token": names[end], "chat_template": TEMPLATE, "model_max_length": 2048}
    if bos in names:
        settings["bos_token"] = names[bos]
    json.dump(settings, open(os.path.join(out, "tokenizer_config.json"), "w"))
    return config["vocab_size"], bos, end


def make(out, seed=0, hidden=64, layers=2, sharpness=4.0):
    """`sharpness`: what the output layer is multiplied by, so that temperature means something."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    vocab, bos, end = tokenizer_files(out)
    torch.manual_seed(seed)
    model = LlamaForCausalLM(LlamaConfig(
        vocab_size=vocab, hidden_size=hidden, intermediate_size=2 * hidden, num_hidden_layers=layers,
        num_attention_heads=2, num_key_value_heads=2, head_dim=hidden // 2,
        max_position_embeddings=2048, bos_token_id=bos, eos_token_id=end, pad_token_id=end,
        tie_word_embeddings=False)).float().eval()
    with torch.no_grad():
        model.lm_head.weight.mul_(sharpness)
    model.save_pretrained(out)
    return model


def _rotary_order(weight, heads):
    """llama.cpp turns neighbours by an angle, transformers halves of a head."""
    rows = weight.shape[0] // heads
    return weight.reshape(heads, 2, rows // 2, -1).swapaxes(1, 2).reshape(weight.shape)


def write_gguf(model, folder, file):
    import gguf
    import numpy as np

    config = model.config
    tokens = json.load(open(os.path.join(folder, "tokenizer.json")))
    if tokens["model"]["type"] != "BPE" or "pre_tokenizer" not in tokens:
        raise SystemExit("write_gguf knows byte-level BPE")
    writer = gguf.GGUFWriter(file, "llama")
    head = config.hidden_size // config.num_attention_heads
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_key_length(head)
    writer.add_value_length(head)
    writer.add_rope_dimension_count(head)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(config.vocab_size)
    names = [f"[unused{i}]" for i in range(config.vocab_size)]
    kinds = [gguf.TokenType.UNUSED] * config.vocab_size
    for text, index in tokens["model"]["vocab"].items():
        names[index], kinds[index] = text, gguf.TokenType.NORMAL
    for token in tokens["added_tokens"]:
        names[token["id"]] = token["content"]
        kinds[token["id"]] = (gguf.TokenType.CONTROL if token["special"]
                              else gguf.TokenType.USER_DEFINED)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(names)
    writer.add_token_types(kinds)
    writer.add_token_merges([m if isinstance(m, str) else " ".join(m)
                             for m in tokens["model"]["merges"]])
    if config.bos_token_id is not None:
        writer.add_bos_token_id(config.bos_token_id)
    writer.add_eos_token_id(config.eos_token_id)
    writer.add_add_bos_token(False)
    layer = {"input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q",
             "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
             "self_attn.o_proj": "attn_output", "post_attention_layernorm": "ffn_norm",
             "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}
    outer = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
    for name, value in model.state_dict().items():
        array = np.ascontiguousarray(value.float().numpy())
        stem = name.removesuffix(".weight")
        if stem in outer:
            writer.add_tensor(f"{outer[stem]}.weight", array)
            continue
        _, _, number, part = stem.split(".", 3)
        if part == "self_attn.q_proj":
            array = np.ascontiguousarray(_rotary_order(array, config.num_attention_heads))
        if part == "self_attn.k_proj":
            array = np.ascontiguousarray(_rotary_order(array, config.num_key_value_heads))
        writer.add_tensor(f"blk.{number}.{layer[part]}.weight", array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out")
    parser.add_argument("--gguf")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    model = make(options.out, options.seed)
    if options.gguf:
        write_gguf(model, options.out, options.gguf)


if __name__ == "__main__":
    main()
