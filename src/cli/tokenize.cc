// `pawl tokenize`: text to tokens and back.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/base/json.h"
#include "src/base/utf8.h"
#include "src/cli/chat.h"
#include "src/cli/command.h"
#include "src/cli/engine.h"
#include "src/cli/options.h"

namespace pawl::cli {
namespace {

constexpr const char* kTokenize = "tokenize";

struct TokenizeFlags {
  std::string tokenizer;
  std::optional<std::string> text;
  std::string file = "-";
  std::optional<std::string> decode;
  bool special = false;
  bool json = false;
  ChatFlags chat;
  bool show_prompt = false;
};

// Ids separated by spaces, commas or new lines; brackets as of a JSON array are fine.
Result<std::vector<TokenId>> ParseIds(std::string_view text, int size) {
  std::vector<TokenId> ids;
  for (size_t i = 0; i < text.size();) {
    if (std::string_view(" ,\n\r\t[]").find(text[i]) != std::string_view::npos) {
      ++i;
      continue;
    }
    TokenId id = 0;
    const char* begin = text.data() + i;
    const auto [end, error] = std::from_chars(begin, text.data() + text.size(), id);
    if (error != std::errc() || end == begin) {
      return Error{ErrorCode::kInvalid, "not a token id", fmt::format("--decode: byte {}", i)};
    }
    if (id < 0 || id >= size) {
      return Error{ErrorCode::kInvalid,
                   fmt::format("token {} is not in the vocabulary of {} tokens", id, size),
                   fmt::format("--decode: byte {}", i)};
    }
    ids.push_back(id);
    i += static_cast<size_t>(end - begin);
  }
  return ids;
}

int Tokenize(const TokenizeFlags& flags) {
  Result<ModelText> loaded = LoadText(kTokenize, flags.tokenizer);
  if (!loaded.ok()) return Fail(kTokenize, loaded.error());
  const Tokenizer& tokenizer = *loaded->tokenizer;
  if (flags.decode.has_value()) {
    Result<std::vector<TokenId>> ids = ParseIds(*flags.decode, tokenizer.size());
    if (!ids.ok()) return Fail(kTokenize, ids.error());
    const std::string text = tokenizer.Decode(*ids, flags.special);
    if (flags.json && FindInvalidUtf8(text) != std::string_view::npos) {
      return Fail(kTokenize,
                  Error{ErrorCode::kInvalid,
                        "the tokens do not decode to UTF-8, so JSON cannot hold them", "--decode"});
    }
    Print(flags.json ? "{\"text\":" + json::Quote(text) + "}\n" : text + "\n");
    return kExitOk;
  }
  if (Status status = flags.chat.Check(); !status.ok()) return Fail(kTokenize, status.error());
  if (flags.show_prompt && !flags.chat.any()) {
    return Fail(kTokenize,
                Error{ErrorCode::kInvalid, "needs --chat or --messages", "--show-prompt"});
  }
  std::string text;
  if (flags.chat.has_messages()) {
    // The messages are read with the template.
  } else if (flags.text.has_value()) {
    text = *flags.text;
  } else {
    Result<std::string> read = ReadInput(flags.file);
    if (!read.ok()) return Fail(kTokenize, read.error());
    text = *std::move(read);
  }
  std::vector<TokenId> ids;
  if (flags.chat.any()) {
    Result<ChatPrompt> chat = flags.chat.Render(flags.tokenizer, tokenizer, text);
    if (!chat.ok()) return Fail(kTokenize, chat.error());
    text = std::move(chat->text);
    ids = std::move(chat->tokens);
    if (flags.show_prompt) {
      Print(flags.json ? "{\"prompt\":" + json::Quote(text) + "}\n" : text + "\n");
      return kExitOk;
    }
  } else {
    ids = tokenizer.Encode(text,
                           {.add_special_tokens = flags.special, .parse_special = flags.special});
  }
  if (flags.json) {
    std::string list;
    std::string names;
    for (TokenId id : ids) {
      list += fmt::format("{}{}", list.empty() ? "" : ",", id);
      names += (names.empty() ? "" : ",") + json::Quote(tokenizer.NameOf(id));
    }
    Print(fmt::format("{{\"count\":{},\"ids\":[{}],\"tokens\":[{}]}}\n", ids.size(), list, names));
    return kExitOk;
  }
  for (TokenId id : ids) {
    const std::string_view bytes =
        loaded->vocabulary->is_special(id) ? tokenizer.NameOf(id) : loaded->vocabulary->bytes(id);
    Print(fmt::format("{:>8}  {}\n", id, Readable(bytes)));
  }
  Print(fmt::format("{} tokens, {} bytes\n", ids.size(), text.size()));
  return kExitOk;
}

}  // namespace

void AddTokenize(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand(kTokenize, "Show the tokens of a text, or the text of tokens");
  const auto flags = std::make_shared<TokenizeFlags>();
  TextOption(command, "--tokenizer", flags->tokenizer, "PATH", kTokenizerHelp);
  auto* text = command->add_option("--text", flags->text, "The text itself")->type_name("TEXT");
  auto* file =
      TextOption(command, "--file", flags->file, "FILE", "File with the text; -: standard input")
          ->capture_default_str()
          ->excludes(text);
  command->add_option("--decode", flags->decode, "Token ids to turn into text")
      ->type_name("IDS")
      ->excludes(text)
      ->excludes(file);
  command->add_flag("--special", flags->special,
                    "Special tokens in the text become tokens, and those of the post-processor are "
                    "added; --decode keeps them");
  flags->chat.AddTo(command, {text, file});
  command->add_flag("--show-prompt", flags->show_prompt,
                    "With --chat or --messages: print the prompt instead of its tokens");
  command->add_flag("--json", flags->json, "Print JSON");
  command->footer(
      "Example:\n  pawl tokenize --tokenizer models/tiny-extract --text \"30 EUR\"\n"
      "  pawl tokenize --tokenizer models/tiny-extract --decode \"51 48\"\n"
      "  pawl tokenize --tokenizer models/tiny-extract --chat --text Hello --chat-template "
      "tests/data/chat/templates/chatml.jinja --show-prompt");
  command->callback([flags, &action] { action = [flags] { return Tokenize(*flags); }; });
}

}  // namespace pawl::cli
