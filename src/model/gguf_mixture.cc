// Some matrices cost more quality than others: the head, the values of attention, and what comes
// down from the feed-forward layer. These get more bits, in some layers or in all. The rules are
// those of llama.cpp (src/llama-quant.cpp), so that a file of a name has the size and the quality
// that people know under this name. Types of 256 weights a block need rows of such a length; other
// rows get a type of 32.
#include "src/model/gguf_mixture.h"

#include <cctype>
#include <cstdlib>
#include <optional>
#include <vector>

namespace pawl {
namespace {

constexpr GgufFileType kFileTypes[] = {
    {"F32", 0, "F32"},      {"F16", 1, "F16"},        {"BF16", 32, "BF16"},
    {"Q8_0", 7, "Q8_0"},    {"Q6_K", 18, "Q6_K"},     {"Q5_K_M", 17, "Q5_K"},
    {"Q5_K_S", 16, "Q5_K"}, {"Q5_1", 9, "Q5_1"},      {"Q5_0", 8, "Q5_0"},
    {"Q4_K_M", 15, "Q4_K"}, {"Q4_K_S", 14, "Q4_K"},   {"Q4_1", 3, "Q4_1"},
    {"Q4_0", 2, "Q4_0"},    {"IQ4_NL", 25, "IQ4_NL"}, {"IQ4_XS", 30, "IQ4_XS"},
    {"Q3_K_L", 13, "Q3_K"}, {"Q3_K_M", 12, "Q3_K"},   {"Q3_K_S", 11, "Q3_K"},
    {"Q2_K", 10, "Q2_K"},
};

// Parts of the names of matrices that are small, or that are no matrices of weights.
constexpr std::string_view kKept[] = {
    "_norm.weight",
    "ffn_gate_inp.weight",
    "ffn_gate_tid2eid",
    "altup",
    "laurel",
    "per_layer_model_proj",
    "ssm_conv1d",
    "shortconv.conv.weight",
    "indexer.k_proj",
    "indexer.q_proj",
    "time_mix_",
    "attn_rel_b.weight",
    ".position_embd",
    ".patch_embd",
    ".patch_merger",
    ".rel_pos",
    "position_embd.weight",
    "token_types.weight",
};

bool HasPart(std::string_view name, std::string_view part) {
  return name.find(part) != std::string_view::npos;
}

int LayerOf(const std::string& name) {
  constexpr std::string_view kLayer = "blk.";
  return name.starts_with(kLayer) ? std::atoi(name.c_str() + kLayer.size()) : -1;
}

bool IsValue(std::string_view name) {
  return HasPart(name, "attn_v.weight") || HasPart(name, "attn_qkv.weight") ||
         HasPart(name, "attn_kv_b.weight");
}

// A number, or the first of a list of numbers for each layer.
int NumberIn(const GgufFile& file, const std::string& key, int otherwise) {
  const GgufValue* value = file.FindValue(key);
  if (value == nullptr) return otherwise;
  const bool list = value->kind == GgufValue::Kind::kArray && !value->integers.empty();
  const auto number = list ? value->integers[0] : static_cast<int64_t>(value->number);
  return number < 0 || number > 1 << 20 ? otherwise : static_cast<int>(number);
}

// The type for rows that are no multiple of the block of another.
std::string_view Fallback(std::string_view type) {
  if (type == "Q4_K") return "Q5_0";
  if (type == "Q5_K") return "Q5_1";
  if (type == "Q6_K") return "Q8_0";
  if (type == "IQ4_XS") return "IQ4_NL";
  if (type == "Q3_K" || type == "Q2_K") return "Q4_0";
  return type;
}

bool Divides(std::string_view type, int64_t cols) {
  return cols % FindGgufType(type)->elements == 0;
}

}  // namespace

const GgufFileType* FindGgufFileType(std::string_view name) {
  std::string upper(name);
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  for (const GgufFileType& type : kFileTypes) {
    if (upper == type.name) return &type;
  }
  return nullptr;
}

std::string GgufFileTypeNames() {
  std::string names;
  for (const GgufFileType& type : kFileTypes) {
    names += (names.empty() ? "" : ", ") + std::string(type.name);
  }
  return names;
}

GgufMixture::GgufMixture(const GgufFile& file, const GgufFileType& type)
    : file_(file), type_(type.name), usual_(type.type) {
  const GgufValue* arch = file.FindValue("general.architecture");
  if (arch != nullptr) arch_ = arch->text;
  layers_ = NumberIn(file, arch_ + ".block_count", 0);
  experts_ = NumberIn(file, arch_ + ".expert_count", 0);
  const int heads = NumberIn(file, arch_ + ".attention.head_count", 1);
  const int kv_heads = NumberIn(file, arch_ + ".attention.head_count_kv", heads);
  shared_heads_ = kv_heads > 0 && heads / kv_heads >= 4;
  is_70b_ = layers_ == 80 && (arch_ == "qwen2" || (arch_ == "llama" && heads != kv_heads));
  for (const std::string& name : file.Names()) {
    if (name == "output.weight") tied_ = false;
    if (IsValue(name)) value_index_.emplace(LayerOf(name), 0);
  }
  for (auto& [layer, index] : value_index_) index = values_++;
}

bool GgufMixture::MoreBits(int layer, int layers) const {
  const int eighth = layers / 8;
  return layer < eighth || layer >= 7 * layers / 8 || (layer - eighth) % 3 == 2;
}

std::string GgufMixture::WantedValue(int layer) const {
  const int index = value_index_.at(layer);
  std::string type = usual_;
  if (type_ == "Q2_K") {
    type = shared_heads_ ? "Q4_K" : "Q3_K";
  } else if (type_ == "Q3_K_M") {
    type = index < 2 ? "Q5_K" : "Q4_K";
  } else if (type_ == "Q3_K_L" || (usual_.starts_with("IQ4") && shared_heads_)) {
    type = "Q5_K";
  } else if ((type_ == "Q4_K_M" || type_ == "Q5_K_M") && MoreBits(index, values_)) {
    type = "Q6_K";
  } else if (type_ == "Q4_K_S" && index < 4) {
    type = "Q5_K";
  }
  if (is_70b_ && (type == "Q3_K" || type == "Q4_K")) type = "Q5_K";
  return experts_ == 8 ? "Q8_0" : type;
}

std::string GgufMixture::WantedDown(int layer) const {
  const bool early = layer < layers_ / 8;
  if (type_ == "Q2_K") return "Q3_K";
  if (type_ == "Q3_K_M") return layer < layers_ / 16 ? "Q5_K" : "Q4_K";
  if (type_ == "Q3_K_L") return "Q5_K";
  if ((type_ == "Q4_K_M" || type_ == "Q5_K_M") && MoreBits(layer, layers_)) return "Q6_K";
  if ((type_ == "Q4_K_S" || usual_.starts_with("IQ4")) && early) return "Q5_K";
  return usual_;
}

std::string GgufMixture::Wanted(const std::string& name, int64_t cols) const {
  const bool head = name == "output.weight";
  const bool embedding = name == "token_embd.weight" || name == "per_layer_token_embd.weight";
  if (head || (tied_ && embedding)) {
    if (!Divides(usual_, cols) || usual_ == "Q8_0") return "Q8_0";
    return "Q6_K";
  }
  if (embedding) return usual_;
  const int layer = LayerOf(name);
  if (IsValue(name)) return WantedValue(layer);
  if (HasPart(name, "attn_k.weight")) return experts_ == 8 ? "Q8_0" : usual_;
  if (HasPart(name, "ffn_down")) return WantedDown(layer);
  if (HasPart(name, "attn_output.weight")) {
    if (experts_ == 8) {
      const bool five = type_ == "Q2_K" || type_ == "Q3_K_S" || type_ == "Q3_K_M" ||
                        type_ == "Q4_K_S" || type_ == "Q4_K_M" || usual_.starts_with("IQ4");
      return five ? "Q5_K" : usual_;
    }
    if (type_ == "Q2_K") return "Q3_K";
    if (type_ == "Q3_K_M") return "Q4_K";
    if (type_ == "Q3_K_L") return "Q5_K";
  }
  return usual_;
}

std::string GgufMixture::TypeOf(const std::string& name) const {
  const TensorView& tensor = *file_.Find(name);
  bool kept = tensor.shape.size() < 2 || !name.ends_with("weight") || tensor.bytes == 0;
  for (const std::string_view part : kKept) kept = kept || HasPart(name, part);
  // A matrix of one row is a vector to ggml.
  int64_t rows = 1;
  for (size_t d = 0; d + 1 < tensor.shape.size(); ++d) rows *= tensor.shape[d];
  if (kept || rows == 1) return tensor.dtype;
  const int64_t cols = tensor.shape.back();
  if (usual_ == "F32" || usual_ == "F16" || usual_ == "BF16") return usual_;
  const std::string wanted = Wanted(name, cols);
  if (Divides(wanted, cols)) return wanted;
  const std::string_view other = Fallback(wanted);
  return Divides(other, cols) ? std::string(other) : "F16";
}

}  // namespace pawl
