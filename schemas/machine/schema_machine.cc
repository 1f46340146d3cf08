// Reading JSON one byte at a time. Structure is a handful of modes; what is allowed comes from the
// frames (what a key or item would mean) and the solver (whether that can still end well). A byte
// is taken only when the state after it is live.
#include "schemas/machine/schema_machine.h"

#include <algorithm>
#include <cstring>

#include "grammar/masks/machine_masks.h"
#include "schemas/formula/atoms.h"
#include "schemas/limits.h"
#include "schemas/solve/distinct.h"
#include "src/base/json.h"
#include "src/base/memory_size.h"
#include "src/base/sorted.h"
#include "src/base/stop_scope.h"
#include "src/base/utf8.h"

namespace pawl::schema {
namespace {

constexpr const char* kNumberSigns = ".-+eE";

}  // namespace

SchemaMachine::SchemaMachine(std::unique_ptr<SchemaTable> table, const JsonSchemaOptions& options,
                             MakeMasks make_masks)
    : table_(std::move(table)),
      options_(options),
      spelling_{options.canonical_spelling, options.ascii},
      frames_(*table_, options_),
      solver_(frames_, options_),
      make_masks_(make_masks) {
  lexemes_.push_back({Mode::kAfter, 0, UINT32_MAX, 0});  // index 0 is the dead lexeme
  nodes_.emplace_back();                                 // index 0 is no node
  texts_.push_back({0, 0});
}

SchemaMachine::~SchemaMachine() = default;

MachineMasks* SchemaMachine::Masks(const Vocabulary& vocabulary) {
  if (masks_ == nullptr && make_masks_ != nullptr) masks_ = make_masks_(*this, vocabulary);
  return masks_.get();
}

Status SchemaMachine::CheckSatisfiable() {
  const bool live = solver_.LivePending(frames_.Root(table_->root));
  if (solver_.scalars().overflow()) {
    return Error{ErrorCode::kLimit,
                 "the patterns of this schema need more states than the limit allows", "#"};
  }
  if (live) return {};
  for (const auto& [formula, pointer] : table_->source_fields) {
    if (solver_.Value(formula).answer != Answer::kNo) continue;
    if (table_->source == nullptr)
      return Error{ErrorCode::kUnsatisfiable, "no value can ever fit this field", pointer};
    const bool named = pointer.ends_with("/x-pawl-source");
    return Error{ErrorCode::kUnsatisfiable,
                 std::string("no span of the text fits") +
                     (named ? "" : ", and the option verbatim has this field copied"),
                 pointer};
  }
  if (table_->source != nullptr && !table_->source_fields.empty()) {
    return Error{ErrorCode::kUnsatisfiable,
                 "no value fits with what the text has; lists with minItems and uniqueItems may "
                 "need more spans that differ",
                 "#"};
  }
  return Error{ErrorCode::kUnsatisfiable, "no value can ever fit this schema", "#"};
}

size_t SchemaMachine::MemoryBytes() const {
  return sizeof(*this) + HeapBytes(table_, frames_, solver_, lexemes_, lexeme_index_, nodes_,
                                   node_index_, texts_, text_index_, strings_, string_index_,
                                   numbers_, number_row_, number_rows_, number_index_, keys_,
                                   keys_apart_, named_keys_, plain_, plain_keys_, plain_index_,
                                   masks_);
}

size_t SchemaMachine::GrowthHint() const {
  return lexemes_.size() * (sizeof(Lexeme) + 48) + nodes_.size() * (sizeof(Node) + 48) +
         texts_.size() * (sizeof(Text) + 40) + frames_.GrowthHint() + solver_.GrowthHint() +
         table_->GrowthHint() + keys_.size() * 1200 + number_rows_.size() * 64 +
         (keys_apart_.size() + named_keys_.size()) * 64 +
         (masks_ == nullptr ? 0 : masks_->GrowthHint());
}

Machine::Key SchemaMachine::Start() {
  const FrameId root = frames_.Root(table_->root);
  if (!solver_.LivePending(root)) return kDead;
  return MakeKey(InternNode({.frame = root}), Structure(Mode::kValue));
}

SchemaMachine::LexemeId SchemaMachine::InternLexeme(const Lexeme& lexeme) {
  const uint64_t hash =
      HashMix(HashMix(HashMix(static_cast<uint64_t>(lexeme.mode), lexeme.search), lexeme.state),
              lexeme.part);
  return lexeme_index_.Intern(hash, lexemes_, lexeme);
}

SchemaMachine::NodeId SchemaMachine::InternNode(const Node& node) {
  uint64_t hash = HashMix(HashMix(node.parent, node.frame), node.text);
  hash = HashMix(
      hash, uint64_t{node.start} << 2 | (node.tracks_items ? 2 : 0) | (node.reads_key ? 1 : 0));
  return node_index_.Intern(hash, nodes_, node);
}

uint32_t SchemaMachine::InternText(uint32_t before, uint8_t byte) {
  return text_index_.Intern(uint64_t{before} << 8 | byte, texts_, {before, byte});
}

std::string SchemaMachine::TextSince(uint32_t text, uint32_t start) const {
  std::string out;
  for (; text != start && text != 0; text = texts_[text].before)
    out.push_back(static_cast<char>(texts_[text].byte));
  std::reverse(out.begin(), out.end());
  return out;
}

uint32_t SchemaMachine::AppendText(uint32_t id, uint8_t byte) {
  Node node = nodes_[id];
  node.text = InternText(node.text, byte);
  return InternNode(node);
}

SchemaMachine::NodeId SchemaMachine::WithFrame(NodeId id, FrameId frame) {
  Node node = nodes_[id];
  node.frame = frame;
  return InternNode(node);
}

uint32_t SchemaMachine::IndexOf(StringSearch& search) {
  const auto [it, fresh] =
      string_index_.try_emplace(&search, static_cast<uint32_t>(strings_.size()));
  if (fresh) strings_.push_back(&search);
  return it->second;
}

uint32_t SchemaMachine::IndexOf(NumberProgram* program) {
  const auto [it, fresh] =
      number_index_.try_emplace(program, static_cast<uint32_t>(numbers_.size()));
  if (fresh) numbers_.push_back(program);
  return it->second;
}

int SchemaMachine::RankOf(const ObjectLayout& layout, const StringProgram& program,
                          StringProgram::StateId state) const {
  if (!layout.has_names) return -1;
  const int literal = program.Literal(state, layout.names_atom);
  return literal < 0 ? -1 : layout.literal_rank[static_cast<size_t>(literal)];
}

bool SchemaMachine::KeyAllowed(FrameId frame, StringProgram& program, StringProgram::StateId state,
                               AtomId taken, bool has_taken) {
  if (has_taken && program.Literal(state, taken) >= 0) return false;
  const ObjectLayout& layout = frames_.layout(frames_[frame].layout);
  const int rank = RankOf(layout, program, state);
  const NameId name = rank < 0 ? solver_.StandIn(frame, program, state)
                               : layout.name_ids[static_cast<size_t>(rank)];
  const FrameId after = frames_.WithKey(frame, program, state, rank, name);
  return after != kNoFrame && solver_.LivePending(after);
}

IdSets::Id SchemaMachine::NamedKeys(uint32_t layout, IdSets::Id seen) {
  const auto with = [&](IdSets::Id out, NameId key) {
    return frames_.layout(layout).rank_of.contains(key) ? frames_.seen().With(out, key) : out;
  };
  return frames_.seen().Fold(named_keys_, seen, IdSets::kEmpty, with, layout);
}

IdSets::Id SchemaMachine::KeysApart(const Frame& frame) {
  Frame without_others = frame;
  without_others.seen = NamedKeys(frame.layout, frame.seen);
  if (without_others.seen == frame.seen) return IdSets::kEmpty;
  // Under plain demands the number of keys forbids all other keys or none. Each number would have
  // a search of its own, which is asked about all keys again.
  if (frame.tracks.empty() && table_->formulas.IsConjunction(frame.must)) without_others.count = 0;
  const FrameId shape = frames_.Intern(std::move(without_others));
  const ObjectLayout& layout = frames_.layout(frame.layout);
  StringSearch& search = KeySearch(shape);
  const auto with = [&](IdSets::Id out, NameId key) {
    if (layout.rank_of.contains(key)) return out;
    const auto state = search.LiveAfter(DecodeCodepoints(frames_.Name(key)));
    return state && !Endless(search, *state) ? frames_.seen().With(out, key) : out;
  };
  return frames_.seen().Fold(keys_apart_, frame.seen, IdSets::kEmpty, with, shape);
}

PlainKeys* SchemaMachine::PlainKeysOf(FrameId id) {
  if (id >= plain_.size()) plain_.resize(frames_.size(), kNotAsked);
  if (plain_[id] == kNotAsked) {
    const Frame& frame = frames_[id];
    plain_[id] = kNotPlain;
    if (PlainKeys::Fits(frames_, options_, frame)) {
      const auto [it, fresh] = plain_index_.try_emplace(uint64_t{frame.layout} << 32 | frame.must,
                                                        static_cast<uint32_t>(plain_keys_.size()));
      if (fresh)
        plain_keys_.push_back(std::make_unique<PlainKeys>(frames_, solver_, options_, frame));
      plain_[id] = it->second;
    }
  }
  return plain_[id] == kNotPlain ? nullptr : plain_keys_[plain_[id]].get();
}

StringSearch& SchemaMachine::KeySearch(FrameId id) {
  const auto found = keys_.find(id);
  if (found != keys_.end()) return *found->second.search;
  if (PlainKeys* const plain = PlainKeysOf(id)) {
    StringProgram& program = *frames_.layout(frames_[id].layout).program;
    const auto accept = [this, id, plain, &program](StringProgram::StateId state) {
      const int rank = RankOf(frames_.layout(frames_[id].layout), program, state);
      return rank < 0 ? plain->OthersAllowed(id) : plain->NameAllowed(id, rank);
    };
    const auto live = [id, plain](StringProgram::StateId state) { return plain->Live(id, state); };
    KeyEntry entry{nullptr,
                   std::make_unique<StringSearch>(program, accept, live, options_.step_fuel)};
    return *keys_.emplace(id, std::move(entry)).first->second.search;
  }
  const Frame frame = frames_[id];
  const ObjectLayout& layout = frames_.layout(frame.layout);
  KeyEntry entry{layout.program, nullptr};
  AtomId taken = 0;
  bool has_taken = false;
  if (layout.has_key_conditions) {
    // Where patterns restrict the keys, those already used may exhaust them, so the search must
    // know those that matter.
    std::vector<std::u32string> keys;
    for (const NameId name : frames_.seen().Members(KeysApart(frame)))
      keys.push_back(DecodeCodepoints(frames_.Name(name)));
    if (!keys.empty()) {
      taken = table_->formulas.value(table_->AddList(std::move(keys)));
      has_taken = true;
      std::vector<AtomId> atoms = layout.program->atoms();
      atoms.push_back(taken);
      SortUnique(atoms);
      entry.program = solver_.scalars().Program(std::move(atoms));
    }
  }
  StringProgram* const program = entry.program.get();
  // Each answer asks for a frame, and is the same for all keys of which the same is true.
  const auto known = std::make_shared<std::unordered_map<std::string, bool>>();
  const auto accept = [this, id, program, taken, has_taken, known](StringProgram::StateId state) {
    std::string signature = program->Signature(state);
    if (const auto it = known->find(signature); it != known->end()) return it->second;
    const uint64_t before = table_->formulas.assigned();
    const bool allowed = KeyAllowed(id, *program, state, taken, has_taken);
    // A schema of many conditions on many keys: each key looks at each.
    table_->spending->steps += static_cast<int64_t>(table_->formulas.assigned() - before);
    if (known->size() >= limits::kKnownKeys) known->clear();
    known->emplace(std::move(signature), allowed);
    return allowed;
  };
  entry.search = std::make_unique<StringSearch>(*program, accept, options_.step_fuel / 8);
  return *keys_.emplace(id, std::move(entry)).first->second.search;
}

const char* SchemaMachine::Following(Mode mode) {
  // In the order of the modes, up to kAfter.
  static constexpr const char* kFollowing[] = {
      "{[\"-0123456789ntf", "{[\"-0123456789ntf]", "\"}", "\"", ":", ",]}"};
  return mode <= Mode::kAfter ? kFollowing[static_cast<size_t>(mode)] : "";
}

uint32_t SchemaMachine::StepNumber(LexemeId id, uint8_t byte) {
  StopScope::Step();
  int symbol = -1;
  if (byte >= '0' && byte <= '9') {
    symbol = byte - '0';
  } else if (const char* found = byte == 0 ? nullptr : std::strchr(kNumberSigns, byte)) {
    symbol = 10 + static_cast<int>(found - kNumberSigns);
  }
  const Lexeme lexeme = lexemes_[id];
  NumberProgram* program = numbers_[lexeme.search];
  if (symbol < 0) {
    const bool ends = IsSpace(byte) || byte == ',' || byte == ']' || byte == '}';
    return ends && program->Accepts(lexeme.state) ? kLeavesLexeme : kDeadLexeme;
  }
  if (id >= number_row_.size()) number_row_.resize(lexemes_.size(), kNoRow);
  if (number_row_[id] == kNoRow) {
    number_row_[id] = static_cast<uint32_t>(number_rows_.size());
    number_rows_.emplace_back().fill(kLeavesLexeme);  // not asked yet
  }
  const uint32_t row = number_row_[id];
  if (const uint32_t known = number_rows_[row][static_cast<size_t>(symbol)]; known != kLeavesLexeme)
    return known;
  const NumberProgram::StateId next = program->Step(lexeme.state, static_cast<char>(byte));
  const LexemeId after =
      next == 0 ? kDeadLexeme : InternLexeme({Mode::kNumber, lexeme.search, next, 0});
  return number_rows_[row][static_cast<size_t>(symbol)] = after;
}

uint32_t SchemaMachine::StepLexeme(uint32_t id, uint8_t byte) {
  const Lexeme lexeme = lexemes_[id];
  switch (lexeme.mode) {
    case Mode::kString:
    case Mode::kKey: {
      StringPosition position{lexeme.state, lexeme.part};
      switch (StepString(*strings_[lexeme.search], position, byte, spelling_)) {
        case StringStep::kDead:
          return kDeadLexeme;
        case StringStep::kEnd:
          return kLeavesLexeme;
        case StringStep::kInside:
          break;
      }
      return InternLexeme({lexeme.mode, lexeme.search, position.state, position.part});
    }
    case Mode::kNumber:
      return StepNumber(id, byte);
    case Mode::kLiteral: {
      const char* text = kLiterals[lexeme.state >> 3];
      const uint32_t read = lexeme.state & 7;
      if (static_cast<uint8_t>(text[read]) != byte) return kDeadLexeme;
      return text[read + 1] == 0 ? kLeavesLexeme
                                 : InternLexeme({Mode::kLiteral, 0, lexeme.state + 1, 0});
    }
    default:
      break;
  }
  // Structure: what could never come is sorted out before frames are asked.
  if (const std::string_view owed = Owed(lexeme); !owed.empty())
    return static_cast<uint8_t>(owed[0]) == byte ? kLeavesLexeme : kDeadLexeme;
  if (IsSpace(byte)) {
    if (options_.whitespace == JsonSchemaOptions::Whitespace::kCompact) return kDeadLexeme;
    return options_.whitespace == JsonSchemaOptions::Whitespace::kAny ? id : kLeavesLexeme;
  }
  return byte != 0 && std::strchr(Following(lexeme.mode), byte) != nullptr ? kLeavesLexeme
                                                                           : kDeadLexeme;
}

std::string_view SchemaMachine::Owed(const Lexeme& lexeme) const {
  if (lexeme.mode > Mode::kAfter || lexeme.search == 0) return {};
  const std::string_view separator =
      lexeme.search == ',' ? options_.item_separator : options_.key_separator;
  return separator.substr(1 + lexeme.state);
}

std::string SchemaMachine::Quoted(std::string_view text) const {
  const std::string quoted = json::Quote(text);
  return spelling_.ascii ? EscapeBeyondAscii(quoted) : quoted;
}

std::string SchemaMachine::Written(std::string text) const {
  if (spelling_.ascii) text = EscapeBeyondAscii(text);
  if (options_.item_separator.size() == 1 && options_.key_separator.size() == 1) return text;
  std::string out;
  bool inside = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (inside && c == '\\') {
      out.append(text, i++, 2);
    } else if (!inside && (c == ',' || c == ':')) {
      out += c == ',' ? options_.item_separator : options_.key_separator;
    } else {
      inside = inside != (c == '"');
      out.push_back(c);
    }
  }
  return out;
}

Machine::Key SchemaMachine::Space(Key state, const Lexeme& lexeme, uint8_t byte) {
  if (const std::string_view owed = Owed(lexeme); !owed.empty()) {
    if (static_cast<uint8_t>(owed[0]) != byte) return kDead;
    if (owed.size() == 1) return MakeKey(FrameOf(state), Structure(lexeme.mode));
    return MakeKey(FrameOf(state), InternLexeme({lexeme.mode, lexeme.search, lexeme.state + 1, 0}));
  }
  const uint64_t left = SpacesAllowed(state);
  if (left == 0) return kDead;
  return MakeKey(FrameOf(state), Structure(lexeme.mode, left == UINT64_MAX ? 0 : lexeme.state + 1));
}

uint64_t SchemaMachine::SpacesAllowed(Key state) const {
  const Lexeme& lexeme = lexemes_[LexemeOf(state)];
  switch (options_.whitespace) {
    case JsonSchemaOptions::Whitespace::kCompact:
      return 0;
    case JsonSchemaOptions::Whitespace::kBounded: {
      const auto most = static_cast<uint32_t>(std::max(0, options_.max_whitespace));
      // Nothing asks for space around the whole text, and models like to dribble there.
      if (lexeme.mode == Mode::kAfter && nodes_[FrameOf(state)].parent == 0) return 0;
      return lexeme.state < most ? most - lexeme.state : 0;
    }
    case JsonSchemaOptions::Whitespace::kAny:
      return UINT64_MAX;
  }
  return 0;
}

Machine::Key SchemaMachine::StepFrame(Key state, uint8_t byte) {
  StopScope::Step();
  const Lexeme lexeme = lexemes_[LexemeOf(state)];
  if (lexeme.mode == Mode::kNumber) {
    const Key ended = EndNumber(FrameOf(state), lexeme);
    return ended == kDead ? kDead : StepFrame(ended, byte);  // kAfter: no further recursion
  }
  const bool space = lexeme.mode <= Mode::kAfter && IsSpace(byte);
  const Key after = space ? Space(state, lexeme, byte) : Leave(FrameOf(state), lexeme, byte);
  if (after == kDead || !TracksText(FrameOf(after))) return after;
  return MakeKey(AppendText(FrameOf(after), byte), LexemeOf(after));
}

Machine::Key SchemaMachine::Leave(NodeId node, const Lexeme& lexeme, uint8_t byte) {
  switch (lexeme.mode) {
    case Mode::kValue:
      return BeginValue(node, byte);
    case Mode::kFirstItem: {
      if (byte == ']') return CloseContainer(node, byte);
      const FrameId frame = frames_.WithItem(nodes_[node].frame);
      if (frame == kNoFrame || !solver_.LivePending(frame)) return kDead;
      return BeginValue(WithFrame(node, frame), byte);
    }
    case Mode::kFirstKey:
    case Mode::kNextKey:
      if (byte == '"') return BeginKey(node);
      return byte == '}' && lexeme.mode == Mode::kFirstKey ? CloseContainer(node, byte) : kDead;
    case Mode::kColon:
      return byte == ':' ? MakeKey(node, Behind(byte, Mode::kValue)) : kDead;
    case Mode::kAfter:
      return AfterByte(node, byte);
    case Mode::kKey:
      return EndKey(node, lexeme);
    case Mode::kString: {
      const Goal goal = frames_.PendingGoal(nodes_[node].frame);
      return EndValue(node, solver_.scalars().StringTruth(goal, lexeme.state), byte);
    }
    case Mode::kLiteral: {
      const Kind kind = static_cast<Kind>(lexeme.state >> 3);
      std::vector<bool> truth;
      for (const FormulaId track : Frames::Tracks(frames_[nodes_[node].frame])) {
        truth.push_back(table_->formulas.ForKind(track, kind) == kTrueFormula);
      }
      return EndValue(node, truth, byte);
    }
    case Mode::kNumber:
      break;
  }
  return kDead;
}

Machine::Key SchemaMachine::EndNumber(NodeId node, const Lexeme& lexeme) {
  const Goal goal = frames_.PendingGoal(nodes_[node].frame);
  return EndValue(node, solver_.scalars().NumberTruth(goal, lexeme.state), -1);
}

Machine::Key SchemaMachine::BeginValue(NodeId id, uint8_t byte) {
  // Under uniqueItems the text of each item is kept from here on.
  if (Node node = nodes_[id]; node.tracks_items && frames_[node.frame].kind == kArrayValue) {
    node.start = node.text;
    id = InternNode(node);
  }
  const Goal goal = frames_.PendingGoal(nodes_[id].frame);
  switch (byte) {
    case '{':
      return OpenContainer(id, kObjectValue);
    case '[':
      return OpenContainer(id, kArrayValue);
    case '"': {
      if (table_->formulas.ForKind(goal.must, kStringValue) == kFalseFormula) return kDead;
      StringSearch& search = solver_.scalars().String(goal);
      if (!search.Live(search.program().start())) return kDead;
      return MakeKey(id,
                     InternLexeme({Mode::kString, IndexOf(search), search.program().start(), 0}));
    }
    case 'n':
    case 'f':
    case 't': {
      const Kind kind = byte == 'n' ? kNullValue : byte == 'f' ? kFalseValue : kTrueValue;
      if (table_->formulas.ForKind(goal.must, kind) != kTrueFormula) return kDead;
      if (!goal.tracks.empty()) {
        std::vector<bool> truth;
        for (const FormulaId track : goal.tracks)
          truth.push_back(table_->formulas.ForKind(track, kind) == kTrueFormula);
        if (!solver_.AroundAccepts(goal.around, truth)) return kDead;
      }
      return MakeKey(id,
                     InternLexeme({Mode::kLiteral, 0, static_cast<uint32_t>(kind) << 3 | 1u, 0}));
    }
    default:
      break;
  }
  if (byte != '-' && (byte < '0' || byte > '9')) return kDead;
  if (table_->formulas.ForKind(goal.must, kNumberValue) == kFalseFormula) return kDead;
  NumberProgram* program = solver_.scalars().Number(goal);
  if (program == nullptr) return kDead;
  const NumberProgram::StateId state = program->Step(program->start(), static_cast<char>(byte));
  return state == 0 ? kDead
                    : MakeKey(id, InternLexeme({Mode::kNumber, IndexOf(program), state, 0}));
}

Machine::Key SchemaMachine::OpenContainer(NodeId id, Kind kind) {
  const FrameId frame = frames_.Open(kind, frames_.PendingGoal(nodes_[id].frame));
  if (frame == kNoFrame || !solver_.Live(frame)) return kDead;
  Node node;
  node.parent = id;
  node.frame = frame;
  node.tracks_items = nodes_[id].tracks_items || frames_.NeedsCanonicalItems(frames_[frame]);
  if (node.tracks_items) node.text = node.start = nodes_[id].text;
  return MakeKey(InternNode(node),
                 Structure(kind == kArrayValue ? Mode::kFirstItem : Mode::kFirstKey));
}

Machine::Key SchemaMachine::CloseContainer(NodeId id, uint8_t byte) {
  const Node node = nodes_[id];
  if (node.parent == 0 || frames_[node.frame].kind != (byte == ']' ? kArrayValue : kObjectValue))
    return kDead;
  if (!solver_.Closable(node.frame)) return kDead;
  std::vector<bool> truth;
  frames_.EndTruth(frames_[node.frame], truth);
  // The tracks of the goal, in the order of the parent's.
  NodeId parent = node.parent;
  if (nodes_[parent].tracks_items) {
    Node with_text = nodes_[parent];
    with_text.text = node.text;
    parent = InternNode(with_text);
  }
  return EndValue(parent, truth, byte);
}

Machine::Key SchemaMachine::EndValue(NodeId id, const std::vector<bool>& truth, int last) {
  const Node node = nodes_[id];
  std::string canonical;
  const bool item = node.tracks_items && frames_.NeedsCanonicalItems(frames_[node.frame]);
  if (item) {
    std::string text = TextSince(node.text, node.start);
    if (last >= 0) text.push_back(static_cast<char>(last));
    auto value = json::Parse(text, {.max_depth = 1 << 20, .allow_duplicate_keys = true});
    // Numbers beyond what the parser reads are told apart by their text.
    canonical = value.ok() ? CanonicalText(*value) : text;
  }
  const FrameId after = frames_.AfterValue(node.frame, truth, item ? &canonical : nullptr);
  if (after == kNoFrame || !solver_.Live(after)) return kDead;
  return MakeKey(WithFrame(id, after), Structure(Mode::kAfter));
}

Machine::Key SchemaMachine::AfterByte(NodeId id, uint8_t byte) {
  const Frame& frame = frames_[nodes_[id].frame];
  if (byte == ']' || byte == '}') return CloseContainer(id, byte);
  if (byte != ',') return kDead;
  if (frame.kind == kArrayValue) {
    const FrameId next = frames_.WithItem(nodes_[id].frame);
    if (next == kNoFrame || !solver_.LivePending(next)) return kDead;
    return MakeKey(WithFrame(id, next), Behind(byte, Mode::kValue));
  }
  if (frame.kind != kObjectValue) return kDead;
  StringSearch& search = KeySearch(nodes_[id].frame);
  if (!search.Live(search.program().start())) return kDead;
  return MakeKey(id, Behind(byte, Mode::kNextKey));
}

Machine::Key SchemaMachine::BeginKey(NodeId id) {
  StringSearch& search = KeySearch(nodes_[id].frame);
  const StringProgram::StateId start = search.program().start();
  if (!search.Live(start)) return kDead;
  Node node = nodes_[id];
  // Only keys that the schema does not name need their text, to be refused a second time.
  const ObjectLayout& layout = frames_.layout(frames_[node.frame].layout);
  bool closed = !layout.has_key_conditions;
  if (closed) {
    const int rank = RankOf(layout, *layout.program, start);
    closed =
        rank < 0 && frames_.WithKey(node.frame, *layout.program, start, -1, kAnyName) == kNoFrame;
  }
  if (!closed) {
    node.reads_key = true;
    node.start = node.text;
  }
  // StepFrame appends this opening quote to the text, so that EndKey reads the whole key.
  return MakeKey(InternNode(node), InternLexeme({Mode::kKey, IndexOf(search), start, 0}));
}

Machine::Key SchemaMachine::EndKey(NodeId id, const Lexeme& lexeme) {
  const Node node = nodes_[id];
  StringProgram& program = strings_[lexeme.search]->program();
  const ObjectLayout& layout = frames_.layout(frames_[node.frame].layout);
  const int rank = RankOf(layout, program, lexeme.state);
  NameId name;
  if (rank >= 0) {
    name = layout.name_ids[static_cast<size_t>(rank)];
  } else {
    auto key = json::Parse(TextSince(node.text, node.start) + "\"");
    if (!key.ok()) return kDead;
    name = frames_.InternName(key->text);
  }
  return AfterKey(id, program, lexeme.state, rank, name);
}

Machine::Key SchemaMachine::AfterKey(NodeId id, const StringProgram& program,
                                     StringProgram::StateId state, int rank, NameId name) {
  Node node = nodes_[id];
  const FrameId after = frames_.WithKey(node.frame, program, state, rank, name);
  if (after == kNoFrame || !solver_.LivePending(after)) return kDead;
  node.frame = after;
  node.reads_key = false;
  if (!node.tracks_items) node.text = node.start = 0;
  return MakeKey(InternNode(node), Structure(Mode::kColon));
}

bool SchemaMachine::Accepting(Key state) {
  const Node& node = nodes_[FrameOf(state)];
  if (node.parent != 0) return false;
  const Lexeme& lexeme = lexemes_[LexemeOf(state)];
  if (lexeme.mode == Mode::kAfter) return true;
  return lexeme.mode == Mode::kNumber && numbers_[lexeme.search]->Accepts(lexeme.state);
}

// After the outermost value nothing comes, no white space either; only a number may be longer.
bool SchemaMachine::Ends(Key state) {
  return nodes_[FrameOf(state)].parent == 0 && lexemes_[LexemeOf(state)].mode == Mode::kAfter;
}

// The first byte of a value says what kind it is, and so how it ends.
std::bitset<256> SchemaMachine::LastBytes() {
  std::bitset<256> last;
  const Key start = Start();
  for (const auto& [first, ends] :
       {std::pair("{", "}"), std::pair("[", "]"), std::pair("\"", "\""), std::pair("tf", "e"),
        std::pair("n", "l"), std::pair("-0123456789", "0123456789")}) {
    for (const char* byte = first; *byte != 0; ++byte) {
      if (Step(start, static_cast<uint8_t>(*byte)) == kDead) continue;
      for (const char* end = ends; *end != 0; ++end) last.set(static_cast<uint8_t>(*end));
    }
  }
  return last;
}

}  // namespace pawl::schema
