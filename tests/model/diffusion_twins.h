// Folders of causal models with the weights of the tiny models that fill masks.
#ifndef PAWL_TESTS_MODEL_DIFFUSION_TWINS_H_
#define PAWL_TESTS_MODEL_DIFFUSION_TWINS_H_

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "src/base/file.h"
#include "tests/model/model_test_util.h"

namespace pawl {

// The same weights under the names of another family.
inline std::string UnderOtherNames(
    const std::string& from, const std::string& name,
    const std::vector<std::pair<std::string, std::string>>& config,
    const std::vector<std::pair<std::string, std::string>>& tensors) {
  const std::string folder = testing::TempDir() + "/" + name;
  std::filesystem::create_directories(folder);
  const auto renamed = [](std::string text, const auto& names) {
    for (const auto& [old, now] : names) {
      size_t at = text.find(old);
      EXPECT_NE(at, std::string::npos) << old;
      for (; at != std::string::npos; at = text.find(old, at + now.size())) {
        text.replace(at, old.size(), now);
      }
    }
    return text;
  };
  std::ofstream(folder + "/config.json") << renamed(*ReadFile(from + "/config.json"), config);
  // Eight bytes with the length of the header, the header, and the weights.
  const std::string weights = *ReadFile(from + "/model.safetensors");
  uint64_t length = 0;
  std::memcpy(&length, weights.data(), sizeof length);
  const std::string header = renamed(weights.substr(sizeof length, length), tensors);
  const uint64_t now = header.size();
  std::ofstream out(folder + "/model.safetensors", std::ios::binary);
  out.write(reinterpret_cast<const char*>(&now), sizeof now);
  out << header << weights.substr(sizeof length + length);
  return folder;
}

inline std::string DreamAsQwen2() {
  return UnderOtherNames(GoldenFolder("diffusion/dream"), "dream_as_qwen2",
                         {{"DreamModel", "Qwen2ForCausalLM"},
                          {"\"Dream\"", "\"qwen2\""},
                          {"\"mask_token_id\": 46,", ""}},
                         {});
}

inline std::string LladaAsLlama() {
  return UnderOtherNames(GoldenFolder("diffusion/llada"), "llada_as_llama",
                         {{"LLaDAModelLM", "LlamaForCausalLM"},
                          {"\"llada\"", "\"llama\""},
                          {"\"mask_token_id\": 46,", ""},
                          {"\"d_model\"", "\"hidden_size\""},
                          {"\"mlp_hidden_size\"", "\"intermediate_size\""},
                          {"\"n_heads\"", "\"num_attention_heads\""},
                          {"\"n_kv_heads\"", "\"num_key_value_heads\""},
                          {"\"n_layers\"", "\"num_hidden_layers\""},
                          {"max_sequence_length", "max_position_embeddings"},
                          {"weight_tying", "tie_word_embeddings"},
                          {"\"activation_type\"", "\"hidden_act\""},
                          {" \"alibi\": false,\n", ""},
                          {" \"attention_layer_norm\": false,\n", ""},
                          {" \"bias_for_layer_norm\": false,\n", ""},
                          {" \"block_type\": \"llama\",\n", ""},
                          {" \"embedding_size\": 48,\n", ""},
                          {" \"include_bias\": false,\n", ""},
                          {" \"include_qkv_bias\": false,\n", ""},
                          {" \"input_emb_norm\": false,\n", ""},
                          {" \"layer_norm_type\": \"rms\",\n", ""},
                          {" \"layer_norm_with_affine\": true,\n", ""},
                          {" \"rope\": true,\n", ""},
                          {" \"scale_logits\": false,\n", ""}},
                         {{"model.transformer.ff_out", "lm_head"},
                          {"model.transformer.wte", "model.embed_tokens"},
                          {"model.transformer.ln_f", "model.norm"},
                          {"model.transformer.blocks.", "model.layers."},
                          {".attn_norm", ".input_layernorm"},
                          {".ff_norm", ".post_attention_layernorm"},
                          {".q_proj", ".self_attn.q_proj"},
                          {".k_proj", ".self_attn.k_proj"},
                          {".v_proj", ".self_attn.v_proj"},
                          {".attn_out", ".self_attn.o_proj"},
                          {".ff_proj", ".mlp.gate_proj"},
                          {".up_proj", ".mlp.up_proj"},
                          {".ff_out", ".mlp.down_proj"}});
}

}  // namespace pawl

#endif  // PAWL_TESTS_MODEL_DIFFUSION_TWINS_H_
