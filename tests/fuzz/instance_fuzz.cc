// Arbitrary bytes as a JSON text under a fixed schema, which the first byte chooses together with
// the layout. At each byte the mask and the state agree; what is not taken ends the text; every
// state on the way can be completed, and what is complete is valid for the independent validator of
// tests/oracle. The other way round, in the layout that allows everything: a text that is valid is
// accepted.
#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "pawl/compiler.h"
#include "src/base/json.h"
#include "tests/fuzz/fuzz_util.h"
#include "tests/oracle/json_schema_validator.h"

namespace pawl {
namespace {

constexpr std::array<const char*, 11> kSchemas = {
    R"({})",
    R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}},)"
    R"("required":["a"],"additionalProperties":false})",
    R"({"type":"array","items":{"enum":["x","xy",1,1.5,null,{"k":[]}]},"uniqueItems":true,)"
    R"("maxItems":4})",
    R"j({"type":"string","pattern":"^a+[^b]?(c|\\d{2,3})","minLength":3,"maxLength":6})j",
    R"({"type":"number","minimum":-3,"exclusiveMaximum":17.5,"multipleOf":0.25})",
    R"({"$ref":"#/$defs/t","$defs":{"t":{"type":["object","null"],"properties":)"
    R"({"l":{"$ref":"#/$defs/t"},"r":{"$ref":"#/$defs/t"}},"additionalProperties":false}}})",
    R"({"oneOf":[{"properties":{"k":{"const":"a"},"v":{"type":"integer"}},"required":["k","v"]},)"
    R"({"properties":{"k":{"const":"b"},"v":{"type":"string"}},"required":["k"]}],)"
    R"("type":"object"})",
    R"({"type":"object","patternProperties":{"^x":{"type":"boolean"},"y$":{"minimum":2}},)"
    R"("propertyNames":{"maxLength":3},"minProperties":1,"maxProperties":3})",
    R"({"type":"array","prefixItems":[{"type":"string","format":"date"},{"type":"boolean"}],)"
    R"("items":{"type":"integer"},"contains":{"const":7},"minContains":1})",
    R"({"type":"object","properties":{"n":{"type":"integer"}},"if":{"properties":)"
    R"({"n":{"minimum":10}},"required":["n"]},"then":{"required":["big"]},)"
    R"("else":{"not":{"required":["big"]}}})",
    R"({"type":"number","oneOf":[{"multipleOf":0.3},{"not":{"type":"integer"},"minimum":-2},)"
    R"({"enum":[7,1e3,-0.5]}]})"};

struct Subject {
  Grammar grammar;
  std::unique_ptr<oracle::Validator> validator;
};

// Bit 0 of `layout`: any order, white space and spelling.
Subject Make(const char* schema, int layout) {
  JsonSchemaOptions options;
  if (layout == 1) {
    options.order = JsonSchemaOptions::Order::kAny;
    options.whitespace = JsonSchemaOptions::Whitespace::kAny;
    options.canonical_spelling = false;
    options.allow_exponents = true;
  }
  Result<Grammar> grammar = Compiler(fuzz::Bytes()).CompileJsonSchema(schema, options);
  fuzz::Require(grammar.ok(), "a fixed schema does not compile", schema);
  auto validator = oracle::Validator::Create(schema, {});
  fuzz::Require(validator.ok(), "the oracle does not read a fixed schema", schema);
  return {*std::move(grammar), *std::move(validator)};
}

// Compiled once, and again now and then: what a grammar remembers grows with what it has seen.
Subject& SubjectFor(int schema, int layout) {
  static std::array<std::optional<Subject>, 2 * kSchemas.size()> subjects;
  static std::array<int, 2 * kSchemas.size()> runs;
  constexpr int kRuns = 2'000;
  const auto index = static_cast<size_t>(2 * schema + layout);
  if (!subjects[index].has_value() || ++runs[index] > kRuns) {
    subjects[index].emplace(Make(kSchemas[static_cast<size_t>(schema)], layout));
    runs[index] = 0;
  }
  return *subjects[index];
}

// The oracle reads no number beyond 10^4932, which JSON allows.
bool OracleReads(const std::string& text) {
  const Result<json::Value> value = json::Parse(text);
  return value.ok() || value.error().code != ErrorCode::kLimit;
}

// Exponents beyond 400 need not be read where a bound or a divisor is asked of the number.
bool HasFarExponent(const std::string& text) {
  for (size_t i = text.find_first_of("eE"); i != text.npos; i = text.find_first_of("eE", i + 1)) {
    size_t at = i + 1;
    if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
    int exponent = 0;
    for (; at < text.size() && text[at] >= '0' && text[at] <= '9' && exponent <= 400; ++at)
      exponent = exponent * 10 + (text[at] - '0');
    if (exponent > 400) return true;
  }
  return false;
}

void RequireValid(Subject& subject, const std::string& text) {
  if (subject.validator->Validate(text) != oracle::Verdict::kInvalid || !OracleReads(text)) return;
  fuzz::Require(false, ("accepted, but not valid: " + subject.validator->reason()).c_str(), text);
}

}  // namespace
}  // namespace pawl

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace pawl;
  constexpr size_t kLongest = 160;  // far from the limit of nesting
  if (size < 1 || size > kLongest) return 0;
  const int choice = data[0] % static_cast<int>(2 * kSchemas.size());
  Subject& subject = SubjectFor(choice / 2, choice % 2);
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  State state = subject.grammar.Start();
  size_t taken = 0;
  for (; taken < text.size(); ++taken) {
    fuzz::RequireHonestMask(state, text.substr(0, taken));
    const std::optional<State> next = state.Advance(std::string_view(text).substr(taken, 1));
    if (!next.has_value()) break;
    state = *next;
  }
  const std::string prefix = text.substr(0, taken);
  bool found = false;
  const std::string whole = fuzz::RequireCompletion(state, prefix, found);
  fuzz::Require(found, "a state that nothing completes", prefix);
  RequireValid(subject, whole);
  if (state.accepting()) RequireValid(subject, prefix);
  const bool accepted = taken == text.size() && state.accepting();
  if (choice % 2 == 1 && !accepted && !HasFarExponent(text)) {
    fuzz::Require(subject.validator->Validate(text) != oracle::Verdict::kValid,
                  "valid, but not accepted", text);
  }
  return 0;
}
