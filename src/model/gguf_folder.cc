// The header is made of the folder's description and read back as that of any file. So what a key
// means is said in one place, and a setting that has no key shows as a difference.
#include "src/model/gguf_folder.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "src/base/file.h"
#include "src/base/json.h"
#include "src/model/families/family.h"
#include "src/model/gguf_model.h"
#include "src/model/gguf_output.h"
#include "src/model/safetensors.h"
#include "src/model/transformer_config.h"
#include "src/model/transformer_weights.h"
#include "src/text/gguf_tokenizer.h"
#include "src/text/tokenizer.h"

namespace pawl {
namespace {

// What a key's value begins with, and the types of tokens.
constexpr uint32_t kInt32 = 5, kFloat32 = 6, kBoolean = 7, kText = 8, kList = 9;
constexpr int32_t kNormal = 1, kControl = 3, kOwn = 4, kUnused = 5;

template <typename T>
std::string BytesOf(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}
std::string TextBytes(std::string_view text) {
  return BytesOf<uint64_t>(text.size()) + std::string(text);
}
std::string Text(std::string_view text) { return BytesOf(kText) + TextBytes(text); }
std::string Real(double value) { return BytesOf(kFloat32) + BytesOf(static_cast<float>(value)); }
std::string ListOf(uint32_t type, size_t count) {
  return BytesOf(kList) + BytesOf(type) + BytesOf<uint64_t>(count);
}

Error Cannot(const std::string& place, std::string what) {
  return {ErrorCode::kUnsupported, std::move(what) + "; this is not written to GGUF files here",
          place};
}

// ---- Settings ----

// Those of a family that has no others. What is left out shows when they are read back.
void AddSettings(const TransformerConfig& config, const Attention& attention, const Mlp& mlp,
                 GgufHeader& header) {
  const std::string arch = config.family->gguf[0];
  const auto whole = [&](const char* key, int64_t value) {
    header.AddUnsigned(arch + "." + key, static_cast<uint32_t>(value));
  };
  header.Add("general.architecture", Text(arch));
  whole("block_count", config.layer_count());
  whole("context_length", config.context_length);
  whole("embedding_length", config.hidden);
  whole("feed_forward_length", mlp.width);
  whole("attention.head_count", attention.heads);
  whole("attention.head_count_kv", attention.kv_heads);
  whole("attention.key_length", attention.head_dim);
  whole("attention.value_length", attention.head_dim);
  whole("vocab_size", config.vocabulary);
  header.Add(arch + "." + config.family->gguf_epsilon_key, Real(config.norm_epsilon));
  if (attention.window > 0) whole("attention.sliding_window", attention.window);
  if (config.ropes.empty()) return;
  const RopeConfig& rope = config.ropes[0];
  whole("rope.dimension_count", rope.WidthIn(attention.head_dim));
  header.Add(arch + ".rope.freq_base", Real(rope.theta));
  if (rope.type == RopeType::kLinear || rope.type == RopeType::kYarn) {
    const bool yarn = rope.type == RopeType::kYarn;
    header.Add(arch + ".rope.scaling.type", Text(yarn ? "yarn" : "linear"));
    header.Add(arch + ".rope.scaling.factor", Real(rope.factor));
    if (yarn) {
      whole("rope.scaling.original_context_length", static_cast<int64_t>(rope.original_context));
    }
  }
}

// What Llama 3 divides frequencies by is a tensor.
std::vector<float> DivisorsOf(const RopeConfig& rope, int head_dim) {
  std::vector<float> plain, divided;
  RopeConfig without;
  without.theta = rope.theta;
  without.width = rope.width;
  RopeFrequencies(without, head_dim, 0, plain);
  RopeFrequencies(rope, head_dim, 0, divided);
  for (size_t i = 0; i < plain.size(); ++i) plain[i] /= divided[i];
  return plain;
}

// The first line in which two descriptions differ.
std::string DifferenceOf(const std::string& a, const std::string& b) {
  size_t begin = 0;
  for (size_t i = 0; i < a.size() && i < b.size() && a[i] == b[i]; ++i) {
    if (a[i] == '\n') begin = i + 1;
  }
  return a.substr(begin, a.find('\n', begin) - begin);
}

// ---- The tokenizer ----

struct Token {
  std::string text;
  int32_t type = kUnused;
};

Result<std::vector<Token>> TokensOf(const json::Value& file, const std::string& path, int count) {
  std::vector<Token> tokens(static_cast<size_t>(count));
  const auto put = [&](const std::string& text, const json::Value* id, int32_t type) {
    const long at = id == nullptr ? -1 : std::strtol(id->text.c_str(), nullptr, 10);
    if (at < 0 || at >= count) return false;
    tokens[static_cast<size_t>(at)] = {text, type};
    return true;
  };
  const json::Value* model = file.Find("model");
  const json::Value* words = model->Find("vocab");
  bool fits = words != nullptr;
  if (fits) {
    for (const json::Member& word : words->members) {
      fits = fits && put(word.first, &word.second, kNormal);
    }
  }
  if (const json::Value* added = file.Find("added_tokens")) {
    for (const json::Value& token : added->items) {
      const json::Value *text = token.Find("content"), *special = token.Find("special");
      const bool control = special != nullptr && special->type == json::Type::kTrue;
      fits =
          fits && text != nullptr && put(text->text, token.Find("id"), control ? kControl : kOwn);
    }
  }
  if (!fits) return Cannot(path, "has tokens without a row of the embedding");
  for (size_t id = 0; id < tokens.size(); ++id) {
    if (tokens[id].type == kUnused) tokens[id].text = "[PAD" + std::to_string(id) + "]";
  }
  return tokens;
}

// The text of the chat template; of several the default one.
std::string TemplateOf(const std::string& folder) {
  const std::filesystem::path path = folder;
  if (Result<std::string> alone = ReadFile((path / "chat_template.jinja").string()); alone.ok()) {
    return *alone;
  }
  const Result<std::string> text = ReadFile((path / "tokenizer_config.json").string());
  if (!text.ok()) return "";
  const Result<json::Value> settings = json::Parse(*text);
  const json::Value* found = settings.ok() ? settings->Find("chat_template") : nullptr;
  if (found == nullptr) return "";
  for (const json::Value& one : found->items) {
    const json::Value *name = one.Find("name"), *body = one.Find("template");
    if (name != nullptr && body != nullptr && name->text == "default") return body->text;
  }
  return found->text;
}

Status AddTokenizer(const std::string& folder, const Tokenizer& tokenizer,
                    const TransformerConfig& config, GgufHeader& header) {
  const std::string path = (std::filesystem::path(folder) / "tokenizer.json").string();
  Result<std::string> text = ReadFile(path);
  if (!text.ok()) return text.error();
  Result<json::Value> file = json::Parse(*text);
  if (!file.ok()) return InFile(path, file.error());
  const std::string pre = PreTokenizerNameOf(*file);
  if (pre.empty()) return Cannot(path, "cuts words in a way that GGUF has no name for");
  Result<std::vector<Token>> tokens = TokensOf(*file, path, config.vocabulary);
  if (!tokens.ok()) return tokens.error();
  std::string texts = ListOf(kText, tokens->size()), types = ListOf(kInt32, tokens->size());
  for (const Token& token : *tokens) {
    texts += TextBytes(token.text);
    types += BytesOf(token.type);
  }
  std::string merges;
  size_t count = 0;
  if (const json::Value* list = file->Find("model")->Find("merges")) {
    for (const json::Value& merge : list->items) {
      merges += TextBytes(merge.items.size() == 2 ? merge.items[0].text + " " + merge.items[1].text
                                                  : merge.text);
      ++count;
    }
  }
  const std::string ggml = "tokenizer.ggml.";
  header.Add(ggml + "model", Text("gpt2"));
  header.Add(ggml + "pre", Text(pre));
  header.Add(ggml + "tokens", texts);
  header.Add(ggml + "token_type", types);
  header.Add(ggml + "merges", ListOf(kText, count) + merges);
  const auto id = [&](const char* key, TokenId token) {
    if (token != kNoToken) header.AddUnsigned(ggml + key, static_cast<uint32_t>(token));
  };
  const std::vector<TokenId> added = tokenizer.Encode("", {.add_special_tokens = true});
  id("bos_token_id", added.empty() ? config.bos : added[0]);
  const std::vector<TokenId>& ends = config.end_tokens;
  id("eos_token_id", ends.empty() ? kNoToken : ends[0]);
  id("eot_token_id", ends.size() < 2 ? kNoToken : ends[1]);
  header.Add(ggml + "add_bos_token", BytesOf(kBoolean) + BytesOf(!added.empty()));
  const std::string chat = TemplateOf(folder);
  if (!chat.empty()) header.Add("tokenizer.chat_template", Text(chat));
  return {};
}

// The text has what tokenizers cut differently.
Status CompareTokenizers(const GgufFile& file, const Tokenizer& tokenizer) {
  Result<GgufVocabulary> vocabulary = ReadGgufVocabulary(file);
  if (!vocabulary.ok()) return vocabulary.error();
  Result<std::shared_ptr<const Tokenizer>> written = MakeGgufTokenizer(*vocabulary);
  if (!written.ok()) return written.error();
  constexpr std::string_view kProbe =
      "I'll say: 'We've 1 or 12345 things'\r\n\n\t  \t(x_1 += 3.14)  !!?\n\n\n"
      "H\xC3\xA9llo W\xC3\x96RLD, e\xCC\x81 \xE4\xBD\xA0\xE5\xA5\xBD \xF0\x9F\x98\x80\xE2\x80\x8D "
      "\xD0\x9F\xD1\x80\xD0\xB8\xD0\xB2\xD0\xB5\xD1\x82 \xE0\xA4\xA8\xE0\xA4\xAE 2\xC2\xBD  end ";
  if ((*written)->Encode(kProbe) == tokenizer.Encode(kProbe)) return {};
  return Cannot(file.path(), "has a tokenizer that makes other tokens than its form in GGUF");
}

// ---- Tensors ----

// The names of a tensor in a folder and in GGUF files.
struct Renamed {
  std::string from, to;
  int paired = 0;
};

std::vector<Renamed> TensorsOf(const TransformerConfig& config, const TensorNames& from,
                               const TensorNames& to, int head_dim) {
  std::vector<Renamed> out = {
      {from.body + from.embedding + ".weight", to.body + to.embedding + ".weight"},
      {from.body + from.final_norm + ".weight", to.body + to.final_norm + ".weight"},
      {from.head + ".weight", to.head + ".weight"}};
  using Role = const char* TensorNames::*;
  constexpr Role kRoles[] = {&TensorNames::attention_norm,
                             &TensorNames::attention_post_norm,
                             &TensorNames::mlp_norm,
                             &TensorNames::mlp_post_norm,
                             &TensorNames::q,
                             &TensorNames::k,
                             &TensorNames::v,
                             &TensorNames::o,
                             &TensorNames::q_norm,
                             &TensorNames::k_norm,
                             &TensorNames::gate,
                             &TensorNames::up,
                             &TensorNames::down};
  for (int i = 0; i < config.layer_count(); ++i) {
    const std::string layer = std::to_string(i) + ".";
    const Layer& spec = config.layers[static_cast<size_t>(i)];
    for (const Role role : kRoles) {
      const bool before = role == &TensorNames::attention_norm || role == &TensorNames::mlp_norm;
      const bool behind =
          role == &TensorNames::attention_post_norm || role == &TensorNames::mlp_post_norm;
      if ((before && !spec.pre_norms) || (behind && !spec.post_norms)) continue;
      const bool turned = role == &TensorNames::q || role == &TensorNames::k;
      for (const char* suffix : {".weight", ".bias"}) {
        out.push_back({from.body + from.layer + layer + from.*role + suffix,
                       to.body + to.layer + layer + to.*role + suffix,
                       turned && to.paired_rotation && !from.paired_rotation ? head_dim : 0});
      }
    }
  }
  return out;
}

}  // namespace

Result<GgufFile> ReadFolderAsGguf(const std::string& folder) {
  Result<TransformerConfig> config = ReadTransformerConfig(folder);
  if (!config.ok()) return config.error();
  Result<std::shared_ptr<const Tokenizer>> tokenizer = Tokenizer::FromFile(folder);
  if (!tokenizer.ok()) return tokenizer.error();
  Result<Checkpoint> opened = Checkpoint::Open(folder);
  if (!opened.ok()) return opened.error();
  const auto checkpoint = std::make_shared<const Checkpoint>(*std::move(opened));
  const auto* attention = std::get_if<Attention>(&config->layers[0].mixer);
  const auto* mlp = std::get_if<Mlp>(&config->layers[0].feed_forward);
  const TensorNames from = HuggingFaceNames(*config, checkpoint.get());
  const bool plain = attention != nullptr && mlp != nullptr && config->family->gguf[0] != nullptr;
  const TensorNames to = GgufNames(*config);
  if (!plain || from.norm_offset != to.norm_offset ||
      (from.paired_rotation && !to.paired_rotation) || config->quantization != CheckpointFormat()) {
    return Cannot(folder, "is of the family " + config->architecture);
  }

  GgufHeader header;
  AddSettings(*config, *attention, *mlp, header);
  if (Status status = AddTokenizer(folder, **tokenizer, *config, header); !status.ok()) {
    return status.error();
  }
  std::vector<GgufFile::Tensor> tensors;
  std::set<std::string> used;
  for (Renamed& one : TensorsOf(*config, from, to, attention->head_dim)) {
    const TensorView* view = checkpoint->Find(one.from);
    if (view == nullptr) continue;
    used.insert(one.from);
    if (config->tied_embeddings && one.to == "output.weight") continue;
    if (one.paired > 0 && view->shape.size() < 2) return Cannot(folder, "has biases of q and k");
    tensors.push_back({std::move(one.to), *view, checkpoint->PathOf(one.from), one.paired});
  }
  for (const std::string& name : checkpoint->Names()) {
    if (used.count(name) > 0 || name.ends_with("rotary_emb.inv_freq")) continue;
    return Cannot(checkpoint->PathOf(name) + ": tensor " + json::Quote(name.substr(0, 200)),
                  "has no name in GGUF files of this family");
  }
  TransformerConfig wanted = *config;
  std::vector<float> divisors;
  if (!config->ropes.empty() && config->ropes[0].type == RopeType::kLlama3) {
    divisors = DivisorsOf(config->ropes[0], attention->head_dim);
    wanted.ropes[0] = RopeConfig();
    wanted.ropes[0].theta = config->ropes[0].theta;
    wanted.ropes[0].divisors = divisors;
    const auto bytes = static_cast<int64_t>(divisors.size() * sizeof(float));
    tensors.push_back({"rope_freqs.weight",
                       {"F32", {static_cast<int64_t>(divisors.size())}, nullptr, bytes},
                       folder});
  }
  Result<GgufFile> file =
      GgufFile::Of(header.Bytes(), folder, checkpoint, std::move(tensors), std::move(divisors));
  if (!file.ok()) return file;
  const Result<TransformerConfig> written = ReadGgufConfig(*file);
  if (!written.ok()) return written.error();
  const std::string told = Describe(wanted), got = Describe(*written);
  if (told != got) return Cannot(folder, "has settings (" + DifferenceOf(told, got) + ")");
  if (Status status = CompareTokenizers(*file, **tokenizer); !status.ok()) return status.error();
  return file;
}

}  // namespace pawl
