// tokenizer.json -> BpeTokenizer, and what the files next to it say about special tokens.
//
// Whatever a file asks for and this library does not do is an error with its JSON Pointer: an
// ignored normalizer would silently give other ids than the model was trained on.
#include <algorithm>
#include <limits>
#include <optional>

#include "src/base/file.h"
#include "src/base/json.h"
#include "src/base/json_file.h"
#include "src/base/json_reader.h"
#include "src/base/os/files.h"
#include "src/base/utf8.h"
#include "src/text/bpe_tokenizer.h"

namespace pawl {
namespace {

constexpr size_t kMaxAddedToken = 4096;  // bytes
constexpr TokenId kMaxTokenId = (TokenId{1} << 24) - 1;

// Where the module for a browser is without models it has no files, and no functions that ask for
// them.
#if defined(PAWL_WITHOUT_FILES)
bool Exists(const std::string&) { return false; }
bool IsFolder(const std::string&) { return false; }
#else
bool Exists(const std::string& path) { return os::Exists(path); }
bool IsFolder(const std::string& path) {
  const std::optional<os::FileInfo> info = os::InfoOf(path);
  return info && info->kind == os::FileKind::kFolder;
}
#endif

std::string Inside(const std::string& folder, const char* name) {
  return folder + (folder.ends_with('/') ? "" : "/") + name;
}

// Special tokens as the files next to a tokenizer.json name them.
struct SpecialTokens {
  struct Reference {
    std::string name;
    std::optional<int64_t> id;  // instead of the name
    std::string place;
  };
  std::vector<Reference> bos, end, other;
};

void AddName(const JsonReader& node, std::vector<SpecialTokens::Reference>& out) {
  if (!node.present()) return;
  const JsonReader name = node.IsObject() ? node["content"] : node;
  out.push_back({name.String(), std::nullopt, name.place()});
}

void AddIds(const JsonReader& node, std::vector<SpecialTokens::Reference>& out) {
  if (!node.present()) return;
  if (!node.IsArray()) out.push_back({"", node.Whole(), node.place()});
  for (const JsonReader id : node.items()) out.push_back({"", id.Whole(), id.place()});
}

class Loader {
 public:
  // `file` is put before the JSON Pointers of errors.
  Result<json::Value> Parse(std::string_view text, const std::string& file) {
    Result<json::Value> value = json::Parse(text);
    if (value.ok()) return value;
    Error error = value.error();
    error.place = file.empty()          ? error.place
                  : error.place.empty() ? file
                                        : file + ": " + error.place;
    return error;
  }

  // Reads the files next to a tokenizer.json. Absent ones are fine.
  Status LoadSpecialTokens(const std::string& folder, SpecialTokens& out) {
    // config.json holds defaults of the library it was written by, so it counts only when nothing
    // else speaks.
    bool bos_settled = false;
    for (const char* name : {"tokenizer_config.json", "generation_config.json", "config.json"}) {
      const std::string path = Inside(folder, name);
      if (!Exists(path)) continue;
      Result<json::Value> value = ReadSettingsFile(path);
      if (!value.ok()) return value.error();
      const JsonReader root(*value, path + "#");
      if (name == std::string_view("tokenizer_config.json")) {
        AddName(root["bos_token"], out.bos);
        // "bos_token": null says that there is none, whatever the ids of the other files.
        bos_settled = root["bos_token"].value() != nullptr;
        AddName(root["eos_token"], out.end);
        for (const char* kind :
             {"unk_token", "pad_token", "sep_token", "cls_token", "mask_token"}) {
          AddName(root[kind], out.other);
        }
        const JsonReader list = root["additional_special_tokens"].OptionalArray();
        for (const JsonReader token : list.items()) AddName(token, out.other);
      } else {
        const bool last_resort = name == std::string_view("config.json");
        if (!bos_settled && out.bos.empty()) AddIds(root["bos_token_id"], out.bos);
        if (!last_resort || out.end.empty()) AddIds(root["eos_token_id"], out.end);
      }
      if (!root.ok()) return root.error();
    }
    return {};
  }

  // `folder`: of the files next to it, empty when there are none.
  Result<std::shared_ptr<const Tokenizer>> Load(std::string_view text, const std::string& file,
                                                const std::string& folder,
                                                SpecialTokens special = {}) {
    // Often it is another file altogether; its first unknown member would not say so.
    static constexpr const char* kExpected =
        "expected a tokenizer.json as the Hugging Face tokenizers library writes it";
    if (text.empty())
      return Error{ErrorCode::kInvalid, std::string("is empty; ") + kExpected, file};
    Result<json::Value> value = Parse(text, file);
    if (!value.ok()) {
      Error error = value.error();
      error.message += std::string("; ") + kExpected;
      return error;
    }
    const JsonReader root(*value, file + "#");
    root.Object()["model"].Object();
    if (!root.ok()) {
      Error error = root.error();
      error.message += std::string("; ") + kExpected;
      return error;
    }
    if (!folder.empty()) {
      if (Status status = LoadSpecialTokens(folder, special); !status.ok()) return status.error();
    }
    root.OnlyMembers({"version", "truncation", "padding", "added_tokens", "normalizer",
                      "pre_tokenizer", "post_processor", "decoder", "model"});
    if (root["truncation"].present()) root["truncation"].Unsupported("truncation");
    // Padding to the longest of a batch does nothing to a single text.
    const JsonReader padding = root["padding"];
    if (padding.present() && padding["strategy"].String("") != "BatchLongest") {
      padding.Unsupported("padding to a fixed length");
    }
    TextNormalizer normalizer = TextNormalizer::Load(root["normalizer"]);
    PreTokenizer pre_tokenizer = PreTokenizer::Load(root["pre_tokenizer"]);
    PostProcessor post_processor = PostProcessor::Load(root["post_processor"]);
    TokenDecoder decoder = TokenDecoder::Load(root["decoder"]);
    std::vector<AddedToken> added = LoadAddedTokens(root["added_tokens"]);
    if (!root.ok()) return root.error();

    BpeInit init = LoadModel(root["model"]);
    init.byte_level = pre_tokenizer.byte_level();
    if (!root.ok()) return root.error();
    MarkSpecial(special, added, init);
    Result<BpeModel> model = BpeModel::Create(std::move(init));
    if (!model.ok()) {
      Error error = model.error();
      error.place = file + "#/model" + error.place;
      return error;
    }
    CheckAddedTokens(root["added_tokens"], added, *model);
    if (!root.ok()) return root.error();

    TokenizerParts parts{std::move(*model),
                         std::move(normalizer),
                         std::move(pre_tokenizer),
                         std::move(post_processor),
                         std::move(decoder),
                         std::move(added),
                         kNoToken,
                         {}};
    std::vector<TokenId> bos;
    Resolve(special.bos, parts, root, bos);
    Resolve(special.end, parts, root, parts.end_tokens);
    if (!bos.empty()) parts.bos = bos[0];
    std::vector<TokenId> template_ids;
    parts.post_processor.CollectIds(template_ids);
    for (const TokenId id : template_ids) {
      if (NameOf(id, parts)) continue;
      root["post_processor"].Fail("there is no token " + std::to_string(id));
    }
    if (!root.ok()) return root.error();
    return std::shared_ptr<const Tokenizer>(std::make_shared<BpeTokenizer>(std::move(parts)));
  }

 private:
  static std::vector<AddedToken> LoadAddedTokens(const JsonReader& node) {
    std::vector<AddedToken> out;
    for (const JsonReader item : node.OptionalArray().items()) {
      item.OnlyMembers(
          {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
      AddedToken token;
      token.id = static_cast<TokenId>(item["id"].Whole(0, kMaxTokenId));
      token.content = item["content"].String();
      token.single_word = item["single_word"].Bool(false);
      token.lstrip = item["lstrip"].Bool(false);
      token.rstrip = item["rstrip"].Bool(false);
      token.special = item["special"].Bool(false);
      token.normalized = item["normalized"].Bool(!token.special);
      if (token.content.empty()) item["content"].Fail("must not be empty");
      if (token.content.size() > kMaxAddedToken) {
        item["content"].Fail("longer than the limit of 4,096 bytes", ErrorCode::kLimit);
      }
      out.push_back(std::move(token));
    }
    return out;
  }

  static BpeInit LoadModel(const JsonReader& node) {
    BpeInit out;
    const JsonReader type = node["type"];
    if (type.present() && type.String() != "BPE")
      type.Unsupported("model " + json::Quote(type.String()) + " (BPE is supported)");
    node.OnlyMembers({"type", "dropout", "unk_token", "continuing_subword_prefix",
                      "end_of_word_suffix", "fuse_unk", "byte_fallback", "ignore_merges", "vocab",
                      "merges"});
    const JsonReader dropout = node["dropout"];
    if (dropout.present() &&
        dropout.value()->text.find_first_of("123456789") != std::string::npos) {
      dropout.Unsupported("dropout");
    }
    for (const char* name : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      if (!node[name].String("").empty()) node[name].Unsupported("marks inside words");
    }
    out.unk_token = node["unk_token"].String("");
    out.fuse_unk = node["fuse_unk"].Bool(false);
    out.byte_fallback = node["byte_fallback"].Bool(false);
    out.ignore_merges = node["ignore_merges"].Bool(false);

    const JsonReader vocab = node["vocab"].Object(), merges = node["merges"].Array();
    if (!node.ok()) return out;
    out.vocab.reserve(vocab.value()->members.size());
    for (const auto& [name, id] : vocab.value()->members) {
      // Pointers are built only for errors: there are hundreds of thousands of these.
      const bool number = id.type == json::Type::kNumber && id.text.size() <= 9 &&
                          id.text.find_first_not_of("0123456789") == std::string::npos;
      if (!number) {
        vocab[name].Fail("must be a token id");
        return out;
      }
      out.vocab.emplace_back(name, static_cast<TokenId>(std::stol(id.text)));
    }
    out.merges.reserve(merges.size());
    for (size_t i = 0; i < merges.size(); ++i) {
      const json::Value& merge = merges.value()->items[i];
      if (merge.type == json::Type::kString) {
        const size_t space = merge.text.find(' ');
        if (space != std::string::npos && merge.text.find(' ', space + 1) == std::string::npos) {
          out.merges.emplace_back(merge.text.substr(0, space), merge.text.substr(space + 1));
          continue;
        }
      } else if (merge.type == json::Type::kArray && merge.items.size() == 2 &&
                 merge.items[0].type == json::Type::kString &&
                 merge.items[1].type == json::Type::kString) {
        out.merges.emplace_back(merge.items[0].text, merge.items[1].text);
        continue;
      }
      merges.Item(i).Fail("must be two tokens");
      return out;
    }
    return out;
  }

  // Added tokens that the files next to it call special are special, and text may spell none of the
  // special ones.
  static void MarkSpecial(const SpecialTokens& special, std::vector<AddedToken>& added,
                          BpeInit& init) {
    std::vector<TokenId> ids;
    for (const auto* list : {&special.bos, &special.end, &special.other}) {
      for (const auto& reference : *list) {
        for (AddedToken& token : added) {
          if (reference.id ? token.id == *reference.id : token.content == reference.name)
            token.special = true;
        }
        if (reference.id)
          ids.push_back(static_cast<TokenId>(std::clamp<int64_t>(*reference.id, -1, kMaxTokenId)));
        else if (list != &special.other)
          init.forbidden.push_back(reference.name);
      }
    }
    for (const AddedToken& token : added) {
      if (token.special) init.forbidden.push_back(token.content);
    }
    if (ids.empty()) return;
    for (const auto& [name, id] : init.vocab) {
      if (std::find(ids.begin(), ids.end(), id) != ids.end()) init.forbidden.push_back(name);
    }
  }

  static void CheckAddedTokens(const JsonReader& node, const std::vector<AddedToken>& added,
                               const BpeModel& model) {
    std::vector<std::pair<TokenId, size_t>> seen;
    for (size_t i = 0; i < added.size(); ++i) {
      const AddedToken& token = added[i];
      const TokenId known = model.Find(token.content);
      const bool taken = token.id < model.size() && model.name(token.id).data() != nullptr;
      if (known != token.id && (known != kNoToken || taken)) {
        node.Item(i).Fail("the vocabulary has another id for it, or another token for its id");
      }
      seen.emplace_back(token.id, i);
    }
    std::sort(seen.begin(), seen.end());
    TokenId free = model.size() + 65536;  // a bound on gaps, as in the vocabulary
    for (size_t k = 0; k < seen.size(); ++k) {
      const auto [id, i] = seen[k];
      if (k > 0 && seen[k - 1].first == id) node.Item(i).Fail("its id is used twice");
      if (id >= free) node.Item(i).Fail("token id out of range", ErrorCode::kLimit);
      free = std::max(free, id + 65536);
    }
    std::vector<std::string_view> contents;
    contents.reserve(added.size());
    for (const AddedToken& token : added) contents.push_back(token.content);
    std::sort(contents.begin(), contents.end());
    if (const auto twice = std::adjacent_find(contents.begin(), contents.end());
        twice != contents.end()) {
      node.Fail(json::Quote(*twice) + " is there twice");
    }
  }

  static std::optional<std::string_view> NameOf(TokenId id, const TokenizerParts& parts) {
    if (id >= 0 && id < parts.model.size() && parts.model.name(id).data() != nullptr)
      return parts.model.name(id);
    for (const AddedToken& token : parts.added) {
      if (token.id == id) return token.content;
    }
    return std::nullopt;
  }

  static void Resolve(const std::vector<SpecialTokens::Reference>& references,
                      const TokenizerParts& parts, const JsonReader& root,
                      std::vector<TokenId>& out) {
    for (const auto& reference : references) {
      TokenId id = kNoToken;
      if (reference.id) {
        if (*reference.id >= 0 && *reference.id <= kMaxTokenId)
          id = static_cast<TokenId>(*reference.id);
        if (!NameOf(id, parts)) id = kNoToken;
      } else {
        id = parts.model.Find(reference.name);
        for (const AddedToken& token : parts.added) {
          if (token.content == reference.name) id = token.id;
        }
      }
      if (id == kNoToken) {
        root.Fail({ErrorCode::kInvalid, "no token of tokenizer.json", reference.place});
      } else if (std::find(out.begin(), out.end(), id) == out.end()) {
        out.push_back(id);
      }
    }
  }
};

}  // namespace

Result<std::shared_ptr<const Tokenizer>> TokenizerFromJson(std::string_view json,
                                                           const std::string& file, TokenId bos,
                                                           std::span<const TokenId> end_tokens) {
  SpecialTokens special;
  if (bos != kNoToken) special.bos.push_back({"", bos, file});
  for (const TokenId id : end_tokens) special.end.push_back({"", id, file});
  return Loader().Load(json, file, "", std::move(special));
}

Result<std::shared_ptr<const Tokenizer>> Tokenizer::FromJson(std::string_view tokenizer_json) {
  return Loader().Load(tokenizer_json, "", "");
}

Result<std::shared_ptr<const Tokenizer>> Tokenizer::FromFile(const std::string& path) {
  std::string file = path;
  if (IsFolder(file)) {
    file = Inside(file, "tokenizer.json");
    if (!Exists(file)) {
      return Error{ErrorCode::kIo, "no such file; the folder of a tokenizer or model needs one",
                   file};
    }
  }
  Result<std::string> text = ReadRegularFile(file);
  if (!text.ok()) return text.error();
  return Loader().Load(*text, file, os::FolderOf(file));
}

}  // namespace pawl
