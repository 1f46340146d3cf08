// Each check compares the fast path with the slow, obvious one: the mask with trying every token,
// the automaton with the recursive validator of tests/oracle, forced bytes with trying every byte.
#include "tests/schemas/property_checks.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "tests/oracle/json_schema_validator.h"
#include "tests/schemas/property_generators.h"

namespace pawl::property {

using json::Value;
using oracle::Validator;
using oracle::Verdict;

namespace {

std::string Shown(std::string_view bytes) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out = "`";
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7F) {
      out += "\\x";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  out += '`';
  return out;
}

// The compiled schema next to its oracle.
struct Subject {
  std::optional<Grammar> grammar;
  std::unique_ptr<Validator> validator;
  Finding finding;

  bool ready() const { return grammar.has_value(); }
  // Empty when the text is valid, or that cannot be told.
  std::string Invalid(std::string_view text) {
    if (validator->Validate(text) != Verdict::kInvalid) return "";
    return Shown(text) + " is not valid (" + validator->reason() + ")";
  }
};

Subject Prepare(const Compiler& compiler, const Value& schema, const JsonSchemaOptions& options) {
  Subject subject;
  const std::string text = json::Dump(schema);
  auto validator = Validator::Create(text, {});
  if (!validator.ok()) {
    subject.finding = {Outcome::kRefused, "", "the oracle: " + validator.error().ToString()};
    return subject;
  }
  subject.validator = std::move(*validator);
  Result<Grammar> grammar = compiler.CompileJsonSchema(text, options);
  if (grammar.ok()) {
    subject.grammar = *grammar;
    return subject;
  }
  const Error& error = grammar.error();
  const std::string message = std::string(ErrorCodeName(error.code)) + ": " + error.ToString();
  switch (error.code) {
    case ErrorCode::kUnsatisfiable:
      subject.finding = {Outcome::kUnsatisfiable, "", message};
      break;
    case ErrorCode::kUnsupported:
    case ErrorCode::kLimit:
    case ErrorCode::kInvalid:
      subject.finding = {Outcome::kRefused, "", message};
      break;
    default:
      subject.finding = {Outcome::kRefused, message, message};
  }
  if (error.code != ErrorCode::kUnsatisfiable && error.place.empty()) {
    subject.finding.failure = "an error without a place: " + message;
  }
  return subject;
}

JsonSchemaOptions MostPermissive() {
  JsonSchemaOptions options;
  options.order = JsonSchemaOptions::Order::kAny;
  options.whitespace = JsonSchemaOptions::Whitespace::kAny;
  options.canonical_spelling = false;
  options.allow_exponents = true;
  return options;
}

// A walk over allowed tokens. Structure is preferred to text so that walks get somewhere.
std::optional<TokenId> RandomAllowed(Dice& dice, const Vocabulary& vocabulary, const Mask& mask) {
  const std::vector<TokenId> tokens = mask.Tokens();
  if (tokens.empty()) return std::nullopt;
  for (int attempt = 0; attempt < 3; ++attempt) {
    const TokenId token = dice.Pick(tokens);
    if (vocabulary.is_end(token)) return token;
    const std::string_view bytes = vocabulary.bytes(token);
    if (bytes.find_first_of("\"}],:0123456789") != bytes.npos) return token;
  }
  return dice.Pick(tokens);
}

// Walks and calls `visit(state, text)` on every state, the first one included, until it returns a
// failure.
template <typename Visit>
std::string Walk(Dice& dice, const Vocabulary& vocabulary, const Grammar& grammar, int steps,
                 Visit visit) {
  State state = grammar.Start();
  std::string text;
  for (int i = 0; i <= steps; ++i) {
    std::string failure = visit(state, text);
    if (!failure.empty()) return "after " + Shown(text) + ": " + failure;
    const auto token = RandomAllowed(dice, vocabulary, *state.mask());
    if (!token || vocabulary.is_end(*token)) break;
    const auto next = state.Advance(*token);
    if (!next) {
      return "after " + Shown(text) + ": the mask allows " + Shown(vocabulary.bytes(*token)) +
             ", Advance refuses it";
    }
    state = *next;
    text += vocabulary.bytes(*token);
  }
  return "";
}

}  // namespace

JsonSchemaOptions RandomOptions(Dice& dice) {
  JsonSchemaOptions options;
  using Order = JsonSchemaOptions::Order;
  using Whitespace = JsonSchemaOptions::Whitespace;
  options.order = dice.Percent(50) ? Order::kSchema : Order::kAny;
  static constexpr Whitespace kSpaces[] = {Whitespace::kCompact, Whitespace::kBounded,
                                           Whitespace::kAny};
  options.whitespace = dice.Pick(kSpaces);
  options.max_whitespace = dice.Between(1, 3);
  options.canonical_spelling = dice.Percent(50);
  options.allow_exponents = dice.Percent(50);
  options.ascii = dice.Percent(20);
  if (options.whitespace == Whitespace::kCompact && dice.Percent(40)) {
    static constexpr const char* kBehind[] = {"", " ", "  ", "\n "};
    options.item_separator += dice.Pick(kBehind);
    options.key_separator += dice.Pick(kBehind);
  }
  return options;
}

Finding CheckMasks(const Compiler& compiler, const Vocabulary& vocabulary, const Value& schema,
                   uint64_t seed) {
  Dice dice(seed);
  Subject subject = Prepare(compiler, schema, RandomOptions(dice));
  if (!subject.ready()) return subject.finding;
  Finding finding;
  for (int walk = 0; walk < 2 && finding.failure.empty(); ++walk) {
    finding.failure =
        Walk(dice, vocabulary, *subject.grammar, 10, [&](const State& state, const std::string&) {
          const auto mask = state.mask();
          int allowed = 0;
          for (TokenId token = 0; token < vocabulary.size(); ++token) {
            const bool expected =
                vocabulary.is_end(token) ? state.accepting() : state.Advance(token).has_value();
            allowed += expected;
            if (mask->Allows(token) != expected) {
              return "token " + Shown(vocabulary.bytes(token)) +
                     (expected ? " is taken but masked" : " is refused but allowed");
            }
          }
          return mask->count() == allowed
                     ? std::string()
                     : std::string("count() is not the number of allowed tokens");
        });
  }
  return finding;
}

Finding CheckCompletions(const Compiler& compiler, const Vocabulary& vocabulary,
                         const Value& schema, uint64_t seed) {
  Dice dice(seed);
  Subject subject = Prepare(compiler, schema, RandomOptions(dice));
  if (!subject.ready()) return subject.finding;
  Finding finding;
  for (int walk = 0; walk < 3 && finding.failure.empty(); ++walk) {
    finding.failure = Walk(
        dice, vocabulary, *subject.grammar, 25, [&](const State& state, const std::string& text) {
          const auto completion = state.CompletionBytes();
          if (!completion) return std::string("no completion");
          const auto end = state.Advance(*completion);
          if (!end) return "the completion " + Shown(*completion) + " is refused";
          if (!end->accepting())
            return "the completion " + Shown(*completion) + " does not end in acceptance";
          if (state.accepting() && !completion->empty())
            return std::string("accepting, but the completion is not empty");
          const int tokens = state.completion_length();
          if (tokens < 0 || (tokens == 0) != completion->empty() ||
              tokens > static_cast<int>(completion->size())) {
            return "completion_length() is " + std::to_string(tokens) + " for " +
                   Shown(*completion);
          }
          return subject.Invalid(text + *completion);
        });
  }
  return finding;
}

Finding CheckWalks(const Compiler& compiler, const Vocabulary& vocabulary, const Value& schema,
                   uint64_t seed) {
  Dice dice(seed);
  Subject subject = Prepare(compiler, schema, RandomOptions(dice));
  if (!subject.ready()) return subject.finding;
  for (int walk = 0; walk < 4; ++walk) {
    State state = subject.grammar->Start();
    std::string text;
    for (int step = 0; step < 60; ++step) {
      const auto token = RandomAllowed(dice, vocabulary, *state.mask());
      if (!token) return {Outcome::kChecked, "after " + Shown(text) + ": no token is allowed", ""};
      if (vocabulary.is_end(*token)) {
        const std::string invalid = subject.Invalid(text);
        if (!invalid.empty()) return {Outcome::kChecked, "ended, but " + invalid, ""};
        break;
      }
      const auto next = state.Advance(*token);
      text += vocabulary.bytes(*token);
      if (!next) return {Outcome::kChecked, "allowed but refused: " + Shown(text), ""};
      state = *next;
      if (state.accepting()) {
        const std::string invalid = subject.Invalid(text);
        if (!invalid.empty()) return {Outcome::kChecked, "accepting, but " + invalid, ""};
      }
    }
  }
  return {};
}

Finding CheckInstances(const Compiler& compiler, const Vocabulary&, const Value& schema,
                       uint64_t seed) {
  Dice dice(seed);
  Subject subject = Prepare(compiler, schema, MostPermissive());
  if (subject.finding.outcome == Outcome::kRefused) return subject.finding;
  Finding finding = subject.finding;
  for (int i = 0; i < 24; ++i) {
    Value instance = dice.Percent(15) ? RandomValue(dice, 3) : LikelyValue(dice, schema);
    if (dice.Percent(30)) instance = Mutated(dice, instance);
    const std::string text = Spelled(dice, instance);
    const Verdict verdict = subject.validator->Validate(text);
    if (verdict == Verdict::kCannotTell) continue;
    const bool valid = verdict == Verdict::kValid;
    if (!subject.ready()) {
      if (valid) finding.failure = "called unsatisfiable, but " + Shown(text) + " is valid";
    } else {
      const State start = subject.grammar->Start();
      const auto end = start.Advance(text);
      const bool accepted = end && end->accepting();
      if (accepted != valid) {
        finding.failure =
            Shown(text) + (valid ? " is valid but not accepted; the prefix that fits: " +
                                       Shown(text.substr(0, start.MatchedPrefix(text)))
                                 : " is accepted but not valid: " + subject.validator->reason());
      } else if (end.has_value() != (start.MatchedPrefix(text) == text.size())) {
        finding.failure = "MatchedPrefix and Advance differ on " + Shown(text);
      }
    }
    if (!finding.failure.empty()) return finding;
  }
  return finding;
}

Finding CheckForced(const Compiler& compiler, const Vocabulary& vocabulary, const Value& schema,
                    uint64_t seed) {
  Dice dice(seed);
  Subject subject = Prepare(compiler, schema, RandomOptions(dice));
  if (!subject.ready()) return subject.finding;
  Finding finding;
  for (int walk = 0; walk < 2 && finding.failure.empty(); ++walk) {
    finding.failure =
        Walk(dice, vocabulary, *subject.grammar, 12, [&](const State& state, const std::string&) {
          constexpr size_t kLimit = 32;
          const std::string forced = state.forced(kLimit);
          if (forced.size() > kLimit) return std::string("forced() is longer than its limit");
          State at = state;
          for (size_t i = 0; i <= forced.size(); ++i) {
            if (i == kLimit) break;
            std::string ways;
            for (int byte = 0; byte < 256 && ways.size() < 2; ++byte) {
              const char c = static_cast<char>(byte);
              if (at.Advance(std::string_view(&c, 1))) ways += c;
            }
            const bool only = ways.size() == 1 && !at.accepting();
            if (i == forced.size()) {
              return only ? "forced() stops at " + Shown(forced) + " before " + Shown(ways)
                          : std::string();
            }
            if (!only || ways[0] != forced[i])
              return "forced() says " + Shown(forced) + " where there is a choice";
            at = *at.Advance(ways);
          }
          return std::string();
        });
  }
  return finding;
}

}  // namespace pawl::property
