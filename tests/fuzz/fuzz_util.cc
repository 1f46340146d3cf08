// A vocabulary of single bytes and an end token, so that every text is a sequence of tokens, and
// the promises that all targets check: errors have a message, and none is internal.
#include "tests/fuzz/fuzz_util.h"

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

#include "src/base/random.h"
#include "tests/support/vocabularies.h"

namespace pawl::fuzz {

const std::shared_ptr<const Vocabulary>& Bytes() {
  static const auto bytes = VocabularyOf(AllBytes(), {}, {""});
  return bytes;
}

void Require(bool holds, const char* what, std::string_view text) {
  if (holds) return;
  std::fprintf(stderr, "FAILED: %s\ntext: %.*s\n", what, static_cast<int>(text.size()),
               text.data());
  std::abort();
}

void RequireGoodError(const Error& error, std::string_view input) {
  Require(!error.message.empty(), "an error without a message", input);
  if (error.code == ErrorCode::kInternal) {
    Require(false, ("an internal error: " + error.ToString()).c_str(), input);
  }
}

int RequireHonestMask(const State& state, std::string_view text) {
  const std::shared_ptr<const Mask> mask = state.mask();
  int taken = 0;
  for (int b = 0; b < kEnd; ++b) {
    const char byte = static_cast<char>(b);
    const bool takes = state.Advance(std::string_view(&byte, 1)).has_value();
    Require(takes == mask->Allows(b), "the mask and the state disagree about a byte", text);
    taken += static_cast<int>(takes);
  }
  Require(state.accepting() == mask->Allows(kEnd), "the mask and the state disagree about the end",
          text);
  return taken;
}

std::string RequireCompletion(const State& state, std::string_view text, bool& found) {
  const std::optional<std::string> rest = state.CompletionBytes();
  found = rest.has_value();
  if (!found) return {};
  std::string whole(text);
  whole += *rest;
  const std::optional<State> end = state.Advance(*rest);
  Require(end.has_value() && end->accepting(), "the shortest completion does not complete", whole);
  return whole;
}

std::string RequireSoundWalk(const Grammar& grammar, uint64_t seed, int steps) {
  State state = grammar.Start();
  std::string text;
  for (int i = 0; i < steps; ++i) {
    if (RequireHonestMask(state, text) == 0) break;
    const std::vector<TokenId> allowed = state.mask()->Tokens();
    const uint32_t draw = Philox4x32(seed, 0, static_cast<uint64_t>(i)).word[0];
    const TokenId token = allowed[draw % allowed.size()];
    if (token == kEnd) break;
    const std::optional<State> next = state.Advance(token);
    Require(next.has_value(), "the mask allows a token that the state refuses", text);
    text.push_back(static_cast<char>(token));
    state = *next;
  }
  bool found = false;
  return RequireCompletion(state, text, found);
}

uint64_t HashOf(std::string_view input) {
  uint64_t hash = 0xCBF29CE484222325u;  // FNV-1a
  for (const char c : input) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return hash;
}

}  // namespace pawl::fuzz
