// Each atom is interned by a text that says all of it, so equal conditions are one atom wherever
// they stand, and everything above remembers its answers by the atom's number. Conditions that
// every value of the kind fulfils become "true" here.
#include "schemas/formula/atoms.h"

#include <algorithm>
#include <optional>

#include "schemas/number/number_set.h"
#include "src/base/sorted.h"
#include "src/base/stop_scope.h"
#include "src/base/utf8.h"

namespace pawl::schema {

namespace {

// The only text of a term; nullopt where that can't be seen at a glance.
std::optional<std::u32string> OnlyText(const RegexArena& arena, ReId id) {
  using Op = RegexArena::View::Op;
  if (arena.MinLength(id) != arena.MaxLength(id)) return std::nullopt;
  const RegexArena::View view = arena.Inspect(id);
  std::u32string text;
  if (view.op == Op::kSet && view.set->size() == 1) text = view.set->ranges()[0].lo;
  if (view.op == Op::kEmpty || !text.empty()) return text;
  if (view.op != Op::kConcat) return std::nullopt;
  for (const ReId part : view.operands) {
    const auto more = OnlyText(arena, part);
    if (!more) return std::nullopt;
    text += *more;
  }
  return text;
}

// The texts of a term that is a list of them; empty for others.
std::vector<std::u32string> TextsOf(const RegexArena& arena, ReId id) {
  RegexArena::View view = arena.Inspect(id);
  if (view.op != RegexArena::View::Op::kOr) view.operands = {id};
  std::vector<std::u32string> texts;
  for (const ReId alternative : view.operands) {
    const auto text = OnlyText(arena, alternative);
    if (!text) return {};
    texts.push_back(*text);
  }
  return texts;
}

}  // namespace

FormulaId SchemaTable::Add(Kind kind, size_t index) {
  atoms_.push_back({kind, static_cast<uint32_t>(index)});
  return formulas.Atom(static_cast<AtomId>(atoms_.size() - 1), kind);
}

FormulaId SchemaTable::AddString(StringAtom atom) {
  if (atom.type == StringAtom::Type::kRegex) {
    // "^text$", the constant of those who write patterns, is as cheap as a constant.
    atom.literals = TextsOf(*regexes, atom.regex);
    if (!atom.literals.empty()) atom.type = StringAtom::Type::kLiterals;
  }
  std::string key;
  switch (atom.type) {
    case StringAtom::Type::kRegex:
      if (atom.regex == RegexArena::kAnything) return kTrueFormula;
      key = "r" + std::to_string(atom.regex);
      break;
    case StringAtom::Type::kLiterals:
      SortUnique(atom.literals);
      key = "l";
      for (const std::u32string& literal : atom.literals) {
        key += std::to_string(literal.size()) + ":";
        for (const char32_t c : literal) AppendUtf8(c, key);
      }
      break;
    case StringAtom::Type::kLength:
      if (atom.min == 0 && atom.max == kUnbounded) return kTrueFormula;
      key = "n" + std::to_string(atom.min) + "," + std::to_string(atom.max);
      break;
    case StringAtom::Type::kSource:
      key = "q" + std::to_string(static_cast<int>(atom.span));
      break;
  }
  auto [it, fresh] = interned_.try_emplace(std::move(key), 0);
  if (fresh) {
    if (!atom.literals.empty())
      list_bytes_ += atom.literals.size() * sizeof(std::u32string) + 5 * it->first.size();
    strings_.push_back(std::move(atom));
    it->second = Add(kStringValue, strings_.size() - 1);
  }
  return it->second;
}

FormulaId SchemaTable::AddNumber(NumberConstraint constraint) {
  if (!constraint.minimum && !constraint.maximum && !constraint.multiple_of &&
      !constraint.integer && !constraint.integer_text) {
    return kTrueFormula;
  }
  std::string key = "d";
  if (constraint.minimum)
    key += (constraint.exclusive_minimum ? ">" : "]") + constraint.minimum->ToString();
  if (constraint.maximum)
    key += (constraint.exclusive_maximum ? "<" : "[") + constraint.maximum->ToString();
  if (constraint.multiple_of) key += "*" + constraint.multiple_of->ToString();
  if (constraint.integer) key += "i";
  if (constraint.integer_text) key += "t";
  auto [it, fresh] = interned_.try_emplace(std::move(key), 0);
  if (fresh) {
    numbers_.push_back({std::move(constraint), {}});
    it->second = Add(kNumberValue, numbers_.size() - 1);
  }
  return it->second;
}

FormulaId SchemaTable::AddList(std::vector<std::u32string> values) {
  if (values.empty()) return kFalseFormula;
  return AddString({.type = StringAtom::Type::kLiterals, .literals = std::move(values)});
}

FormulaId SchemaTable::AddList(std::vector<Decimal> values) {
  if (values.empty()) return kFalseFormula;
  SortUnique(values);
  std::string key = "s";
  for (const Decimal& value : values) key += value.ToString() + ",";
  auto [it, fresh] = interned_.try_emplace(std::move(key), 0);
  if (fresh) {
    list_bytes_ += values.size() * sizeof(Decimal) + it->first.size();
    numbers_.push_back({{}, std::move(values)});
    it->second = Add(kNumberValue, numbers_.size() - 1);
  }
  return it->second;
}

FormulaId SchemaTable::AddObject(ObjectAtom atom) {
  objects_.push_back(std::move(atom));
  return Add(kObjectValue, objects_.size() - 1);
}

FormulaId SchemaTable::AddArray(ArrayAtom atom) {
  arrays_.push_back(std::move(atom));
  return Add(kArrayValue, arrays_.size() - 1);
}

// Strings and numbers of one enum go into one set each; an array or an object becomes a container
// whose every place is again a constant. The canonical text tells such values apart: members
// sorted, numbers by value.

namespace {

// Constants nest, so long ones would be kept over and over. `left`: characters, roughly.
bool IsShort(const json::Value& value, size_t& left) {
  const size_t size = value.text.size() + 2;
  if (size > left) return false;
  left -= size;
  for (const json::Value& item : value.items) {
    if (!IsShort(item, left)) return false;
  }
  for (const auto& [name, member] : value.members) {
    if (name.size() > left) return false;
    left -= name.size();
    if (!IsShort(member, left)) return false;
  }
  return true;
}

std::string ShortText(const json::Value& value) {
  size_t left = 256;
  return IsShort(value, left) ? CanonicalText(value) : "";
}

}  // namespace

Result<FormulaId> ConstantFormula(SchemaTable& table, const json::Value& value) {
  return EnumFormula(table, {&value});
}

Result<FormulaId> EnumFormula(SchemaTable& table, const std::vector<const json::Value*>& values) {
  FormulaArena& formulas = table.formulas;
  std::vector<FormulaId> alternatives;
  KindSet plain = 0;
  std::vector<std::u32string> strings;
  std::vector<Decimal> numbers;
  for (const json::Value* value : values) {
    StopScope::Step();
    switch (value->type) {
      case json::Type::kNull:
      case json::Type::kFalse:
      case json::Type::kTrue:
        plain |= KindBit(KindOf(*value));
        break;
      case json::Type::kString:
        strings.push_back(DecodeCodepoints(value->text));
        break;
      case json::Type::kNumber: {
        auto decimal = Decimal::Parse(value->text);
        if (!decimal.ok()) return decimal.error();
        numbers.push_back(*std::move(decimal));
        break;
      }
      case json::Type::kArray: {
        ArrayAtom atom;
        for (const json::Value& item : value->items) {
          auto formula = ConstantFormula(table, item);
          if (!formula.ok()) return formula.error();
          atom.prefix.push_back(*formula);
        }
        atom.constant = ShortText(*value);
        atom.items = kFalseFormula;
        atom.min_items = atom.max_items = value->items.size();
        alternatives.push_back(
            formulas.And(formulas.Kinds(KindBit(kArrayValue)), table.AddArray(std::move(atom))));
        break;
      }
      case json::Type::kObject: {
        ObjectAtom atom;
        for (const auto& [name, member] : value->members) {
          auto formula = ConstantFormula(table, member);
          if (!formula.ok()) return formula.error();
          atom.properties.emplace_back(name, *formula);
          atom.required.push_back(name);
        }
        atom.constant = ShortText(*value);
        atom.additional = kFalseFormula;
        alternatives.push_back(
            formulas.And(formulas.Kinds(KindBit(kObjectValue)), table.AddObject(std::move(atom))));
        break;
      }
    }
  }
  if (plain != 0) alternatives.push_back(formulas.Kinds(plain));
  if (!strings.empty()) {
    alternatives.push_back(
        formulas.And(formulas.Kinds(KindBit(kStringValue)), table.AddList(std::move(strings))));
  }
  if (!numbers.empty()) {
    // Limits are found here, where the caller can name the keyword.
    if (auto set = NumberSet::Create(numbers); !set.ok()) return set.error();
    alternatives.push_back(
        formulas.And(formulas.Kinds(KindBit(kNumberValue)), table.AddList(std::move(numbers))));
  }
  return formulas.Or(alternatives);
}

std::string CanonicalText(const json::Value& value) {
  switch (value.type) {
    case json::Type::kNumber: {
      auto decimal = Decimal::Parse(value.text);
      return decimal.ok() ? decimal->ToString() : value.text;
    }
    case json::Type::kArray: {
      std::string out;
      for (const json::Value& item : value.items) AddToList(out, CanonicalText(item));
      return "[" + out + "]";
    }
    case json::Type::kObject: {
      std::vector<std::string> members;
      for (const auto& [name, member] : value.members)
        members.push_back(json::Quote(name) + ":" + CanonicalText(member));
      std::sort(members.begin(), members.end());
      std::string out;
      for (const std::string& member : members) AddToList(out, member);
      return "{" + out + "}";
    }
    default:
      return json::Dump(value);
  }
}

}  // namespace pawl::schema
