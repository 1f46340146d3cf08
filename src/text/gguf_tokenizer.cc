// A GGUF file holds the vocabulary and, by name, the way it is used. Both are written down here as
// the tokenizer.json that the same model has on Hugging Face and loaded like one, so that there is
// one implementation, tested against that library.
//
// A SentencePiece vocabulary has scores in place of merges: the pair of neighbours whose
// concatenation scores highest is merged first. That is a list of merges: every way to cut a token
// into two tokens, ordered by the score of the whole (as Hugging Face's converter does).
#include "src/text/gguf_tokenizer.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "src/base/json.h"
#include "src/base/utf8.h"
#include "src/text/bpe_tokenizer.h"

namespace pawl {
namespace {

constexpr int64_t kUnknownType = 2, kControlType = 3, kUserType = 4, kUnusedType = 5;
constexpr const char* kSpace = "\xE2\x96\x81";  // U+2581 stands for a space
// Ways to cut tokens are quadratic in nothing, but a token of a megabyte has a million of them.
constexpr size_t kMaxToken = 4096;

// The words of the pre-tokenizers, as their tokenizer.json files have them.
constexpr const char* kLlama3Split =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwen2Split =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kTekkenSplit =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

struct Pre {
  const char* name;
  const char* split;  // nullptr: the words of GPT-2
  bool digits, nfc, ignore_merges;
};
constexpr Pre kPres[] = {
    {"gpt-2", nullptr, false, false, false},
    {"default", nullptr, false, false, false},
    {"smollm", nullptr, true, false, false},
    {"llama-bpe", kLlama3Split, false, false, true},
    {"llama3", kLlama3Split, false, false, true},
    {"llama-v3", kLlama3Split, false, false, true},
    {"qwen2", kQwen2Split, false, true, false},
    {"deepseek-r1-qwen", kQwen2Split, false, true, false},
    {"tekken", kTekkenSplit, false, false, true},
};

Error At(const GgufVocabulary& v, ErrorCode code, const char* key, std::string message) {
  return {code, std::move(message), v.path + ": tokenizer.ggml." + key};
}

int64_t TypeOf(const GgufVocabulary& v, size_t id) { return v.types.empty() ? 1 : v.types[id]; }

// Looked for in the text before anything else.
bool IsAdded(const GgufVocabulary& v, size_t id) {
  const int64_t type = TypeOf(v, id);
  return type >= kUnknownType && type <= kUnusedType;
}

std::string Entries(const GgufVocabulary& v, bool with_added) {
  std::string out;
  for (size_t id = 0; id < v.tokens.size(); ++id) {
    if (!with_added && IsAdded(v, id)) continue;
    out += (out.empty() ? "" : ",") + json::Quote(v.tokens[id]) + ":" + std::to_string(id);
  }
  return out;
}

// The merges of a SentencePiece vocabulary, as a JSON list's inside.
std::string MergesOfScores(const GgufVocabulary& v) {
  std::unordered_map<std::string_view, size_t> ids;
  for (size_t id = 0; id < v.tokens.size(); ++id) ids.emplace(v.tokens[id], id);
  struct Merge {
    size_t whole, left, right;
  };
  std::vector<Merge> merges;
  for (size_t id = 0; id < v.tokens.size(); ++id) {
    const int64_t type = TypeOf(v, id);
    if (type == kUnknownType || type == kControlType || type == kUnusedType) continue;
    const std::string_view token = v.tokens[id];
    for (size_t cut = 1; cut < token.size(); ++cut) {
      if ((static_cast<unsigned char>(token[cut]) & 0xC0) == 0x80) continue;  // within a character
      const auto left = ids.find(token.substr(0, cut));
      if (left == ids.end()) continue;
      const auto right = ids.find(token.substr(cut));
      if (right != ids.end()) merges.push_back({id, left->second, right->second});
    }
  }
  std::stable_sort(merges.begin(), merges.end(), [&](const Merge& a, const Merge& b) {
    if (v.scores[a.whole] != v.scores[b.whole]) return v.scores[a.whole] > v.scores[b.whole];
    if (a.whole != b.whole) return a.whole < b.whole;
    return std::pair(a.left, a.right) < std::pair(b.left, b.right);
  });
  std::string out;
  for (const Merge& merge : merges) {
    out += (out.empty() ? "[" : ",[") + json::Quote(v.tokens[merge.left]) + "," +
           json::Quote(v.tokens[merge.right]) + "]";
  }
  return out;
}

std::string AddedTokens(const GgufVocabulary& v) {
  std::string out;
  for (size_t id = 0; id < v.tokens.size(); ++id) {
    if (!IsAdded(v, id)) continue;
    const bool special = TypeOf(v, id) != kUserType;
    out += (out.empty() ? "" : ",") + std::string("{\"id\":") + std::to_string(id) +
           ",\"content\":" + json::Quote(v.tokens[id]) +
           ",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":false," +
           "\"special\":" + (special ? "true}" : "false}");
  }
  return out;
}

std::string PostProcessorOf(const GgufVocabulary& v) {
  if (!v.add_bos || v.bos == kNoToken) return "null";
  const std::string name = json::Quote(v.tokens[static_cast<size_t>(v.bos)]);
  return R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":)" + name +
         R"(,"type_id":0}},{"Sequence":{"id":"A","type_id":0}}],"pair":[],"special_tokens":{)" +
         name + ":{\"id\":" + name + ",\"ids\":[" + std::to_string(v.bos) + "],\"tokens\":[" +
         name + "]}}}";
}

Result<std::string> ByteLevelJson(const GgufVocabulary& v) {
  const auto* pre = std::find_if(std::begin(kPres), std::end(kPres),
                                 [&](const Pre& p) { return v.pre == p.name; });
  if (pre == std::end(kPres)) {
    return At(v, ErrorCode::kUnsupported, "pre",
              "is " + json::Quote(v.pre.substr(0, 50)) +
                  "; expected gpt-2, llama-bpe, qwen2, smollm or tekken");
  }
  std::string steps;
  if (pre->digits) steps += R"({"type":"Digits","individual_digits":true},)";
  if (pre->split != nullptr) {
    steps += R"({"type":"Split","pattern":{"Regex":)" + json::Quote(pre->split) +
             R"(},"behavior":"Isolated","invert":false},)";
  }
  std::string merges;
  for (const std::string_view merge : v.merges) {
    merges += (merges.empty() ? "" : ",") + json::Quote(merge);
  }
  return R"({"added_tokens":[)" + AddedTokens(v) + R"(],"normalizer":)" +
         (pre->nfc ? R"({"type":"NFC"})" : "null") +
         R"(,"pre_tokenizer":{"type":"Sequence","pretokenizers":[)" + steps +
         R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":)" +
         (pre->split == nullptr ? "true" : "false") + R"(}]},"post_processor":)" +
         PostProcessorOf(v) +
         R"(,"decoder":{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true},)" +
         R"("model":{"type":"BPE","ignore_merges":)" + (pre->ignore_merges ? "true" : "false") +
         R"(,"vocab":{)" + Entries(v, false) + R"(},"merges":[)" + merges + "]}}";
}

Result<std::string> SentencePieceJson(const GgufVocabulary& v) {
  if (v.scores.size() != v.tokens.size()) {
    return At(v, ErrorCode::kInvalid, "scores", "is missing; a vocabulary of pieces needs scores");
  }
  const std::string replace =
      R"({"type":"Replace","pattern":{"String":" "},"content":")" + std::string(kSpace) + "\"}";
  std::string normalizer = replace, strip;
  if (v.add_space_prefix) {
    normalizer = R"({"type":"Sequence","normalizers":[{"type":"Prepend","prepend":")" +
                 std::string(kSpace) + "\"}," + replace + "]}";
    strip = R"(,{"type":"Strip","content":" ","start":1,"stop":0})";
  }
  const std::string unknown =
      v.unknown == kNoToken ? "null" : json::Quote(v.tokens[static_cast<size_t>(v.unknown)]);
  return R"({"added_tokens":[)" + AddedTokens(v) + R"(],"normalizer":)" + normalizer +
         R"(,"pre_tokenizer":null,"post_processor":)" + PostProcessorOf(v) +
         R"(,"decoder":{"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":")" +
         kSpace + R"("},"content":" "},{"type":"ByteFallback"},{"type":"Fuse"})" + strip +
         R"(]},"model":{"type":"BPE","unk_token":)" + unknown +
         R"(,"fuse_unk":true,"byte_fallback":true,"vocab":{)" + Entries(v, true) +
         R"(},"merges":[)" + MergesOfScores(v) + "]}}";
}

}  // namespace

Result<std::shared_ptr<const Tokenizer>> MakeGgufTokenizer(const GgufVocabulary& v) {
  const auto good_list = [&](const std::vector<std::string_view>& list, const char* key) -> Status {
    for (size_t i = 0; i < list.size(); ++i) {
      if (list[i].size() > kMaxToken) {
        return At(v, ErrorCode::kLimit, key,
                  "entry " + std::to_string(i) + " has more than 4096 bytes");
      }
      if (FindInvalidUtf8(list[i]) != std::string_view::npos) {
        return At(v, ErrorCode::kInvalid, key, "entry " + std::to_string(i) + " is not UTF-8");
      }
    }
    return {};
  };
  if (Status status = good_list(v.tokens, "tokens"); !status.ok()) return status.error();
  if (Status status = good_list(v.merges, "merges"); !status.ok()) return status.error();
  for (size_t i = 0; i < v.tokens.size(); ++i) {
    if (IsAdded(v, i) && v.tokens[i].empty()) {
      return At(v, ErrorCode::kInvalid, "tokens", "entry " + std::to_string(i) + " is empty");
    }
  }
  Result<std::string> text = Error{};
  if (v.model == "gpt2") {
    text = ByteLevelJson(v);
  } else if (v.model == "llama") {
    text = SentencePieceJson(v);
  } else {
    return At(v, ErrorCode::kUnsupported, "model",
              "is " + json::Quote(v.model.substr(0, 50)) + "; expected gpt2 or llama");
  }
  if (!text.ok()) return text.error();
  return TokenizerFromJson(*text, v.path, v.bos, v.end_tokens);
}

}  // namespace pawl
