// Frames: where a text stands in the arrays and objects around it, as interned values, and what
// finishing a key, an item or a value does to them.
//
// A frame holds the formulas that its container still has to decide (over the array or object atoms
// in play) and the progress that decides them: keys seen, items counted. An atom that has failed is
// replaced by false in the formulas, so atoms that no longer matter vanish and equal situations
// become equal frames. Nothing here looks ahead: whether a frame can still be completed is the
// solver's business (solver.h).
#ifndef PAWL_SCHEMAS_FRAMES_FRAMES_H_
#define PAWL_SCHEMAS_FRAMES_FRAMES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "grammar/hash_index.h"
#include "pawl/compiler.h"
#include "schemas/formula/atoms.h"
#include "schemas/scalar/string_program.h"
#include "src/base/memory_size.h"

namespace pawl::schema {

// Sets of small integers as interned values: the same members are the same id, adding one costs
// O(log) time and space, and an old set stays what it was.
// All sets of one kind. Not thread-safe.
class IdSets {
 public:
  using Id = uint32_t;
  static constexpr Id kEmpty = 0;

  IdSets();
  Id With(Id set, uint32_t member);
  bool Contains(Id set, uint32_t member) const;
  size_t Size(Id set) const { return sets_[set].size; }
  // The set and the member that `set` was first made from. REQUIRES: not kEmpty.
  Id Before(Id set) const { return sets_[set].before; }
  uint32_t Last(Id set) const { return sets_[set].last; }
  size_t MemoryBytes() const {
    return HeapBytes(sets_, leaves_, inners_, leaf_index_, inner_index_, set_index_);
  }
  size_t GrowthHint() const {
    return sets_.size() * (sizeof(Set) + 40) + inners_.size() * (sizeof(Inner) + 40);
  }
  // In the order in which the set was first made.
  std::vector<uint32_t> Members(Id set) const;
  // What a set comes to when its members are added one by one, in the order in which it was first
  // made: `value` for the empty set, then next(value before, member). All sets on the way are kept
  // in `known`, by (key, set), so one member more costs one step.
  template <typename Known, typename Value, typename Next, typename... Key>
  Value Fold(Known& known, Id set, Value value, const Next& next, const Key&... key) const {
    std::vector<Id> way;
    for (; set != kEmpty; set = Before(set)) {
      if (const auto it = known.find(typename Known::key_type{key..., set}); it != known.end()) {
        value = it->second;
        break;
      }
      way.push_back(set);
    }
    for (; !way.empty(); way.pop_back()) {
      value = next(value, Last(way.back()));
      known.emplace(typename Known::key_type{key..., way.back()}, value);
    }
    return value;
  }

 private:
  // A trie over the bits of the members: `height` levels of inner nodes above leaves of 64 bits.
  // As small as the largest member allows, so equal sets have equal tries.
  static constexpr int kLeafBits = 6, kInnerBits = 4;
  using Inner = std::array<uint32_t, 1 << kInnerBits>;
  struct Set {
    uint32_t root = 0;
    int height = 0;
    size_t size = 0;
    Id before = kEmpty;
    uint32_t last = 0;
  };
  static uint64_t Capacity(int height) { return uint64_t{1} << (kLeafBits + kInnerBits * height); }
  uint32_t Insert(uint32_t node, int height, uint32_t member);
  uint32_t InternLeaf(uint64_t bits);
  uint32_t InternInner(const Inner& inner);

  std::vector<Set> sets_;
  std::vector<uint64_t> leaves_;  // 0: no member; the empty node of every height is 0
  std::vector<Inner> inners_;
  HashIndex leaf_index_, inner_index_;
  HashIndex set_index_;  // by root and height
};

using FrameId = uint32_t;  // 0: none
using NameId = uint32_t;
inline constexpr FrameId kNoFrame = 0;
inline constexpr NameId kAnyName = 0;  // stands for "some key that is not named in the schema"

// What a value has to be: `must` is true, and the outcomes of `tracks` are such that the frame
// around it
// (`around`, which has this value pending) can live with them. Without tracks `around` is kNoFrame,
// so that equal demands from different places are the same goal.
struct Goal {
  FormulaId must = kTrueFormula;
  std::vector<FormulaId> tracks;
  FrameId around = kNoFrame;
};

// A child formula whose outcome an atom waits for.
struct Pending {
  AtomId atom;
  FormulaId formula;
  bool contains;  // the outcome is counted (contains) rather than required
  friend bool operator==(const Pending&, const Pending&) = default;
};

struct Frame {
  Kind kind =
      kNullValue;  // kArrayValue, kObjectValue; kNullValue for the root, which holds one value
  // The formulas of the goal this container has to meet, over its atoms; see Goal.
  FormulaId must = kTrueFormula;
  std::vector<FormulaId> tracks;
  FrameId around = kNoFrame;

  uint32_t layout = 0;  // objects: index of the ObjectLayout
  int64_t last_rank =
      -1;  // objects, order kSchema: rank of the last named key; kPastNames after other keys
  IdSets::Id seen = IdSets::kEmpty;  // objects: keys so far (those that still matter)
  uint64_t count = 0;                // keys or items so far, as far as they matter
  std::vector<std::pair<AtomId, uint64_t>> contained;  // arrays: matches of `contains`, per atom
  IdSets::Id items = IdSets::kEmpty;  // arrays under uniqueItems: the items, by canonical text

  // The value that is being read or about to be: its demands. Empty `waiting` and must = true
  // otherwise.
  bool has_pending = false;
  FormulaId pending_must = kTrueFormula;
  std::vector<Pending> waiting;
  NameId pending_name = kAnyName;
  int64_t pending_rank = -1;

  static constexpr int64_t kPastNames = INT64_MAX;
  size_t MemoryBytes() const { return HeapBytes(tracks, contained, waiting); }
  friend bool operator==(const Frame&, const Frame&) = default;
};

// What the keys of an object mean to a set of atoms.
struct ObjectLayout {
  std::vector<AtomId> atoms;
  std::vector<std::string> names;           // named or required keys, in the order of the schema
  std::vector<NameId> name_ids;             // of names
  std::unordered_map<NameId, int> rank_of;  // name id -> index in names
  std::vector<StringProgram::StateId> name_states;  // `program` after reading names[i]
  std::vector<int> literal_rank;                    // literal index of names_atom -> rank
  AtomId names_atom = 0;                            // the literal set of all names
  bool has_names = false;
  bool has_key_conditions = false;         // patterns or propertyNames are in play
  std::shared_ptr<StringProgram> program;  // over names_atom and the key conditions
  // properties by rank: (atom, formula), sorted
  std::vector<std::vector<std::pair<AtomId, FormulaId>>> by_rank;
  std::map<AtomId, std::vector<NameId>> required;  // of each atom, sorted
  // The program aside.
  size_t MemoryBytes() const {
    return HeapBytes(atoms, names, name_ids, rank_of, name_states, literal_rank, by_rank, required);
  }
};

// What uniqueItems adds to the demands on an item (solve/uniqueness.h, a module above).
class ItemRules {
 public:
  virtual ~ItemRules() = default;
  // `demand` is what the atom asks of the item at `index` whatever items there are. REQUIRES: the
  // atom wants unique items, and there are some.
  virtual FormulaId ItemDemand(const Frame& frame, uint64_t index, FormulaId demand) = 0;
  // What the item at the place that comes next must be to leave values for the places after it.
  virtual FormulaId LeavesEnough(const Frame& frame) = 0;
  // A frame that can be completed in the same ways, as far as look-ahead tells; the same one for
  // as many frames as possible.
  virtual FrameId Equivalent(FrameId frame) = 0;
};

class Frames {
 public:
  Frames(SchemaTable& table, const JsonSchemaOptions& options) : table_(table), options_(options) {
    frames_.emplace_back();
    names_.emplace_back();
  }

  const Frame& operator[](FrameId id) const { return frames_[id]; }
  size_t size() const { return frames_.size(); }
  size_t MemoryBytes() const {
    return HeapBytes(frames_, index_, layouts_, layout_of_, names_, name_index_, sorted_names_,
                     name_sets_, item_sets_, item_texts_, item_index_);
  }
  size_t GrowthHint() const {
    return frames_.size() * (sizeof(Frame) + 40) + names_.size() * 230 + name_sets_.GrowthHint() +
           item_sets_.GrowthHint() + item_texts_.size() * 200;
  }
  FrameId Intern(Frame frame);

  // The frame of a whole text with `root` to come, the value pending.
  FrameId Root(FormulaId root);
  // An empty container of this kind under the goal. kNoFrame when the kind alone contradicts the
  // goal's `must`.
  FrameId Open(Kind kind, const Goal& goal);
  // The demands on the pending value. REQUIRES: has_pending.
  Goal PendingGoal(FrameId id);
  // The distinct formulas of `waiting`, in the order of PendingGoal().tracks.
  static std::vector<FormulaId> Tracks(const Frame& frame);

  // With the value of a key pending. `state`: the key as read by `program`, which runs at least the
  // atoms of the layout's program; `rank`: index in the layout's names, -1 for another key.
  // kNoFrame when the key is not allowed here whatever its value is.
  FrameId WithKey(FrameId id, const StringProgram& program, StringProgram::StateId state, int rank,
                  NameId name);
  // With the next item pending; kNoFrame when no item may come.
  FrameId WithItem(FrameId id);
  // After the pending value, whose outcomes are `truth` (by Tracks). kNoFrame when `must` has
  // become false. `canonical`: canonical text of the value, needed in arrays under uniqueItems.
  FrameId AfterValue(FrameId id, const std::vector<bool>& truth,
                     const std::string* canonical = nullptr);

  // Truth of an atom if the container ended here.
  bool AtomTruth(const Frame& frame, AtomId atom) const;
  // Truth of `must` and of the tracks if the container ended here.
  bool EndTruth(const Frame& frame, std::vector<bool>& tracks) const;
  // Whether an atom in play asks for unique items.
  bool NeedsCanonicalItems(const Frame& frame) const;
  // Uniqueness is a plain demand, and nothing but plain demands is in play: then an item need only
  // be kept apart from values that look-ahead could run into, and the byte that would complete any
  // other duplicate is refused when it comes.
  bool PlainUnique(const Frame& frame) const;
  void SetItemRules(ItemRules* rules) { rules_ = rules; }

  // Atoms in play.
  std::vector<AtomId> Atoms(const Frame& frame);
  // What `atom` demands of the value of a key / of the item at `index`.
  FormulaId PropertyDemand(const ObjectLayout& layout, AtomId atom, const StringProgram& program,
                           StringProgram::StateId state, int rank);
  FormulaId ItemDemand(const Frame& frame, AtomId atom, uint64_t index);
  // The same, were it not for uniqueness: whatever items there are.
  FormulaId AnyItemDemand(AtomId atom, uint64_t index) const;
  uint32_t InternItem(const std::string& canonical);
  IdSets& items() { return item_sets_; }
  const IdSets& items() const { return item_sets_; }
  // Items that were interned: how many, and their canonical texts.
  const std::string& ItemText(uint32_t item) const { return item_texts_[item]; }
  IdSets& seen() { return name_sets_; }

  const ObjectLayout& layout(uint32_t index) const { return *layouts_[index]; }
  // The required keys of an atom of the layout, sorted.
  const std::vector<NameId>& Required(const ObjectLayout& layout, AtomId atom) const {
    return layout.required.at(atom);
  }
  bool Seen(const Frame& frame, NameId name) const { return name_sets_.Contains(frame.seen, name); }
  NameId InternName(const std::string& name);
  bool IsName(const std::string& name) const { return name_index_.contains(name); }
  const std::string& Name(NameId id) const { return names_[id]; }
  // All names so far, in the order of their bytes.
  const std::map<std::string_view, NameId>& SortedNames();
  SchemaTable& table() { return table_; }

 private:
  uint32_t LayoutFor(const std::vector<AtomId>& atoms);
  uint64_t CountCap(const Frame& frame);
  bool Await(Frame& frame, const std::vector<Pending>& demands, std::vector<AtomId>& failed);
  void SettleTrue(Frame& frame);
  void DropSettled(Frame& frame, bool named_key, std::optional<IdSets::Id> settled);

  SchemaTable& table_;
  const JsonSchemaOptions& options_;
  std::vector<Frame> frames_;
  HashIndex index_;
  std::vector<std::unique_ptr<ObjectLayout>> layouts_;
  std::map<std::vector<AtomId>, uint32_t> layout_of_;
  std::deque<std::string> names_;  // they stay where they are
  std::map<std::string_view, NameId> sorted_names_;
  std::unordered_map<std::string, NameId> name_index_;
  IdSets name_sets_, item_sets_;
  std::vector<std::string> item_texts_;
  std::unordered_map<std::string, uint32_t> item_index_;
  ItemRules* rules_ = nullptr;
};

}  // namespace pawl::schema

#endif  // PAWL_SCHEMAS_FRAMES_FRAMES_H_
