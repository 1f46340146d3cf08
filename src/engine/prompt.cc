// Prompt templates.
//
// Where no literal part of a template holds a special token, the filled-in text is encoded in one
// go: the tokens at the seams are then those that the model saw in training. Otherwise the parts
// are encoded one by one, the literal ones with special tokens, the filled-in ones without.
#include "src/engine/prompt.h"

#include <algorithm>
#include <utility>

#include "src/base/file.h"
#include "src/base/json_reader.h"
#include "src/base/os/files.h"

namespace pawl {
namespace {

struct PromptPart {
  std::string_view text;
  bool literal;
};

std::vector<PromptPart> Fill(std::string_view prompt, const PromptFilling& filling) {
  const std::pair<std::string_view, std::string_view> names[] = {
      {"{text}", filling.text},
      {"{schema}", filling.schema},
      {"{fields}", filling.fields},
      {"{instruction}", filling.instruction},
      {"{examples}", filling.examples}};
  std::vector<PromptPart> parts;
  size_t begin = 0;
  for (size_t i = 0; i < prompt.size();) {
    const auto* const found = std::ranges::find_if(
        names, [&](const auto& name) { return prompt.substr(i).starts_with(name.first); });
    if (found == std::end(names)) {
      ++i;
      continue;
    }
    parts.push_back({prompt.substr(begin, i - begin), true});
    parts.push_back({found->second, false});
    i += found->first.size();
    begin = i;
  }
  parts.push_back({prompt.substr(begin), true});
  return parts;
}

// Whether the tokenizer's own post-processor begins a text with the begin-of-sequence token.
bool AddsBos(const Tokenizer& tokenizer) {
  const std::vector<TokenId> tokens = tokenizer.Encode("x", {.add_special_tokens = true});
  return tokenizer.bos() != kNoToken && !tokens.empty() && tokens.front() == tokenizer.bos();
}

Result<PromptTemplate> ParsePromptFile(std::string_view text) {
  Result<json::Value> root = json::Parse(text);
  if (!root.ok()) return root.error();
  PromptTemplate prompt;
  const JsonReader in(*root), extract = in["extract"].OptionalObject();
  in.OnlyMembers({"bos", "extract"});
  in["bos"].Read(prompt.bos);
  if (extract.present()) {
    std::vector<std::string_view> names = {"bos", "prompt"};
    names.insert(names.end(), std::begin(kExtractSettingNames), std::end(kExtractSettingNames));
    extract.OnlyMembers(names);
    prompt.settings = ReadExtractSettings(extract);
  }
  extract["bos"].Read(prompt.bos);
  if (const JsonReader filled = extract["prompt"]; filled.Read(prompt.text)) {
    if (prompt.text.find("{text}") == std::string::npos) filled.Fail("must contain {text}");
  }
  if (!in.ok()) return in.error();
  return prompt;
}

}  // namespace

Status CheckBos(const PromptTemplate& prompt, const Tokenizer& tokenizer, int logits,
                const std::string& path) {
  if (!prompt.bos || tokenizer.bos() < logits) return {};
  return Error{ErrorCode::kInvalid,
               "the tokenizer's begin-of-sequence token " + std::to_string(tokenizer.bos()) +
                   " is beyond the model's vocabulary of " + std::to_string(logits),
               path};
}

Result<PromptTemplate> LoadPromptTemplate(const std::string& folder, const Tokenizer& tokenizer) {
  const std::string path = folder + "/pawl.json";
  if (!os::Exists(path)) {
    return PromptTemplate{"", AddsBos(tokenizer)};
  }
  Result<std::string> text = ReadRegularFile(path);
  if (!text.ok()) return text.error();
  Result<PromptTemplate> prompt = ParsePromptFile(*text);
  if (!prompt.ok()) return InFile(path, prompt.error());
  if (prompt->bos && tokenizer.bos() == kNoToken) {
    return Error{ErrorCode::kInvalid, "the tokenizer has no begin-of-sequence token",
                 path + ": bos"};
  }
  return prompt;
}

Result<std::vector<TokenId>> EncodeText(const Tokenizer& tokenizer, const PromptTemplate& prompt,
                                        std::string_view text, bool special, int max_tokens) {
  Result<std::vector<TokenId>> tokens =
      tokenizer.EncodeWithin(text, max_tokens, {.parse_special = special});
  if (!tokens.ok()) return tokens;
  const TokenId bos = tokenizer.bos();
  const bool wanted = bos != kNoToken && (prompt.bos || tokens->empty());
  if (wanted && (tokens->empty() || tokens->front() != bos)) tokens->insert(tokens->begin(), bos);
  return tokens;
}

Result<std::vector<TokenId>> EncodePrompt(const Tokenizer& tokenizer, const PromptTemplate& prompt,
                                          const PromptFilling& filling, int max_tokens) {
  std::vector<TokenId> tokens;
  if (prompt.bos && tokenizer.bos() != kNoToken) tokens.push_back(tokenizer.bos());
  const std::vector<PromptPart> parts = Fill(prompt.text, filling);
  constexpr EncodeOptions kSpecial{.add_special_tokens = false, .parse_special = true};
  bool special = false;
  for (const PromptPart& part : parts) {
    special |= part.literal && tokenizer.Encode(part.text, kSpecial) != tokenizer.Encode(part.text);
  }
  const auto append = [&](std::string_view piece, const EncodeOptions& options) -> Status {
    const int room = max_tokens - static_cast<int>(tokens.size());
    const Result<std::vector<TokenId>> more = tokenizer.EncodeWithin(piece, room, options);
    if (!more.ok()) return more.error();
    tokens.insert(tokens.end(), more->begin(), more->end());
    return {};
  };
  std::string whole;
  for (const PromptPart& part : parts) {
    if (!special) {
      whole += part.text;
      continue;
    }
    Status status = append(part.text, part.literal ? kSpecial : EncodeOptions{});
    if (!status.ok()) return status.error();
  }
  if (Status status = append(whole, {}); !status.ok()) return status.error();
  return tokens;
}

}  // namespace pawl
