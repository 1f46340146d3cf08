// The markers of the models' own cards. CodeLlama's have a space in front of them, Codestral writes
// the suffix first and lets the prefix end the prompt.
#include "src/text/fim.h"

#include <array>

namespace pawl {
namespace {

constexpr std::array<FimTemplate, 8> kForms = {{
    {"qwen", "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", false, "<|repo_name|>",
     "<|file_sep|>"},  // also CodeGemma
    {"starcoder", "<fim_prefix>", "<fim_suffix>", "<fim_middle>", false, "<repo_name>",
     "<file_sep>"},  // also StarCoder 2
    {"santacoder", "<fim-prefix>", "<fim-suffix>", "<fim-middle>", false},
    {"deepseek",
     "<\xEF\xBD\x9C"
     "fim\xE2\x96\x81"
     "begin\xEF\xBD\x9C>",
     "<\xEF\xBD\x9C"
     "fim\xE2\x96\x81"
     "hole\xEF\xBD\x9C>",
     "<\xEF\xBD\x9C"
     "fim\xE2\x96\x81"
     "end\xEF\xBD\x9C>",
     false},
    {"codellama", "\xE2\x96\x81<PRE>", "\xE2\x96\x81<SUF>", "\xE2\x96\x81<MID>", false},
    {"codellama", "<PRE>", "<SUF>", "<MID>", false},
    {"glm", "<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>", false},
    {"codestral", "[PREFIX]", "[SUFFIX]", "", true},
}};

}  // namespace

const FimTemplate* FindFimTemplate(const Tokenizer& tokenizer) {
  for (const FimTemplate& form : kForms) {
    if (tokenizer.IdOf(form.prefix) == kNoToken || tokenizer.IdOf(form.suffix) == kNoToken)
      continue;
    if (form.middle[0] != 0 && tokenizer.IdOf(form.middle) == kNoToken) continue;
    return &form;
  }
  return nullptr;
}

std::string FimPrompt(const FimTemplate& form, std::string_view prefix, std::string_view suffix) {
  std::string prompt;
  if (form.suffix_first) {
    prompt.append(form.suffix).append(suffix).append(form.prefix).append(prefix);
  } else {
    prompt.append(form.prefix).append(prefix).append(form.suffix).append(suffix);
  }
  return prompt.append(form.middle);
}

Result<std::vector<TokenId>> FimTokens(const FimTemplate& form, const Tokenizer& tokenizer,
                                       const FimInput& input) {
  std::vector<TokenId> out;
  Status status;
  if (input.bos && tokenizer.bos() != kNoToken) out.push_back(tokenizer.bos());
  const auto mark = [&](const char* name) {
    const TokenId id = *name == 0 ? kNoToken : tokenizer.IdOf(name);
    if (id != kNoToken) out.push_back(id);
    return id != kNoToken;
  };
  const auto text = [&](std::string_view piece) {
    if (!status.ok()) return;
    const int room = input.max_tokens - static_cast<int>(out.size());
    const Result<std::vector<TokenId>> tokens = tokenizer.EncodeWithin(piece, room);
    if (tokens.ok()) {
      out.insert(out.end(), tokens->begin(), tokens->end());
    } else {
      status = tokens.error();
    }
  };
  if (!input.files.empty()) {
    if (mark(form.repository)) text("repository\n");
    for (const auto& [name, content] : input.files) {
      if (mark(form.file)) text(name + "\n");
      text(content);
    }
    if (mark(form.file)) text("current\n");
  }
  mark(form.suffix_first ? form.suffix : form.prefix);
  text(form.suffix_first ? input.suffix : input.prefix);
  mark(form.suffix_first ? form.prefix : form.suffix);
  text(form.suffix_first ? input.prefix : input.suffix);
  mark(form.middle);
  if (!status.ok()) return status.error();
  return out;
}

std::optional<FimParts> ParseFimPrompt(std::string_view prompt) {
  for (const FimTemplate& form : kForms) {
    const std::string_view p = form.prefix;
    const std::string_view s = form.suffix;
    const std::string_view m = form.middle;
    const size_t at_prefix = prompt.find(p);
    const size_t at_suffix = prompt.find(s);
    if (at_prefix == std::string_view::npos || at_suffix == std::string_view::npos) continue;
    FimParts parts;
    parts.form = &form;
    if (at_suffix < at_prefix) {
      parts.suffix = prompt.substr(at_suffix + s.size(), at_prefix - at_suffix - s.size());
      std::string_view rest = prompt.substr(at_prefix + p.size());
      if (!m.empty() && rest.ends_with(m)) rest.remove_suffix(m.size());
      parts.prefix = rest;
      return parts;
    }
    const size_t at_middle = m.empty() ? prompt.size() : prompt.find(m, at_suffix);
    if (at_middle == std::string_view::npos) continue;
    parts.prefix = prompt.substr(at_prefix + p.size(), at_suffix - at_prefix - p.size());
    parts.suffix = prompt.substr(at_suffix + s.size(), at_middle - at_suffix - s.size());
    return parts;
  }
  return std::nullopt;
}

}  // namespace pawl
