// unevaluatedProperties and unevaluatedItems, rewritten into formulas that know nothing of
// annotations.
//
// What a schema has evaluated is the union of what its own keywords name (properties, patterns, a
// prefix of the items, items that match "contains") and what the schemas applied in place evaluate,
// as far as those hold. Which of them hold is a question that formulas can ask: a branch of anyOf
// contributes under the condition that its formula is true, "then" under that of "if", and so on
// through references. (What allOf and the like contribute needs no condition: when they fail, the
// whole schema does.) So collecting gives a list of contributions, each with its condition.
//
// Then every key is treated by itself: it has to fit the keyword's schema unless one of the
// contributions that name it has its condition fulfilled. Keys with the same contributions are one
// atom "these keys fit", which stands in a disjunction with their conditions. Only patterns, which
// can overlap, make this more than linear: keys are told apart by the set of conditional patterns
// they match, so there may be few of those. Items are cut into segments by the prefixes in the same
// path; an item fits the schema or matches a "contains" that counts.
#include <algorithm>
#include <deque>
#include <set>

#include "schemas/limits.h"
#include "schemas/read/reader_internal.h"
#include "schemas/scalar/string_program.h"
#include "src/base/sorted.h"
#include "src/base/utf8.h"

namespace pawl::schema {
namespace {

// Whether names match a pattern, told by one program for all names.
class NameMatcher {
 public:
  NameMatcher(const SchemaTable& table, FormulaId pattern)
      : atom_(table.formulas.value(pattern)), program_(table, {atom_}) {}
  bool Matches(const std::string& name) {
    return program_.Truth(program_.After(DecodeCodepoints(name)), atom_);
  }

 private:
  AtomId atom_;
  StringProgram program_;
};

// Whether `schema` itself says that its values may be objects, of any kind.
bool SaysObject(const json::Value& schema) {
  const json::Value* type = schema.Find("type");
  if (type == nullptr || schema.Find("enum") != nullptr || schema.Find("const") != nullptr)
    return false;
  return type->text == "object" || std::ranges::any_of(type->items, [](const json::Value& one) {
           return one.text == "object";
         });
}

}  // namespace

// What schemas under one condition evaluate.
struct Reader::Evaluated {
  FormulaId when = kTrueFormula;
  std::vector<std::string> names;
  std::vector<FormulaId> patterns;  // string atoms
  bool all_properties = false;
  uint64_t prefix = 0;  // of the items; kUnbounded: all
  std::vector<FormulaId> contains;
};

// A schema applied in place, still to be looked at.
struct Reader::Visit {
  const Value* schema;
  Here here;  // around it
  FormulaId when;
  std::string pointer;
};

// What the schema's own keywords evaluate, without what it applies in place.
void Reader::AddEvaluation(const Visit& visit, Here here, bool is_top, const Path& path,
                           Evaluated& sum) {
  const Value& schema = *visit.schema;
  if (const Value* value = schema.Find("properties")) {
    for (const auto& [name, member] : value->members) sum.names.push_back(name);
  }
  if (const Value* value = schema.Find("patternProperties")) {
    for (const auto& [text, member] : value->members) {
      const auto pattern = Pattern(text, path);
      if (!pattern.ok()) continue;
      if (*pattern == kTrueFormula) sum.all_properties = true;
      if (!formulas_.IsConstant(*pattern)) sum.patterns.push_back(*pattern);
    }
  }
  const bool modern = At(Dialect::k2019);
  if (schema.Find("additionalProperties") != nullptr ||
      (modern && !is_top && schema.Find("unevaluatedProperties") != nullptr))
    sum.all_properties = true;
  const Value* tuple = At(Dialect::k2020) ? schema.Find("prefixItems") : nullptr;
  const Value* rest = schema.Find("items");
  if (tuple == nullptr && rest != nullptr && rest->type == json::Type::kArray) {
    tuple = rest;
    rest = schema.Find("additionalItems");
  }
  if (tuple != nullptr) sum.prefix = std::max<uint64_t>(sum.prefix, tuple->items.size());
  if (rest != nullptr || (modern && !is_top && schema.Find("unevaluatedItems") != nullptr))
    sum.prefix = kUnbounded;
  if (const Value* value = schema.Find("contains"); value != nullptr && At(Dialect::k2020))
    sum.contains.push_back(FormulaOf(*value, here, visit.pointer + "/contains"));
}

// Every failure of a reference or a pattern on the way is left to the reading of that place, which
// names it properly.
Result<std::vector<Reader::Evaluated>> Reader::Evaluations(const Value& top, const Path& path) {
  std::map<FormulaId, Evaluated> by_condition;
  std::vector<FormulaId> order;
  std::set<std::tuple<const Value*, ScopeId, FormulaId>> visited;
  std::deque<Visit> visits = {{&top, here_, kTrueFormula, path.ToString()}};
  const Here outer = here_;
  const auto visit_all = [&]() -> Status {
    while (!visits.empty()) {
      const Visit visit = std::move(visits.front());
      visits.pop_front();
      const Value& schema = *visit.schema;
      if (schema.type != json::Type::kObject || visit.when == kFalseFormula) continue;
      here_ = Enter(schema, visit.here);  // dialect() and At() speak of this schema
      const Here here = here_;
      if (!visited.emplace(&schema, here.scope, visit.when).second) continue;
      if (visited.size() > limits::kEvaluatedSchemas) {
        return Fail(ErrorCode::kLimit, path,
                    "what is evaluated depends on more than " +
                        std::to_string(limits::kEvaluatedSchemas) + " schemas");
      }
      const auto push = [&](const Value& kid, FormulaId condition, const std::string& pointer) {
        visits.push_back({&kid, here, formulas_.And(visit.when, condition), pointer});
      };
      const auto follow = [&](const char* keyword) {
        const Value* text = schema.Find(keyword);
        if (text == nullptr) return;
        const auto target = Referred(keyword, *text, here);
        if (!target.ok()) return;
        visits.push_back(
            {target->value, EnterResource(*target->resource, here), visit.when, target->pointer});
      };
      follow("$ref");
      if (!At(Dialect::k2019) && schema.Find("$ref") != nullptr) continue;
      if (At(Dialect::k2020)) follow("$dynamicRef");
      if (dialect() == Dialect::k2019) follow("$recursiveRef");

      const auto [it, fresh] = by_condition.try_emplace(visit.when);
      if (fresh) order.push_back(visit.when);
      Evaluated& sum = it->second;
      sum.when = visit.when;
      AddEvaluation(visit, here, &schema == &top, path, sum);

      for (const char* name : {"allOf", "anyOf", "oneOf"}) {
        const Value* list = schema.Find(name);
        if (list == nullptr) continue;
        for (size_t i = 0; i < list->items.size(); ++i) {
          const std::string pointer =
              json::PointerJoin(json::PointerJoin(visit.pointer, name), std::to_string(i));
          push(list->items[i],
               name[1] == 'l' || list->items.size() == 1 ? kTrueFormula
                                                         : FormulaOf(list->items[i], here, pointer),
               pointer);
        }
      }
      if (const Value* condition = schema.Find("if");
          condition != nullptr && At(Dialect::kDraft7)) {
        const FormulaId holds = FormulaOf(*condition, here, visit.pointer + "/if");
        push(*condition, holds, visit.pointer + "/if");
        if (const Value* then = schema.Find("then")) push(*then, holds, visit.pointer + "/then");
        if (const Value* otherwise = schema.Find("else"))
          push(*otherwise, formulas_.Not(holds), visit.pointer + "/else");
      }
      for (const char* name : {"dependentSchemas", "dependencies"}) {
        const Value* map = schema.Find(name);
        if (map == nullptr || (name[9] == 'S' && !At(Dialect::k2019))) continue;
        for (const auto& [key, member] : map->members) {
          push(member, Present(key),
               json::PointerJoin(json::PointerJoin(visit.pointer, name), key));
        }
      }
    }
    return {};
  };
  const Status status = visit_all();
  here_ = outer;
  if (!status.ok()) return status.error();
  std::vector<Evaluated> out;
  out.reserve(order.size());
  for (const FormulaId condition : order) out.push_back(std::move(by_condition.at(condition)));
  return out;
}

Result<FormulaId> Reader::Unevaluated(const Value& schema, const Path& path) {
  if (!At(Dialect::k2019)) return kTrueFormula;
  const Value* properties = schema.Find("unevaluatedProperties");
  const Value* items = schema.Find("unevaluatedItems");
  std::vector<FormulaId> parts;
  std::vector<Evaluated> seen;
  for (const Value* keyword : {properties, items}) {
    if (keyword == nullptr) continue;
    const Path at{&path, keyword == properties ? "unevaluatedProperties" : "unevaluatedItems"};
    auto value = Schema(*keyword, at);
    if (!value.ok()) return value.error();
    if (*value == kTrueFormula) continue;
    if (seen.empty()) {
      auto evaluations = Evaluations(schema, path);
      if (!evaluations.ok()) return Fail(evaluations.error().code, at, evaluations.error().message);
      seen = std::move(*evaluations);
    }
    auto part = keyword == properties ? UnevaluatedProperties(seen, *value, at)
                                      : UnevaluatedItems(seen, *value, at);
    if (auto e = Take(parts.emplace_back(), std::move(part))) return *e;
  }
  return formulas_.And(parts);
}

Result<FormulaId> Reader::Closed(const Value& schema, const Path& path) {
  if (schema.Find("additionalProperties") != nullptr ||
      (At(Dialect::k2019) && schema.Find("unevaluatedProperties") != nullptr))
    return kTrueFormula;
  auto seen = Evaluations(schema, path);
  if (!seen.ok()) return seen.error();
  const bool speaks = std::any_of(seen->begin(), seen->end(), [](const Evaluated& one) {
    return !one.names.empty() || !one.patterns.empty();
  });
  if (speaks) {
    constexpr std::string_view kSayMore[] = {"type",  "enum",  "const", "$ref",
                                             "allOf", "anyOf", "oneOf"};
    const auto has = [&](std::string_view name) { return schema.Find(name) != nullptr; };
    if (here_.copying != Copying::kPlain && has("properties") &&
        std::ranges::none_of(kSayMore, has) && path.ToString() == "#") {
      notes_.push_back("#: properties: the schema has no type, so it takes values of any type");
    }
    return UnevaluatedProperties(*seen, kFalseFormula, path);
  }
  if (here_.copying != Copying::kPlain && SaysObject(schema) &&
      ++left_open_ <= limits::kAnnotationNotes) {
    notes_.push_back(path.ToString() + ": no key is named, so the object stays open");
  }
  return kTrueFormula;
}

Result<FormulaId> Reader::UnevaluatedProperties(const std::vector<Evaluated>& seen, FormulaId value,
                                                const Path& path) {
  const auto in = [](const auto& list, const auto& item) {
    return std::find(list.begin(), list.end(), item) != list.end();
  };
  std::vector<std::string> always_names, names;      // names: under some condition only
  std::vector<FormulaId> always_patterns, patterns;  // the same
  std::vector<FormulaId> all;  // conditions under which every key is evaluated
  std::set<std::string_view> known;
  for (const bool always : {true, false}) {
    for (const Evaluated& one : seen) {
      if ((one.when == kTrueFormula) != always) continue;
      if (one.all_properties) all.push_back(one.when);
      for (const std::string& name : one.names) {
        if (known.insert(name).second) (always ? always_names : names).push_back(name);
      }
      for (const FormulaId pattern : one.patterns) {
        if (!in(always_patterns, pattern) && !in(patterns, pattern))
          (always ? always_patterns : patterns).push_back(pattern);
      }
    }
  }
  if (in(all, kTrueFormula)) return kTrueFormula;
  if (patterns.size() > limits::kConditionalPatterns) {
    return Fail(ErrorCode::kUnsupported, path,
                "more than " + std::to_string(limits::kConditionalPatterns) +
                    " patterns count as evaluated under conditions only, which is not enforced");
  }
  std::vector<FormulaId> parts;
  // Named keys, together where the same conditions free them.
  std::vector<std::pair<FormulaId, ObjectAtom>> groups;
  std::map<FormulaId, NameMatcher> matchers;
  for (const std::string& name : names) {
    const auto matches = [&](FormulaId pattern) {
      return matchers.try_emplace(pattern, table_, pattern).first->second.Matches(name);
    };
    if (std::any_of(always_patterns.begin(), always_patterns.end(), matches)) continue;
    std::vector<FormulaId> matching;
    std::copy_if(patterns.begin(), patterns.end(), std::back_inserter(matching), matches);
    std::vector<FormulaId> conditions = all;
    for (const Evaluated& one : seen) {
      const bool by_pattern = std::any_of(matching.begin(), matching.end(),
                                          [&](FormulaId p) { return in(one.patterns, p); });
      if (by_pattern || in(one.names, name)) conditions.push_back(one.when);
    }
    const FormulaId condition = formulas_.Or(conditions);
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const auto& g) { return g.first == condition; });
    if (group == groups.end()) group = groups.insert(groups.end(), {condition, ObjectAtom()});
    group->second.properties.emplace_back(name, value);
  }
  parts.reserve(groups.size());
  for (auto& [condition, atom] : groups)
    parts.push_back(formulas_.Or(condition, table_.AddObject(std::move(atom))));
  // Other keys, by the set of conditional patterns that they match.
  const FormulaId unconditional = formulas_.Or(all);
  ObjectAtom others;
  std::vector<std::u32string> literals;
  for (const auto* list : {&always_names, &names}) {
    for (const std::string& name : *list) {
      others.properties.emplace_back(name, kTrueFormula);
      literals.push_back(DecodeCodepoints(name));
    }
  }
  std::vector<FormulaId> apart;  // what a key beyond names and unconditional patterns fulfils
  if (!literals.empty()) apart.push_back(formulas_.Not(table_.AddList(std::move(literals))));
  for (const FormulaId pattern : always_patterns) {
    others.patterns.push_back({pattern, kTrueFormula});
    apart.push_back(formulas_.Not(pattern));
  }
  for (const FormulaId pattern : patterns) others.patterns.push_back({pattern, kTrueFormula});
  others.additional = value;
  parts.push_back(formulas_.Or(unconditional, table_.AddObject(std::move(others))));
  for (size_t set = 1; set < size_t{1} << patterns.size(); ++set) {
    std::vector<FormulaId> key = apart, conditions = all;
    for (size_t i = 0; i < patterns.size(); ++i) {
      const bool matched = (set >> i & 1) != 0;
      key.push_back(matched ? patterns[i] : formulas_.Not(patterns[i]));
      if (!matched) continue;
      for (const Evaluated& one : seen) {
        if (in(one.patterns, patterns[i])) conditions.push_back(one.when);
      }
    }
    ObjectAtom atom;
    atom.patterns.push_back({formulas_.And(key), value});
    parts.push_back(formulas_.Or(formulas_.Or(conditions), table_.AddObject(std::move(atom))));
  }
  return formulas_.And(parts);
}

Result<FormulaId> Reader::UnevaluatedItems(const std::vector<Evaluated>& seen, FormulaId value,
                                           const Path& path) {
  std::vector<FormulaId> always = {value};                // an item that fits one of these is fine
  std::vector<std::pair<FormulaId, FormulaId>> contains;  // (condition, formula)
  std::set<uint64_t> ends;                                // of conditional prefixes
  uint64_t first = 0;                                     // items before it are always evaluated
  for (const Evaluated& one : seen) {
    if (one.when != kTrueFormula) continue;
    first = std::max(first, one.prefix);
    always.insert(always.end(), one.contains.begin(), one.contains.end());
  }
  if (first == kUnbounded) return kTrueFormula;
  for (const Evaluated& one : seen) {
    if (one.when == kTrueFormula) continue;
    if (one.prefix > first) ends.insert(one.prefix);
    for (const FormulaId formula : one.contains) contains.emplace_back(one.when, formula);
  }
  SortUnique(contains);
  if (contains.size() > limits::kConditionalPatterns) {
    return Fail(ErrorCode::kUnsupported, path,
                "more than " + std::to_string(limits::kConditionalPatterns) +
                    " \"contains\" count as evaluated under conditions only, which is not "
                    "enforced");
  }
  ends.insert(kUnbounded);
  std::vector<FormulaId> parts;
  for (const uint64_t end : ends) {
    std::vector<FormulaId> covered;
    for (const Evaluated& one : seen) {
      if (one.when != kTrueFormula && one.prefix >= end) covered.push_back(one.when);
    }
    // For each set of conditional "contains": unless one outside the set counts, each item fits
    // the schema or one in the set. The set of those that do count gives the strictest demand.
    for (size_t set = 0; set < size_t{1} << contains.size(); ++set) {
      std::vector<FormulaId> escape = covered, fits = always;
      for (size_t i = 0; i < contains.size(); ++i) {
        if ((set >> i & 1) != 0) {
          fits.push_back(contains[i].second);
        } else {
          escape.push_back(contains[i].first);
        }
      }
      const FormulaId item = formulas_.Or(fits);
      ArrayAtom atom;
      atom.prefix.assign(first, kTrueFormula);
      if (end == kUnbounded) {
        atom.items = item;
      } else {
        atom.prefix.insert(atom.prefix.end(), end - first, item);
      }
      if (item == kTrueFormula) continue;
      escape.push_back(table_.AddArray(std::move(atom)));
      parts.push_back(formulas_.Or(escape));
    }
    first = end;
  }
  return formulas_.And(parts);
}

}  // namespace pawl::schema
