// Formulas: what a JSON Schema demands of one value, as a hash-consed Boolean formula.
//
// Leaves are type tests, typed atoms (what the string/number/array/object keywords of one schema
// object say; an atom is true of every value of another type, as the specification has it) and
// references, which make recursion possible. allOf, anyOf, oneOf, not, if/then/else, enum and
// dependent* are operators over these, so no later stage needs to know the keywords. Equal formulas
// have equal ids.
#ifndef PAWL_SCHEMAS_FORMULA_FORMULA_H_
#define PAWL_SCHEMAS_FORMULA_FORMULA_H_

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "grammar/hash_index.h"
#include "schemas/limits.h"
#include "src/base/memory_size.h"

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
  size_t MemoryBytes() const { return HeapBytes(positive, negative); }
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
  // Parts when it is written out, each as often as it stands there.
  uint32_t parts(FormulaId f) const { return nodes_[f].size; }
  bool IsConstant(FormulaId f) const { return f <= kTrueFormula; }
  size_t size() const { return nodes_.size(); }
  size_t MemoryBytes() const {
    return HeapBytes(nodes_, index_, targets_, references_, for_kind_, atoms_, met_);
  }

  // What `f` says of a value of this kind: a formula over atoms of that kind alone. References are
  // followed. REQUIRES: no reference cycle without an atom in between (CheckReferences).
  FormulaId ForKind(FormulaId f, Kind kind);
  // A reference that nothing may follow: it leads to itself without consuming input, or through
  // more than `max_steps` other references and operators, which is as deep as ForKind recurses.
  struct BadReference {
    FormulaId reference;
    bool endless;    // leads to itself
    FormulaId from;  // endless: the reference on the way whose target refers to `reference`
  };
  std::optional<BadReference> FindBadReference(int max_steps) const;

  // The atoms of a formula made by ForKind, sorted.
  const std::vector<AtomId>& Atoms(FormulaId f);
  // Those of several together.
  std::vector<AtomId> Atoms(FormulaId f, std::span<const FormulaId> more);
  // `f` with the atoms replaced by truth values. REQUIRES: `values` sorted by atom.
  FormulaId Assign(FormulaId f, std::span<const std::pair<AtomId, bool>> values);
  // Parts of parts that this has looked at so far, of large formulas.
  uint64_t assigned() const { return assigned_; }
  // The truth of `f` when `truth(atom)` tells that of each atom.
  template <typename Truth>
  bool Evaluate(FormulaId f, const Truth& truth) const {
    return EvaluatePartly(f, [&](AtomId atom) { return truth(atom) ? 1 : 0; }) == 1;
  }
  // The same when `truth(atom)` is 0 or 1 for what is settled and -1 for what may still go either
  // path; -1 where that leaves the formula open.
  template <typename Truth>
  int EvaluatePartly(FormulaId f, const Truth& truth) const {
    std::unordered_map<FormulaId, int> known;
    return Evaluate(f, truth, nodes_[f].size > limits::kSharedParts ? &known : nullptr);
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
  template <typename Truth>
  int Evaluate(FormulaId f, const Truth& truth, std::unordered_map<FormulaId, int>* known) const {
    const Node& node = nodes_[f];
    if (node.op == Op::kAtom) return truth(node.value);
    if (known != nullptr) {
      if (const auto it = known->find(f); it != known->end()) return it->second;
    }
    int out = node.op == Op::kTrue ? 1 : 0;
    if (node.op == Op::kNot) {
      out = Evaluate(node.kids[0], truth, known);
      if (out >= 0) out = 1 - out;
    } else if (node.op == Op::kAnd || node.op == Op::kOr) {
      const int decisive = node.op == Op::kOr ? 1 : 0;
      out = 1 - decisive;
      for (const FormulaId kid : node.kids) {
        const int value = Evaluate(kid, truth, known);
        if (value < 0) out = value;
        if (value != decisive) continue;
        out = value;
        break;
      }
    } else if (node.op == Op::kExactlyOne) {
      int count = 0;
      bool open = false;
      for (const FormulaId kid : node.kids) {
        const int value = Evaluate(kid, truth, known);
        open = open || value < 0;
        if (value == 1 && ++count > 1) break;
      }
      out = count > 1 ? 0 : open ? -1 : count;
    }
    // ForKind has removed what else there is.
    if (known != nullptr) known->emplace(f, out);
    return out;
  }
  struct Node {
    Op op;
    Kind kind;       // kAtom: the kind it speaks of
    uint32_t value;  // kAtom: atom; kKindSet: set; kReference: index into targets_
    uint32_t size;   // parts when it is written out, each as often as it stands there
    std::vector<FormulaId> kids;
    size_t MemoryBytes() const { return HeapBytes(kids); }
  };
  FormulaId Intern(Op op, uint32_t value, std::vector<FormulaId> kids, Kind kind = kNullValue);
  FormulaId Junction(Op op, std::span<const FormulaId> kids);
  struct KnownCubes {
    std::vector<Cube> cubes;
    bool complete;
  };
  struct DnfMemory {
    std::unordered_map<uint64_t, KnownCubes> known;  // by formula and sign
    size_t work = 0;
  };
  std::vector<Cube> Dnf(FormulaId f, bool positive, size_t limit, bool& complete,
                        DnfMemory& memory) const;
  static std::vector<Cube> Product(const std::vector<Cube>& left, const std::vector<Cube>& right,
                                   size_t limit, bool& complete, DnfMemory& memory);
  std::vector<Cube> DnfOf(FormulaId f, bool positive, size_t limit, bool& complete,
                          DnfMemory& memory) const;
  std::vector<Cube> ConjunctionOf(const std::vector<FormulaId>& kids, bool positive, size_t limit,
                                  bool& complete, DnfMemory& memory) const;
  FormulaId Assign(FormulaId f, std::span<const std::pair<AtomId, bool>> values,
                   std::unordered_map<FormulaId, FormulaId>* known);
  // And, Or or ExactlyOne of what `of` makes of the node's kids.
  template <typename Of>
  FormulaId Rebuilt(const Node& node, const Of& of) {
    std::vector<FormulaId> kids;
    kids.reserve(node.kids.size());
    for (const FormulaId kid : node.kids) kids.push_back(of(kid));
    return node.op == Op::kAnd ? And(kids) : node.op == Op::kOr ? Or(kids) : ExactlyOne(kids);
  }
  static constexpr uint32_t kMostParts = 1u << 30;

  std::vector<Node> nodes_;
  uint64_t assigned_ = 0;
  HashIndex index_;
  std::vector<FormulaId> targets_;     // of references
  std::vector<FormulaId> references_;  // the formula of each reference
  std::unordered_map<uint64_t, FormulaId> for_kind_;
  std::unordered_map<FormulaId, std::vector<AtomId>> atoms_;
  std::vector<uint64_t> met_;  // by formula: the last round of Junction that met it
  uint64_t round_ = 0;
};

}  // namespace pawl::schema

#endif  // PAWL_SCHEMAS_FORMULA_FORMULA_H_
