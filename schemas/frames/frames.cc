// A value that closes reports one truth value per track; each waiting atom whose demand was not met
// has failed and is false from then on. So a discriminated union becomes a single track at the
// discriminator, oneOf and not are decided at the latest when the container ends, and a plain
// schema never has more than `must`.
#include "schemas/frames/frames.h"

#include <algorithm>

#include "schemas/formula/atoms.h"
#include "schemas/limits.h"
#include "src/base/sorted.h"
#include "src/base/stop_scope.h"
#include "src/base/utf8.h"

namespace pawl::schema {

namespace {

uint64_t Hash(const Frame& f) {
  uint64_t h = HashMix(static_cast<uint64_t>(f.kind) << 32 | f.must, f.around);
  for (const FormulaId t : f.tracks) h = HashMix(h, t);
  h = HashMix(h, f.layout);
  h = HashMix(h, static_cast<uint64_t>(f.last_rank));
  h = HashMix(HashMix(h, f.seen), f.items);
  h = HashMix(h, f.count);
  for (const auto& [atom, count] : f.contained) h = HashMix(HashMix(h, atom), count);
  if (!f.has_pending) return h;
  h = HashMix(h, f.pending_must + 1);
  for (const Pending& p : f.waiting)
    h = HashMix(HashMix(h, p.atom * 2 + (p.contains ? 1 : 0)), p.formula);
  return HashMix(HashMix(h, f.pending_name), static_cast<uint64_t>(f.pending_rank));
}

}  // namespace

FrameId Frames::Intern(Frame frame) {
  StopScope::Step();
  const uint64_t hash = Hash(frame);
  return index_.Intern(hash, frames_, std::move(frame));
}

NameId Frames::InternName(const std::string& name) {
  StopScope::Step();
  const auto [it, fresh] = name_index_.try_emplace(name, static_cast<NameId>(names_.size()));
  if (fresh) names_.push_back(name);
  return it->second;
}

const std::map<std::string_view, NameId>& Frames::SortedNames() {
  // Name 0 is no name.
  for (size_t id = sorted_names_.size() + 1; id < names_.size(); ++id)
    sorted_names_.emplace(names_[id], static_cast<NameId>(id));
  return sorted_names_;
}

FrameId Frames::Root(FormulaId root) {
  Frame frame;
  frame.has_pending = true;
  frame.pending_must = root;
  return Intern(std::move(frame));
}

FrameId Frames::Open(Kind kind, const Goal& goal) {
  Frame frame;
  frame.kind = kind;
  frame.must = table_.formulas.ForKind(goal.must, kind);
  if (frame.must == kFalseFormula) return kNoFrame;
  for (const FormulaId track : goal.tracks)
    frame.tracks.push_back(table_.formulas.ForKind(track, kind));
  frame.around = goal.around;
  if (kind == kObjectValue) frame.layout = LayoutFor(Atoms(frame));
  SettleTrue(frame);
  return frame.must == kFalseFormula ? kNoFrame : Intern(std::move(frame));
}

std::vector<AtomId> Frames::Atoms(const Frame& frame) {
  return table_.formulas.Atoms(frame.must, frame.tracks);
}

std::vector<FormulaId> Frames::Tracks(const Frame& frame) {
  std::vector<FormulaId> out;
  for (const Pending& p : frame.waiting) out.push_back(p.formula);
  SortUnique(out);
  return out;
}

Goal Frames::PendingGoal(FrameId id) {
  const Frame& frame = frames_[id];
  Goal goal{frame.pending_must, Tracks(frame), kNoFrame};
  if (goal.tracks.empty()) return goal;
  const bool has_items = frame.items != IdSets::kEmpty;  // the frame may move
  goal.around = has_items && rules_ != nullptr ? rules_->Equivalent(id) : id;
  return goal;
}

uint32_t Frames::InternItem(const std::string& canonical) {
  const auto [it, fresh] =
      item_index_.try_emplace(canonical, static_cast<uint32_t>(item_texts_.size()));
  if (fresh) item_texts_.push_back(canonical);
  return it->second;
}

uint32_t Frames::LayoutFor(const std::vector<AtomId>& atoms) {
  const auto found = layout_of_.find(atoms);
  if (found != layout_of_.end()) return found->second;
  auto layout = std::make_unique<ObjectLayout>();
  layout->atoms = atoms;
  const auto rank_of = [&](const std::string& name) {
    const NameId id = InternName(name);
    const auto [it, fresh] =
        layout->rank_of.try_emplace(id, static_cast<int>(layout->names.size()));
    if (fresh) {
      layout->names.push_back(name);
      layout->name_ids.push_back(id);
      layout->by_rank.emplace_back();
    }
    return static_cast<size_t>(it->second);
  };
  std::vector<AtomId> program_atoms;
  const auto add_conditions = [&](FormulaId f) {
    const FormulaId on_key = table_.formulas.ForKind(f, kStringValue);
    const std::vector<AtomId>& more = table_.formulas.Atoms(on_key);
    program_atoms.insert(program_atoms.end(), more.begin(), more.end());
    if (on_key != kTrueFormula) layout->has_key_conditions = true;
  };
  for (const AtomId atom : atoms) {
    const ObjectAtom& object = table_.object(atom);
    for (const auto& [name, formula] : object.properties)
      layout->by_rank[rank_of(name)].emplace_back(atom, formula);
    for (const ObjectAtom::Pattern& pattern : object.patterns) add_conditions(pattern.name);
    add_conditions(object.property_names);
  }
  for (const AtomId atom : atoms) {
    std::vector<NameId>& ids = layout->required[atom];
    for (const std::string& name : table_.object(atom).required)
      ids.push_back(layout->name_ids[rank_of(name)]);
    std::sort(ids.begin(), ids.end());
  }
  if (!layout->names.empty()) {
    std::vector<std::u32string> names;
    for (const std::string& name : layout->names) names.push_back(DecodeCodepoints(name));
    layout->names_atom = table_.formulas.value(table_.AddList(std::move(names)));
    layout->has_names = true;
    program_atoms.push_back(layout->names_atom);
  }
  SortUnique(program_atoms);
  layout->program = std::make_shared<StringProgram>(table_, program_atoms);
  if (layout->has_names) {
    layout->literal_rank.resize(table_.string(layout->names_atom).literals.size(), -1);
  }
  for (size_t rank = 0; rank < layout->names.size(); ++rank) {
    const StringProgram::StateId state =
        layout->program->After(DecodeCodepoints(layout->names[rank]));
    std::ranges::sort(layout->by_rank[rank]);
    layout->name_states.push_back(state);
    layout->literal_rank[static_cast<size_t>(layout->program->Literal(state, layout->names_atom))] =
        static_cast<int>(rank);
  }
  const uint32_t index = static_cast<uint32_t>(layouts_.size());
  layouts_.push_back(std::move(layout));
  layout_of_.emplace(atoms, index);
  return index;
}

FormulaId Frames::PropertyDemand(const ObjectLayout& layout, AtomId atom,
                                 const StringProgram& program, StringProgram::StateId state,
                                 int rank) {
  FormulaArena& formulas = table_.formulas;
  const ObjectAtom& object = table_.object(atom);
  const auto key_is = [&](FormulaId condition) {
    return formulas.Evaluate(formulas.ForKind(condition, kStringValue),
                             [&](AtomId a) { return program.Truth(state, a); });
  };
  if (object.property_names != kTrueFormula && !key_is(object.property_names)) return kFalseFormula;
  // One conjunction of all that hold: of hundreds of patterns, one after the other would be copied
  // and sorted again for each.
  std::vector<FormulaId> demands;
  if (rank >= 0) {
    const auto& named = layout.by_rank[static_cast<size_t>(rank)];
    auto it = std::lower_bound(named.begin(), named.end(), std::pair(atom, FormulaId{0}));
    for (; it != named.end() && it->first == atom; ++it) demands.push_back(it->second);
  }
  for (const ObjectAtom::Pattern& pattern : object.patterns) {
    StopScope::Step();
    if (key_is(pattern.name)) demands.push_back(pattern.value);
  }
  return demands.empty() ? object.additional : formulas.And(demands);
}

FormulaId Frames::AnyItemDemand(AtomId atom, uint64_t index) const {
  const ArrayAtom& array = table_.array(atom);
  if (index >= array.max_items) return kFalseFormula;
  return index < array.prefix.size() ? array.prefix[index] : array.items;
}

FormulaId Frames::ItemDemand(const Frame& frame, AtomId atom, uint64_t index) {
  const FormulaId demand = AnyItemDemand(atom, index);
  if (!table_.array(atom).unique || frame.items == IdSets::kEmpty || demand == kFalseFormula ||
      rules_ == nullptr)
    return demand;
  // Uniqueness is one more demand on each item, so nothing else has to know of it.
  return rules_->ItemDemand(frame, index, demand);
}

bool Frames::PlainUnique(const Frame& frame) const {
  if (frame.kind != kArrayValue || !frame.tracks.empty() ||
      !table_.formulas.IsConjunction(frame.must))
    return false;
  bool unique = false;
  for (const AtomId atom : table_.formulas.MustAtoms(frame.must)) {
    if (table_.array(atom).has_contains) return false;
    unique = unique || table_.array(atom).unique;
  }
  return unique;
}

// Replaces failed atoms by false. Returns false when `must` is false.
static bool Fail(FormulaArena& formulas, Frame& frame, std::vector<AtomId>& failed) {
  if (failed.empty()) return true;
  SortUnique(failed);
  std::vector<std::pair<AtomId, bool>> values;
  values.reserve(failed.size());
  for (const AtomId atom : failed) values.emplace_back(atom, false);
  frame.must = formulas.Assign(frame.must, values);
  for (FormulaId& track : frame.tracks) track = formulas.Assign(track, values);
  return frame.must != kFalseFormula;
}

// What the next value has to fulfil is `demands`, of the atoms that are left when some have failed.
bool Frames::Await(Frame& frame, const std::vector<Pending>& demands, std::vector<AtomId>& failed) {
  if (!Fail(table_.formulas, frame, failed)) return false;
  const std::vector<AtomId> must = table_.formulas.MustAtoms(frame.must);
  const std::vector<AtomId> alive = Atoms(frame);
  frame.has_pending = true;
  frame.pending_must = kTrueFormula;
  frame.waiting.clear();
  for (const Pending& demand : demands) {
    if (!std::ranges::binary_search(alive, demand.atom)) continue;
    if (!demand.contains && std::ranges::binary_search(must, demand.atom)) {
      frame.pending_must = table_.formulas.And(frame.pending_must, demand.formula);
    } else {
      frame.waiting.push_back(demand);
    }
  }
  return true;
}

FrameId Frames::WithKey(FrameId id, const StringProgram& program, StringProgram::StateId state,
                        int rank, NameId name) {
  Frame frame = frames_[id];
  if (options_.order == JsonSchemaOptions::Order::kSchema && rank >= 0 && rank <= frame.last_rank)
    return kNoFrame;
  if (name != kAnyName && Seen(frame, name)) return kNoFrame;
  const ObjectLayout& layout = *layouts_[frame.layout];
  const std::vector<AtomId> atoms = Atoms(frame);
  std::vector<Pending> demands;
  std::vector<AtomId> failed;
  for (const AtomId atom : atoms) {
    FormulaId demand = PropertyDemand(layout, atom, program, state, rank);
    const ObjectAtom& object = table_.object(atom);
    if (object.max_properties != kUnbounded && frame.count >= object.max_properties)
      demand = kFalseFormula;
    if (demand == kFalseFormula) {
      failed.push_back(atom);
    } else if (demand != kTrueFormula) {
      demands.push_back({atom, demand, false});
    }
  }
  if (!Await(frame, demands, failed) || frame.pending_must == kFalseFormula) return kNoFrame;
  frame.pending_name = name;
  frame.pending_rank = rank;
  return Intern(std::move(frame));
}

FrameId Frames::WithItem(FrameId id) {
  Frame frame = frames_[id];
  const std::vector<AtomId> atoms = Atoms(frame);
  std::vector<Pending> demands;
  std::vector<AtomId> failed;
  for (const AtomId atom : atoms) {
    const FormulaId demand = ItemDemand(frame, atom, frame.count);
    if (demand == kFalseFormula) {
      failed.push_back(atom);
    } else if (demand != kTrueFormula) {
      demands.push_back({atom, demand, false});
    }
    if (table_.array(atom).has_contains)
      demands.push_back({atom, table_.array(atom).contains, true});
  }
  if (!Await(frame, demands, failed)) return kNoFrame;
  if (rules_ != nullptr)
    frame.pending_must = table_.formulas.And(frame.pending_must, rules_->LeavesEnough(frame));
  if (frame.pending_must == kFalseFormula) return kNoFrame;
  return Intern(std::move(frame));
}

FrameId Frames::AfterValue(FrameId id, const std::vector<bool>& truth,
                           const std::string* canonical) {
  Frame frame = frames_[id];
  const FormulaId must_before = frame.must;
  const std::vector<FormulaId> tracks_before = frame.tracks;
  const IdSets::Id seen_before = frame.seen;
  const std::vector<FormulaId> tracks = Tracks(frame);
  std::vector<AtomId> failed;
  for (const Pending& p : frame.waiting) {
    const size_t i = static_cast<size_t>(std::lower_bound(tracks.begin(), tracks.end(), p.formula) -
                                         tracks.begin());
    if (!p.contains) {
      if (!truth[i]) failed.push_back(p.atom);
      continue;
    }
    if (!truth[i]) continue;
    const ArrayAtom& array = table_.array(p.atom);
    auto it = std::lower_bound(frame.contained.begin(), frame.contained.end(),
                               std::pair(p.atom, uint64_t{0}));
    if (it == frame.contained.end() || it->first != p.atom)
      it = frame.contained.insert(it, {p.atom, 0});
    if (array.max_contains != kUnbounded && it->second >= array.max_contains) {
      failed.push_back(p.atom);
    } else if (array.max_contains != kUnbounded || it->second < array.min_contains) {
      ++it->second;
    }
  }
  if (canonical != nullptr && NeedsCanonicalItems(frame)) {
    const uint32_t item = InternItem(*canonical);
    if (item_sets_.Contains(frame.items, item)) {
      for (const AtomId atom : Atoms(frame)) {
        if (table_.array(atom).unique) failed.push_back(atom);
      }
    }
    frame.items = item_sets_.With(frame.items, item);
  }
  if (!Fail(table_.formulas, frame, failed)) return kNoFrame;
  if (frame.kind == kObjectValue) {
    // Where patterns leave a few keys only, one that is not named takes the place of another.
    if (frame.pending_name != kAnyName || layouts_[frame.layout]->has_key_conditions)
      frame.seen = name_sets_.With(frame.seen, frame.pending_name);
    if (options_.order == JsonSchemaOptions::Order::kSchema) {
      frame.last_rank = frame.pending_rank >= 0 ? frame.pending_rank : Frame::kPastNames;
    }
  }
  const bool named_key = frame.pending_rank >= 0;
  ++frame.count;
  frame.has_pending = false;
  frame.pending_must = kTrueFormula;
  frame.waiting.clear();
  frame.pending_name = kAnyName;
  frame.pending_rank = -1;
  SettleTrue(frame);
  if (frame.must == kFalseFormula) return kNoFrame;
  const bool same = frame.must == must_before && frame.tracks == tracks_before;
  DropSettled(frame, named_key, same ? std::optional(seen_before) : std::nullopt);
  return Intern(std::move(frame));
}

// Atoms that nothing can make false any more become true, so that what depends on them (a required
// key that has come, say, and the schema that depends on it) is a plain demand from here on.
void Frames::SettleTrue(Frame& frame) {
  std::vector<std::pair<AtomId, bool>> settled;
  for (const AtomId atom : Atoms(frame)) {
    bool final = false;
    if (frame.kind == kObjectValue) {
      const ObjectAtom& object = table_.object(atom);
      const auto harmless = [](const auto& entries, const auto& value_of) {
        return std::all_of(entries.begin(), entries.end(),
                           [&](const auto& e) { return value_of(e) == kTrueFormula; });
      };
      final = harmless(object.properties, [](const auto& e) { return e.second; }) &&
              harmless(object.patterns, [](const auto& e) { return e.value; }) &&
              object.additional == kTrueFormula && object.property_names == kTrueFormula &&
              object.max_properties == kUnbounded;
    } else {
      const ArrayAtom& array = table_.array(atom);
      final = array.prefix.size() <= frame.count && array.items == kTrueFormula && !array.unique &&
              array.max_items == kUnbounded &&
              (!array.has_contains || array.max_contains == kUnbounded);
    }
    if (final && AtomTruth(frame, atom)) settled.emplace_back(atom, true);
  }
  if (settled.empty()) return;
  frame.must = table_.formulas.Assign(frame.must, settled);
  for (FormulaId& track : frame.tracks) track = table_.formulas.Assign(track, settled);
}

uint64_t Frames::CountCap(const Frame& frame) {
  uint64_t cap = 0;
  const auto need = [&](uint64_t value) { cap = std::max(cap, value); };
  for (const AtomId atom : Atoms(frame)) {
    if (frame.kind == kObjectValue) {
      const ObjectAtom& object = table_.object(atom);
      need(object.min_properties);
      if (object.max_properties != kUnbounded) need(object.max_properties + 1);
    } else {
      const ArrayAtom& array = table_.array(atom);
      need(array.prefix.size());
      need(array.min_items);
      if (array.max_items != kUnbounded) need(array.max_items + 1);
    }
  }
  return cap;
}

// Forgets progress that no atom in play can still ask for, so that equal futures are equal frames.
void Frames::DropSettled(Frame& frame, bool named_key, std::optional<IdSets::Id> settled) {
  const std::vector<AtomId> atoms = Atoms(frame);
  frame.count = std::min(frame.count, CountCap(frame));
  std::erase_if(frame.contained, [&](const auto& entry) {
    return !std::binary_search(atoms.begin(), atoms.end(), entry.first);
  });
  if (!NeedsCanonicalItems(frame)) frame.items = IdSets::kEmpty;
  if (frame.kind != kObjectValue || options_.order != JsonSchemaOptions::Order::kSchema) return;
  // A named key cannot come again by its rank; it matters only while some atom requires it. Named
  // keys come first, so among many others there is nothing new to forget.
  if (!named_key && name_sets_.Size(frame.seen) > limits::kForgottenKeys) return;
  const ObjectLayout& layout = *layouts_[frame.layout];
  const auto matters = [&](NameId name) {
    return !layout.rank_of.contains(name) ||
           std::any_of(atoms.begin(), atoms.end(), [&](AtomId atom) {
             const auto& required = Required(layout, atom);
             return std::binary_search(required.begin(), required.end(), name);
           });
  };
  // `settled`: keys that are known to matter.
  if (settled && frame.seen != *settled && name_sets_.Before(frame.seen) == *settled) {
    if (!matters(name_sets_.Last(frame.seen))) frame.seen = *settled;
    return;
  }
  const std::vector<NameId> names = name_sets_.Members(frame.seen);
  if (std::all_of(names.begin(), names.end(), matters)) return;
  frame.seen = IdSets::kEmpty;
  for (const NameId name : names) {
    if (matters(name)) frame.seen = name_sets_.With(frame.seen, name);
  }
}

bool Frames::NeedsCanonicalItems(const Frame& frame) const {
  if (frame.kind != kArrayValue) return false;
  for (const AtomId atom : const_cast<Frames*>(this)->Atoms(frame)) {
    if (table_.array(atom).unique) return true;
  }
  return false;
}

bool Frames::AtomTruth(const Frame& frame, AtomId atom) const {
  if (frame.kind == kObjectValue) {
    const ObjectAtom& object = table_.object(atom);
    if (frame.count < object.min_properties) return false;
    const auto& required = Required(*layouts_[frame.layout], atom);
    return std::all_of(required.begin(), required.end(),
                       [&](NameId name) { return Seen(frame, name); });
  }
  const ArrayAtom& array = table_.array(atom);
  if (frame.count < array.min_items) return false;
  if (!array.has_contains || array.min_contains == 0) return true;
  for (const auto& [a, count] : frame.contained) {
    if (a == atom) return count >= array.min_contains;
  }
  return false;
}

bool Frames::EndTruth(const Frame& frame, std::vector<bool>& tracks) const {
  const auto truth = [&](AtomId atom) { return AtomTruth(frame, atom); };
  tracks.clear();
  for (const FormulaId track : frame.tracks)
    tracks.push_back(table_.formulas.Evaluate(track, truth));
  return table_.formulas.Evaluate(frame.must, truth);
}

// Hash-consed tries with path copying: an insertion makes one new node on each level and shares the
// rest, and since nodes are interned too, two ways to the same members end at the same root.

IdSets::IdSets() : sets_(1), leaves_(1, 0), inners_(1, Inner{}) {
  leaf_index_.Insert(0, 0);
  set_index_.Insert(0, kEmpty);
}

uint32_t IdSets::InternLeaf(uint64_t bits) { return leaf_index_.Intern(bits, leaves_, bits); }

uint32_t IdSets::InternInner(const Inner& inner) {
  uint64_t hash = 0;
  for (const uint32_t child : inner) hash = HashMix(hash, child);
  return inner_index_.Intern(hash, inners_, inner);
}

uint32_t IdSets::Insert(uint32_t node, int height, uint32_t member) {
  if (height == 0) return InternLeaf(leaves_[node] | uint64_t{1} << (member & 63));
  const int shift = kLeafBits + kInnerBits * (height - 1);
  const size_t slot = member >> shift & ((1 << kInnerBits) - 1);
  const uint32_t child = Insert(inners_[node][slot], height - 1, member);
  Inner inner = inners_[node];
  inner[slot] = child;
  return InternInner(inner);
}

IdSets::Id IdSets::With(Id id, uint32_t member) {
  if (Contains(id, member)) return id;
  Set set = sets_[id];
  while (member >= Capacity(set.height)) {
    if (set.root != 0) {
      Inner inner{};
      inner[0] = set.root;
      set.root = InternInner(inner);
    }
    ++set.height;
  }
  set.root = Insert(set.root, set.height, member);
  const uint64_t hash = uint64_t{set.root} << 8 | static_cast<uint64_t>(set.height);
  const Id known = set_index_.Find(hash, [&](uint32_t other) {
    return sets_[other].root == set.root && sets_[other].height == set.height;
  });
  if (known != HashIndex::kNone) return known;
  ++set.size;
  set.before = id;
  set.last = member;
  sets_.push_back(set);
  set_index_.Insert(hash, static_cast<Id>(sets_.size() - 1));
  return static_cast<Id>(sets_.size() - 1);
}

bool IdSets::Contains(Id id, uint32_t member) const {
  const Set& set = sets_[id];
  if (member >= Capacity(set.height)) return false;
  uint32_t node = set.root;
  for (int height = set.height; height > 0; --height) {
    const int shift = kLeafBits + kInnerBits * (height - 1);
    node = inners_[node][member >> shift & ((1 << kInnerBits) - 1)];
  }
  return (leaves_[node] >> (member & 63) & 1) != 0;
}

std::vector<uint32_t> IdSets::Members(Id id) const {
  std::vector<uint32_t> out;
  for (; id != kEmpty; id = sets_[id].before) out.push_back(sets_[id].last);
  std::reverse(out.begin(), out.end());
  return out;
}

}  // namespace pawl::schema
