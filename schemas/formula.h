// Formulas: what a JSON Schema demands of one value, as a hash-consed Boolean formula.
//
// Leaves are type tests, typed atoms (what the string/number/array/object keywords of one schema
// object say; an atom is true of every value of another type, as the specification has it) and
// references, which make recursion possible. allOf, anyOf, oneOf, not, if/then/else, enum and
// dependent* are operators over these, so no later stage needs to know the keywords. Equal formulas
// have equal ids.
#ifndef PAWL_SCHEMAS_FORMULA_H_
#define PAWL_SCHEMAS_FORMULA_H_

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace pawl::schema {

// The kinds of JSON value that a first byte can tell apart.
enum Kind : uint8_t {
  kNullValue,
  kFalseValue,
  kTrueValue,
  kNumberValue,
  kStringValue,
  kArrayValue,
  kObjectValue
};
inline constexpr int kKinds = 7;
using KindSet = uint8_t;  // bit k: Kind k
inline constexpr KindSet kAllKinds = 0x7F;
inline constexpr KindSet KindBit(Kind kind) { return static_cast<KindSet>(1u << kind); }

using FormulaId = uint32_t;
using AtomId = uint32_t;  // index into the atom table of the schema (atoms.h)
inline constexpr FormulaId kFalseFormula = 0;
inline constexpr FormulaId kTrueFormula = 1;

// Atoms that must be true and atoms that must be false; sorted.
struct Cube {
  std::vector<AtomId> positive;
  std::vector<AtomId> negative;
};

// Not thread-safe.
class FormulaArena {
 public:
  enum class Op : uint8_t {
    kFalse,
    kTrue,
    kKindSet,
    kAtom,
    kReference,
    kAnd,
    kOr,
    kNot,
    kExactlyOne
  };

  FormulaArena();

  FormulaId Kinds(KindSet kinds);
  FormulaId Atom(AtomId atom, Kind kind);
  // A reference to be defined later with Define.
  FormulaId NewReference();
  void Define(FormulaId reference, FormulaId target);
  FormulaId And(std::span<const FormulaId> kids);
  FormulaId Or(std::span<const FormulaId> kids);
  FormulaId Not(FormulaId f);
  FormulaId ExactlyOne(std::span<const FormulaId> kids);
  FormulaId And(FormulaId a, FormulaId b) { return And(std::initializer_list<FormulaId>{a, b}); }
  FormulaId Or(FormulaId a, FormulaId b) { return Or(std::initializer_list<FormulaId>{a, b}); }
  FormulaId And(std::initializer_list<FormulaId> kids) {
    return And(std::span(kids.begin(), kids.size()));
  }
  FormulaId Or(std::initializer_list<FormulaId> kids) {
    return Or(std::span(kids.begin(), kids.size()));
  }

  Op op(FormulaId f) const { return nodes_[f].op; }
  uint32_t value(FormulaId f) const { return nodes_[f].value; }
  std::span<const FormulaId> kids(FormulaId f) const { return nodes_[f].kids; }
  bool IsConstant(FormulaId f) const { return f <= kTrueFormula; }
  size_t size() const { return nodes_.size(); }

  // What `f` says of a value of this kind: a formula over atoms of that kind alone. References are
  // followed. REQUIRES: no reference cycle without an atom in between (CheckReferences).
  FormulaId ForKind(FormulaId f, Kind kind);
  // A reference that nothing may follow: it leads to itself without consuming input, or through
  // more than `max_steps` other references and operators, which is as deep as ForKind recurses.
  struct BadReference {
    FormulaId reference;
    bool endless;  // leads to itself
  };
  std::optional<BadReference> FindBadReference(int max_steps) const;

  // The atoms of a formula made by ForKind, sorted.
  const std::vector<AtomId>& Atoms(FormulaId f);
  // `f` with the atoms replaced by truth values. REQUIRES: `values` sorted by atom.
  FormulaId Assign(FormulaId f, std::span<const std::pair<AtomId, bool>> values);
  // The truth of `f` when `truth(atom)` tells that of each atom.
  template <typename Truth>
  bool Evaluate(FormulaId f, const Truth& truth) const {
    const Node& node = nodes_[f];
    switch (node.op) {
      case Op::kFalse:
        return false;
      case Op::kTrue:
        return true;
      case Op::kAtom:
        return truth(node.value);
      case Op::kNot:
        return !Evaluate(node.kids[0], truth);
      case Op::kAnd:
        for (const FormulaId kid : node.kids) {
          if (!Evaluate(kid, truth)) return false;
        }
        return true;
      case Op::kOr:
        for (const FormulaId kid : node.kids) {
          if (Evaluate(kid, truth)) return true;
        }
        return false;
      case Op::kExactlyOne: {
        int count = 0;
        for (const FormulaId kid : node.kids) count += Evaluate(kid, truth) ? 1 : 0;
        return count == 1;
      }
      case Op::kKindSet:
      case Op::kReference:
        break;  // ForKind removed them
    }
    return false;
  }
  // Atoms that are true in every assignment making `f` true because `f` is that atom or a
  // conjunction with it; sorted.
  std::vector<AtomId> MustAtoms(FormulaId f) const;
  // `f` is true, an atom, or a conjunction of atoms and nothing else.
  bool IsConjunction(FormulaId f) const;
  // A disjunction of cubes equal to `f`, at most `limit` of them; `complete` tells whether all are
  // there.
  std::vector<Cube> Cubes(FormulaId f, size_t limit, bool& complete) const;

 private:
  struct Node {
    Op op;
    Kind kind;       // kAtom: the kind it speaks of
    uint32_t value;  // kAtom: atom; kKindSet: set; kReference: index into targets_
    std::vector<FormulaId> kids;
  };
  FormulaId Intern(Op op, uint32_t value, std::vector<FormulaId> kids, Kind kind = kNullValue);
  FormulaId Junction(Op op, std::span<const FormulaId> kids);
  std::vector<Cube> Dnf(FormulaId f, bool positive, size_t limit, bool& complete) const;

  std::vector<Node> nodes_;
  std::unordered_multimap<uint64_t, FormulaId> index_;
  std::vector<FormulaId> targets_;     // of references
  std::vector<FormulaId> references_;  // the formula of each reference
  std::unordered_map<uint64_t, FormulaId> for_kind_;
  std::unordered_map<FormulaId, std::vector<AtomId>> atoms_;
};

}  // namespace pawl::schema

#endif  // PAWL_SCHEMAS_FORMULA_H_
