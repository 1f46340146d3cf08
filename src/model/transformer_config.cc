// Two spellings are in use: older files have torch_dtype, rope_theta and rope_scaling {type |
// rope_type, ...}; newer ones dtype and rope_parameters {rope_theta, rope_type, ...}. The dtype is
// read from the tensors themselves.
//
// A key that would change the result and is not implemented is an error that names it, never
// ignored; config_reader.h keeps count.
#include "src/model/transformer_config.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "src/base/file.h"
#include "src/base/json.h"
#include "src/model/config_reader.h"
#include "src/model/families.h"
#include "src/model/json_fields.h"

namespace pawl {
namespace {

// Keys of config.json that concern training, sampling, or the library that wrote it.
constexpr std::string_view kHarmless[] = {"architectures",
                                          "model_type",
                                          "torch_dtype",
                                          "dtype",
                                          "transformers_version",
                                          "use_cache",
                                          "initializer_range",
                                          "attention_dropout",
                                          "hidden_dropout",
                                          "embd_pdrop",
                                          "resid_pdrop",
                                          "bos_token_id",
                                          "eos_token_id",
                                          "pad_token_id",
                                          "unk_token_id",
                                          "sep_token_id",
                                          "decoder_start_token_id",
                                          "cache_implementation",
                                          "auto_map",
                                          "tokenizer_class",
                                          "prefix",
                                          "id2label",
                                          "label2id",
                                          "num_labels",
                                          "problem_type",
                                          "finetuning_task",
                                          "task_specific_params",
                                          "torchscript",
                                          "return_dict",
                                          "output_attentions",
                                          "output_hidden_states",
                                          "chunk_size_feed_forward",
                                          "is_decoder",
                                          "tf_legacy_loss",
                                          "transformers.js_config",
                                          "unsloth_fixed",
                                          "unsloth_version",
                                          "max_length",
                                          "min_length",
                                          "do_sample",
                                          "temperature",
                                          "top_k",
                                          "top_p",
                                          "typical_p",
                                          "num_beams",
                                          "num_beam_groups",
                                          "diversity_penalty",
                                          "repetition_penalty",
                                          "length_penalty",
                                          "no_repeat_ngram_size",
                                          "encoder_no_repeat_ngram_size",
                                          "bad_words_ids",
                                          "num_return_sequences",
                                          "early_stopping",
                                          "forced_bos_token_id",
                                          "forced_eos_token_id",
                                          "suppress_tokens",
                                          "begin_suppress_tokens",
                                          "exponential_decay_length_penalty",
                                          "pretraining_tp",
                                          "remove_invalid_values",
                                          "return_dict_in_generate",
                                          "output_scores",
                                          "pruned_heads"};

Result<const Family*> ReadFamily(const JsonFields& fields) {
  const json::Value* list = fields.Find("architectures");
  if (list == nullptr || list->type != json::Type::kArray || list->items.size() != 1 ||
      list->items[0].type != json::Type::kString) {
    return fields.ErrorAt(ErrorCode::kInvalid, "architectures", "must be a list of one name");
  }
  const std::string& name = list->items[0].text;
  if (const Family* family = FindFamily(name)) return family;
  return fields.ErrorAt(ErrorCode::kUnsupported, "architectures",
                        "the architecture " + json::Quote(name.substr(0, 100)) +
                            " is not supported; " + FamilyNames() + " are");
}

// An id, a list of ids, or nothing.
Status ReadTokens(const JsonFields& fields, std::string_view key, int vocabulary,
                  std::vector<TokenId>& tokens) {
  const json::Value* value = fields.Find(key);
  if (value == nullptr) return {};
  const auto add = [&](const json::Value& item) {
    const std::optional<int64_t> id = AsInt(item);
    if (!id || *id < 0 || *id >= vocabulary) return false;
    tokens.push_back(static_cast<TokenId>(*id));
    return true;
  };
  bool good = true;
  tokens.clear();
  if (value->type == json::Type::kArray) {
    for (const json::Value& item : value->items) good = good && add(item);
  } else {
    good = add(*value);
  }
  if (!good) {
    return fields.ErrorAt(ErrorCode::kInvalid, key,
                          "must be a token id below " + std::to_string(vocabulary) +
                              " or a list of them, is " + Shown(*value));
  }
  return {};
}

Status ReadSpecialTokens(const JsonFields& fields, TransformerConfig& config) {
  if (Status status = ReadTokens(fields, "eos_token_id", config.vocabulary, config.end_tokens);
      !status.ok()) {
    return status;
  }
  std::vector<TokenId> bos;
  if (Status status = ReadTokens(fields, "bos_token_id", config.vocabulary, bos); !status.ok()) {
    return status;
  }
  if (!bos.empty()) config.bos = bos[0];
  return {};
}

Result<json::Value> ReadJsonFile(const std::string& path) {
  Result<std::string> text = ReadRegularFile(path);
  if (!text.ok()) return text.error();
  Result<json::Value> root = json::Parse(*text);
  if (!root.ok()) return Error{root.error().code, root.error().ToString(), path};
  if (root->type != json::Type::kObject) {
    return Error{ErrorCode::kInvalid, "must be a JSON object", path};
  }
  return root;
}

// The context that scaling reaches where max_position_embeddings states the one before it.
int ScaledContext(const TransformerConfig& config) {
  double context = config.context_length;
  for (const RopeConfig& rope : config.ropes) {
    if (rope.type != RopeType::kDynamic && rope.type != RopeType::kYarn) continue;
    context = std::max(context, rope.original_context * rope.factor);
  }
  return static_cast<int>(std::min(context, static_cast<double>(kMaxContext)));
}

// The members around the description of the text model: those of the images say nothing about it.
Status CheckOuter(const JsonFields& fields, const json::Value& root,
                  const FamilyDefaults& defaults) {
  ConfigReader reader(fields, root);
  if (reader.Bool("tie_word_embeddings", true) != defaults.tied_embeddings) {
    reader.Fail(ErrorCode::kUnsupported, "tie_word_embeddings",
                "is false; expected true or nothing");
  }
  for (const std::string_view key : kHarmless) reader.Ignore(key);
  for (const char* key : {"vision_config", "mm_tokens_per_image", "boi_token_index",
                          "eoi_token_index", "image_token_index", "is_encoder_decoder"}) {
    reader.Ignore(key);
  }
  reader.Ignore(defaults.text_config);
  reader.RefuseTheRest("a model of text and images");
  if (reader.error()) return *reader.error();
  return {};
}

Result<TransformerConfig> ReadConfigFile(const std::string& path) {
  Result<json::Value> root = ReadJsonFile(path);
  if (!root.ok()) return root.error();
  const JsonFields outer(*root, path);
  Result<const Family*> family = ReadFamily(outer);
  if (!family.ok()) return family.error();
  const FamilyDefaults& defaults = (*family)->defaults;
  TransformerConfig config;
  config.architecture = (*family)->architecture;
  const json::Value* object = &*root;
  if (defaults.text_config != nullptr) {
    object = root->Find(defaults.text_config);
    if (object == nullptr || object->type != json::Type::kObject) {
      return outer.ErrorAt(ErrorCode::kInvalid, defaults.text_config,
                           "must be an object that describes the text model");
    }
    if (Status status = CheckOuter(outer, *root, defaults); !status.ok()) return status.error();
  }
  const JsonFields fields(
      *object, path,
      defaults.text_config == nullptr ? "" : "/" + std::string(defaults.text_config));

  ConfigReader reader(fields, *object);
  config.hidden = reader.RequiredInt("hidden_size", kMaxWidth);
  config.intermediate = reader.RequiredInt("intermediate_size", kMaxWidth);
  config.layers.resize(static_cast<size_t>(reader.RequiredInt("num_hidden_layers", kMaxLayers)));
  config.heads = defaults.heads > 0 ? reader.Int("num_attention_heads", kMaxWidth, defaults.heads)
                                    : reader.RequiredInt("num_attention_heads", kMaxWidth);
  config.vocabulary = defaults.vocabulary > 0
                          ? reader.Int("vocab_size", kMaxVocabulary, defaults.vocabulary)
                          : reader.RequiredInt("vocab_size", kMaxVocabulary);
  config.kv_heads = reader.Int("num_key_value_heads", kMaxWidth,
                               defaults.kv_heads > 0 ? defaults.kv_heads : config.heads);
  config.head_dim = reader.Int("head_dim", kMaxHeadDim, defaults.head_dim);
  config.context_length = reader.Int("max_position_embeddings", kMaxContext, defaults.context);
  config.norm_epsilon = static_cast<float>(reader.Positive("rms_norm_eps", 1e-6));
  config.tied_embeddings = reader.Bool("tie_word_embeddings", defaults.tied_embeddings);
  if (reader.Find("quantization_config") != nullptr) {
    reader.Fail(ErrorCode::kUnsupported, "quantization_config",
                "checkpoints with quantized weights are not supported; bf16, fp16 and fp32 are");
  }
  if (config.head_dim == 0) {
    if (config.hidden % config.heads != 0) {
      reader.Fail(ErrorCode::kInvalid, "num_attention_heads",
                  "must divide hidden_size when there is no head_dim");
    }
    config.head_dim = std::max(1, config.hidden / config.heads);
  }
  if (config.head_dim % 2 != 0 || config.head_dim > kMaxHeadDim) {
    reader.Fail(ErrorCode::kUnsupported, "head_dim",
                "must be even and at most " + std::to_string(kMaxHeadDim) + ", is " +
                    std::to_string(config.head_dim));
  }
  if (config.heads % config.kv_heads != 0) {
    reader.Fail(ErrorCode::kInvalid, "num_key_value_heads", "must divide num_attention_heads");
  }
  if (int64_t{config.heads} * config.head_dim > kMaxWidth) {
    reader.Fail(ErrorCode::kLimit, "num_attention_heads",
                "heads times head_dim exceeds " + std::to_string(kMaxWidth));
  }
  if (reader.error()) return *reader.error();
  (*family)->read(reader, config);
  for (const std::string_view key : kHarmless) reader.Ignore(key);
  reader.RefuseTheRest(config.architecture);
  if (reader.error()) return *reader.error();
  config.context_length = ScaledContext(config);
  for (LayerConfig& layer : config.layers) {
    if (layer.window >= config.context_length) layer.window = 0;
  }
  if (Status status = ReadSpecialTokens(fields, config); !status.ok()) return status.error();
  if (object != &*root) {
    if (Status status = ReadSpecialTokens(outer, config); !status.ok()) return status.error();
  }
  return config;
}

}  // namespace

Result<TransformerConfig> ReadTransformerConfig(const std::string& folder) {
  Result<TransformerConfig> config = ReadConfigFile(folder + "/config.json");
  if (!config.ok()) return config.error();
  const std::string generation_path = folder + "/generation_config.json";
  struct stat info = {};
  if (::stat(generation_path.c_str(), &info) == 0) {
    Result<json::Value> generation = ReadJsonFile(generation_path);
    if (!generation.ok()) return generation.error();
    if (Status status = ReadSpecialTokens(JsonFields(*generation, generation_path), *config);
        !status.ok()) {
      return status.error();
    }
  }
  return config;
}

}  // namespace pawl
