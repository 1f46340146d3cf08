// Two spellings are in use: older files have torch_dtype, rope_theta and rope_scaling {type |
// rope_type, ...}; newer ones dtype and rope_parameters {rope_theta, rope_type, ...}. The dtype is
// read from the tensors themselves.
//
// A key that would change the result and is not implemented is an error that names it, never
// ignored: RefuseTheRest finds it.
#include "src/model/transformer_config.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <optional>
#include <span>
#include <utility>

#include "src/base/json_file.h"
#include "src/base/json_reader.h"
#include "src/base/os/files.h"
#include "src/model/families/family.h"

namespace pawl {

// Su et al., "RoFormer" (2021): pair i of d/2 turns by theta^(-2i/d) per position. What follows
// stretches a trained context:
//   linear   position interpolation (Chen et al., 2023): all frequencies divided by the factor;
//   dynamic  NTK-aware: a larger theta, growing with the length beyond the original context. The
//            reference implementation takes the longest length so far and leaves keys as they were
//            rotated; fed token by token, a key thus has the frequencies of its own position. Here
//            it has them however it is fed, as a row's result must not depend on its company;
//   llama3   wavelengths below original_context / high_freq_factor stay, those above
//            original_context / low_freq_factor are divided, a blend between;
//   yarn     (Peng et al., 2023): dimensions that turn more than beta_fast times within the
//            original context stay, those below beta_slow turns are divided, a linear ramp over
//            the dimensions between; attention is sharpened by attention_factor;
//   long     (LongRoPE, Ding et al., 2024): each frequency has a divisor of its own, and another
//   one
//            for positions beyond the original context. The reference implementation takes the
//            second ones for all positions once a text is longer; here as with dynamic.

namespace {

// The dimension that turns `turns` times within the original context.
double YarnDimension(const RopeConfig& rope, int head_dim, double turns) {
  return head_dim * std::log(rope.original_context / (turns * 2.0 * std::numbers::pi)) /
         (2.0 * std::log(rope.theta));
}

}  // namespace

double YarnAttentionFactor(double factor, double scale) {
  return factor <= 1.0 ? 1.0 : 0.1 * scale * std::log(factor) + 1.0;
}

void RopeFrequencies(const RopeConfig& rope, int head_dim, int position,
                     std::vector<float>& frequencies) {
  head_dim = rope.WidthIn(head_dim);
  double theta = rope.theta;
  if (rope.type == RopeType::kDynamic) {
    const double length = std::max(position + 1.0, rope.original_context);
    const double stretch = rope.factor * length / rope.original_context - (rope.factor - 1.0);
    theta *= std::pow(stretch, head_dim / std::max(head_dim - 2.0, 1.0));
  }
  double low = 0, high = 0;
  if (rope.type == RopeType::kYarn) {
    low = YarnDimension(rope, head_dim, rope.beta_fast);
    high = YarnDimension(rope, head_dim, rope.beta_slow);
    if (rope.truncate) {
      low = std::floor(low);
      high = std::ceil(high);
    }
    low = std::max(low, 0.0);
    high = std::min(high, head_dim - 1.0);
    if (low == high) high += 0.001;
  }
  const bool beyond = rope.type == RopeType::kLong && position >= rope.original_context;
  const std::vector<float>& divisors = beyond ? rope.long_divisors : rope.divisors;
  frequencies.resize(static_cast<size_t>(head_dim) / 2);
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const double power = std::pow(theta, 2.0 * static_cast<double>(i) / head_dim);
    double frequency = static_cast<float>(1.0 / power);
    if (rope.type == RopeType::kLinear) {
      frequency /= rope.factor;
    } else if (rope.type == RopeType::kLlama3) {
      const double wavelength = 2.0 * std::numbers::pi / frequency;
      const double turns = rope.original_context / wavelength;
      const double keep = std::clamp(
          (turns - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor), 0.0,
          1.0);
      frequency = (1.0 - keep) * frequency / rope.factor + keep * frequency;
    } else if (rope.type == RopeType::kYarn) {
      const double slow = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
      frequency = frequency / rope.factor * slow + frequency * (1.0 - slow);
    }
    if (i < divisors.size()) frequency /= static_cast<double>(divisors[i]);
    frequencies[i] = static_cast<float>(frequency);
  }
}

RopeRows::RopeRows(const RopeConfig& rope, int head_dim)
    : rope_(rope), head_dim_(rope.WidthIn(head_dim)) {
  RopeFrequencies(rope_, head_dim_, 0, frequencies_);
}

void RopeRows::Next(float* row) {
  if ((rope_.type == RopeType::kDynamic && position_ >= rope_.original_context) ||
      (rope_.type == RopeType::kLong && position_ == std::ceil(rope_.original_context))) {
    RopeFrequencies(rope_, head_dim_, position_, frequencies_);
  }
  const size_t half = static_cast<size_t>(head_dim_) / 2;
  for (size_t i = 0; i < half; ++i) {
    const double angle = static_cast<float>(position_) * frequencies_[i];
    row[i] = static_cast<float>(std::cos(angle) * rope_.attention_factor);
    row[half + i] = static_cast<float>(std::sin(angle) * rope_.attention_factor);
  }
  ++position_;
}

namespace {

// Members of config.json that change no output of the model, with a space behind each.
constexpr std::string_view kHarmless =
    // of the library that wrote it, and of training
    "architectures model_type torch_dtype dtype transformers_version use_cache "
    "initializer_range attention_dropout hidden_dropout embd_pdrop resid_pdrop "
    "cache_implementation auto_map tokenizer_class prefix id2label label2id num_labels "
    "problem_type finetuning_task task_specific_params torchscript return_dict "
    "output_attentions output_hidden_states chunk_size_feed_forward is_decoder "
    "tf_legacy_loss transformers.js_config unsloth_fixed unsloth_version "
    // tokens, which count where ReadSpecialTokens reads them
    "bos_token_id eos_token_id pad_token_id unk_token_id sep_token_id "
    "decoder_start_token_id "
    // how the library generates
    "max_length min_length do_sample temperature top_k top_p typical_p num_beams "
    "num_beam_groups diversity_penalty repetition_penalty length_penalty "
    "no_repeat_ngram_size encoder_no_repeat_ngram_size bad_words_ids num_return_sequences "
    "early_stopping forced_bos_token_id forced_eos_token_id suppress_tokens "
    "begin_suppress_tokens exponential_decay_length_penalty pretraining_tp "
    "remove_invalid_values return_dict_in_generate output_scores pruned_heads ";

// Those around the description of a text model, of images and sounds.
constexpr std::string_view kOfImages =
    "text_config vision_config audio_config mm_tokens_per_image vision_soft_tokens_per_image "
    "boi_token_index eoi_token_index image_token_index boi_token_id eoi_token_id image_token_id "
    "video_token_id audio_token_id boa_token_id eoa_token_id eoa_token_index "
    "vision_start_token_id vision_end_token_id multimodal_projector_bias projector_hidden_act "
    "projector_bias projector_hidden_size projector_use_layernorm spatial_merge_size "
    "vision_feature_layer is_encoder_decoder downsample_factor encoder_patch_size "
    "do_image_splitting use_image_special_tokens use_thumbnail tile_size min_tiles max_tiles "
    "min_image_tokens max_image_tokens max_num_patches max_pixels_tolerance ";

void IgnoreAll(const JsonReader& in, std::string_view names) {
  while (!names.empty()) {
    const size_t end = names.find(' ');
    in.Ignore({names.substr(0, end)});
    names.remove_prefix(end + 1);
  }
}

// The architecture, and the object that describes the text model: all of the file but of models of
// text and images.
struct Described {
  std::string architecture;
  const Family* family = nullptr;
  JsonReader in;
  bool inside = false;
  bool classifies = false;
};

// Without a family, with an error, where there is none.
Described FindDescription(const JsonReader& outer) {
  const JsonReader names = outer["architectures"];
  Described found = {"", nullptr, outer};
  if (!names.IsArray() || names.size() != 1 || !names.Item(0).IsString()) {
    names.Fail("must be a list of one name");
    return found;
  }
  found.architecture = names.Item(0).String();
  found.family = FindFamily(found.architecture);
  if (found.family != nullptr) return found;
  // The layers of a family under a head for labels.
  constexpr std::string_view kClassifier = "ForSequenceClassification";
  if (found.architecture.ends_with(kClassifier)) {
    const std::string plain =
        found.architecture.substr(0, found.architecture.size() - kClassifier.size());
    found.family = FindFamily(plain + "ForCausalLM");
    if (found.family != nullptr) found.architecture = plain + "ForCausalLM";
    found.classifies = found.family != nullptr;
    if (found.classifies) return found;
  }
  found.inside = FindWrapped(found.architecture, "") != nullptr;
  if (!found.inside) {
    names.Unsupported("the architecture " + json::Quote(found.architecture.substr(0, 100)) +
                      " is not supported" + WhyRefused(found.architecture) +
                      "; these are: " + FamilyNames());
    return found;
  }
  found.in = outer["text_config"].Object();
  const JsonReader type = found.in["model_type"];
  found.family = FindWrapped(found.architecture, type.String(""));
  if (found.family == nullptr) {
    type.Unsupported("is " + json::Shown(*type.value()) + ", which is not supported for " +
                     found.architecture);
  }
  return found;
}

// An id, a list of ids, or nothing.
void ReadTokens(const JsonReader& in, int vocabulary, std::vector<TokenId>& tokens) {
  if (!in.present()) return;
  tokens.clear();
  const std::span<const json::Value> all =
      in.IsArray() ? std::span(in.value()->items) : std::span(in.value(), 1);
  for (const json::Value& item : all) {
    const std::optional<int64_t> id = json::WholeOf(item);
    if (!id || *id < 0 || *id >= vocabulary) {
      return in.Fail("must be a token id below " + std::to_string(vocabulary) +
                     " or a list of them, is " + json::Shown(*in.value()));
    }
    tokens.push_back(static_cast<TokenId>(*id));
  }
}

Status ReadSpecialTokens(const JsonReader& in, TransformerConfig& config) {
  std::vector<TokenId> bos;
  ReadTokens(in["eos_token_id"], config.vocabulary, config.end_tokens);
  ReadTokens(in["bos_token_id"], config.vocabulary, bos);
  if (!bos.empty()) config.bos = bos[0];
  return in.status();
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
void CheckOuter(const JsonReader& in, TransformerConfig& config) {
  config.tied_embeddings = in["tie_word_embeddings"].Bool(config.tied_embeddings);
  IgnoreAll(in, kHarmless);
  IgnoreAll(in, kOfImages);
  RefuseTheRest(in, "a model of text and images");
}

// The reference implementation chooses by this name. Both have to mean the same model.
void CheckType(const JsonReader& in, const TransformerConfig& config) {
  std::string type = PlainName(in.String(""));
  if (type.ends_with("text")) type.resize(type.size() - 4);
  std::string expected = PlainName(config.architecture);
  if (expected == "hunyuandensev1") expected = "hunyuanv1dense";
  if (!type.empty() && type != expected) {
    in.Unsupported("is " + json::Quote(in.String().substr(0, 50)) + "; expected the type of " +
                   config.architecture);
  }
}

// What all families have: a layer as most families repeat it.
void ReadSizes(const JsonReader& in, const Family& family, TransformerConfig& config) {
  const FamilyDefaults& defaults = family.defaults;
  const SizeKeys& keys = family.keys;
  const auto whole = [&](const char* key, int64_t high) {
    return static_cast<int>(in[key].Whole(1, high));
  };
  const auto whole_or = [&](const char* key, int64_t high, int otherwise) {
    return static_cast<int>(in[key].Whole(1, high, otherwise));
  };
  Attention attention;
  config.hidden = whole(keys.hidden, kMaxWidth);
  const int intermediate = defaults.intermediate > 0
                               ? whole_or(keys.intermediate, kMaxWidth, defaults.intermediate)
                               : whole(keys.intermediate, kMaxWidth);
  const JsonReader listed = in[defaults.layers], number = in[keys.layers];
  const bool counted = number.present() || !listed.IsArray();
  const auto layers = static_cast<size_t>(counted ? number.Whole(1, kMaxLayers)
                                                  : static_cast<int64_t>(listed.size()));
  if (layers < 1 || layers > kMaxLayers) listed.Fail("must have 1 to 1024 entries");
  attention.heads = defaults.heads > 0 ? whole_or(keys.heads, kMaxWidth, defaults.heads)
                                       : whole(keys.heads, kMaxWidth);
  config.vocabulary = defaults.vocabulary > 0
                          ? whole_or("vocab_size", kMaxVocabulary, defaults.vocabulary)
                          : whole("vocab_size", kMaxVocabulary);
  attention.kv_heads = whole_or(keys.kv_heads, kMaxWidth,
                                defaults.kv_heads > 0 ? defaults.kv_heads : attention.heads);
  attention.head_dim = whole_or("head_dim", kMaxHeadDim, defaults.head_dim);
  config.context_length = whole_or(keys.context, kMaxContext, defaults.context);
  const JsonReader epsilon = in[defaults.epsilon_key];
  config.norm_epsilon = static_cast<float>(epsilon.Positive(defaults.epsilon));
  if (config.norm_epsilon > 1) epsilon.Fail("must be at most 1");
  config.tied_embeddings = in[keys.tied].Bool(defaults.tied_embeddings);
  if (attention.head_dim == 0) {
    if (config.hidden % attention.heads != 0) {
      in[keys.heads].Fail("must divide " + std::string(keys.hidden) + " when there is no head_dim");
    }
    attention.head_dim = std::max(1, config.hidden / attention.heads);
  }
  if (attention.head_dim % 2 != 0 || attention.head_dim > kMaxHeadDim) {
    in["head_dim"].Unsupported("must be even and at most " + std::to_string(kMaxHeadDim) + ", is " +
                               std::to_string(attention.head_dim));
  }
  if (attention.heads % attention.kv_heads != 0) {
    in[keys.kv_heads].Fail("must divide " + std::string(keys.heads));
  }
  if (int64_t{attention.heads} * attention.head_dim > kMaxWidth) {
    in[keys.heads].Fail("heads times head_dim exceeds " + std::to_string(kMaxWidth),
                        ErrorCode::kLimit);
  }
  config.layers.assign(layers, {attention, Mlp{.width = intermediate}});
}

Result<TransformerConfig> ReadConfigFile(const std::string& path) {
  Result<json::Value> root = ReadSettingsFile(path);
  if (!root.ok()) return root.error();
  const JsonReader outer(*root, path + "#");
  const Described found = FindDescription(outer);
  if (!outer.ok()) return outer.error();
  TransformerConfig config;
  config.architecture = found.architecture;
  config.family = found.family;
  config.classifies = found.classifies;
  CheckType(outer["model_type"], config);
  const JsonReader& in = found.in;
  // Models of text and images have it at the top.
  const JsonReader quantized = outer["quantization_config"];
  config.quantization =
      ReadCheckpointFormat(quantized.present() ? quantized : in["quantization_config"]);
  ReadSizes(in, *found.family, config);
  if (found.inside) CheckOuter(outer, config);
  if (!in.ok()) return in.error();
  found.family->read(in, config);
  IgnoreAll(in, kHarmless);
  RefuseTheRest(in, config.architecture);
  if (!in.ok()) return in.error();
  config.context_length = ScaledContext(config);
  Finish(config);
  if (Status status = ReadSpecialTokens(in, config); !status.ok()) return status.error();
  if (Status status = ReadSpecialTokens(outer, config); !status.ok()) return status.error();
  return config;
}

}  // namespace

void Finish(TransformerConfig& config) {
  for (Layer& layer : config.layers) {
    auto* const attention = std::get_if<Attention>(&layer.mixer);
    if (attention == nullptr) continue;
    if (attention->window >= config.context_length) attention->window = 0;
    if (attention->scale == 1.0f / std::sqrt(static_cast<float>(attention->head_dim))) {
      attention->scale = 0.0f;
    }
  }
}

Result<TransformerConfig> ReadTransformerConfig(const std::string& folder) {
  Result<TransformerConfig> config = ReadConfigFile(folder + "/config.json");
  if (!config.ok()) return config.error();
  const std::string generation_path = folder + "/generation_config.json";
  if (os::Exists(generation_path)) {
    Result<json::Value> generation = ReadSettingsFile(generation_path);
    if (!generation.ok()) return generation.error();
    const JsonReader in(*generation, generation_path + "#");
    if (Status status = ReadSpecialTokens(in, *config); !status.ok()) return status.error();
  }
  return config;
}

}  // namespace pawl
