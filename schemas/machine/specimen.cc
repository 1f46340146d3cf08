// What a model writes under a schema is most of all what the schema names: the keys in their order,
// each with a value, an item or two of each list. Texts of that kind are written here, byte by byte
// by asking the machine what it takes; so nothing in them can be wrong, and where the first thought
// does not fit the shortest completion leads on.
//
// A second text looks for a name that the first one had no place for, such as those of the other
// branches of a choice; and so on until one has nothing new. Schemas that lead back to themselves
// have no end of keys: what a value has to be is written out twice, and from the third time on its
// optional keys stay away.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "schemas/machine/schema_machine.h"

namespace pawl::schema {
namespace {

class SpecimenWriter {
 public:
  SpecimenWriter(SchemaMachine& machine, size_t bytes) : machine_(machine), bytes_(bytes) {}

  // Texts until one would name nothing that is new.
  std::vector<std::string> Write() {
    std::vector<std::string> texts;
    for (size_t names = SIZE_MAX; names != written_.size() && bytes_ > 0;) {
      names = written_.size();
      looks_for_new_ = !texts.empty();
      objects_.clear();
      items_.clear();
      state_ = machine_.Start();
      while (state_ != Machine::kDead && out_.size() < bytes_ && Next()) {
      }
      if (!texts.empty() && names == written_.size()) break;
      bytes_ -= std::min(bytes_, out_.size());
      texts.push_back(std::exchange(out_, {}));
    }
    return texts;
  }

 private:
  using Mode = SchemaMachine::Mode;
  static constexpr int kFullObjects = 2;  // of one demand

  // Writes a piece more; false at the end and where nothing was found.
  bool Next() {
    switch (ModeNow()) {
      case Mode::kValue:
      case Mode::kFirstItem:
        if (Put(" ")) return true;
        for (const char* opener : {"{", "[", "\"", "12", "1", "2", "true", "false", "null"}) {
          if (Put(opener)) return true;
        }
        return Complete();
      case Mode::kString:
        return (out_.back() == '"' && Put("a")) || Put("\"") || Complete();
      case Mode::kFirstKey:
      case Mode::kNextKey:
        return Put(" ") || Key("") || Complete();
      case Mode::kColon:
        return Put(": ") || Put(":") || Complete();
      case Mode::kAfter:
        return Leave() || Complete();
      case Mode::kNumber:
        return Put(".5") || Leave() || Complete();
      case Mode::kKey:
      case Mode::kLiteral:
        break;
    }
    return Complete();
  }

  // What comes behind a value.
  bool Leave() {
    const SchemaMachine::Node& node = machine_.node(Machine::FrameOf(state_));
    switch (machine_.frames()[node.frame].kind) {
      case kObjectValue:
        return Key(", ") || Key(",") || Put("}");
      case kArrayValue: {
        // A second item, since what follows it is what follows all others.
        if (++items_[node.parent] < 2 && (Put(", ") || Put(","))) return true;
        return Put("]");
      }
      default:
        return false;
    }
  }

  // The next key that the schema names, behind `before`.
  bool Key(std::string_view before) {
    const SchemaMachine::Node node = machine_.node(Machine::FrameOf(state_));
    const Frame frame = machine_.frames()[node.frame];
    if (before.empty()) full_[node.parent] = ++objects_[frame.must] <= kFullObjects;
    if (!full_[node.parent]) return false;
    const ObjectLayout& layout = machine_.frames().layout(frame.layout);
    const bool in_order = machine_.options().order == JsonSchemaOptions::Order::kSchema;
    const auto count = static_cast<int64_t>(layout.names.size());
    if (in_order && frame.last_rank >= count) return false;  // behind keys without a name here
    const int64_t first = in_order ? frame.last_rank + 1 : 0;
    for (const bool new_alone : {true, false}) {
      if (new_alone && !looks_for_new_) continue;
      for (int64_t rank = first; rank < count; ++rank) {
        const auto i = static_cast<size_t>(rank);
        const NameId name = layout.name_ids[i];
        if (new_alone && written_.contains(name)) continue;
        if (machine_.frames().Seen(frame, name)) continue;
        if (!Put(std::string(before) + machine_.Quoted(layout.names[i]))) continue;
        if (written_.insert(name).second) looks_for_new_ = false;
        return true;
      }
    }
    return false;
  }

  // Goes on as the shortest completion does, to the end of the lexeme.
  bool Complete() {
    const auto rest = machine_.CompletionBytes(state_);
    if (!rest || rest->empty()) return false;
    const Mode mode = ModeNow();
    for (const char& byte : *rest) {
      if (!Put({&byte, 1})) return false;
      if (ModeNow() != mode) break;
    }
    return true;
  }

  // All of the text or nothing.
  bool Put(std::string_view text) {
    Machine::Key after = state_;
    for (const char byte : text) {
      after = machine_.Step(after, static_cast<uint8_t>(byte));
      if (after == Machine::kDead) return false;
    }
    // White space is written once in a place.
    if (text == " " && (out_.empty() || (out_.back() != ',' && out_.back() != ':'))) return false;
    state_ = after;
    out_ += text;
    return true;
  }

  Mode ModeNow() const { return machine_.lexeme(Machine::LexemeOf(state_)).mode; }

  SchemaMachine& machine_;
  size_t bytes_;  // left
  Machine::Key state_ = Machine::kDead;
  std::string out_;
  std::unordered_set<NameId> written_;
  bool looks_for_new_ = false;  // a name that no text has, before all others
  // Objects that were begun, by what they have to be; and by what is around one, whether all its
  // keys are written.
  std::unordered_map<FormulaId, int> objects_;
  std::unordered_map<SchemaMachine::NodeId, bool> full_;
  std::unordered_map<SchemaMachine::NodeId, int> items_;  // by what is around the array
};

}  // namespace

std::vector<std::string> SchemaMachine::SampleTexts(size_t bytes) {
  return SpecimenWriter(*this, bytes).Write();
}

}  // namespace pawl::schema
