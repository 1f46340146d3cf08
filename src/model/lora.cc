// Adapters as PEFT saves them: adapter_config.json, and a file of tensors named by the modules of
// the checkpoint that the adapter was trained with, whichever file the model comes from:
//   base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight   [rank, inputs]
//   base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight   [outputs, rank]
// A module may be one matrix here, or several whose rows it has one behind the other, or its rows
// may stand in another order: the part of B that belongs to a matrix is taken as the loader of the
// weights takes the part of W.
//
// A setting of PEFT that is not known may change every number, so it is an error unless it says
// nothing: null, false, or empty.
#include "src/model/lora.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "src/base/json.h"
#include "src/base/json_file.h"
#include "src/base/json_reader.h"
#include "src/model/safetensors.h"
#include "src/model/tensor_binder.h"

namespace pawl {
namespace {

// ---- adapter_config.json ----

struct LoraConfig {
  int64_t rank = 0;
  double alpha = 0;
  bool root = false;  // use_rslora: the scale is alpha over the root of the rank
  std::vector<std::pair<std::string, int64_t>> ranks;
  std::vector<std::pair<std::string, double>> alphas;
  std::vector<std::string> targets;  // where they are a list
};

// What changes nothing here: how the adapter was trained, begun and cut for devices.
constexpr std::array kHarmlessSettings = {"auto_mapping",     "base_model_name_or_path",
                                          "revision",         "inference_mode",
                                          "lora_dropout",     "task_type",
                                          "peft_version",     "layers_to_transform",
                                          "layers_pattern",   "exclude_modules",
                                          "megatron_core",    "megatron_config",
                                          "loftq_config",     "eva_config",
                                          "velora_config",    "runtime_config",
                                          "qalora_group_size"};

bool SaysNothing(const json::Value& value) {
  switch (value.type) {
    case json::Type::kNull:
    case json::Type::kFalse:
      return true;
    case json::Type::kString:
      return value.text.empty();
    case json::Type::kArray:
      return value.items.empty();
    case json::Type::kObject:
      return value.members.empty();
    default:
      return false;
  }
}

// The name of a module, or its end. PEFT reads it as a regular expression, of which only the dots
// are common.
void CheckPattern(const JsonReader& in, const std::string& key) {
  const std::string_view name = key.starts_with('^') ? std::string_view(key).substr(1) : key;
  if (name.empty() || name.find_first_of("\\*+?()[]{}|^$") != std::string_view::npos) {
    in.Unsupported("has the regular expression " + json::Quote(key.substr(0, 100)) +
                   "; names of modules are known alone");
  }
}

bool PatternFits(std::string_view key, std::string_view module) {
  if (key.starts_with('^')) return key.substr(1) == module;
  if (!module.ends_with(key)) return false;
  return module.size() == key.size() || module[module.size() - key.size() - 1] == '.';
}

template <typename T>
T PatternOr(const std::vector<std::pair<std::string, T>>& patterns, std::string_view module,
            T otherwise) {
  for (const auto& [key, value] : patterns) {
    if (PatternFits(key, module)) return value;
  }
  return otherwise;
}

void ReadInit(const JsonReader& in) {
  if (!in.IsString()) return;
  // These change the weights of the model that the adapter stands on.
  for (const char* const name : {"pissa", "olora", "loftq", "corda", "lora_ga"}) {
    if (!in.String().starts_with(name)) continue;
    in.Unsupported("is " + json::Quote(in.String().substr(0, 50)) +
                   ", which changes the model's own weights; save the adapter as a plain LoRA "
                   "(path_initial_model_for_weight_conversion)");
  }
}

Result<LoraConfig> ReadLoraConfig(const std::string& file) {
  Result<json::Value> value = ReadSettingsFile(file);
  if (!value.ok()) return value.error();
  const JsonReader in(*value, file + ": #");
  LoraConfig out;
  in.Object();
  if (in["peft_type"].String() != "LORA" && in.ok()) {
    in["peft_type"].Unsupported("is " + json::Quote(in["peft_type"].String().substr(0, 50)) +
                                "; expected LORA");
  }
  out.rank = in["r"].Whole(1, kMostRank);
  out.alpha = in["lora_alpha"].Number(-1e9, 1e9);
  out.root = in["use_rslora"].Bool(false);
  if (const JsonReader bias = in["bias"]; bias.String("none") != "none") {
    bias.Unsupported("is " + json::Quote(bias.String().substr(0, 50)) +
                     ": biases that were trained are not supported; expected none");
  }
  if (const JsonReader dora = in["use_dora"]; dora.Bool(false)) {
    dora.Unsupported("is true: DoRA is not supported");
  }
  if (const JsonReader turned = in["fan_in_fan_out"]; turned.Bool(false)) {
    turned.Unsupported("is true: matrices are [outputs, inputs] here");
  }
  if (const JsonReader whole = in["modules_to_save"]; whole.present() && whole.size() > 0) {
    whole.Unsupported("is " + json::Shown(*whole.value()) +
                      ": modules that were trained as a whole, such as embeddings and heads, are "
                      "not supported");
  }
  ReadInit(in["init_lora_weights"]);
  const JsonReader ranks = in["rank_pattern"].OptionalObject();
  for (size_t i = 0; in.ok() && i < ranks.size(); ++i) {
    const std::string& key = ranks.value()->members[i].first;
    CheckPattern(ranks, key);
    out.ranks.emplace_back(key, ranks[key].Whole(1, kMostRank));
  }
  const JsonReader alphas = in["alpha_pattern"].OptionalObject();
  for (size_t i = 0; in.ok() && i < alphas.size(); ++i) {
    const std::string& key = alphas.value()->members[i].first;
    CheckPattern(alphas, key);
    out.alphas.emplace_back(key, alphas[key].Number(-1e9, 1e9));
  }
  const JsonReader targets = in["target_modules"];
  if (targets.IsArray()) {
    for (const JsonReader item : targets.items()) out.targets.push_back(item.String());
  }
  for (const json::Member& member : value->members) {
    if (!in.ok()) break;
    const std::string_view name = member.first;
    const bool known = std::ranges::find(kHarmlessSettings, name) != kHarmlessSettings.end();
    const bool read = name == "peft_type" || name == "r" || name == "lora_alpha" ||
                      name == "use_rslora" || name == "bias" || name == "init_lora_weights" ||
                      name == "rank_pattern" || name == "alpha_pattern" || name == "target_modules";
    if (known || read || SaysNothing(member.second)) continue;
    in[name].Unsupported("is " + json::Shown(member.second) + ", which is not supported");
  }
  if (!in.ok()) return in.error();
  return out;
}

// ---- Modules ----

// A matrix that has rows of a module.
struct LoraTarget {
  std::string module;  // "self_attn.q_proj"
  Linear* linear = nullptr;
  int64_t module_rows = 0;
  Part part;  // of the module's rows, by those of the matrix
};

// Queries and keys. Where `names`, the checkpoint's, has them in the order of a rotation of
// neighbours, so does B. Where only the file that was loaded has them so, and the layer rotates
// nothing, the loader has left them in this order.
void OrderRows(const Attention& attention, const TransformerConfig& config,
               const TensorNames& names, const TensorNames& loaded, LoraTarget& target) {
  const int64_t width = attention.head_dim;
  if (names.paired_rotation && attention.rope != kNoRope) {
    const RopeConfig& rope = config.ropes[static_cast<size_t>(attention.rope)];
    target.part.pairs = {width, rope.WidthIn(attention.head_dim)};
  }
  if (names.paired_rotation || !loaded.paired_rotation || attention.rope != kNoRope) return;
  const Pairs pairs = {width, width};
  const int64_t rows = target.linear->w.rows;
  target.part.rows.resize(static_cast<size_t>(rows));
  for (int64_t row = 0; row < rows; ++row) {
    target.part.rows[static_cast<size_t>(pairs.From(row))] = target.part.first + row;
  }
}

// `names`: of the checkpoint; `loaded`: of the file that the weights come from.
std::vector<LoraTarget> TargetsOf(const Layer& spec, const TransformerConfig& config,
                                  const TensorNames& names, const TensorNames& loaded,
                                  TransformerLayer& layer) {
  std::vector<LoraTarget> targets;
  const auto add = [&](const char* module, Linear& linear) {
    if (linear.w.data != nullptr) targets.push_back({module, &linear, linear.w.rows, {}});
  };
  // One module has the rows of all of them.
  const auto add_joined = [&](const char* module, std::initializer_list<Linear*> linears) {
    int64_t rows = 0;
    for (const Linear* const linear : linears) rows += linear->w.rows;
    int64_t first = 0;
    for (Linear* const linear : linears) {
      targets.push_back({module, linear, rows, {.first = first}});
      first += linear->w.rows;
    }
  };
  if (const auto* attention = std::get_if<Attention>(&spec.mixer)) {
    if (names.qkv != nullptr) {
      add_joined(names.qkv, {&layer.q, &layer.k, &layer.v});
    } else {
      add(names.q, layer.q);
      add(names.k, layer.k);
      add(names.v, layer.v);
    }
    for (LoraTarget& target : targets) {
      if (target.linear != &layer.v) OrderRows(*attention, config, names, loaded, target);
    }
    add(names.o, layer.o);
  } else if (const auto* latent = std::get_if<LatentAttention>(&spec.mixer)) {
    add(names.q_a, layer.q_a);
    add(latent->query_rank > 0 ? names.q_b : names.q, layer.q);
    add(names.kv_a, layer.kv_a);
    add(names.o, layer.o);
  }
  const auto* const both = std::get_if<MlpAndExperts>(&spec.feed_forward);
  if (const auto* mlp = both != nullptr ? &both->mlp : std::get_if<Mlp>(&spec.feed_forward)) {
    if (names.gate_up != nullptr && mlp->gated) {
      add_joined(names.gate_up, {&layer.gate, &layer.up});
    } else {
      if (mlp->gated) add(names.gate, layer.gate);
      add(names.up, layer.up);
    }
    add(names.down, layer.down);
  }
  return targets;
}

// ---- Tensors ----

// The two tensors of a module.
struct LoraPair {
  const TensorView* a = nullptr;
  const TensorView* b = nullptr;
  std::string a_name, b_name;
};

class AdapterReader {
 public:
  AdapterReader(const LoraAdapter& adapter, size_t index, const TransformerConfig& config,
                const TensorNames& loaded, TransformerWeights& weights, LoraSet& set,
                int64_t most_bytes, std::map<const Linear*, LoraLinear*>& linears)
      : adapter_(adapter),
        index_(index),
        config_(config),
        weights_(weights),
        set_(set),
        most_bytes_(most_bytes),
        linears_(linears),
        names_(HuggingFaceNames(config)),
        loaded_(loaded) {}

  Status Read() {
    Result<LoraConfig> read = ReadLoraConfig(adapter_.path + "/adapter_config.json");
    if (!read.ok()) return read.error();
    settings_ = *std::move(read);
    Result<SafetensorsFile> file =
        SafetensorsFile::Open(adapter_.path + "/adapter_model.safetensors");
    if (!file.ok()) return file.error();
    file_ = &*file;
    if (Status status = FindPairs(); !status.ok()) return status;
    if (pairs_.empty()) return Error{ErrorCode::kInvalid, "has no tensors", file_->path()};
    for (const std::string& target : settings_.targets) {
      const auto has = [&](const auto& one) { return PatternFits(target, one.first); };
      if (std::ranges::any_of(pairs_, has)) continue;
      return Error{ErrorCode::kInvalid,
                   "has no tensor of " + json::Quote(target.substr(0, 100)) +
                       ", which adapter_config.json names (target_modules)",
                   file_->path()};
    }
    for (const auto& [module, pair] : pairs_) {
      if (Status status = ReadModule(module, pair); !status.ok()) return status;
    }
    if (key_ == 0) key_ = 1;
    set_.adapters.push_back({adapter_.name, key_});
    return {};
  }

 private:
  std::string Place(const std::string& tensor) const {
    return file_->path() + ": tensor " + json::Quote(tensor);
  }

  Status FindPairs() {
    std::vector<std::string> sorted;
    for (const auto& [name, view] : file_->tensors()) sorted.push_back(name);
    std::ranges::sort(sorted);
    constexpr std::string_view kPrefix = "base_model.model.";
    for (const std::string& name : sorted) {
      const auto unknown = [&](const char* why) {
        return Error{ErrorCode::kUnsupported, why, Place(name)};
      };
      if (name.find("lora_magnitude_vector") != std::string::npos) {
        return unknown("is of DoRA, which is not supported");
      }
      if (name.find("lora_embedding_") != std::string::npos) {
        return unknown("is of an embedding: adapters of embeddings are not supported");
      }
      bool found = false;
      for (const bool is_a : {true, false}) {
        for (const char* const end : {"weight", "default.weight"}) {
          const std::string suffix = std::string(is_a ? ".lora_A." : ".lora_B.") + end;
          if (!name.ends_with(suffix) || !name.starts_with(kPrefix)) continue;
          const std::string module =
              name.substr(kPrefix.size(), name.size() - kPrefix.size() - suffix.size());
          LoraPair& pair = pairs_[module];
          const TensorView*& view = is_a ? pair.a : pair.b;
          if (view != nullptr) {
            return Error{ErrorCode::kInvalid, "stands for what another tensor has", Place(name)};
          }
          view = file_->Find(name);
          (is_a ? pair.a_name : pair.b_name) = name;
          found = true;
        }
      }
      if (!found) return unknown("is no tensor of a LoRA of linear layers");
    }
    return {};
  }

  // The number of the layer, and the module within it; negative: it is in no layer.
  std::pair<int, std::string_view> LayerOf(std::string_view module) const {
    const size_t at = module.rfind(names_.layer);
    if (at == std::string_view::npos || (at > 0 && module[at - 1] != '.')) return {-1, module};
    const char* const begin = module.data() + at + std::string_view(names_.layer).size();
    const char* const end = module.data() + module.size();
    int layer = -1;
    const auto [behind, error] = std::from_chars(begin, end, layer);
    if (error != std::errc() || behind == end || *behind != '.') return {-1, module};
    return {layer, {behind + 1, end}};
  }

  Status ReadModule(const std::string& module, const LoraPair& pair) {
    const std::string& shown = pair.a != nullptr ? pair.a_name : pair.b_name;
    if (pair.a == nullptr || pair.b == nullptr) {
      return Error{
          ErrorCode::kInvalid,
          std::string("has no ") + (pair.a == nullptr ? "lora_A" : "lora_B") + " next to it",
          Place(shown)};
    }
    const auto [layer, role] = LayerOf(module);
    if (layer < 0) {
      return Error{ErrorCode::kUnsupported,
                   "is of " + json::Quote(module.substr(0, 100)) +
                       ": adapters change linear layers inside of the layers of a model alone",
                   Place(shown)};
    }
    if (layer >= config_.layer_count()) {
      return Error{ErrorCode::kInvalid,
                   "is of layer " + std::to_string(layer) + ", but the model has " +
                       std::to_string(config_.layer_count()) +
                       " layers: the adapter is for another model",
                   Place(shown)};
    }
    const auto l = static_cast<size_t>(layer);
    std::vector<LoraTarget> targets =
        TargetsOf(config_.layers[l], config_, names_, loaded_, weights_.layers[l]);
    std::string known;
    bool found = false;
    for (const LoraTarget& target : targets) {
      if (known.find(target.module) == std::string::npos) {
        known += (known.empty() ? "" : ", ") + target.module;
      }
      if (target.module != role) continue;
      found = true;
      if (Status status = ReadTarget(module, target, pair); !status.ok()) return status;
    }
    if (found) return {};
    return Error{ErrorCode::kUnsupported,
                 "is of " + json::Quote(std::string(role.substr(0, 100))) + ", and in layer " +
                     std::to_string(layer) + " of this model adapters can change " +
                     (known.empty() ? "nothing" : known) + " alone",
                 Place(shown)};
  }

  Status ReadTarget(const std::string& module, const LoraTarget& target, const LoraPair& pair) {
    const Matrix& w = target.linear->w;
    const int64_t rank = PatternOr(settings_.ranks, module, settings_.rank);
    const double alpha = PatternOr(settings_.alphas, module, settings_.alpha);
    const double divisor = settings_.root ? std::sqrt(static_cast<double>(rank)) : rank;
    LoraPart part;
    Result<std::vector<float>> a = Fetch(pair.a_name, *pair.a, {rank, w.cols});
    if (!a.ok()) return a.error();
    Result<std::vector<float>> b = Fetch(pair.b_name, *pair.b, {target.module_rows, rank});
    if (!b.ok()) return b.error();
    const auto own = static_cast<size_t>(w.rows * rank);
    const auto bytes = static_cast<int64_t>((a->size() + own) * sizeof(float));
    if (set_.bytes + bytes > most_bytes_) {
      return Error{ErrorCode::kLimit,
                   "the adapters take more than " + std::to_string(most_bytes_) +
                       " bytes of memory (lora_bytes)",
                   adapter_.path};
    }
    std::vector<float> scaled(own);
    for (int64_t row = 0; row < w.rows; ++row) {
      const int64_t from = target.part.From(row);
      for (int64_t i = 0; i < rank; ++i) {
        const float weight = (*b)[static_cast<size_t>(from * rank + i)];
        scaled[static_cast<size_t>(row * rank + i)] =
            static_cast<float>(static_cast<double>(weight) * alpha / divisor);
      }
    }
    AddToKey(module);
    part.a = Keep(*std::move(a), rank, w.cols);
    part.b = Keep(std::move(scaled), w.rows, rank);
    set_.bytes += bytes;
    set_.most_rank = std::max(set_.most_rank, rank);
    set_.most_inputs = std::max(set_.most_inputs, w.cols);
    LoraLinear*& linear = linears_[target.linear];
    if (linear == nullptr) {
      linear = &set_.linears.emplace_back();
      target.linear->lora = linear;
    }
    linear->of.resize(std::max(linear->of.size(), index_ + 1));
    linear->of[index_] = part;
    return {};
  }

  Result<std::vector<float>> Fetch(const std::string& name, const TensorView& view,
                                   const std::vector<int64_t>& shape) const {
    if (view.shape != shape) {
      return Error{ErrorCode::kInvalid,
                   "has shape " + ShapeToString(view.shape) + "; expected " + ShapeToString(shape) +
                       " by the model and adapter_config.json",
                   Place(name)};
    }
    WeightType type = WeightType::kF32;
    if (view.dtype == "BF16") {
      type = WeightType::kBf16;
    } else if (view.dtype == "F16") {
      type = WeightType::kF16;
    } else if (view.dtype != "F32") {
      return Error{ErrorCode::kUnsupported, "is " + view.dtype + "; expected F32, F16 or BF16",
                   Place(name)};
    }
    std::vector<float> out(static_cast<size_t>(shape[0] * shape[1]));
    // The bytes of a file need not be aligned.
    std::vector<float> aligned((static_cast<size_t>(view.bytes) + 3) / 4);
    std::memcpy(aligned.data(), view.data, static_cast<size_t>(view.bytes));
    FindKernels(KernelVariant::kPortable)
        ->to_float(aligned.data(), type, static_cast<int64_t>(out.size()), out.data());
    for (size_t i = 0; i < out.size(); ++i) {
      if (std::isfinite(out[i])) continue;
      return Error{ErrorCode::kInvalid,
                   "has a number that is not finite (number " + std::to_string(i) + ")",
                   Place(name)};
    }
    return out;
  }

  Matrix Keep(std::vector<float> floats, int64_t rows, int64_t cols) {
    for (const float x : floats) {
      uint32_t bits = 0;
      std::memcpy(&bits, &x, sizeof bits);
      key_ = (key_ ^ bits) * 0x100000001b3u;
      key_ ^= key_ >> 29;
    }
    set_.memory.push_back(std::move(floats));
    return {
        .data = set_.memory.back().data(), .type = WeightType::kF32, .rows = rows, .cols = cols};
  }
  void AddToKey(std::string_view text) {
    for (const char c : text) key_ = (key_ ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  }

  const LoraAdapter& adapter_;
  const size_t index_;
  const TransformerConfig& config_;
  TransformerWeights& weights_;
  LoraSet& set_;
  const int64_t most_bytes_;
  std::map<const Linear*, LoraLinear*>& linears_;
  const TensorNames names_;
  const TensorNames& loaded_;
  LoraConfig settings_;
  const SafetensorsFile* file_ = nullptr;
  std::map<std::string, LoraPair> pairs_;  // by module
  uint64_t key_ = 0xcbf29ce484222325u;
};

}  // namespace

Status LoadAdapters(std::span<const LoraAdapter> adapters, int64_t most_bytes,
                    const TransformerConfig& config, const TensorNames& loaded,
                    TransformerWeights& weights) {
  if (adapters.size() > kMostAdapters) {
    return Error{ErrorCode::kLimit,
                 "there are at most " + std::to_string(kMostAdapters) + " adapters", "lora"};
  }
  auto set = std::make_shared<LoraSet>();
  std::map<const Linear*, LoraLinear*> linears;
  std::set<std::string> names;
  for (size_t i = 0; i < adapters.size(); ++i) {
    if (adapters[i].name.empty()) return Error{ErrorCode::kInvalid, "has no name", "lora"};
    if (!names.insert(adapters[i].name).second) {
      return Error{ErrorCode::kInvalid,
                   "has the name " + json::Quote(adapters[i].name.substr(0, 100)) + " twice",
                   "lora"};
    }
    AdapterReader reader(adapters[i], i, config, loaded, weights, *set, most_bytes, linears);
    if (Status status = reader.Read(); !status.ok()) return status;
  }
  for (LoraLinear& linear : set->linears) linear.of.resize(adapters.size());
  weights.bytes += set->bytes;
  weights.lora = std::move(set);
  return {};
}

}  // namespace pawl
