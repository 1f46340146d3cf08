// `pawl mask`: which tokens may come after a prefix.
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/base/json.h"
#include "src/base/utf8.h"
#include "src/cli/command.h"
#include "src/cli/describe.h"
#include "src/cli/engine.h"
#include "src/cli/options.h"

namespace pawl::cli {
namespace {

constexpr const char* kMask = "mask";

struct MaskFlags {
  GrammarFlags grammar{LayoutFlags::ForWriting()};
  std::string tokenizer;
  std::string prefix;
  int limit = 50;
  bool json = false;
};

// A JSON string when the bytes are UTF-8, else an array of byte values.
std::string JsonBytes(std::string_view bytes) {
  if (FindInvalidUtf8(bytes) == std::string_view::npos) return json::Quote(bytes);
  std::string out;
  for (const char c : bytes) {
    out += fmt::format("{}{}", out.empty() ? "" : ",", static_cast<unsigned char>(c));
  }
  return "[" + out + "]";
}

void PrintJson(const State& state, const Vocabulary& vocabulary, const std::vector<TokenId>& tokens,
               size_t shown) {
  Print(fmt::format("{{\"count\":{},\"end\":{},\"forced\":{},\"tokens\":[", tokens.size(),
                    state.accepting(), JsonBytes(state.forced())));
  for (size_t i = 0; i < shown; ++i) {
    Print(fmt::format("{}{{\"id\":{},\"text\":{}}}", i == 0 ? "" : ",", tokens[i],
                      JsonBytes(vocabulary.bytes(tokens[i]))));
  }
  Print("]}\n");
}

void PrintTable(const State& state, const Vocabulary& vocabulary,
                const std::vector<TokenId>& tokens, size_t shown) {
  Print(fmt::format("{} of {} tokens allowed\n", tokens.size(), vocabulary.size()));
  Print(fmt::format("end allowed: {}\n", state.accepting() ? "yes" : "no"));
  const std::string forced = state.forced();
  Print(fmt::format("forced: {}\n", forced.empty() ? "nothing" : Readable(forced)));
  Print(fmt::format("bytes: {}\n", DescribeAllowed(state)));
  for (size_t i = 0; i < shown; ++i) {
    Print(
        fmt::format("{:>8}  {}{}\n", tokens[i], Readable(vocabulary.bytes(tokens[i])),
                    vocabulary.is_end(tokens[i]) && state.accepting() ? "  (end of output)" : ""));
  }
  if (shown < tokens.size()) {
    Print(fmt::format("     ...  {} more (--limit 0 shows all)\n", tokens.size() - shown));
  }
}

int ShowMask(const MaskFlags& flags) {
  if (Status status = flags.grammar.CheckGiven(); !status.ok()) return Fail(kMask, status.error());
  Result<ModelText> text = LoadText(kMask, flags.tokenizer);
  if (!text.ok()) return Fail(kMask, text.error());
  Result<Grammar> grammar = flags.grammar.Compile(text->vocabulary);
  if (!grammar.ok()) return Fail(kMask, grammar.error());
  NoteAnnotations(kMask, grammar->notes(), flags.grammar.annotations);
  const State start = grammar->Start();
  const size_t fits = start.MatchedPrefix(flags.prefix);
  const std::optional<State> state = start.Advance(std::string_view(flags.prefix).substr(0, fits));
  if (!state.has_value() || fits < flags.prefix.size()) {
    return Fail(kMask, Error{ErrorCode::kInvalid,
                             fmt::format("got {}, allowed there: {}",
                                         Readable(std::string_view(flags.prefix).substr(fits)),
                                         DescribeAllowed(state.value_or(start))),
                             fmt::format("--prefix: byte {}", fits)});
  }
  const std::vector<TokenId> tokens = state->mask()->Tokens();
  const size_t shown =
      flags.limit == 0 ? tokens.size() : std::min(tokens.size(), static_cast<size_t>(flags.limit));
  if (flags.json) {
    PrintJson(*state, *text->vocabulary, tokens, shown);
  } else {
    PrintTable(*state, *text->vocabulary, tokens, shown);
  }
  return kExitOk;
}

}  // namespace

void AddMask(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(kMask, "Show which tokens may come after a prefix");
  const auto flags = std::make_shared<MaskFlags>();
  flags->grammar.AddAllTo(command, false);  // --prefix: the output so far
  TextOption(command, "--tokenizer", flags->tokenizer, "PATH", kTokenizerHelp);
  command->add_option("--prefix", flags->prefix, "The output so far (default: nothing)")
      ->type_name("TEXT");
  CountOption(command, "--limit", flags->limit, 0, 1 << 24, "Show at most N tokens; 0: all");
  command->add_flag("--json", flags->json, "Print JSON");
  command->footer(
      "Example:\n  pawl mask --regex \"[0-9]{2,4}\" --tokenizer models/tiny-extract --prefix 19");
  command->callback([flags, &action] { action = [flags] { return ShowMask(*flags); }; });
}

}  // namespace pawl::cli
