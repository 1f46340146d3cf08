// Both questions are asked of every token, mask and Advance, because a decode loop relies on their
// having one answer.
#include "src/cli/walk.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>

#include "src/cli/command.h"
#include "src/cli/describe.h"

namespace pawl::cli {
namespace {

std::string Got(std::string_view text, size_t byte) {
  if (byte >= text.size()) return "the end of the text";
  constexpr size_t kShown = 16;
  size_t end = std::min(text.size(), byte + kShown);
  while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
  return Readable(text.substr(byte, end - byte));
}

}  // namespace

std::optional<Error> WalkTokens(const Grammar& grammar, std::string_view text,
                                std::span<const TokenId> tokens) {
  State state = grammar.Start();
  size_t byte = 0;
  const auto refused = [&](const State& at, size_t where, int allowed_tokens) {
    return Error{ErrorCode::kInvalid,
                 fmt::format("refused at byte {} ({}): got {}, allowed there: {}{}", where,
                             LineColumn(text, where), Got(text, where), DescribeAllowed(at),
                             allowed_tokens < 0 ? ""
                                                : fmt::format(" ({} of {} tokens)", allowed_tokens,
                                                              grammar.vocabulary().size())),
                 ""};
  };
  for (TokenId token : tokens) {
    const std::string_view bytes = grammar.vocabulary().bytes(token);
    const std::shared_ptr<const Mask> mask = state.mask();
    const bool allowed = mask->Allows(token);
    const std::optional<State> next = state.Advance(token);
    if (allowed != next.has_value()) {
      return Error{ErrorCode::kInternal,
                   fmt::format("at byte {} the mask says {} to token {} {}, the state {}", byte,
                               allowed ? "yes" : "no", token, Readable(bytes),
                               next.has_value() ? "yes" : "no"),
                   ""};
    }
    if (!allowed) {
      const size_t fits = state.MatchedPrefix(bytes);
      const std::optional<State> at = state.Advance(bytes.substr(0, fits));
      return refused(at.value_or(state), byte + fits, fits == 0 ? mask->count() : -1);
    }
    state = *next;
    byte += bytes.size();
  }
  if (!state.accepting()) return refused(state, byte, state.mask()->count());
  return std::nullopt;
}

}  // namespace pawl::cli
