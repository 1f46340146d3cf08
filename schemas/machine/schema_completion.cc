// How a state is brought to an end: the lexeme is finished, then what the solver says is missing of
// each frame around it. Values that have to be new are looked for among those there is no end to.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "schemas/limits.h"
#include "schemas/machine/schema_machine.h"
#include "schemas/scalar/json_string.h"
#include "schemas/solve/distinct.h"
#include "src/base/json.h"
#include "src/base/utf8.h"

namespace pawl::schema {

std::optional<std::string> SchemaMachine::NewString(Key state, const std::string& shortest,
                                                    size_t taken) {
  if (StepText(state, shortest) != kDead) return shortest;
  const std::string inside = shortest.substr(0, shortest.size() - 1);
  state = StepText(state, inside);
  if (state == kDead) return std::nullopt;
  const Lexeme lexeme = lexemes_[LexemeOf(state)];
  // In addition to those taken, some may be left to later places.
  for (const std::u32string& more :
       Continuations(*strings_[lexeme.search], lexeme.state, taken + limits::kOtherTexts)) {
    const std::string quoted = Quoted(EncodeCodepoints(more));
    if (StepText(state, quoted.substr(1)) != kDead) return inside + quoted.substr(1);
  }
  return std::nullopt;
}

// A key that was there already is no key: longer ones follow until one is new.
std::optional<std::string> SchemaMachine::NewKey(Key state) {
  const Lexeme lexeme = lexemes_[LexemeOf(state)];
  const auto key = CompleteString(*strings_[lexeme.search], {lexeme.state, lexeme.part},
                                  limits::kTextBytes, spelling_);
  if (!key) return std::nullopt;
  const Frame& frame = frames_[nodes_[FrameOf(state)].frame];
  const size_t taken = frames_.seen().Size(frame.seen) + frames_.layout(frame.layout).names.size();
  for (size_t extra = 0; extra <= taken; ++extra) {
    std::string longer = key->substr(0, key->size() - 1) + std::string(extra, 'a') + "\"";
    if (StepText(state, longer) != kDead) return longer;
  }
  return NewString(state, *key, taken);
}

// The whole key at once. Byte by byte each frame would get a search of its own for the keys that
// may come, and states for the letters of each key, which nothing asks about again: of an object
// with thousands of keys that takes gigabytes. A key that may come may be begun as well.
std::optional<Machine::Key> SchemaMachine::ReadKey(Key state, std::string_view piece,
                                                   size_t& read) {
  const Lexeme lexeme = lexemes_[LexemeOf(state)];
  if (TracksText(FrameOf(state)) || frames_[nodes_[FrameOf(state)].frame].kind != kObjectValue)
    return std::nullopt;
  size_t begin = read;
  if (lexeme.mode == Mode::kAfter || lexeme.mode == Mode::kNumber) {
    if (!piece.substr(begin).starts_with(options_.item_separator)) return std::nullopt;
    begin += options_.item_separator.size();
  } else if (lexeme.mode != Mode::kFirstKey && lexeme.mode != Mode::kNextKey) {
    return std::nullopt;
  }
  if (begin >= piece.size() || piece[begin] != '"') return std::nullopt;
  size_t end = begin + 1;
  while (end < piece.size() && piece[end] != '"') end += piece[end] == '\\' ? 2 : 1;
  if (end >= piece.size()) return std::nullopt;
  const auto key = json::Parse(piece.substr(begin, end + 1 - begin));
  if (!key.ok()) return std::nullopt;
  read = end + 1;
  if (lexeme.mode == Mode::kNumber) {
    if (!numbers_[lexeme.search]->Accepts(lexeme.state)) return kDead;
    state = EndNumber(FrameOf(state), lexeme);
    if (state == kDead) return kDead;
  }
  const NodeId id = FrameOf(state);
  const ObjectLayout& layout = frames_.layout(frames_[nodes_[id].frame].layout);
  StringProgram& program = *layout.program;
  const StringProgram::StateId at = program.After(DecodeCodepoints(key->text));
  const int rank = RankOf(layout, program, at);
  const NameId name =
      rank >= 0 ? layout.name_ids[static_cast<size_t>(rank)] : frames_.InternName(key->text);
  return AfterKey(id, program, at, rank, name);
}

Machine::Key SchemaMachine::AfterPiece(Key state, const std::string& piece) {
  const Lexeme lexeme = lexemes_[LexemeOf(state)];
  size_t read = 0;
  if (lexeme.mode == Mode::kString && !TracksText(FrameOf(state))) {
    // Inside a long string states would be made by the thousand, and left at once.
    StringPosition position{lexeme.state, lexeme.part};
    StringSearch& search = *strings_[lexeme.search];
    if (search.IsSource() && position.part == 0) {
      const auto rest = json::Parse('"' + piece);
      if (!rest.ok()) return kDead;
      position.state = search.program().AfterSource(position.state, DecodeCodepoints(rest->text));
      if (position.state == StringProgram::kNoState) return kDead;
      read = piece.size() - 1;
    }
    for (; read + 1 < piece.size(); ++read) {
      const auto byte = static_cast<uint8_t>(piece[read]);
      if (StepString(search, position, byte, spelling_) != StringStep::kInside) return kDead;
    }
    state = MakeKey(FrameOf(state),
                    InternLexeme({lexeme.mode, lexeme.search, position.state, position.part}));
  }
  while (read < piece.size() && state != kDead) {
    std::optional<Key> after = ReadKey(state, piece, read);
    if (!after) after = ReadCounted(state, piece, read);
    state = after ? *after : Step(state, static_cast<uint8_t>(piece[read++]));
  }
  return state;
}

std::optional<std::string> SchemaMachine::NewNumber(Key state, const std::string& shortest) {
  const auto fits = [&](const std::string& text) {
    const Key after = AfterPiece(state, text);
    return after != kDead && (Step(after, ']') != kDead || Step(after, ',') != kDead);
  };
  if (fits(shortest)) return shortest;
  const Lexeme lexeme = lexemes_[LexemeOf(state)];
  const size_t taken = frames_.items().Size(frames_[nodes_[FrameOf(state)].frame].items);
  // Some only spell a value with other digits: "0.010" behind "0.01".
  const size_t count = 2 * (taken + 1) + 16;
  for (const std::string& more : Continuations(*numbers_[lexeme.search], lexeme.state, count)) {
    if (fits(more)) return more;
  }
  return std::nullopt;
}

// Where what is missing was counted it is not read again: each item would make a set of its own.
SchemaMachine::Closed SchemaMachine::CloseCounted(NodeId id, Mode mode,
                                                  std::optional<std::string_view> wanted) {
  const Node node = nodes_[id];
  if (frames_[node.frame].kind != kArrayValue || nodes_[node.parent].tracks_items) return {};
  const auto rest = solver_.CountedText(node.frame);
  if (!rest) return {};
  const std::string comma = mode == Mode::kAfter ? "," : "";
  std::string text = Written((rest->text.empty() ? "" : comma) + rest->text + "]");
  if (wanted && !wanted->starts_with(text)) return {};
  for (const std::string& sample : rest->samples) {
    if (AfterPiece(MakeKey(id, Structure(mode)), Written(comma + sample)) == kDead) return {};
  }
  const Key closed = EndValue(node.parent, {}, ']');
  if (closed == kDead) return {};
  return {closed, std::move(text)};
}

// The items of an array of which as many are written as have to be, as CloseCounted has them.
std::optional<Machine::Key> SchemaMachine::ReadCounted(Key state, std::string_view piece,
                                                       size_t& read) {
  if (lexemes_[LexemeOf(state)].mode != Mode::kFirstItem) return std::nullopt;
  const Closed closed = CloseCounted(FrameOf(state), Mode::kFirstItem, piece.substr(read));
  if (closed.state == kDead) return std::nullopt;
  read += closed.text.size();
  return closed.state;
}

std::optional<std::string> SchemaMachine::RestOf(FrameId frame, Mode mode) {
  const Found rest = solver_.ContainerText(frame);
  if (!rest.text) return std::nullopt;
  // A comma was written though nothing was missing: any key that is allowed will do.
  if (mode == Mode::kNextKey && rest.text->empty()) return "\"";
  const bool comma = mode == Mode::kAfter && !rest.text->empty();
  return (comma ? "," : "") + *rest.text + (frames_[frame].kind == kArrayValue ? "]" : "}");
}

std::optional<std::string> SchemaMachine::CompletionBytes(Key state) {
  std::string out;
  // Each round finishes the lexeme and one frame, and walks over what it wrote, so a wrong guess
  // cannot pass.
  while (!Accepting(state)) {
    const Lexeme lexeme = lexemes_[LexemeOf(state)];
    const Node node = nodes_[FrameOf(state)];
    std::optional<std::string> piece;
    if (!Owed(lexeme).empty()) {
      const std::string owed(Owed(lexeme));
      out += owed;
      state = StepText(state, owed);
      continue;
    }
    switch (lexeme.mode) {
      case Mode::kKey:
        piece = NewKey(state);
        break;
      case Mode::kString:
        piece = CompleteString(*strings_[lexeme.search], {lexeme.state, lexeme.part},
                               limits::kTextBytes, spelling_);
        if (piece && frames_.NeedsCanonicalItems(frames_[node.frame])) {
          piece = NewString(state, *piece, frames_.items().Size(frames_[node.frame].items));
        }
        break;
      case Mode::kNumber: {
        piece = numbers_[lexeme.search]->Shortest(lexeme.state);
        if (piece && frames_.NeedsCanonicalItems(frames_[node.frame]))
          piece = NewNumber(state, *piece);
        if (piece && piece->empty()) {
          // The number ends with the byte that comes after it; look at the frame as if it had
          // ended.
          const Key ended = EndNumber(FrameOf(state), lexeme);
          if (ended == kDead) return std::nullopt;
          if (Closed closed = CloseCounted(FrameOf(ended), Mode::kAfter); closed.state != kDead) {
            state = closed.state;
            out += closed.text;
            continue;
          }
          piece = RestOf(nodes_[FrameOf(ended)].frame, Mode::kAfter);
        }
        break;
      }
      case Mode::kLiteral:
        piece = kLiterals[lexeme.state >> 3] + (lexeme.state & 7);
        break;
      case Mode::kColon:
        piece = ":";
        break;
      case Mode::kValue:
        piece = solver_.PendingValue(node.frame);
        break;
      case Mode::kFirstItem:
      case Mode::kFirstKey:
      case Mode::kNextKey:
      case Mode::kAfter:
        if (lexeme.mode == Mode::kAfter) {
          if (Closed closed = CloseCounted(FrameOf(state), Mode::kAfter); closed.state != kDead) {
            state = closed.state;
            out += closed.text;
            continue;
          }
        }
        piece = RestOf(node.frame, lexeme.mode);
        break;
    }
    if (piece && lexeme.mode != Mode::kString && lexeme.mode != Mode::kKey)
      piece = Written(*std::move(piece));
    if (!piece || piece->empty() || out.size() + piece->size() > 2 * limits::kTextBytes)
      return std::nullopt;
    state = AfterPiece(state, *piece);
    if (state == kDead) return std::nullopt;
    out += *piece;
  }
  return out;
}

// What a model writes under a schema is most of all what the schema names: the keys in their order,
// each with a value, an item or two of each list. Texts of that kind are written here, byte by byte
// by asking the machine what it takes; so nothing in them can be wrong, and where the first thought
// does not fit the shortest completion leads on.
//
// A second text looks for a name that the first one had no place for, such as those of the other
// branches of a choice; and so on until one has nothing new. Schemas that lead back to themselves
// have no end of keys: what a value has to be is written out twice, and from the third time on its
// optional keys stay away.

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
