// The keywords, one function for each family, in the words of the specification (JSON Schema core
// and validation, drafts 4 to 2020-12). Every check answers valid, invalid or "cannot tell" (a
// pattern that RE2 lacks, a document that is not here, a keyword with a malformed value); these are
// combined as three-valued logic, so a doubt only survives where it matters.
#include "tests/oracle/json_schema_validator.h"

#include <algorithm>
#include <utility>

#include "tests/oracle/ecma_pattern.h"
#include "tests/oracle/exact_number.h"
#include "tests/oracle/formats.h"
#include "tests/oracle/uri.h"

namespace pawl::oracle {

using json::Type;
using json::Value;

namespace {

constexpr int kMaxDepth = 600;

Verdict And(Verdict a, Verdict b) {
  if (a == Verdict::kInvalid || b == Verdict::kInvalid) return Verdict::kInvalid;
  return a == Verdict::kValid ? b : a;
}

Verdict Or(Verdict a, Verdict b) {
  if (a == Verdict::kValid || b == Verdict::kValid) return Verdict::kValid;
  return a == Verdict::kInvalid ? b : a;
}

Verdict Not(Verdict a) {
  if (a == Verdict::kCannotTell) return a;
  return a == Verdict::kValid ? Verdict::kInvalid : Verdict::kValid;
}

size_t LengthInCodepoints(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

}  // namespace

bool EqualValues(const Value& a, const Value& b) {
  if (a.type != b.type) return false;
  switch (a.type) {
    case Type::kNull:
    case Type::kFalse:
    case Type::kTrue:
      return true;
    case Type::kString:
      return a.text == b.text;
    case Type::kNumber: {
      const auto x = ExactNumber::Read(a.text), y = ExactNumber::Read(b.text);
      return x && y ? *x == *y : a.text == b.text;
    }
    case Type::kArray:
      return std::equal(a.items.begin(), a.items.end(), b.items.begin(), b.items.end(),
                        EqualValues);
    case Type::kObject:
      return a.size() == b.size() &&
             std::all_of(a.members.begin(), a.members.end(), [&](const auto& member) {
               const Value* other = b.Find(member.first);
               return other != nullptr && EqualValues(member.second, *other);
             });
  }
  return false;
}

void Validator::Seen::Add(const Seen& other) {
  for (size_t i = 0; i < members.size(); ++i) members[i] = members[i] || other.members[i];
  for (size_t i = 0; i < items.size(); ++i) items[i] = items[i] || other.items[i];
  uncertain = uncertain || other.uncertain;
}

struct Validator::Context {
  const Value& schema;
  const Value& instance;
  const Resource* resource;
  const Path& path;
  Seen* seen;
  Dialect dialect() const { return resource->dialect; }
  const Value* operator[](const char* keyword) const { return schema.Find(keyword); }
};

Verdict Validator::Refuse(const Path& path, const std::string& why) {
  reason_ = (path.empty() ? std::string("#") : path) + ": " + why;
  return Verdict::kInvalid;
}

Verdict Validator::Unknown(const Path& path, const std::string& why) {
  reason_ = (path.empty() ? std::string("#") : path) + ": cannot tell: " + why;
  return Verdict::kCannotTell;
}

Verdict Validator::FromOptional(std::optional<bool> holds, const Path& path,
                                const std::string& why) {
  if (!holds) return Unknown(path, why);
  return *holds ? Verdict::kValid : Refuse(path, why);
}

Verdict Validator::Validate(std::string_view text) {
  Result<Value> instance = json::Parse(text);
  if (!instance.ok()) {
    // The reader has limits that JSON has not: depth, and numbers beyond a long double.
    const bool overflow = instance.error().message.find("number overflow") != std::string::npos;
    if (instance.error().code == ErrorCode::kLimit || overflow) {
      return Unknown("", instance.error().ToString());
    }
    return Refuse("", instance.error().ToString());
  }
  return Validate(*instance);
}

Verdict Validator::Validate(const Value& instance) {
  reason_.clear();
  scope_.clear();
  depth_ = 0;
  Seen seen;
  seen.members.resize(instance.members.size());
  seen.items.resize(instance.items.size());
  return Evaluate(*schema_, instance, resource_of_.at(schema_), "", &seen);
}

Verdict Validator::Evaluate(const Value& schema, const Value& instance, const Resource* resource,
                            const Path& path, Seen* seen) {
  if (schema.type == Type::kTrue) return Verdict::kValid;
  if (schema.type == Type::kFalse) return Refuse(path, "the schema is false");
  if (schema.type != Type::kObject)
    return Unknown(path, "a schema that is neither object nor boolean");
  const auto known = resource_of_.find(&schema);
  if (known != resource_of_.end()) resource = known->second;
  const Value* named = schema.Find("$schema");
  if (named != nullptr && !DialectOf(named->text) &&
      Find(WithoutFragment(named->text)) != nullptr) {
    return Unknown(path, "a meta-schema of its own, which may switch keywords off");
  }
  if (depth_ >= kMaxDepth) return Unknown(path, "references nested too deeply");
  ++depth_;
  scope_.push_back(resource);
  Seen mine;
  mine.members.resize(instance.members.size());
  mine.items.resize(instance.items.size());
  const Context c{schema, instance, resource, path, &mine};
  Verdict verdict = CheckReferences(c);
  if (resource->dialect > Dialect::kDraft7 || schema.Find("$ref") == nullptr) {
    using Keyword = Verdict (Validator::*)(const Context&);
    // Last, the keywords that depend on what the others have seen.
    for (const Keyword check :
         {&Validator::CheckType, &Validator::CheckNumber, &Validator::CheckString,
          &Validator::CheckArray, &Validator::CheckObject, &Validator::CheckCombinations,
          &Validator::CheckUnevaluated}) {
      verdict = And(verdict, (this->*check)(c));
    }
  }
  if (verdict == Verdict::kValid) seen->Add(mine);
  if (verdict == Verdict::kCannotTell) seen->uncertain = true;
  scope_.pop_back();
  --depth_;
  return verdict;
}

Verdict Validator::CheckReferences(const Context& c) {
  Verdict verdict = Verdict::kValid;
  const auto follow = [&](const std::optional<Target>& target, const std::string& name) {
    if (!target) {
      verdict = And(verdict, Unknown(c.path, "no schema at " + name));
    } else {
      verdict =
          And(verdict, Evaluate(*target->schema, c.instance, target->resource, c.path, c.seen));
    }
  };
  if (const Value* ref = c["$ref"]; ref != nullptr && ref->type == Type::kString) {
    follow(Resolve(ref->text, *c.resource), ref->text);
  }
  if (const Value* ref = c["$recursiveRef"]; ref != nullptr && c.dialect() == Dialect::k2019) {
    std::optional<Target> target = Resolve(ref->text, *c.resource);
    const auto recursive = [](const Resource* resource) {
      const Value* anchor = resource->root->Find("$recursiveAnchor");
      return anchor != nullptr && anchor->type == Type::kTrue;
    };
    if (target && recursive(target->resource)) {
      const auto outermost = std::find_if(scope_.begin(), scope_.end(), recursive);
      if (outermost != scope_.end()) target = Target{(*outermost)->root, *outermost};
    }
    follow(target, ref->text);
  }
  if (const Value* ref = c["$dynamicRef"]; ref != nullptr && c.dialect() == Dialect::k2020) {
    std::optional<Target> target = Resolve(ref->text, *c.resource);
    const size_t hash = ref->text.find('#');
    const std::string name = hash == std::string::npos ? "" : ref->text.substr(hash + 1);
    const auto has = [&name](const Resource* resource) {
      return resource->dynamic_anchors.count(name) > 0;
    };
    if (target && has(target->resource) &&
        target->resource->dynamic_anchors.at(name) == target->schema) {
      const auto outermost = std::find_if(scope_.begin(), scope_.end(), has);
      if (outermost != scope_.end())
        target = Target{(*outermost)->dynamic_anchors.at(name), *outermost};
    }
    follow(target, ref->text);
  }
  return verdict;
}

Verdict Validator::CheckType(const Context& c) {
  Verdict verdict = Verdict::kValid;
  if (const Value* type = c["type"]) {
    const auto matches = [&](const Value& name) -> std::optional<bool> {
      const std::string_view actual = json::TypeName(c.instance.type);
      if (name.type != Type::kString) return std::nullopt;
      if (name.text == "integer") {
        if (c.instance.type != Type::kNumber) return false;
        // Draft 4 means the spelling, later drafts the value.
        if (c.dialect() == Dialect::kDraft4)
          return c.instance.text.find_first_of(".eE") == std::string::npos;
        const auto value = ExactNumber::Read(c.instance.text);
        return value ? std::optional<bool>(value->IsInteger()) : std::nullopt;
      }
      for (const char* known : {"null", "boolean", "number", "string", "array", "object"}) {
        if (name.text == known) return actual == known;
      }
      return std::nullopt;
    };
    std::optional<bool> any = false;
    if (type->type == Type::kArray) {
      for (const Value& name : type->items) {
        const auto one = matches(name);
        if (any && *any) break;
        any = one ? (*one ? one : any) : std::nullopt;
      }
    } else {
      any = matches(*type);
    }
    verdict = And(verdict, FromOptional(any, c.path, "type"));
  }
  if (const Value* values = c["enum"]) {
    const bool any = std::any_of(values->items.begin(), values->items.end(),
                                 [&](const Value& v) { return EqualValues(v, c.instance); });
    if (values->type != Type::kArray) return Unknown(c.path, "enum");
    if (!any) verdict = Refuse(c.path, "not one of enum");
  }
  if (const Value* value = c["const"]; value != nullptr && c.dialect() >= Dialect::kDraft6) {
    if (!EqualValues(*value, c.instance)) verdict = Refuse(c.path, "not const");
  }
  return verdict;
}

Verdict Validator::CheckNumber(const Context& c) {
  if (c.instance.type != Type::kNumber) return Verdict::kValid;
  Verdict verdict = Verdict::kValid;
  const auto value = ExactNumber::Read(c.instance.text);
  const auto compare = [&](const char* keyword, auto holds) {
    const Value* bound = c[keyword];
    if (bound == nullptr || (bound->is_bool() && c.dialect() == Dialect::kDraft4)) return;
    const auto number =
        bound->type == Type::kNumber ? ExactNumber::Read(bound->text) : std::nullopt;
    std::optional<bool> ok;
    if (number && value) ok = holds(*number);
    verdict = And(verdict, FromOptional(ok, c.path, keyword));
  };
  const auto exclusive = [&](const char* keyword) {
    const Value* flag = c[keyword];
    return c.dialect() == Dialect::kDraft4 && flag != nullptr && flag->type == Type::kTrue;
  };
  const bool above = exclusive("exclusiveMinimum"), below = exclusive("exclusiveMaximum");
  compare("minimum", [&](const ExactNumber& b) { return above ? *value > b : *value >= b; });
  compare("maximum", [&](const ExactNumber& b) { return below ? *value < b : *value <= b; });
  compare("exclusiveMinimum", [&](const ExactNumber& b) { return *value > b; });
  compare("exclusiveMaximum", [&](const ExactNumber& b) { return *value < b; });
  compare("multipleOf", [&](const ExactNumber& m) -> std::optional<bool> {
    if (m.IsZero() || m.negative()) return std::nullopt;
    return value->IsMultipleOf(m);
  });
  return verdict;
}

namespace {

// "minLength" and the like: size against the keyword's number; valid when the keyword is absent.
std::optional<bool> SizeHolds(const Value* keyword, size_t size, bool at_least) {
  if (keyword == nullptr) return true;
  if (keyword->type != Type::kNumber) return std::nullopt;
  const auto bound = ExactNumber::Read(keyword->text);
  if (!bound || !bound->IsInteger() || bound->negative()) return std::nullopt;
  const auto actual = ExactNumber::Read(std::to_string(size));
  return at_least ? *actual >= *bound : *actual <= *bound;
}

}  // namespace

Verdict Validator::CheckString(const Context& c) {
  if (c.instance.type != Type::kString) return Verdict::kValid;
  const size_t length = LengthInCodepoints(c.instance.text);
  Verdict verdict = FromOptional(SizeHolds(c["minLength"], length, true), c.path, "minLength");
  verdict =
      And(verdict, FromOptional(SizeHolds(c["maxLength"], length, false), c.path, "maxLength"));
  if (const Value* pattern = c["pattern"]) {
    verdict =
        And(verdict, FromOptional(EcmaSearch(pattern->text, c.instance.text), c.path, "pattern"));
  }
  if (const Value* format = c["format"]; format != nullptr && options_.assert_formats) {
    verdict =
        And(verdict, FromOptional(HasFormat(format->text, c.instance.text), c.path, "format"));
  }
  return verdict;
}

Verdict Validator::CheckArray(const Context& c) {
  if (c.instance.type != Type::kArray) return Verdict::kValid;
  const auto& items = c.instance.items;
  Verdict verdict = FromOptional(SizeHolds(c["minItems"], items.size(), true), c.path, "minItems");
  verdict =
      And(verdict, FromOptional(SizeHolds(c["maxItems"], items.size(), false), c.path, "maxItems"));
  if (const Value* unique = c["uniqueItems"]; unique != nullptr && unique->type == Type::kTrue) {
    for (size_t i = 0; i < items.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (EqualValues(items[i], items[j])) verdict = Refuse(c.path, "uniqueItems");
      }
    }
  }
  verdict = And(verdict, CheckItems(c));
  return And(verdict, CheckContains(c));
}

Verdict Validator::CheckItems(const Context& c) {
  const auto& items = c.instance.items;
  Verdict verdict = Verdict::kValid;
  const auto check = [&](const Value& schema, size_t i) {
    Seen inner;
    inner.members.resize(items[i].members.size());
    inner.items.resize(items[i].items.size());
    verdict = And(verdict,
                  Evaluate(schema, items[i], c.resource, c.path + "/" + std::to_string(i), &inner));
    c.seen->items[i] = true;
  };
  const bool modern = c.dialect() == Dialect::k2020;
  const Value* prefix = modern ? c["prefixItems"] : c["items"];
  const Value* rest = modern ? c["items"] : c["additionalItems"];
  if (modern && rest != nullptr && rest->type == Type::kArray)
    return Unknown(c.path, "items is an array");
  if (!modern && prefix != nullptr && prefix->type != Type::kArray) {
    rest = prefix;  // one schema for all; additionalItems does not apply
    prefix = nullptr;
  } else if (!modern && prefix == nullptr) {
    rest = nullptr;
  }
  const size_t fixed = prefix == nullptr ? 0 : prefix->items.size();
  for (size_t i = 0; i < items.size(); ++i) {
    if (i < fixed) {
      check(prefix->items[i], i);
    } else if (rest != nullptr) {
      check(*rest, i);
    }
  }
  return verdict;
}

Verdict Validator::CheckContains(const Context& c) {
  const Value* contains = c["contains"];
  if (contains == nullptr || c.dialect() == Dialect::kDraft4) return Verdict::kValid;
  const auto& items = c.instance.items;
  size_t sure = 0, possible = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    Seen inner;
    inner.members.resize(items[i].members.size());
    inner.items.resize(items[i].items.size());
    const Verdict one =
        Evaluate(*contains, items[i], c.resource, c.path + "/" + std::to_string(i), &inner);
    sure += one == Verdict::kValid;
    possible += one != Verdict::kInvalid;
    if (c.dialect() == Dialect::k2020 && one == Verdict::kValid) c.seen->items[i] = true;
    if (one == Verdict::kCannotTell) c.seen->uncertain = true;
  }
  const bool counted = c.dialect() >= Dialect::k2019;
  const Value* least = counted ? c["minContains"] : nullptr;
  const Value* most = counted ? c["maxContains"] : nullptr;
  const auto holds = [&](size_t count) -> std::optional<bool> {
    const std::optional<bool> enough =
        least == nullptr ? std::optional<bool>(count > 0) : SizeHolds(least, count, true);
    const std::optional<bool> few = SizeHolds(most, count, false);
    if (!enough || !few) return std::nullopt;
    return *enough && *few;
  };
  std::optional<bool> result = holds(sure);
  for (size_t count = sure + 1; count <= possible; ++count) {
    if (holds(count) != result) result = std::nullopt;
  }
  return FromOptional(result, c.path, "contains");
}

Verdict Validator::CheckObject(const Context& c) {
  if (c.instance.type != Type::kObject) return Verdict::kValid;
  const auto& members = c.instance.members;
  Verdict verdict =
      FromOptional(SizeHolds(c["minProperties"], members.size(), true), c.path, "minProperties");
  verdict = And(verdict, FromOptional(SizeHolds(c["maxProperties"], members.size(), false), c.path,
                                      "maxProperties"));
  if (const Value* required = c["required"]; required != nullptr) {
    if (required->type != Type::kArray) return And(verdict, Unknown(c.path, "required"));
    for (const Value& name : required->items) {
      if (c.instance.Find(name.text) == nullptr)
        verdict = Refuse(c.path, "required: " + json::Quote(name.text));
    }
  }
  if (const Value* names = c["propertyNames"];
      names != nullptr && c.dialect() >= Dialect::kDraft6) {
    for (const auto& [name, value] : members) {
      Value key;
      key.type = Type::kString;
      key.text = name;
      Seen nothing;
      verdict = And(verdict, Evaluate(*names, key, c.resource, c.path + "/" + name, &nothing));
    }
  }
  verdict = And(verdict, CheckMembers(c));
  return And(verdict, CheckDependencies(c));
}

Verdict Validator::CheckMembers(const Context& c) {
  Verdict verdict = Verdict::kValid;
  const Value* properties = c["properties"];
  const Value* patterns = c["patternProperties"];
  const Value* additional = c["additionalProperties"];
  for (size_t i = 0; i < c.instance.members.size(); ++i) {
    const auto& [name, value] = c.instance.members[i];
    const auto check = [&, &value = value, &name = name](const Value& schema) {
      Seen inner;
      inner.members.resize(value.members.size());
      inner.items.resize(value.items.size());
      c.seen->members[i] = true;
      return Evaluate(schema, value, c.resource, json::PointerJoin(c.path, name), &inner);
    };
    bool matched = false, doubtful = false;
    if (const Value* schema = properties == nullptr ? nullptr : properties->Find(name)) {
      matched = true;
      verdict = And(verdict, check(*schema));
    }
    if (patterns != nullptr) {
      for (const auto& [pattern, schema] : patterns->members) {
        const auto found = EcmaSearch(pattern, name);
        if (!found) {
          doubtful = true;
        } else if (*found) {
          matched = true;
          verdict = And(verdict, check(schema));
        }
      }
    }
    if (doubtful) {
      verdict = And(verdict, Unknown(c.path, "patternProperties"));
      c.seen->uncertain = true;
    } else if (!matched && additional != nullptr) {
      verdict = And(verdict, check(*additional));
    }
  }
  return verdict;
}

Verdict Validator::CheckDependencies(const Context& c) {
  Verdict verdict = Verdict::kValid;
  const auto all_present = [&](const Value& names) {
    for (const Value& name : names.items) {
      if (c.instance.Find(name.text) == nullptr)
        verdict = Refuse(c.path, "needs " + json::Quote(name.text));
    }
  };
  const auto each = [&](const char* keyword, bool names_allowed) {
    const Value* map = c[keyword];
    if (map == nullptr) return;
    for (const auto& [name, value] : map->members) {
      if (c.instance.Find(name) == nullptr) continue;
      if (value.type == Type::kArray && names_allowed) {
        all_present(value);
      } else {
        verdict = And(verdict, Evaluate(value, c.instance, c.resource, c.path, c.seen));
      }
    }
  };
  if (c.dialect() <= Dialect::kDraft7) {
    each("dependencies", true);
  } else {
    each("dependentRequired", true);
    each("dependentSchemas", false);
  }
  return verdict;
}

Verdict Validator::CheckCombinations(const Context& c) {
  Verdict verdict = Verdict::kValid;
  const auto evaluate = [&](const Value& schema) {
    return Evaluate(schema, c.instance, c.resource, c.path, c.seen);
  };
  if (const Value* all = c["allOf"]) {
    for (const Value& schema : all->items) verdict = And(verdict, evaluate(schema));
  }
  if (const Value* any = c["anyOf"]) {
    Verdict result = Verdict::kInvalid;
    for (const Value& schema : any->items) result = Or(result, evaluate(schema));
    if (result == Verdict::kInvalid) Refuse(c.path, "anyOf");
    verdict = And(verdict, result);
  }
  if (const Value* one = c["oneOf"]) {
    size_t sure = 0, possible = 0;
    for (const Value& schema : one->items) {
      const Verdict result = evaluate(schema);
      sure += result == Verdict::kValid;
      possible += result != Verdict::kInvalid;
    }
    std::optional<bool> holds;
    if (sure > 1 || possible == 0) holds = false;
    if (sure == 1 && possible == 1) holds = true;
    verdict = And(verdict, FromOptional(holds, c.path, "oneOf"));
  }
  if (const Value* negated = c["not"]) {
    Seen nothing;
    nothing.members.resize(c.instance.members.size());
    nothing.items.resize(c.instance.items.size());
    const Verdict result = Not(Evaluate(*negated, c.instance, c.resource, c.path, &nothing));
    if (result == Verdict::kInvalid) Refuse(c.path, "not");
    verdict = And(verdict, result);
  }
  if (const Value* condition = c["if"]; condition != nullptr && c.dialect() >= Dialect::kDraft7) {
    const Verdict test = evaluate(*condition);
    const Value* then = c["then"];
    const Value* otherwise = c["else"];
    const auto branch = [&](const Value* schema) {
      return schema == nullptr ? Verdict::kValid : evaluate(*schema);
    };
    if (test == Verdict::kValid) {
      verdict = And(verdict, branch(then));
    } else if (test == Verdict::kInvalid) {
      verdict = And(verdict, branch(otherwise));
    } else {
      const Verdict a = branch(then), b = branch(otherwise);
      verdict = And(verdict, a == b ? a : Unknown(c.path, "if"));
    }
  }
  return verdict;
}

Verdict Validator::CheckUnevaluated(const Context& c) {
  if (c.dialect() < Dialect::k2019) return Verdict::kValid;
  Verdict verdict = Verdict::kValid;
  const auto check = [&](const Value& schema, const Value& value, const Path& path) {
    Seen inner;
    inner.members.resize(value.members.size());
    inner.items.resize(value.items.size());
    const Verdict one = Evaluate(schema, value, c.resource, path, &inner);
    // It might have been seen after all.
    return one == Verdict::kInvalid && c.seen->uncertain ? Unknown(path, "unevaluated") : one;
  };
  if (const Value* schema = c["unevaluatedProperties"]) {
    for (size_t i = 0; i < c.instance.members.size(); ++i) {
      if (c.seen->members[i]) continue;
      const auto& [name, value] = c.instance.members[i];
      verdict = And(verdict, check(*schema, value, json::PointerJoin(c.path, name)));
      c.seen->members[i] = true;
    }
  }
  if (const Value* schema = c["unevaluatedItems"]) {
    for (size_t i = 0; i < c.instance.items.size(); ++i) {
      if (c.seen->items[i]) continue;
      verdict = And(verdict, check(*schema, c.instance.items[i], c.path + "/" + std::to_string(i)));
      c.seen->items[i] = true;
    }
  }
  return verdict;
}

}  // namespace pawl::oracle
