// A dead end is a fault where the solver has decided every question that was asked on the way.
// Where it has not, the state counted as live for want of a proof, which the documentation admits
// ("Where the look-ahead ends"): those are counted apart.
#include "tests/schemas/dead_ends.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "schemas/machine/schema_machine.h"
#include "schemas/read/schema_reader.h"
#include "tests/oracle/json_schema_validator.h"
#include "tests/schemas/property_generators.h"
#include "tests/support/vocabularies.h"

namespace pawl::property {

using json::Type;
using json::Value;

namespace {

constexpr const char* kKeywords[] = {"type",
                                     "const",
                                     "enum",
                                     "minimum",
                                     "maximum",
                                     "multipleOf",
                                     "minLength",
                                     "maxLength",
                                     "pattern",
                                     "items",
                                     "prefixItems",
                                     "contains",
                                     "minContains",
                                     "maxContains",
                                     "minItems",
                                     "maxItems",
                                     "uniqueItems",
                                     "unevaluatedItems",
                                     "properties",
                                     "required",
                                     "additionalProperties",
                                     "patternProperties",
                                     "propertyNames",
                                     "minProperties",
                                     "maxProperties",
                                     "dependentRequired",
                                     "dependentSchemas",
                                     "unevaluatedProperties",
                                     "allOf",
                                     "anyOf",
                                     "oneOf",
                                     "not",
                                     "if"};
constexpr const char* kWalkedKeys[] = {"a", "b", "c"};
constexpr const char* kScalars[] = {"null", "true", "false", "0",     "1",     "2",
                                    "1.5",  "\"\"", "\"x\"", "\"y\"", "\"xy\""};
constexpr const char* kWalkedPatterns[] = {"^x", "y$", "^[xy]$", "^x?$", "^x*$", "^(x|xy)$"};
constexpr const char* kKeyPatterns[] = {"^a", "b$", "^[ab]$", "^.$", "^a?$", "^[^a]*$"};
constexpr const char* kWalkedTypes[] = {"null",   "boolean", "integer", "number",
                                        "string", "array",   "object"};
constexpr size_t kMaxWalk = 160;

Value Parsed(const std::string& text) { return *json::Parse(text); }

class Small {
 public:
  explicit Small(Dice& dice) : dice_(dice) {}

  Value Root(size_t pair) {
    Value schema{Type::kObject, {}, {}, {}};
    size_t first = 0;
    while (pair >= std::size(kKeywords) - first) pair -= std::size(kKeywords) - first++;
    const std::string one = kKeywords[first], other = kKeywords[first + pair];
    Add(schema, one, 2);
    Add(schema, other, 2);
    for (int more = dice_.Between(0, 3); more > 0; --more) {
      if (dice_.Percent(70)) Add(schema, Near(dice_.Percent(50) ? one : other), 2);
    }
    if (dice_.Percent(70)) Set(schema, "type", MakeString(TypeOf(one, other)));
    return schema;
  }

 private:
  static bool IsArray(const std::string& k) {
    const auto* at = std::find(std::begin(kKeywords), std::end(kKeywords), k);
    return at - kKeywords >= 9 && at - kKeywords <= 17;
  }
  static bool IsObject(const std::string& k) {
    const auto* at = std::find(std::begin(kKeywords), std::end(kKeywords), k);
    return at - kKeywords >= 18 && at - kKeywords <= 27;
  }
  std::string TypeOf(const std::string& one, const std::string& other) {
    if (IsArray(one) || IsArray(other))
      return IsObject(other) && dice_.Percent(50) ? "object" : "array";
    if (IsObject(one) || IsObject(other)) return "object";
    return dice_.Percent(60) ? (dice_.Percent(50) ? "array" : "object") : dice_.Pick(kWalkedTypes);
  }
  // A keyword that speaks of the same kind of value.
  std::string Near(const std::string& keyword) {
    for (int i = 0; i < 8; ++i) {
      const std::string other = dice_.Pick(kKeywords);
      if (IsArray(keyword) == IsArray(other) && IsObject(keyword) == IsObject(other)) return other;
    }
    return dice_.Pick(kKeywords);
  }

  Value Scalar() { return Parsed(dice_.Pick(kScalars)); }
  Value Constant() {
    if (dice_.Percent(75)) return Scalar();
    if (dice_.Percent(50)) return List(dice_.Between(0, 2), [&] { return Scalar(); });
    return Map(dice_.Between(0, 2), kWalkedKeys, [&] { return Scalar(); });
  }
  Value Count(int most) { return MakeNumber(std::to_string(dice_.Between(0, most))); }

  Value Sub(int depth) {
    if (dice_.Percent(12)) return MakeBool(dice_.Percent(60));
    Value schema{Type::kObject, {}, {}, {}};
    if (depth <= 0 || dice_.Percent(60)) {
      static constexpr const char* kSimple[] = {"const",   "enum",    "enum",    "type",
                                                "minimum", "maximum", "pattern", "maxLength"};
      Add(schema, dice_.Pick(kSimple), 0);
      if (dice_.Percent(25)) Add(schema, dice_.Pick(kSimple), 0);
    } else {
      Add(schema, dice_.Pick(kKeywords), depth);
      if (dice_.Percent(60)) Add(schema, Near(schema.members[0].first), depth);
      if (dice_.Percent(50))
        Set(schema, "type", MakeString(TypeOf(schema.members[0].first, schema.members[0].first)));
    }
    return schema;
  }

  void Add(Value& schema, const std::string& k, int depth) {
    const auto sub = [&] { return Sub(depth - 1); };
    if (k == "type") {
      Set(schema, k, MakeString(dice_.Pick(kWalkedTypes)));
    } else if (k == "const") {
      Set(schema, k, Constant());
    } else if (k == "enum") {
      Set(schema, k, List(dice_.Between(1, 4), [&] { return Constant(); }));
    } else if (k == "minimum" || k == "maximum") {
      Set(schema, k, Count(2));
    } else if (k == "multipleOf") {
      Set(schema, k, MakeNumber(dice_.Percent(50) ? "1" : dice_.Percent(50) ? "2" : "0.5"));
    } else if (k == "minLength" || k == "maxLength") {
      Set(schema, k, Count(2));
    } else if (k == "pattern") {
      Set(schema, k, MakeString(dice_.Pick(kWalkedPatterns)));
    } else if (k == "prefixItems") {
      Set(schema, k, List(dice_.Between(1, 3), sub));
    } else if (k == "minContains" || k == "maxContains") {
      Set(schema, "contains", sub());
      Set(schema, k, Count(2));
    } else if (k == "minItems" || k == "maxItems") {
      Set(schema, k, Count(3));
    } else if (k == "uniqueItems") {
      Set(schema, k, MakeBool(true));
    } else if (k == "properties" || k == "dependentSchemas") {
      Set(schema, k, Map(dice_.Between(1, 3), kWalkedKeys, sub));
    } else if (k == "required") {
      Set(schema, k, Keys(dice_.Between(1, 2)));
    } else if (k == "patternProperties") {
      Set(schema, k, Map(dice_.Between(1, 2), kKeyPatterns, sub));
    } else if (k == "propertyNames") {
      Value names{Type::kObject, {}, {}, {}};
      if (dice_.Percent(40))
        Set(names, "enum", Keys(dice_.Between(1, 3)));
      else if (dice_.Percent(60))
        Set(names, "pattern", MakeString(dice_.Pick(kKeyPatterns)));
      else
        Set(names, "maxLength", Count(2));
      Set(schema, k, std::move(names));
    } else if (k == "minProperties" || k == "maxProperties") {
      Set(schema, k, Count(3));
    } else if (k == "dependentRequired") {
      Set(schema, k, Map(1, kWalkedKeys, [&] { return Keys(1); }));
    } else if (k == "allOf" || k == "anyOf" || k == "oneOf") {
      Set(schema, k, List(dice_.Between(1, 3), [&] { return Sub(depth); }));
    } else if (k == "not") {
      Set(schema, k, Sub(depth));
    } else if (k == "if") {
      Set(schema, k, Sub(depth));
      if (dice_.Percent(80)) Set(schema, "then", Sub(depth));
      if (dice_.Percent(50)) Set(schema, "else", Sub(depth));
    } else if (dice_.Percent(k.starts_with("unevaluated") || k == "additionalProperties" ? 60
                                                                                         : 10)) {
      Set(schema, k, MakeBool(false));
    } else {
      Set(schema, k, sub());
    }
  }

  void Set(Value& object, const std::string& key, Value value) {
    if (object.Find(key) == nullptr) object.members.emplace_back(key, std::move(value));
  }
  Value Keys(int n) {
    Value list{Type::kArray, {}, {}, {}};
    for (const char* key : kWalkedKeys) {
      if (n > 0 && dice_.Percent(60)) list.items.push_back(MakeString(key)), --n;
    }
    if (list.items.empty()) list.items.push_back(MakeString("a"));
    return list;
  }
  template <typename Make>
  Value List(int n, Make make) {
    Value list{Type::kArray, {}, {}, {}};
    for (int i = 0; i < n; ++i) list.items.push_back(make());
    return list;
  }
  template <typename Names, typename Make>
  Value Map(int n, const Names& names, Make make) {
    Value map{Type::kObject, {}, {}, {}};
    for (int i = 0; i < n; ++i) {
      const std::string name = dice_.Pick(names);
      if (map.Find(name) == nullptr) map.members.emplace_back(name, make());
    }
    return map;
  }

  Dice& dice_;
};

std::vector<std::string> MakeInstances() {
  std::vector<std::string> out(std::begin(kScalars), std::end(kScalars));
  static constexpr const char* kItems[] = {"1", "2", "\"x\"", "\"y\"", "null", "[]", "{}"};
  out.insert(out.end(), {"[]", "{}", "[[1]]", "[[\"x\"],[]]", "[{\"a\":1}]", "{\"a\":[1]}",
                         "{\"a\":{\"b\":1}}", "{\"a\":{}}", "{\"d\":1,\"e\":2}"});
  for (const char* a : kItems) {
    out.push_back(std::string("[") + a + "]");
    for (const char* b : kItems) out.push_back(std::string("[") + a + "," + b + "]");
  }
  for (int i = 0; i < 27; ++i) {
    out.push_back(std::string("[") + kItems[i % 3] + "," + kItems[i / 3 % 3] + "," + kItems[i / 9] +
                  "]");
  }
  static constexpr const char* kValues[] = {"", "1", "\"x\"", "true", "0"};
  for (int i = 1; i < 5 * 5 * 5; ++i) {
    std::string text;
    int rest = i;
    for (const char* key : kWalkedKeys) {
      const char* value = kValues[rest % 5];
      rest /= 5;
      if (*value != 0) text += (text.empty() ? "\"" : ",\"") + std::string(key) + "\":" + value;
    }
    if (i < 75 || i % 3 == 0) out.push_back("{" + text + "}");
  }
  return out;
}

JsonSchemaOptions Options(bool any_order) {
  JsonSchemaOptions options;
  options.whitespace = JsonSchemaOptions::Whitespace::kCompact;
  options.canonical_spelling = !any_order;
  if (any_order) options.order = JsonSchemaOptions::Order::kAny;
  return options;
}

std::string KeywordsOf(const Value& schema) {
  std::vector<std::string> names;
  const auto collect = [&](const auto& self, const Value& value) -> void {
    for (const auto& [name, member] : value.members) {
      if (std::find(std::begin(kKeywords), std::end(kKeywords), name) != std::end(kKeywords))
        names.push_back(name);
      self(self, member);
    }
    for (const Value& item : value.items) self(self, item);
  };
  collect(collect, schema);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::string out;
  for (const std::string& name : names) {
    if (name == "const" || name == "enum" || name == "type" || name == "properties") continue;
    out += (out.empty() ? "" : " ") + name;
  }
  return out;
}

class Walker {
 public:
  Walker(schema::SchemaMachine& machine, oracle::Validator& validator, Dice& dice,
         WalkReport& report)
      : machine_(machine), validator_(validator), dice_(dice), report_(report) {}

  // Empty when all is well.
  std::string Walk() {
    ++report_.walks;
    Machine::Key at = machine_.Start();
    std::string text;
    const size_t complete_at = dice_.Below(24);
    while (!machine_.Accepting(at) || !machine_.Ends(at)) {
      if (text.size() == complete_at) {
        if (std::string failure = Complete(at, text); !failure.empty()) return failure;
      }
      std::vector<std::pair<char, Machine::Key>> next = Next(at, kAlphabet);
      if (machine_.Accepting(at) && (next.empty() || dice_.Percent(30))) break;
      if (next.empty()) next = Next(at, AllBytes());
      if (next.empty()) return Judged("dead end after " + text, report_.undecided_dead);
      if (text.size() >= kMaxWalk) {
        ++report_.cut;
        return Complete(at, text);
      }
      const auto structure = std::partition(next.begin(), next.end(), [](const auto& step) {
        return std::string_view("\"]},:").find(step.first) != std::string_view::npos;
      });
      const auto count = static_cast<size_t>(structure - next.begin());
      const size_t place =
          count > 0 && dice_.Percent(45) ? dice_.Below(count) : dice_.Below(next.size());
      text += next[place].first;
      at = next[place].second;
    }
    ++report_.finished;
    if (validator_.Validate(text) == oracle::Verdict::kInvalid) return "invalid: " + text;
    return "";
  }

  std::string Instance(const std::string& text) {
    const auto verdict = validator_.Validate(text);
    if (verdict == oracle::Verdict::kCannotTell) return "";
    const bool valid = verdict == oracle::Verdict::kValid;
    ++(valid ? report_.valid : report_.invalid);
    const Machine::Key end = Read(machine_.Start(), text);
    const bool taken = end != Machine::kDead && machine_.Accepting(end);
    if (taken == valid) return "";
    return (valid ? "valid and refused: " : "invalid and accepted: ") + text;
  }

 private:
  static constexpr std::string_view kAlphabet = "{}[]\",:-.0123456789truefalsn xyabcd";
  static const std::string& AllBytes() {
    static const std::string all = [] {
      std::string out;
      for (int byte = 0; byte < 256; ++byte) out += static_cast<char>(byte);
      return out;
    }();
    return all;
  }

  std::vector<std::pair<char, Machine::Key>> Next(Machine::Key at, std::string_view bytes) {
    std::vector<std::pair<char, Machine::Key>> next;
    for (const char byte : bytes) {
      const Machine::Key after = machine_.Step(at, static_cast<uint8_t>(byte));
      if (after != Machine::kDead) next.emplace_back(byte, after);
    }
    return next;
  }

  Machine::Key Read(Machine::Key at, const std::string& text) {
    for (size_t i = 0; i < text.size() && at != Machine::kDead; ++i)
      at = machine_.Step(at, static_cast<uint8_t>(text[i]));
    return at;
  }

  std::string Complete(Machine::Key at, const std::string& text) {
    ++report_.completions;
    const auto rest = machine_.CompletionBytes(at);
    if (!rest) return Judged("no completion of " + text, report_.undecided_open);
    const Machine::Key end = Read(at, *rest);
    if (end == Machine::kDead || !machine_.Accepting(end))
      return "the completion of " + text + " is refused: " + *rest;
    if (validator_.Validate(text + *rest) == oracle::Verdict::kInvalid)
      return "the completion is invalid: " + text + *rest;
    return "";
  }

  std::string Judged(std::string what, uint64_t& undecided) {
    if (machine_.undecided() == 0) return what;
    ++undecided;
    undecided_ = true;
    return "";
  }

 public:
  bool undecided() const { return undecided_; }

 private:
  schema::SchemaMachine& machine_;
  oracle::Validator& validator_;
  Dice& dice_;
  WalkReport& report_;
  bool undecided_ = false;
};

// Walks through the schema in one order; what went wrong, or nothing.
std::string WalkOne(const Value& schema, bool any_order, uint64_t seed, int walks, bool instances,
                    WalkReport& report) {
  auto validator = oracle::Validator::Create(json::Dump(schema), {});
  const JsonSchemaOptions options = Options(any_order);
  auto read = schema::ReadJsonSchema(schema, options);
  if (!validator.ok() || !read.ok()) {
    ++report.refused;
    return "";
  }
  schema::SchemaMachine machine(std::move(read->table), options);
  Dice dice(seed);
  Walker walker(machine, **validator, dice, report);
  std::string failure;
  const bool satisfiable = machine.CheckSatisfiable().ok();
  report.unsatisfiable += satisfiable ? 0 : 1;
  if (instances && any_order) {
    for (const std::string& text : SmallInstances()) {
      if (!failure.empty()) break;
      if (satisfiable) {
        failure = walker.Instance(text);
      } else if ((*validator)->Validate(text) == oracle::Verdict::kValid) {
        failure = "called unsatisfiable, but valid: " + text;
      }
    }
  }
  for (int i = 0; satisfiable && i < walks && failure.empty(); ++i) failure = walker.Walk();
  if (walker.undecided()) ++report.undecided[KeywordsOf(schema)];
  return failure;
}

std::string WalkBoth(const Value& schema, uint64_t seed, int walks, bool instances,
                     WalkReport& report) {
  ++report.schemas;
  for (const bool any_order : {true, false}) {
    std::string failure = WalkOne(schema, any_order, seed, (walks + 1) / 2, instances, report);
    if (!failure.empty()) return (any_order ? "any order: " : "schema order: ") + failure;
  }
  return "";
}

}  // namespace

size_t KeywordPairs() { return std::size(kKeywords) * (std::size(kKeywords) + 1) / 2; }

Value SmallSchema(uint64_t seed, uint64_t index) {
  Dice dice(seed * 1'000'003 + index);
  return Small(dice).Root(index % KeywordPairs());
}

const std::vector<std::string>& SmallInstances() {
  static const std::vector<std::string> instances = MakeInstances();
  return instances;
}

void WalkSchema(const Value& schema, uint64_t seed, int walks, bool instances, WalkReport& report) {
  const std::string failure = WalkBoth(schema, seed, walks, instances, report);
  if (failure.empty()) return;
  const Value smallest = Shrunk(schema, [&](const Value& candidate) {
    WalkReport ignored;
    return !WalkBoth(candidate, seed, walks, instances, ignored).empty();
  });
  WalkReport ignored;
  report.failures.push_back(json::Dump(smallest) + "\n    " +
                            WalkBoth(smallest, seed, walks, instances, ignored));
}

WalkReport WalkSmallSchemas(uint64_t seed, uint64_t first, uint64_t schemas, int walks,
                            bool instances, size_t max_failures) {
  WalkReport report;
  for (uint64_t i = first; i < first + schemas && report.failures.size() < max_failures; ++i)
    WalkSchema(SmallSchema(seed, i), seed * 1'000'003 + i, walks, instances, report);
  return report;
}

}  // namespace pawl::property
