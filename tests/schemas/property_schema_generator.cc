// Random schemas. A schema is a type with its keywords, or a combination of schemas, or both at
// once; references occur only below a property or an item, where recursion consumes input. Sizes
// are small on purpose: counter-examples of a few bytes are found sooner in many small cases than
// in few big ones.
#include <algorithm>

#include "tests/schemas/property_generators.h"

namespace pawl::property {

using json::Type;
using json::Value;

namespace {

constexpr const char* kKeys[] = {"a", "b", "ab", "c", "\xC3\xA9", "a\"b", ""};
constexpr const char* kPatterns[] = {
    "^a",      "b$",     "^[ab]*$",   "^(a|bc)+$",    "^a{2,3}$", "c",  "^.{2}$",       "^\\w+$",
    "^[^a]*$", "^\\d+$", "^(ab)*c?$", "^\\u00e9?a?$", "a.*b",     "^$", "^[a-c]{1,4}$", "(^a|b$)"};
constexpr const char* kNumbers[] = {"0",  "1",   "-1",  "2",     "3",  "5",   "10",
                                    "-3", "0.5", "1.5", "-0.25", "20", "100", "2.75"};
constexpr const char* kDivisors[] = {"1", "2", "3", "0.5", "0.1", "0.01", "7", "10", "2.5", "0.3"};
constexpr const char* kTypes[] = {"null",   "boolean", "integer", "number",
                                  "string", "array",   "object"};
constexpr const char* kFormats[] = {"date", "ipv4", "time", "uuid"};

class Generator {
 public:
  explicit Generator(Dice& dice) : dice_(dice) {}

  Value Root() {
    definitions_ = dice_.Percent(40) ? dice_.Between(1, 2) : 0;
    resources_ = dice_.Percent(25);
    Value schema = Schema(dice_.Between(1, 3), false);
    if (schema.type != Type::kObject || definitions_ == 0) return schema;
    // No definition refers to another in place, so this is no cycle.
    if (dice_.Percent(25)) Refer(schema);
    if (resources_ && dice_.Percent(50)) Set(schema, "$dynamicAnchor", MakeString("n"));
    Value defs{Type::kObject, {}, {}, {}};
    for (int i = 0; i < definitions_; ++i) {
      const std::string name = "d" + std::to_string(i);
      Value definition = Schema(dice_.Between(1, 2), false);
      if (resources_ && definition.type != Type::kObject) definition = {Type::kObject, {}, {}, {}};
      if (resources_) Set(definition, "$id", MakeString(name));
      if (resources_ && dice_.Percent(80)) Set(definition, "$dynamicAnchor", MakeString("n"));
      if (resources_) Set(definition, "$anchor", MakeString("m"));
      defs.members.emplace_back(name, std::move(definition));
    }
    schema.members.emplace_back("$defs", std::move(defs));
    return schema;
  }

 private:
  // `below`: inside a property or an item, where a reference may stand.
  Value Schema(int depth, bool below) {
    if (dice_.Percent(depth <= 0 ? 12 : 4)) return MakeBool(dice_.Percent(75));
    Value schema{Type::kObject, {}, {}, {}};
    if (below && definitions_ > 0 && dice_.Percent(25)) {
      Refer(schema);
      if (dice_.Percent(80)) return schema;
    }
    if (dice_.Percent(12)) {
      if (dice_.Percent(40)) {
        Set(schema, "const", RandomValue(dice_, 2));
      } else {
        Set(schema, "enum", List(dice_.Between(1, 4), [this] { return RandomValue(dice_, 2); }));
      }
      if (dice_.Percent(80)) return schema;
    }
    if (depth > 0 && dice_.Percent(30)) Combine(schema, depth - 1, below);
    if (dice_.Percent(schema.members.empty() ? 97 : 60)) Typed(schema, depth);
    if (depth > 0 && !schema.members.empty() && dice_.Percent(10)) {
      Set(schema, dice_.Percent(60) ? "unevaluatedProperties" : "unevaluatedItems",
          dice_.Percent(60) ? MakeBool(false) : Schema(depth - 1, true));
    }
    return schema;
  }

  void Refer(Value& schema) {
    const std::string name = "d" + std::to_string(dice_.Below(static_cast<size_t>(definitions_)));
    if (!resources_) {
      Set(schema, "$ref", MakeString("#/$defs/" + name));
    } else if (dice_.Percent(50)) {
      Set(schema, "$dynamicRef", MakeString(name + (dice_.Percent(80) ? "#n" : "#m")));
    } else {
      Set(schema, "$ref", MakeString(name));
    }
  }

  void Typed(Value& schema, int depth) {
    std::vector<std::string> types = {dice_.Pick(kTypes)};
    if (depth > 0 && dice_.Percent(50)) types = {dice_.Percent(60) ? "object" : "array"};
    if (dice_.Percent(15)) types.push_back(dice_.Pick(kTypes));
    if (types.size() > 1 && types[0] == types[1]) types.pop_back();
    if (dice_.Percent(90)) {
      Value type = MakeString(types[0]);
      if (types.size() > 1)
        type = Value{Type::kArray, {}, {MakeString(types[0]), MakeString(types[1])}, {}};
      Set(schema, "type", std::move(type));
    }
    for (const std::string& type : types) {
      if (type == "integer" || type == "number") Number(schema);
      if (type == "string") String(schema);
      if (type == "array") Array(schema, depth - 1);
      if (type == "object") Object(schema, depth - 1);
    }
  }

  void Number(Value& schema) {
    if (dice_.Percent(30))
      Set(schema, dice_.Percent(70) ? "minimum" : "exclusiveMinimum",
          MakeNumber(dice_.Pick(kNumbers)));
    if (dice_.Percent(30))
      Set(schema, dice_.Percent(70) ? "maximum" : "exclusiveMaximum",
          MakeNumber(dice_.Pick(kNumbers)));
    if (dice_.Percent(20)) Set(schema, "multipleOf", MakeNumber(dice_.Pick(kDivisors)));
  }

  void String(Value& schema) {
    if (dice_.Percent(25)) Set(schema, "minLength", Count(3));
    if (dice_.Percent(25)) Set(schema, "maxLength", Count(5));
    if (dice_.Percent(40)) Set(schema, "pattern", MakeString(dice_.Pick(kPatterns)));
    if (dice_.Percent(4)) Set(schema, "format", MakeString(dice_.Pick(kFormats)));
  }

  void Array(Value& schema, int depth) {
    if (dice_.Percent(60)) Set(schema, "items", Schema(depth, true));
    if (dice_.Percent(25))
      Set(schema, "prefixItems", List(dice_.Between(1, 3), [&] { return Schema(depth, true); }));
    if (dice_.Percent(25)) Set(schema, "minItems", Count(2));
    if (dice_.Percent(35)) Set(schema, "maxItems", Count(4));
    if (dice_.Percent(15)) Set(schema, "uniqueItems", MakeBool(true));
    if (dice_.Percent(15)) {
      Set(schema, "contains", Schema(depth, true));
      if (dice_.Percent(30)) Set(schema, "minContains", Count(2));
      if (dice_.Percent(30)) Set(schema, "maxContains", Count(2));
    }
    if (dice_.Percent(4)) Set(schema, "unevaluatedItems", MakeBool(false));
  }

  void Object(Value& schema, int depth) {
    if (dice_.Percent(85)) {
      Set(schema, "properties",
          Map(dice_.Between(1, 3), kKeys, [&] { return Schema(depth, true); }));
    }
    if (dice_.Percent(50)) Set(schema, "required", Keys(dice_.Between(1, 2)));
    if (dice_.Percent(55)) {
      Set(schema, "additionalProperties",
          dice_.Percent(60) ? MakeBool(false) : Schema(depth, true));
    }
    if (dice_.Percent(15)) {
      Set(schema, "patternProperties",
          Map(dice_.Between(1, 2), kPatterns, [&] { return Schema(depth, true); }));
    }
    if (dice_.Percent(12)) {
      Value names{Type::kObject, {}, {}, {}};
      String(names);
      Set(schema, "propertyNames", std::move(names));
    }
    if (dice_.Percent(12)) Set(schema, "minProperties", Count(2));
    if (dice_.Percent(15)) Set(schema, "maxProperties", Count(3));
    if (dice_.Percent(10)) Set(schema, "dependentRequired", Map(1, kKeys, [&] { return Keys(1); }));
    if (dice_.Percent(8))
      Set(schema, "dependentSchemas", Map(1, kKeys, [&] { return Schema(depth, false); }));
    if (dice_.Percent(4)) Set(schema, "unevaluatedProperties", MakeBool(false));
  }

  void Combine(Value& schema, int depth, bool below) {
    switch (dice_.Below(5)) {
      case 0:
        Set(schema, "anyOf", List(dice_.Between(1, 3), [&] { return Schema(depth, below); }));
        break;
      case 1:
        Set(schema, "oneOf", List(dice_.Between(1, 3), [&] { return Schema(depth, below); }));
        break;
      case 2:
        Set(schema, "allOf", List(dice_.Between(1, 2), [&] { return Schema(depth, below); }));
        break;
      case 3:
        Set(schema, "not", Schema(depth, below));
        break;
      case 4:
        Set(schema, "if", Schema(depth, below));
        if (dice_.Percent(80)) Set(schema, "then", Schema(depth, below));
        if (dice_.Percent(50)) Set(schema, "else", Schema(depth, below));
        break;
    }
  }

  void Set(Value& object, const std::string& key, Value value) {
    if (object.Find(key) == nullptr) object.members.emplace_back(key, std::move(value));
  }
  Value Count(int most) { return MakeNumber(std::to_string(dice_.Between(0, most))); }
  template <typename Make>
  Value List(int n, Make make) {
    Value list{Type::kArray, {}, {}, {}};
    for (int i = 0; i < n; ++i) list.items.push_back(make());
    return list;
  }
  template <typename Names, typename Make>
  Value Map(int n, const Names& names, Make make) {
    Value map{Type::kObject, {}, {}, {}};
    for (int i = 0; i < n; ++i) Set(map, dice_.Pick(names), make());
    return map;
  }
  Value Keys(int n) {
    Value keys{Type::kArray, {}, {}, {}};
    for (int i = 0; i < n; ++i) {
      const std::string key = dice_.Pick(kKeys);
      if (std::none_of(keys.items.begin(), keys.items.end(),
                       [&](const Value& k) { return k.text == key; })) {
        keys.items.push_back(MakeString(key));
      }
    }
    return keys;
  }

  Dice& dice_;
  int definitions_ = 0;
  bool resources_ = false;  // definitions have identifiers and dynamic anchors
};

// Calls `visit` with every variant of `value` that lacks one part.
bool Variants(const Value& value, const std::function<bool(const Value&)>& visit) {
  if (value.type == Type::kObject) {
    for (size_t i = 0; i < value.members.size(); ++i) {
      Value smaller = value;
      smaller.members.erase(smaller.members.begin() + static_cast<std::ptrdiff_t>(i));
      if (visit(smaller)) return true;
    }
    for (size_t i = 0; i < value.members.size(); ++i) {
      if (visit(value.members[i].second)) return true;
      const bool found = Variants(value.members[i].second, [&](const Value& inner) {
        Value smaller = value;
        smaller.members[i].second = inner;
        return visit(smaller);
      });
      if (found) return true;
    }
  }
  if (value.type == Type::kArray) {
    for (size_t i = 0; i < value.items.size(); ++i) {
      Value smaller = value;
      smaller.items.erase(smaller.items.begin() + static_cast<std::ptrdiff_t>(i));
      if (visit(smaller)) return true;
      const bool found = Variants(value.items[i], [&](const Value& inner) {
        smaller = value;
        smaller.items[i] = inner;
        return visit(smaller);
      });
      if (found) return true;
    }
  }
  return false;
}

}  // namespace

Value RandomSchema(Dice& dice) { return Generator(dice).Root(); }

Value Shrunk(const Value& schema, const std::function<bool(const Value&)>& fails) {
  Value best = schema;
  int budget = 2000;
  const auto smaller = [&](const Value& candidate) {
    if (--budget < 0 || !fails(candidate)) return false;
    const Value found = candidate;  // `candidate` may be part of `best`
    best = found;
    return true;
  };
  while (budget > 0) {
    const Value current = best;
    if (!Variants(current, smaller)) break;
  }
  return best;
}

}  // namespace pawl::property
