// The vocabulary is every byte and every piece of two to four bytes of an instance, so that tokens
// reach over the ends of strings, keys, numbers and whole values.
#include "tests/schemas/mask_validator.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string_view>
#include <vector>

#include "grammar/masks/mask_builder.h"
#include "schemas/machine/schema_machine.h"
#include "schemas/masks/schema_masks.h"
#include "schemas/read/schema_reader.h"
#include "tests/oracle/json_schema_validator.h"
#include "tests/schemas/dead_ends.h"
#include "tests/schemas/property_generators.h"
#include "tests/support/vocabularies.h"

namespace pawl::property {
namespace {

constexpr size_t kTexts = 4;  // instances of a schema, of which each beginning is a state

std::shared_ptr<const Vocabulary> Pieces() {
  std::set<std::string> pieces;
  for (int byte = 0; byte < 256; ++byte) pieces.insert(std::string(1, static_cast<char>(byte)));
  for (const std::string& text : SmallInstances()) {
    for (size_t length = 2; length <= 4; ++length) {
      for (size_t at = 0; at + length <= text.size(); ++at) pieces.insert(text.substr(at, length));
    }
  }
  return VocabularyOf({pieces.begin(), pieces.end()});
}

class Checker {
 public:
  Checker(schema::SchemaMachine& machine, oracle::Validator& validator,
          const Vocabulary& vocabulary, MaskReport& report)
      : machine_(machine),
        validator_(validator),
        vocabulary_(vocabulary),
        builder_(machine, vocabulary),
        report_(report) {
    for (const std::string& text : SmallInstances()) {
      if (validator.Validate(text) == oracle::Verdict::kValid) valid_.push_back(text);
    }
    std::sort(valid_.begin(), valid_.end());
  }
  const std::vector<std::string>& valid() const { return valid_; }

  // After the text; empty when all is well.
  std::string State(const std::string& text) {
    Machine::Key key = machine_.Start();
    if (!Read(key, text)) return "refused: " + text;
    ++report_.states;
    const std::vector<uint32_t> mask = builder_.Build(key);
    for (TokenId token = 0; token < vocabulary_.size(); ++token) {
      if (vocabulary_.is_special(token)) continue;
      const bool allowed = (mask[static_cast<size_t>(token) >> 5] >> (token & 31) & 1) != 0;
      const std::string next = text + std::string(vocabulary_.bytes(token));
      const auto longer = std::lower_bound(valid_.begin(), valid_.end(), next);
      const bool demanded = longer != valid_.end() && longer->starts_with(next);
      if (demanded && !allowed) return "not in the mask, though valid: " + *longer;
      ++(demanded ? report_.demanded : allowed ? report_.completed : report_.refused);
      if (demanded || !allowed) continue;
      if (std::string failure = Completed(key, text, next); !failure.empty()) return failure;
    }
    return "";
  }

 private:
  bool Read(Machine::Key& key, std::string_view text) {
    for (const char c : text) {
      key = machine_.Step(key, static_cast<uint8_t>(c));
      if (key == Machine::kDead) return false;
    }
    return true;
  }
  std::string Completed(Machine::Key key, const std::string& text, const std::string& next) {
    if (!Read(key, std::string_view(next).substr(text.size())))
      return "in the mask, and does not fit: " + next;
    const auto rest = machine_.CompletionBytes(key);
    if (!rest) {
      ++report_.undecided;
      return machine_.undecided() > 0 ? "" : "no completion of " + next;
    }
    if (validator_.Validate(next + *rest) == oracle::Verdict::kInvalid)
      return "completed to an invalid text: " + next + *rest;
    return "";
  }

  schema::SchemaMachine& machine_;
  oracle::Validator& validator_;
  const Vocabulary& vocabulary_;
  MaskBuilder builder_;
  MaskReport& report_;
  std::vector<std::string> valid_;
};

}  // namespace

void CheckMasksOf(const json::Value& schema, uint64_t seed, MaskReport& report) {
  static const std::shared_ptr<const Vocabulary> vocabulary = Pieces();
  JsonSchemaOptions options;
  options.order = JsonSchemaOptions::Order::kAny;
  options.whitespace = JsonSchemaOptions::Whitespace::kCompact;
  options.canonical_spelling = false;
  auto validator = oracle::Validator::Create(json::Dump(schema), {});
  auto read = schema::ReadJsonSchema(schema, options);
  if (!validator.ok() || !read.ok()) return;
  schema::SchemaMachine machine(std::move(read->table), options, &schema::MakeSchemaMasks);
  if (!machine.CheckSatisfiable().ok()) return;
  ++report.schemas;
  Checker checker(machine, **validator, *vocabulary, report);
  Dice dice(seed);
  std::set<std::string> beginnings = {""};
  for (size_t i = 0; i < kTexts && !checker.valid().empty(); ++i) {
    const std::string& text = dice.Pick(checker.valid());
    for (size_t length = 1; length <= text.size(); ++length)
      beginnings.insert(text.substr(0, length));
  }
  for (const std::string& text : beginnings) {
    if (std::string failure = checker.State(text); !failure.empty()) {
      report.failure = json::Dump(schema) + "\n" + failure;
      return;
    }
  }
}

MaskReport CheckMasks(uint64_t seed, uint64_t first, uint64_t states) {
  MaskReport report;
  for (; report.states < states && report.failure.empty(); ++first)
    CheckMasksOf(SmallSchema(seed, first), seed + first, report);
  return report;
}

}  // namespace pawl::property
