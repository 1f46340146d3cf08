// The patterns are those of real schemas with the anchors taken off, so that each anchoring can be
// tried. A pattern's text is one that it was written for.
#include "tests/schemas/pattern_pairs.h"

#include <utility>

#include "grammar/grammar_access.h"
#include "pawl/compiler.h"
#include "schemas/machine/schema_machine.h"
#include "src/base/json.h"
#include "tests/schemas/property_generators.h"

namespace pawl::property {
namespace {

struct Sample {
  const char* what;  // the format, or the pattern without anchors
  const char* text;
};

constexpr Sample kPairedFormats[] = {
    {"date-time", "2024-02-29T23:59:60.125+01:30"},
    {"date", "2000-02-29"},
    {"time", "08:30:06.283185Z"},
    {"email", "joe.bloggs+news@mail.example.com"},
    {"hostname", "www.xn--bcher-kva.example.org"},
    {"ipv6", "2001:db8::ff00:42:8329"},
    {"uri", "https://user@example.com:8080/a/b%20c?q=1&r=2#top"},
    {"uuid", "2EB8AA08-aa98-11ea-b4aa-73b441d16380"},
};

constexpr Sample kPairedPatterns[] = {
    // Dates and times.
    {R"(\d\d\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ)", "2019-11-02T10:11:12Z"},
    {R"(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z)", "2019-11-02T10:11:12.345Z"},
    {R"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2}))",
     "2019-11-02T10:11:12+02:00"},
    {R"(\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01]))", "2021-12-31"},
    {R"((19|20)\d\d[- /.](0[1-9]|1[012])[- /.](0[1-9]|[12][0-9]|3[01]))", "1999-01-30"},
    {R"(([01]?[0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?)", "23:59:01"},
    {R"(\d{1,2}\.\d{1,2}\.\d{2,4})", "3.10.1990"},
    {R"((Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d{2} [A-Z][a-z]{2} \d{4})", "Tue, 02 Nov 2021"},
    // Identifiers.
    {R"([0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12})",
     "2eb8aa08-aa98-11ea-b4aa-73b441d16380"},
    {R"([0-9a-fA-F]{24})", "507f1f77bcf86cd799439011"},
    {R"([a-f0-9]{40})", "da39a3ee5e6b4b0d3255bfef95601890afd80709"},
    {R"([A-Z]{2,5}-\d+)", "PAWL-1234"},
    {R"([A-Za-z_][A-Za-z0-9_]*)", "snake_case_9"},
    {R"([a-z0-9]([-a-z0-9]*[a-z0-9])?)", "my-pod-7"},
    {R"([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)", "db.prod.example.com"},
    {R"(arn:aws:[a-z0-9]+:[a-z0-9-]*:\d{12}:.+)", "arn:aws:sns:eu-west-1:123456789012:topic"},
    {R"([A-Z]{2}\d{2}[A-Z0-9]{11,30})", "DE89370400440532013000"},
    {R"(v?\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?)", "1.22.0-rc.1+build.5"},
    {R"((\d+)\.(\d+)\.(\d+)\.(\d+))", "10.0.0.1"},
    {R"((25[0-5]|2[0-4]\d|1?\d?\d)(\.(25[0-5]|2[0-4]\d|1?\d?\d)){3})", "192.168.1.1"},
    {R"(([0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2})", "00:1B:44:11:3A:B7"},
    {R"(#([0-9a-fA-F]{3}|[0-9a-fA-F]{6}))", "#ff8800"},
    // E-mails and addresses of the web.
    {R"([a-zA-Z0-9._%+-]+@[a-zA-Z0-9.-]+\.[a-zA-Z]{2,})", "jane@mail.example.org"},
    {R"(\S+@\S+\.\S+)", "jane@example.org"},
    {R"(.+@example\.com)", "joe@example.com"},
    {R"(https?://[^\s/$.?#].[^\s]*)", "https://example.com/a"},
    {R"((https?|ftp)://(www\.)?[-a-zA-Z0-9@:%._+~#=]{1,256}\.[a-z]{2,6}\b([-a-zA-Z0-9@:%_+.~#?&/=]*))",
     "http://www.example.com/x?y=1"},
    {R"(https://github\.com/[\w.-]+/[\w.-]+(\.git)?)", "https://github.com/a/b.git"},
    {R"((/[a-z0-9_-]+)+/?)", "/usr/share/doc"},
    {R"(.*\.(png|jpe?g|gif|svg))", "logo.svg"},
    // Numbers.
    {R"([+-]?\d+(\.\d+)?([eE][+-]?\d+)?)", "-12.5e3"},
    {R"(\d{3}-\d{2}-\d{4})", "078-05-1120"},
    {R"(\+?\d{1,3}[ -]?\(?\d{2,4}\)?[ -]?\d{3,4}[ -]?\d{3,4})", "+49 (30) 1234 5678"},
    {R"(\d{5}(-\d{4})?)", "12345-6789"},
    {R"((0|[1-9]\d{0,8})(,\d{3})*)", "1,234,567"},
    // Words, classes and counts.
    {R"([A-Z][a-z]+( [A-Z][a-z]+)*)", "Ada Lovelace"},
    {R"(\w{3,20})", "some_word"},
    {R"([^\s<>"]{1,64})", "anything"},
    {R"((.*[a-z].*[0-9].*){2})", "a1b2"},
    {R"([a-z].{6,9}[0-9].{2,5}[A-Z])", "abcdefgh1xyzA"},
};

std::string Schema(const char* format, const std::string& pattern) {
  return R"({"type":"string","format":")" + std::string(format) + R"(","pattern":)" +
         json::Quote(pattern) + "}";
}

}  // namespace

std::vector<PatternPair> PatternPairs() {
  static constexpr std::pair<const char*, const char*> kAnchors[] = {
      {"", ""}, {"^", ""}, {"", "$"}, {"^", "$"}};
  std::vector<PatternPair> pairs;
  for (const Sample& format : kPairedFormats) {
    int number = 0;
    for (const Sample& pattern : kPairedPatterns) {
      ++number;
      const std::string two = number < 10 ? "0" + std::to_string(number) : std::to_string(number);
      for (const auto& [begin, end] : kAnchors) {
        pairs.push_back(
            {std::string(format.what) + ' ' + two + ' ' + begin + end,
             Schema(format.what, begin + ("(?:" + std::string(pattern.what) + ")") + end),
             {json::Quote(format.text), json::Quote(pattern.text)}});
      }
    }
  }
  return pairs;
}

void WalkPair(const PatternPair& pair, const std::shared_ptr<const Vocabulary>& vocabulary,
              const Encode& encode, int tokens, uint64_t seed, Dearest& dearest) {
  const auto grammar = Compiler(vocabulary).CompileJsonSchema(pair.schema);
  if (!grammar.ok()) return;  // most pairs have no string in common
  const std::shared_ptr<Machine> machine = GrammarAccess::Of(*grammar).machine;
  const auto* const schema = dynamic_cast<const schema::SchemaMachine*>(machine.get());
  const auto nodes = [&] { return schema == nullptr ? 0 : schema->nodes(); };
  std::string written;
  // The mask of the state, and the state after the token that `choose` takes of it.
  const auto take = [&](const State& state, const auto& choose) {
    const uint64_t before = machine->steps(), nodes_before = nodes();
    const std::shared_ptr<const Mask> mask = state.mask();
    const uint64_t of_mask = machine->steps() - before;
    const TokenId token = choose(*mask);
    const uint64_t chosen = machine->steps();
    std::optional<State> next;
    if (token != kNoToken) next = state.Advance(token);
    dearest.nodes = std::max(dearest.nodes, nodes() - nodes_before);
    dearest.Consider(of_mask + machine->steps() - chosen, pair.name, written);
    if (token != kNoToken) written += vocabulary->bytes(token);
    return next;
  };
  std::vector<std::string> texts = pair.texts;
  if (const auto shortest = grammar->Start().CompletionBytes()) texts.push_back(*shortest);
  for (const std::string& text : texts) {
    std::optional<State> state = grammar->Start();
    written.clear();
    for (const TokenId token : encode(text)) {
      state = take(*state, [&](const Mask& mask) { return mask.Allows(token) ? token : kNoToken; });
      if (!state) break;
    }
  }
  Dice dice(seed);
  std::optional<State> state = grammar->Start();
  written.clear();
  for (int i = 0; i < tokens && state; ++i) {
    TokenId ahead = kNoToken;
    if (dice.Percent(50)) {
      const auto end = state->CompletionBytes();
      if (end && !end->empty()) ahead = vocabulary->LongestPrefix(*end);
    }
    state = take(*state, [&](const Mask& mask) {
      if (ahead != kNoToken && mask.Allows(ahead)) return ahead;
      const std::vector<TokenId> all = mask.Tokens();
      return all.empty() ? kNoToken : dice.Pick(all);
    });
  }
}

}  // namespace pawl::property
