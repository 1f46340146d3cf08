// A GGUF file holds the vocabulary and, by name, how it is used. Both are written down here as
// the tokenizer.json that the same model has on Hugging Face and loaded like one, so that there is
// one implementation, tested against that library.
//
// A SentencePiece vocabulary has scores in place of merges: the pair of neighbours whose
// concatenation scores highest is merged first. That is a list of merges: every way to cut a token
// into two tokens, ordered by the score of the whole (as Hugging Face's converter does). Gemma 4
// has such pieces with a list of merges.
//
// The names of pre-tokenizers are those that llama.cpp's converter writes. Each is a row of one
// table; the patterns are those of the models' tokenizer.json files.
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

// What the patterns of the pre-tokenizers are put together from.
const std::string kContraction = R"((?i:'s|'t|'re|'ve|'m|'ll|'d))";
const std::string kWord = R"([^\r\n\p{L}\p{N}]?\p{L}+)";
const std::string kSigns = R"( ?[^\s\p{L}\p{N}]+[\r\n]*)";
const std::string kSpaces = R"(\s*[\r\n]+|\s+(?!\S)|\s+)";
const std::string kAsciiSign = R"re([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+)re";
const std::string kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// The letters of DeepSeek LLM: those that have a case, in Unicode 12.
const std::string kCasedLetters =
    R"(A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4})"
    R"(-\x{293}\x{295}-\x{2AF}\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F})"
    R"(\x{386}\x{388}-\x{38A}\x{38C}\x{38E}-\x{3A1}\x{3A3}-\x{3F5}\x{3F7}-\x{481})"
    R"(\x{48A}-\x{52F}\x{531}-\x{556}\x{10A0}-\x{10C5}\x{13A0}-\x{13F5}\x{13F8}-)"
    R"(\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B}\x{1D6B}-)"
    R"(\x{1D77}\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D}\x{1F20}-)"
    R"(\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D}\x{1F5F})"
    R"(-\x{1F7D}\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4})"
    R"(\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC})"
    R"(\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107}\x{210A}-\x{2113})"
    R"(\x{2115}\x{2119}-\x{211D}\x{2124}\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F})"
    R"(-\x{2134}\x{2139}\x{213C}-\x{213F}\x{2145}-\x{2149}\x{214E}\x{2183})"
    R"(\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4}\x{2CEB}-\x{2CEE}\x{2CF2})"
    R"(\x{2CF3}\x{A640}-\x{A66D}\x{A680}-\x{A69B}\x{A722}-\x{A76F}\x{A771}-)"
    R"(\x{A787}\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06}\x{FB13}-)"
    R"(\x{FB17}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}\x{10400}-\x{1044F}\x{104B0}-)"
    R"(\x{104D3}\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2})"
    R"(\x{118A0}-\x{118DF}\x{1E900}-\x{1E943})";

// Words whose capitals stand in front; `less` is taken out of the letters, `suffix` may follow.
std::string CasedWord(const std::string& less, const std::string& suffix) {
  const std::string start = R"([^\r\n\p{L}\p{N}]?)";
  const std::string upper = R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M})" + less + "]";
  const std::string lower = R"([\p{Ll}\p{Lm}\p{Lo}\p{M})" + less + "]";
  return start + upper + "*" + lower + "+" + suffix + "|" + start + upper + "+" + lower + "*" +
         suffix;
}
// The words of Llama 3, with `digits` as a number.
std::string LlamaWords(const std::string& digits) {
  return kContraction + "|" + kWord + "|" + digits + "|" + kSigns + "|" + kSpaces;
}
std::string OmniWords(const std::string& less, const std::string& digits,
                      const std::string& line_end) {
  return CasedWord(less, kContraction + "?") + "|" + digits + R"(| ?[^\s\p{L}\p{N}]+[)" + line_end +
         "]*|" + kSpaces;
}
std::string DeepseekWords(const std::string& signs) {
  return kAsciiSign + R"(|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|)" + signs;
}

// How a family cuts words: a text is split by each pattern in turn, matches and what is between
// them become the pieces of the next.
struct PreKind {
  std::vector<std::string> splits;
  bool gpt2_words = false;  // last, those of GPT-2
};

PreKind KindOf(std::string_view kind) {
  const std::string one_digit = R"(\p{N})", three_digits = R"(\p{N}{1,3})";
  const std::string kana = "[一-龥぀-ゟ゠-ヿ]+";
  if (kind == "gpt2") return {{}, true};
  if (kind == "digits") return {{one_digit}, true};
  if (kind == "llama3") return {{LlamaWords(three_digits)}};
  if (kind == "qwen2") return {{LlamaWords(one_digit)}};
  if (kind == "qwen35") {
    return {{kContraction +
             R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|)" +
             kSpaces}};
  }
  if (kind == "tekken") {
    return {{CasedWord("", "") + R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|)" + kSpaces}};
  }
  if (kind == "gpt4o") return {{OmniWords("", three_digits, R"(\r\n/)")}};
  if (kind == "youtu") {
    return {{"[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|" + kana,
             OmniWords("", one_digit, R"(\r\n/)")}};
  }
  if (kind == "tiny-aya") {
    return {{R"(\d{1,3}(?=(?:\d{3})*\b))", OmniWords("", three_digits, R"(\r\n/)")}};
  }
  if (kind == "kimi-k2") {
    return {{R"([\p{Han}]+|)" + OmniWords(R"(&&[^\p{Han}])", three_digits, R"(\r\n)")}};
  }
  if (kind == "deepseek3") {
    return {{three_digits, kana, DeepseekWords(R"( ?[\p{P}\p{S}]+[\r\n]*|)" + kSpaces)}};
  }
  if (kind == "spark") {
    return {
        {three_digits, kana, DeepseekWords(R"( ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+)"), one_digit}};
  }
  if (kind == "deepseek-llm") {
    return {{R"([\r\n])", R"(\s?[)" + kCasedLetters + "]+", R"(\s?[!-/:-~！-／：-～‘-‟　-。]+)",
             R"(\s+$)", "[一-龥ࠀ-一가-퟿]+", one_digit}};
  }
  if (kind == "deepseek-coder") {
    return {{R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", "[一-龥ࠀ-一가-퟿]+", one_digit}};
  }
  if (kind == "falcon") {
    return {{R"([\p{P}\$\+<=>\^~\|`]+)", kGpt2, "[0-9][0-9][0-9]"}};
  }
  if (kind == "default") {
    return {{R"([\p{P}\$\+<=>\^~\|]+)", kGpt2, R"(\p{N}+)", "[0-9][0-9][0-9]"}};
  }
  if (kind == "bloom") return {{R"( ?[^(\s|.,!?…。，、।۔،)]+)"}};
  if (kind == "viking") return {{R"( ?[^(\s|.,!?…。，、।۔،)]+)", one_digit}};
  if (kind == "superbpe") return {{R"(\p{N}+)", R"((?=(\d{3})+(?!\d)))"}};
  if (kind == "bailing") {
    return {{R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|)"
             R"(\s*[\r\n]|\s+(?!\S)|\s+)"}};
  }
  if (kind == "seed-coder") {
    return {{kContraction + "|" + kWord + R"(|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|)" + kSpaces}};
  }
  if (kind == "ufakzeka") return {{kWord + R"(|\p{N}|)" + kSigns + "|" + kSpaces}};
  if (kind == "laguna") return {{R"([^\n]+|[\n]+)", LlamaWords(one_digit)}};
  if (kind == "exaone-moe") {
    return {
        {kContraction +
         R"(|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|)"
         R"(\s*[\r\n]|\s+(?!\S)|\s+)"}};
  }
  if (kind == "minicpm5") return {{three_digits, LlamaWords(R"(\p{N}+)")}};
  if (kind == "jais2") {
    std::string spaces;
    for (const char* run : {"512", "256", "128", "64", "32", "16", "8", "4", "1,2"}) {
      spaces += R"(\s{)" + std::string(run) + R"(}(?!\S)|)";
    }
    return {{kContraction + "|" + kWord + "|" + three_digits + "|" + kSigns + R"(|\s*[\r\n]+|)" +
             spaces + R"(\s{1})"}};
  }
  return {{}, true};
}

// A name that a converter writes, the kind of its words, and what else its tokenizer.json asks for.
struct Pre {
  const char* name;
  const char* kind;
  bool nfc = false, ignore_merges = false;
};
constexpr Pre kPres[] = {
    {"", "default"},
    {"default", "default"},
    {"gpt-2", "gpt2"},
    {"phi-2", "gpt2"},
    {"jina-es", "gpt2"},
    {"jina-de", "gpt2"},
    {"jina-v1-en", "gpt2"},
    {"jina-v2-es", "gpt2"},
    {"jina-v2-de", "gpt2"},
    {"jina-v2-code", "gpt2"},
    {"roberta-bpe", "gpt2"},
    {"gigachat", "gpt2"},
    {"a.x-4.0", "gpt2"},
    {"mellum", "gpt2"},
    {"modern-bert", "gpt2"},
    {"exaone4", "gpt2"},
    {"mpt", "gpt2", true},
    {"olmo", "gpt2", true},
    {"jais", "gpt2"},
    {"trillion", "gpt2"},
    {"granite-docling", "gpt2"},
    {"smollm", "digits"},
    {"starcoder", "digits"},
    {"refact", "digits"},
    {"command-r", "digits", true},
    {"codeshell", "digits"},
    {"exaone", "digits"},
    {"minerva-7b", "digits"},
    {"mellum2", "digits"},
    {"llama-bpe", "llama3", false, true},
    {"llama3", "llama3", false, true},
    {"llama-v3", "llama3", false, true},
    {"falcon3", "llama3", false, true},
    {"falcon-h1", "llama3", false, true},
    {"pixtral", "llama3", false, true},
    {"midm-2.0", "llama3", false, true},
    {"lfm2", "llama3", false, true},
    {"jina-v5-nano", "llama3", false, true},
    {"dbrx", "llama3"},
    {"smaug-bpe", "llama3"},
    {"chatglm-bpe", "llama3"},
    {"glm4", "llama3", false, true},
    {"glm5", "llama3", false, true},
    {"qwen2", "qwen2", true},
    {"deepseek-r1-qwen", "qwen2", true},
    {"kormo", "qwen2", true},
    {"f2llmv2", "qwen2", true},
    {"megrez", "qwen2", true},
    {"stablelm2", "qwen2"},
    {"hunyuan", "qwen2"},
    {"solar-open", "qwen2"},
    {"grok-2", "qwen2"},
    {"qwen35", "qwen35", true},
    {"tekken", "tekken", false, true},
    {"gpt-4o", "gpt4o"},
    {"llama4", "gpt4o"},
    {"kanana2", "gpt4o"},
    {"talkie", "gpt4o"},
    {"minimax-m2", "gpt4o"},
    {"granite-embed-multi-97m", "gpt4o", false, true},
    {"youtu", "youtu", false, true},
    {"tiny_aya", "tiny-aya", true},
    {"cohere2moe", "tiny-aya", true},
    {"kimi-k2", "kimi-k2"},
    {"deepseek-v3", "deepseek3"},
    {"hunyuan-dense", "deepseek3"},
    {"joyai-llm", "deepseek3"},
    {"hy_v4", "deepseek3"},
    {"spark2_5", "spark"},
    {"deepseek-llm", "deepseek-llm"},
    {"deepseek-coder", "deepseek-coder"},
    {"falcon", "falcon"},
    {"poro-chat", "bloom"},
    {"bloom", "bloom"},
    {"gpt3-finnish", "bloom"},
    {"viking", "viking"},
    {"superbpe", "superbpe"},
    {"bailingmoe", "bailing"},
    {"bailingmoe2", "bailing"},
    {"llada-moe", "bailing"},
    {"seed-coder", "seed-coder"},
    {"ufakzeka", "ufakzeka"},
    {"laguna", "laguna"},
    {"exaone-moe", "exaone-moe"},
    {"minicpm5", "minicpm5", false, true},
    {"jais-2", "jais2"},
};

// Tokens that end an answer whatever the file's keys say, by their text.
constexpr std::string_view kEndTexts[] = {"<|eot_id|>",
                                          "<|im_end|>",
                                          "<|end|>",
                                          "<|return|>",
                                          "<|call|>",
                                          "<|flush|>",
                                          "<|calls|>",
                                          "<end_of_turn>",
                                          "<|endoftext|>",
                                          "</s>",
                                          "<|eom_id|>",
                                          "<EOT>",
                                          "_<EOT>",
                                          "[EOT]",
                                          "[EOS]",
                                          "<|end_of_text|>",
                                          "<end_of_utterance>",
                                          "<eos>",
                                          "<turn|>",
                                          "<|tool_response>",
                                          "<｜end▁of▁sentence｜>",
                                          "[e~["};

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

std::string ListedMerges(const GgufVocabulary& v) {
  std::string out;
  for (const std::string_view merge : v.merges)
    out += (out.empty() ? "" : ",") + json::Quote(merge);
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
                  ", which is not known here; a folder with the model's tokenizer.json and weights "
                  "in safetensors is read without that name");
  }
  const PreKind kind = KindOf(pre->kind);
  std::string steps;
  for (const std::string& split : kind.splits) {
    steps += R"({"type":"Split","pattern":{"Regex":)" + json::Quote(split) +
             R"(},"behavior":"Isolated","invert":false},)";
  }
  return R"({"added_tokens":[)" + AddedTokens(v) + R"(],"normalizer":)" +
         (pre->nfc ? R"({"type":"NFC"})" : "null") +
         R"(,"pre_tokenizer":{"type":"Sequence","pretokenizers":[)" + steps +
         R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":)" +
         (kind.gpt2_words ? "true" : "false") + R"(}]},"post_processor":)" + PostProcessorOf(v) +
         R"(,"decoder":{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true},)" +
         R"("model":{"type":"BPE","ignore_merges":)" + (pre->ignore_merges ? "true" : "false") +
         R"(,"vocab":{)" + Entries(v, false) + R"(},"merges":[)" + ListedMerges(v) + "]}}";
}

Result<std::string> SentencePieceJson(const GgufVocabulary& v) {
  const bool by_merges = v.model == "gemma4";
  if (!by_merges && v.scores.size() != v.tokens.size()) {
    return At(v, ErrorCode::kInvalid, "scores", "is missing; a vocabulary of pieces needs scores");
  }
  const std::string replace =
      R"({"type":"Replace","pattern":{"String":" "},"content":")" + std::string(kSpace) + "\"}";
  std::string normalizer = replace, strip;
  if (v.add_space_prefix && !by_merges) {
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
         R"(},"merges":[)" + (by_merges ? ListedMerges(v) : MergesOfScores(v)) + "]}}";
}

// Adds the end tokens that are known by their text, and gives them the type of control tokens: old
// converters wrote them as ordinary ones. A text that is no mark on its own ("</s>") counts only
// where the file's type says that the token is one.
void AddEndTokens(GgufVocabulary& v) {
  const auto has = [&](std::string_view text) { return std::ranges::count(v.tokens, text) > 0; };
  // Where messages end with <|end|> and answers with one of the others.
  const bool channels =
      (has("<|return|>") && has("<|call|>")) || (has("<|flush|>") && has("<|calls|>"));
  for (size_t id = 0; id < v.tokens.size(); ++id) {
    const std::string_view text = v.tokens[id];
    if (std::ranges::find(kEndTexts, text) == std::end(kEndTexts)) continue;
    if (channels && text == "<|end|>") continue;
    const bool is_mark = text.starts_with("<|") && text.ends_with("|>");
    if (!is_mark && !IsAdded(v, id)) continue;
    if (!v.types.empty()) v.types[id] = kControlType;
    const auto token = static_cast<TokenId>(id);
    if (std::ranges::count(v.end_tokens, token) == 0) v.end_tokens.push_back(token);
  }
}

std::string ModelAdvice(const std::string& model) {
  std::string kind = "is " + json::Quote(model.substr(0, 50));
  if (model == "bert") kind += " (WordPiece, of encoders)";
  if (model == "t5") kind += " (Unigram)";
  return kind + "; expected gpt2, llama or gemma4, which models that write text have";
}

}  // namespace

Result<std::shared_ptr<const Tokenizer>> MakeGgufTokenizer(const GgufVocabulary& file) {
  GgufVocabulary v = file;
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
  AddEndTokens(v);
  if (v.model == "gemma4") v.add_bos = true;  // converters wrote false; the model needs the token
  Result<std::string> text = Error{};
  if (v.model == "gpt2") {
    text = ByteLevelJson(v);
  } else if (v.model == "llama" || v.model == "gemma4") {
    text = SentencePieceJson(v);
  } else {
    return At(v, ErrorCode::kUnsupported, "model", ModelAdvice(v.model));
  }
  if (!text.ok()) return text.error();
  return TokenizerFromJson(*text, v.path, v.bos, v.end_tokens);
}

// What kPres says, read from a tokenizer.json.
std::string PreTokenizerNameOf(const json::Value& tokenizer) {
  const auto string = [](const json::Value* value, const char* key) -> std::string_view {
    const json::Value* found = value == nullptr ? nullptr : value->Find(key);
    return found == nullptr ? "" : std::string_view(found->text);
  };
  const auto is = [](const json::Value* value, const char* key, bool otherwise) {
    const json::Value* found = value == nullptr ? nullptr : value->Find(key);
    return found == nullptr || !found->is_bool() ? otherwise : found->type == json::Type::kTrue;
  };
  const json::Value* model = tokenizer.Find("model");
  const json::Value* first = tokenizer.Find("pre_tokenizer");
  const json::Value* normalizer = tokenizer.Find("normalizer");
  const bool plain = normalizer == nullptr || normalizer->type == json::Type::kNull;
  if (model == nullptr || model->Find("vocab") == nullptr || first == nullptr) return "";
  if (!plain && string(normalizer, "type") != "NFC") return "";
  const json::Value* steps = first->Find("pretokenizers");
  PreKind kind;
  bool bytes = false;
  for (size_t i = 0; i < (steps == nullptr ? 1 : steps->items.size()); ++i) {
    const json::Value* step = steps == nullptr ? first : &steps->items[i];
    const std::string_view type = string(step, "type");
    if (bytes) return "";  // nothing may follow
    if (type == "ByteLevel" && !is(step, "add_prefix_space", true)) {
      kind.gpt2_words = is(step, "use_regex", true);
      bytes = true;
    } else if (type == "Digits" && is(step, "individual_digits", false)) {
      kind.splits.emplace_back(R"(\p{N})");
    } else if (type == "Split" && string(step, "behavior") == "Isolated" &&
               !is(step, "invert", false)) {
      kind.splits.emplace_back(string(step->Find("pattern"), "Regex"));
    } else {
      return "";
    }
  }
  for (const Pre& pre : kPres) {
    const PreKind known = KindOf(pre.kind);
    if (bytes && pre.name[0] != 0 && known.splits == kind.splits &&
        known.gpt2_words == kind.gpt2_words && pre.nfc == !plain &&
        pre.ignore_merges == is(model, "ignore_merges", false)) {
      return pre.name;
    }
  }
  return "";
}

}  // namespace pawl
