// Atoms: what the keywords of one schema object say about values of one kind, and the table that
// holds a whole compiled schema.
#ifndef PAWL_SCHEMAS_FORMULA_ATOMS_H_
#define PAWL_SCHEMAS_FORMULA_ATOMS_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "grammar/regex/regex_arena.h"
#include "pawl/result.h"
#include "schemas/formula/formula.h"
#include "schemas/limits.h"
#include "schemas/number/number_automaton.h"
#include "src/base/json.h"
#include "src/base/memory_size.h"
#include "src/base/source_text.h"
#include "src/base/sync.h"

namespace pawl::schema {

inline constexpr uint64_t kUnbounded = UINT64_MAX;

// One condition on a string, over its code points.
struct StringAtom {
  enum class Type { kRegex, kLiterals, kLength, kSource };
  Type type = Type::kRegex;
  ReId regex = 0;                        // kRegex: the whole string matches
  std::vector<std::u32string> literals;  // kLiterals: it is one of these; sorted, unique
  uint64_t min = 0, max = kUnbounded;    // kLength: number of code points
  SpanKind span = SpanKind::kSpan;       // kSource: it is such a span of SchemaTable::source
  size_t MemoryBytes() const { return HeapBytes(literals); }
};

// One condition on a number: a constraint, or membership in `values` when there are any.
struct NumberAtom {
  NumberConstraint constraint;
  std::vector<Decimal> values;
  size_t MemoryBytes() const { return HeapBytes(constraint, values); }
};

struct ObjectAtom {
  std::vector<std::pair<std::string, FormulaId>> properties;  // in the order of the schema
  struct Pattern {
    FormulaId name;  // a formula on the key: a string atom
    FormulaId value;
  };
  std::vector<Pattern> patterns;
  FormulaId additional = kTrueFormula;      // values of keys that neither list above matches
  FormulaId property_names = kTrueFormula;  // on every key
  std::vector<std::string> required;
  uint64_t min_properties = 0, max_properties = kUnbounded;
  std::string constant;  // canonical text of the only object that fits, where it is known and short
  size_t MemoryBytes() const { return HeapBytes(properties, patterns, required, constant); }
};

struct ArrayAtom {
  std::vector<FormulaId> prefix;
  FormulaId items = kTrueFormula;  // items after the prefix
  uint64_t min_items = 0, max_items = kUnbounded;
  FormulaId contains = kTrueFormula;  // counted only when has_contains
  bool has_contains = false;
  uint64_t min_contains = 1, max_contains = kUnbounded;
  bool unique = false;
  std::string constant;  // as for objects
  size_t MemoryBytes() const { return HeapBytes(prefix, constant); }
};

// What looking for ways to an end has cost so far, over all strings of a schema (string_search.h).
struct SearchSpending {
  uint64_t work = 0;  // steps of the regexes' arena
  int64_t steps = 0;  // as JsonSchemaOptions::step_fuel has them
  // What is not limited, for Machine::steps: states of products made, nodes of tries walked.
  uint64_t states = 0, nodes = 0;
  // After so many steps nothing is searched any more. The states of a product are kept; of one that
  // takes more bytes no more are made to look ahead.
  int64_t max_steps = 0;
  size_t max_bytes = 0;
  std::shared_ptr<const StopFlag> stop;  // of the compilation, where there is one
  bool Stopped() const { return stop != nullptr && stop->stopped(); }
};

// Witnesses: the shortest texts of formats, which schemas of one compiler share. To find that of a
// date-time takes 2 ms, and 128 tools may each have one.
//
// Thread-safe. Keeps a few kilobytes at most: formats are few, and so are the settings of a
// compiler's users.
class Witnesses {
 public:
  // `name`: the format, and all options (KeyOf).
  std::optional<std::string> Find(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    const auto found = texts_.find(name);
    if (found == texts_.end()) return std::nullopt;
    return found->second;
  }
  void Keep(const std::string& name, const std::string& text) {
    if (name.size() + text.size() > limits::kWitnessBytes) return;
    const std::lock_guard lock(mutex_);
    if (texts_.size() >= limits::kWitnesses) texts_.clear();
    texts_.emplace(name, text);
  }

 private:
  mutable Mutex mutex_;
  std::map<std::string, std::string> texts_;
};

// A schema, compiled as far as it can be without looking at text: the formula of the root and the
// tables its leaves point into. Grows while it is used (formulas are derived lazily). Not
// thread-safe.
class SchemaTable {
 public:
  FormulaArena formulas;
  std::shared_ptr<RegexArena> regexes = std::make_shared<RegexArena>();
  const std::unique_ptr<SearchSpending> spending = std::make_unique<SearchSpending>();
  FormulaId root = kTrueFormula;
  // What to write of the strings that fulfil an atom, where that is less than all of them: a
  // condition by atom.
  std::unordered_map<AtomId, FormulaId> written;
  // The formats that formulas are, and what other schemas know of them (nullptr: nothing).
  std::unordered_map<FormulaId, std::string> formats;
  std::shared_ptr<Witnesses> witnesses;
  // The text that fields with a source quote; nullptr: no field does.
  std::shared_ptr<SourceText> source;
  // These fields: what each demands, and its pointer.
  std::vector<std::pair<FormulaId, std::string>> source_fields;

  FormulaId AddString(StringAtom atom);
  FormulaId AddNumber(NumberConstraint constraint);
  FormulaId AddRegex(ReId regex) {
    return AddString({.type = StringAtom::Type::kRegex, .regex = regex, .literals = {}});
  }
  // A value of the list, which may be empty.
  FormulaId AddList(std::vector<std::u32string> values);
  FormulaId AddList(std::vector<Decimal> values);
  FormulaId AddObject(ObjectAtom atom);
  FormulaId AddArray(ArrayAtom atom);

  const StringAtom& string(AtomId id) const { return strings_[atoms_[id].index]; }
  const NumberAtom& number(AtomId id) const { return numbers_[atoms_[id].index]; }
  const ObjectAtom& object(AtomId id) const { return objects_[atoms_[id].index]; }
  const ArrayAtom& array(AtomId id) const { return arrays_[atoms_[id].index]; }
  Kind kind(AtomId id) const { return atoms_[id].kind; }
  // Whether an atom is such a list, and its values (of std::u32string or Decimal).
  bool IsList(AtomId id) const {
    if (kind(id) == kStringValue) return string(id).type == StringAtom::Type::kLiterals;
    return kind(id) == kNumberValue && !number(id).values.empty();
  }
  template <typename Value>
  const std::vector<Value>& List(AtomId id) const {
    if constexpr (std::is_same_v<Value, Decimal>) return number(id).values;
    if constexpr (!std::is_same_v<Value, Decimal>) return string(id).literals;
  }

  size_t MemoryBytes() const {
    return HeapBytes(formulas, *regexes, atoms_, strings_, numbers_, objects_, arrays_, interned_,
                     formats, source, source_fields);
  }
  size_t GrowthHint() const {
    return formulas.size() * 160 + atoms_.size() * 200 + list_bytes_ + regexes->GrowthHint() +
           (source == nullptr ? 0 : source->MemoryBytes());
  }

 private:
  struct Entry {
    Kind kind;
    uint32_t index;
  };
  FormulaId Add(Kind kind, size_t index);
  std::vector<Entry> atoms_;
  size_t list_bytes_ = 0;  // of lists of values
  // Deques: references to atoms stay valid while the table grows.
  std::deque<StringAtom> strings_;
  std::deque<NumberAtom> numbers_;
  std::deque<ObjectAtom> objects_;
  std::deque<ArrayAtom> arrays_;
  // Equal string and number conditions share an atom, so that formulas over them simplify.
  std::map<std::string, FormulaId> interned_;
};

// The formula "equal to this JSON value", as const and enum mean it: numbers by value, objects in
// any order.

// Kinds of values and types of JSON are in one order.
inline Kind KindOf(const json::Value& value) { return static_cast<Kind>(value.type); }
static_assert(kTrueValue == static_cast<Kind>(json::Type::kTrue) &&
              kObjectValue == static_cast<Kind>(json::Type::kObject));

// Errors: kLimit for numbers beyond Decimal's limits.
Result<FormulaId> ConstantFormula(SchemaTable& table, const json::Value& value);
// One of `values`; strings share one literal set.
Result<FormulaId> EnumFormula(SchemaTable& table, const std::vector<const json::Value*>& values);

// JSON text that is equal for exactly the values JSON Schema calls equal: members sorted, numbers
// normalised.
std::string CanonicalText(const json::Value& value);

// One more item (or member) of a text between brackets.
inline void AddToList(std::string& text, std::string_view item) {
  if (!text.empty()) text += ',';
  text += item;
}

}  // namespace pawl::schema

#endif  // PAWL_SCHEMAS_FORMULA_ATOMS_H_
