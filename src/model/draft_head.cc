// Files of trained heads. A head is a folder as a model is: config.json and safetensors.
//
// EAGLE-3 (Li et al., arXiv 2503.01840) has two spellings: "midlayer." of its authors and
// "layers.0." of training tools, each with "model." in front of it or not. Its head may have fewer
// tokens than the model; `d2t` has what is to be added to each of their numbers. Medusa (Cai et
// al., arXiv 2401.10774) has "0.0.linear." or "blocks.0.layers.0.". Hydra (Ankner et al., arXiv
// 2402.05109) has a model of one layer in the form of the model's own, which it spells
// "prefix_embeding_layer.", and behind it "hydra_mlp.0.1.linear.": the even numbers are dropouts.
#include "src/model/draft_head.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "src/base/json.h"
#include "src/base/json_file.h"
#include "src/base/json_reader.h"
#include "src/base/os/files.h"
#include "src/model/families/family.h"
#include "src/model/safetensors.h"
#include "src/model/tensor_binder.h"
#include "src/model/transformer_cpu.h"

namespace pawl {
namespace {

constexpr int64_t kMostHeadSteps = 16, kMostHeadBlocks = 16, kMostHeadTaps = 8;

std::string HeadArchitecture(const json::Value& config) {
  const json::Value* const list = config.Find("architectures");
  if (list == nullptr || list->items.empty()) return "";
  return list->items[0].text;
}

std::optional<DraftHead::Kind> HeadKindOf(const json::Value& config) {
  if (config.Find("medusa_num_heads") != nullptr) return DraftHead::Kind::kMedusa;
  if (config.Find("hydra_num_heads") != nullptr) return DraftHead::Kind::kHydra;
  const std::string name = HeadArchitecture(config);
  if (name.find("Eagle3") != std::string::npos) return DraftHead::Kind::kEagle3;
  if (name.find("Medusa") != std::string::npos) return DraftHead::Kind::kMedusa;
  return std::nullopt;
}

// The number has to be the model's.
void ExpectSame(const JsonReader& in, int64_t model) {
  if (!in.present()) return;
  const int64_t own = in.Whole(1, kMaxVocabulary);
  if (own == model) return;
  in.Fail("is " + std::to_string(own) + ", but the model's is " + std::to_string(model) +
          ": the head is for another model");
}

// The layers whose states are read. A list has the numbers of layers, and a tap stands behind one.
void ReadHeadTaps(const JsonReader& in, int layers, DraftHead& head) {
  const JsonReader inside = in["eagle_config"].OptionalObject()["eagle_aux_hidden_state_layer_ids"];
  const JsonReader list = inside.present() ? inside : in["eagle_aux_hidden_state_layer_ids"];
  if (!list.present()) {
    head.taps = {2, layers / 2, layers - 3};
    if (layers < 6) {
      in.Fail("names no eagle_aux_hidden_state_layer_ids, which a model of " +
              std::to_string(layers) + " layers needs");
    }
    return;
  }
  for (const JsonReader item : list.Array().items()) {
    const int64_t layer = item.Whole(0, kMaxLayers);
    if (layer >= layers) {
      item.Fail("is layer " + std::to_string(layer) + ", but the model has " +
                std::to_string(layers) + " layers: the head is for another model");
    }
    head.taps.push_back(static_cast<int>(layer) + 1);
  }
  if (head.taps.empty() || std::ssize(head.taps) > kMostHeadTaps) {
    list.Fail("must have 1 to " + std::to_string(kMostHeadTaps) + " layers");
  }
}

// The layer, in the form that families have.
void ReadEagleLayer(const JsonReader& in, const TransformerConfig& model, DraftHead& head) {
  Attention attention;
  const auto whole = [&](const char* key, int64_t most) {
    return static_cast<int>(in[key].Whole(1, most));
  };
  attention.heads = whole("num_attention_heads", kMaxWidth);
  attention.kv_heads =
      static_cast<int>(in["num_key_value_heads"].Whole(1, kMaxWidth, attention.heads));
  attention.head_dim = static_cast<int>(
      in["head_dim"].Whole(2, kMaxHeadDim, std::max(2, model.hidden / attention.heads)));
  if (attention.heads % attention.kv_heads != 0) {
    in["num_key_value_heads"].Fail("must divide num_attention_heads");
  }
  if (attention.head_dim % 2 != 0) in["head_dim"].Unsupported("must be even");
  if (int64_t{attention.heads} * attention.head_dim > kMaxWidth) {
    in["num_attention_heads"].Fail("times head_dim exceeds " + std::to_string(kMaxWidth),
                                   ErrorCode::kLimit);
  }
  const bool bias = in["attention_bias"].Bool(false);
  attention.qkv_bias = attention.o_bias = bias;
  ExpectString(in["hidden_act"], "silu");
  ExpectNothing(in["sliding_window"]);
  head.layer = Layer{attention, Mlp{.width = whole("intermediate_size", kMaxWidth)}};
  TransformerConfig own;
  own.context_length =
      static_cast<int>(in["max_position_embeddings"].Whole(1, kMaxContext, model.context_length));
  own.layers = {*head.layer};
  head.rope = ReadRope(in, own, 10000.0);
}

// The rows of the head by the model's tokens.
Status ReadTargets(const TensorSource& source, Binder& binder, const std::string& name,
                   int64_t rows, int vocabulary, DraftHead& head) {
  const TensorView* const view = source.Find(name);
  const std::string place = source.PathOf(name) + ": tensor " + json::Quote(name);
  binder.Use(name);
  if (view == nullptr) {
    if (rows == vocabulary) return {};
    return Error{ErrorCode::kInvalid,
                 "is missing; the head has " + std::to_string(rows) + " tokens and the model " +
                     std::to_string(vocabulary),
                 place};
  }
  if (view->dtype != "I64" || view->shape != std::vector<int64_t>{rows}) {
    return Error{ErrorCode::kInvalid,
                 "is " + view->dtype + " " + ShapeToString(view->shape) + "; expected I64 " +
                     ShapeToString({rows}),
                 place};
  }
  std::vector<bool> taken(static_cast<size_t>(vocabulary), false);
  for (int64_t i = 0; i < rows; ++i) {
    int64_t offset = 0;
    std::memcpy(&offset, view->data + i * static_cast<int64_t>(sizeof offset), sizeof offset);
    const bool inside = offset >= -i && offset < vocabulary - i;
    if (!inside || taken[static_cast<size_t>(i + offset)]) {
      return Error{
          ErrorCode::kInvalid,
          "token " + std::to_string(i) + " has the offset " + std::to_string(offset) +
              (inside ? ", which leads to a token that another one has"
                      : ", which leads out of the vocabulary of " + std::to_string(vocabulary)),
          place};
    }
    taken[static_cast<size_t>(i + offset)] = true;
    head.targets.push_back(static_cast<TokenId>(i + offset));
  }
  return {};
}

// The layer, of which queries, keys and values read `inputs` numbers.
void BindHeadLayer(Binder& binder, const std::string& prefix, int64_t hidden, int64_t inputs,
                   DraftHead& head) {
  const Attention& attention = head.layer->attention();
  const int64_t q_rows = int64_t{attention.heads} * attention.head_dim;
  const int64_t kv_rows = int64_t{attention.kv_heads} * attention.head_dim;
  TransformerLayer& weights = head.weights;
  const auto fetch = [&](const char* part, int64_t outputs, int64_t columns, bool bias) {
    return binder.FetchLinear(prefix + part, outputs, columns, bias);
  };
  const bool bias = attention.qkv_bias;
  weights.q = fetch("self_attn.q_proj", q_rows, inputs, bias);
  weights.k = fetch("self_attn.k_proj", kv_rows, inputs, bias);
  weights.v = fetch("self_attn.v_proj", kv_rows, inputs, bias);
  weights.o = fetch("self_attn.o_proj", hidden, q_rows, attention.o_bias);
  weights.mlp_norm = binder.FetchNorm(prefix + "post_attention_layernorm", hidden);
  const int64_t width = head.layer->mlp().width;
  weights.gate = fetch("mlp.gate_proj", width, hidden, false);
  weights.up = fetch("mlp.up_proj", width, hidden, false);
  weights.down = fetch("mlp.down_proj", hidden, width, false);
}

Status BindEagle(const TensorSource& source, Binder& binder, const TransformerConfig& model,
                 int64_t rows, DraftHead& head) {
  const int64_t hidden = model.hidden;
  const auto has = [&](const std::string& name) { return source.Find(name) != nullptr; };
  const std::string body = has("model.fc.weight") ? "model." : "";
  const std::string layer =
      body + (has(body + "layers.0.hidden_norm.weight") ? "layers.0." : "midlayer.");
  head.fc = binder.FetchLinear(body + "fc", hidden, hidden * std::ssize(head.taps),
                               has(body + "fc.bias"));
  head.input_norm = binder.FetchNorm(layer + "input_layernorm", hidden);
  head.hidden_norm = binder.FetchNorm(layer + "hidden_norm", hidden);
  BindHeadLayer(binder, layer, hidden, 2 * hidden, head);
  head.final_norm = binder.FetchNorm(body + "norm", hidden);
  const std::string outer = !has("lm_head.weight") && has(body + "lm_head.weight") ? body : "";
  head.head = binder.FetchMatrix(outer + "lm_head.weight", rows, hidden, true);
  if (has(body + "embed_tokens.weight")) {
    head.embedding =
        binder.FetchMatrix(body + "embed_tokens.weight", model.vocabulary, hidden, true);
  }
  if (binder.error()) return *binder.error();
  const std::string offsets = !has("d2t") && has(body + "d2t") ? body + "d2t" : "d2t";
  return ReadTargets(source, binder, offsets, rows, model.vocabulary, head);
}

Status BindMedusa(const TensorSource& source, Binder& binder, const TransformerConfig& model,
                  int64_t blocks, DraftHead& head) {
  const auto has = [&](const std::string& name) { return source.Find(name) != nullptr; };
  const std::string body = has("medusa_heads.blocks.0.layers.0.weight") ? "medusa_heads." : "";
  const bool named = has(body + "blocks.0.layers.0.weight");
  for (size_t i = 0; i < head.steps.size() && !binder.error(); ++i) {
    const std::string step = std::to_string(i);
    for (int64_t j = 0; j < blocks; ++j) {
      const std::string name = named ? body + "blocks." + step + ".layers." + std::to_string(j)
                                     : step + "." + std::to_string(j) + ".linear";
      head.steps[i].blocks.push_back(
          binder.FetchLinear(name, model.hidden, model.hidden, !named || has(name + ".bias")));
    }
    const std::string last = named ? body + "lm_heads." + step + ".weight"
                                   : step + "." + std::to_string(blocks) + ".weight";
    head.steps[i].head = binder.FetchMatrix(last, model.vocabulary, model.hidden, true);
  }
  return binder.error() ? Status(*binder.error()) : Status();
}

// Hydra's layer has the form of the model's first.
Status ReadHydraLayer(const JsonReader& in, const TransformerConfig& model, DraftHead& head) {
  if (const JsonReader form = in["hydra_head_arch"]; form.String("prefix-mlp") != "prefix-mlp") {
    form.Unsupported("is " + json::Quote(form.String().substr(0, 50)) + "; expected prefix-mlp");
  }
  if (const JsonReader grounded = in["grounded_heads"]; !grounded.Bool(true)) {
    grounded.Unsupported("is false; expected true");
  }
  if (!in.ok()) return in.status();
  const Layer& first = model.layers[0];
  const auto* const attention = std::get_if<Attention>(&first.mixer);
  const auto* const mlp = std::get_if<Mlp>(&first.feed_forward);
  const bool plain = attention != nullptr && mlp != nullptr && mlp->gated && !mlp->bias &&
                     attention->rope != kNoRope && attention->qk_norm == QkNorm::kNone &&
                     !attention->output_gate && !attention->sinks && !first.post_norms &&
                     !model.layer_norms;
  if (!plain) {
    in.Unsupported("is for models whose layers have Llama's form, not for " + model.architecture);
    return in.status();
  }
  head.layer = first;
  head.layer->attention().window = 0;
  head.rope = model.ropes[static_cast<size_t>(attention->rope)];
  head.epsilon = model.norm_epsilon;
  return {};
}

Status BindHydra(const TensorSource& source, Binder& binder, const TransformerConfig& model,
                 int64_t blocks, DraftHead& head) {
  const int64_t hidden = model.hidden;
  const auto has = [&](const std::string& name) { return source.Find(name) != nullptr; };
  // Older files have no dropouts.
  const bool dropouts = !has("hydra_mlp.0.0.linear.weight");
  const std::string model_of_one = "prefix_embeding_layer.", layer = model_of_one + "layers.0.";
  head.weights.attention_norm = binder.FetchNorm(layer + "input_layernorm", hidden);
  BindHeadLayer(binder, layer, hidden, hidden, head);
  head.final_norm = binder.FetchNorm(model_of_one + "norm", hidden);
  for (size_t i = 0; i < head.steps.size() && !binder.error(); ++i) {
    const std::string step = "hydra_mlp." + std::to_string(i) + ".";
    const auto block_at = [&](int64_t j) {
      return step + std::to_string(dropouts ? 2 * j + 1 : j) + ".";
    };
    const int64_t inputs = hidden * (static_cast<int64_t>(i) + 2);
    const std::string residual = block_at(0) + "res_connection";
    head.steps[i].residual = binder.FetchLinear(residual, hidden, inputs, has(residual + ".bias"));
    for (int64_t j = 0; j < blocks; ++j) {
      const std::string block = block_at(j) + "linear";
      head.steps[i].blocks.push_back(
          binder.FetchLinear(block, hidden, j == 0 ? inputs : hidden, has(block + ".bias")));
    }
    const std::string last = "hydra_lm_head." + std::to_string(i) + (dropouts ? ".1" : "");
    head.steps[i].head = binder.FetchMatrix(last + ".weight", model.vocabulary, hidden, true);
    if (has(last + ".bias")) {
      head.steps[i].bias = binder.FetchVector(last + ".bias", model.vocabulary);
    }
  }
  return binder.error() ? Status(*binder.error()) : Status();
}

// What torch.save writes is a program. It is not run.
Status ExpectSafetensors(const std::string& folder) {
  for (const char* const file : {"pytorch_model.bin", "medusa_lm_head.pt", "hydra_lm_head.pt"}) {
    const std::string path = folder + "/" + file;
    if (!os::Exists(path)) continue;
    if (os::Exists(folder + "/model.safetensors")) return {};
    return Error{ErrorCode::kUnsupported,
                 "is in PyTorch's format; scripts/convert_heads.py makes model.safetensors of it",
                 path};
  }
  return {};
}

}  // namespace

bool IsDraftHead(const std::string& folder) {
  const Result<json::Value> config = ReadSettingsFile(folder + "/config.json");
  return config.ok() && HeadKindOf(*config).has_value();
}

Status CheckHeadConfig(const std::string& folder) {
  const Result<json::Value> config = ReadSettingsFile(folder + "/config.json");
  if (config.ok() || config.error().code == ErrorCode::kIo) return {};
  return config.error();
}

Result<DraftHead> LoadDraftHead(const std::string& folder, const TransformerConfig& model,
                                int threads) {
  const std::string path = folder + "/config.json";
  const Result<json::Value> root = ReadSettingsFile(path);
  if (!root.ok()) return root.error();
  const JsonReader in(*root, path + "#");
  const std::optional<DraftHead::Kind> kind = HeadKindOf(*root);
  if (!kind) return Error{ErrorCode::kInvalid, "describes no draft head", path};
  DraftHead head;
  head.kind = *kind;
  ExpectSame(in["hidden_size"], model.hidden);
  ExpectSame(in["target_hidden_size"], model.hidden);
  ExpectSame(in["vocab_size"], model.vocabulary);
  ExpectSame(in["target_num_hidden_layers"], model.layer_count());
  int64_t rows = model.vocabulary, blocks = 0;
  if (head.kind == DraftHead::Kind::kEagle3) {
    if (in["num_hidden_layers"].Whole(1, kMaxLayers, 1) != 1) {
      in["num_hidden_layers"].Unsupported("must be 1: an EAGLE-3 head has one layer");
    }
    rows = in["draft_vocab_size"].Whole(1, kMaxVocabulary, model.vocabulary);
    if (rows > model.vocabulary) {
      in["draft_vocab_size"].Fail("is " + std::to_string(rows) + ", but the model has " +
                                  std::to_string(model.vocabulary) + " tokens");
    }
    head.epsilon = static_cast<float>(in["rms_norm_eps"].Positive(1e-6));
    head.norm_before_residual = in["norm_before_residual"].Bool(false);
    ReadHeadTaps(in, model.layer_count(), head);
    if (in.ok()) ReadEagleLayer(in, model, head);
  } else {
    const bool hydra = head.kind == DraftHead::Kind::kHydra;
    const bool own = in["medusa_num_heads"].present();
    const JsonReader heads = in[hydra ? "hydra_num_heads" : own ? "medusa_num_heads" : "num_heads"];
    head.steps.resize(static_cast<size_t>(heads.Whole(1, kMostHeadSteps)));
    const JsonReader layers = in[hydra ? "hydra_num_layers"
                                 : own ? "medusa_num_layers"
                                       : "num_hidden_layers"];
    blocks = layers.Whole(hydra ? 1 : 0, kMostHeadBlocks, 1);
    if (hydra && in.ok()) {
      if (Status status = ReadHydraLayer(in, model, head); !status.ok()) return status.error();
    }
  }
  if (!in.ok()) return in.error();
  if (Status status = ExpectSafetensors(folder); !status.ok()) return status.error();
  Result<Checkpoint> checkpoint = Checkpoint::Open(folder);
  if (!checkpoint.ok()) return checkpoint.error();
  head.memory.source = std::make_unique<Checkpoint>(*std::move(checkpoint));
  const TensorSource& source = *head.memory.source;
  Binder binder(head.memory, source, 0.0f, WeightDtype::kAsStored, threads, false);
  Status bound =
      head.kind == DraftHead::Kind::kEagle3   ? BindEagle(source, binder, model, rows, head)
      : head.kind == DraftHead::Kind::kMedusa ? BindMedusa(source, binder, model, blocks, head)
                                              : BindHydra(source, binder, model, blocks, head);
  if (!bound.ok()) return bound.error();
  return head;
}

Status AttachDraftHead(std::unique_ptr<Model>& model, const std::string& folder) {
  auto* const cpu = dynamic_cast<TransformerCpu*>(model.get());
  if (cpu == nullptr) {
    return Error{ErrorCode::kUnsupported,
                 "is a trained head, which drafts for models on the CPU alone", folder};
  }
  if (cpu->config().both_sides) {
    return Error{ErrorCode::kUnsupported,
                 "is a trained head, which does not draft for models that fill masks", folder};
  }
  if (cpu->info().draft_heads.size() >= kMostDraftHeads) {
    return Error{ErrorCode::kUnsupported,
                 "is one more trained head than the " + std::to_string(kMostDraftHeads) +
                     " that a model can have",
                 folder};
  }
  Result<DraftHead> head = LoadDraftHead(folder, cpu->config(), cpu->info().threads);
  if (!head.ok()) return head.error();
  try {
    model = TransformerCpu::WithHead(std::move(*cpu), *std::move(head));
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::kLimit, "not enough memory to load the head", folder};
  }
  return {};
}

}  // namespace pawl
