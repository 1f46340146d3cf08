// SchemaMachine: the automaton over bytes of JSON texts that are valid for a schema.
//
// The upper half of a state is a node of the persistent stack of frames (frames.h), the lower half
// a lexeme state: white space and structure, or a position in a string, number or literal together
// with the search that knows which of its continuations are acceptable. docs/json_schema.md tells
// the whole story.
#ifndef PAWL_SCHEMAS_MACHINE_SCHEMA_MACHINE_H_
#define PAWL_SCHEMAS_MACHINE_SCHEMA_MACHINE_H_

#include <array>
#include <bitset>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "grammar/hash_index.h"
#include "grammar/machine.h"
#include "pawl/compiler.h"
#include "schemas/formula/atoms.h"
#include "schemas/frames/frames.h"
#include "schemas/scalar/json_string.h"
#include "schemas/solve/plain_keys.h"
#include "schemas/solve/solver.h"
#include "src/base/memory_size.h"

namespace pawl::schema {

class SchemaMachine : public Machine {
 public:
  // What makes the masks, which are made of machines and not the other way round
  // (masks/schema_masks.h). Without it masks are found by walking.
  using MakeMasks = std::unique_ptr<MachineMasks> (*)(SchemaMachine&, const Vocabulary&);
  SchemaMachine(std::unique_ptr<SchemaTable> table, const JsonSchemaOptions& options,
                MakeMasks make_masks = nullptr);
  ~SchemaMachine() override;

  // Whether any value fits the schema: kUnsatisfiable when none does.
  Status CheckSatisfiable();

  // The pointer of a field whose text is not there yet (JsonSchemaOptions::bind_source); empty:
  // there is none.
  std::string UnboundField() const {
    const bool waits = table_->source == nullptr && !table_->source_fields.empty();
    return waits ? table_->source_fields.front().second : "";
  }
  // The pointer of a field that is copied from a text which is there; empty: there is none.
  std::string BoundField() const {
    const bool copies = table_->source != nullptr && !table_->source_fields.empty();
    return copies ? table_->source_fields.front().second : "";
  }
  // ReadSchema::has_object_unions.
  bool has_object_unions() const { return object_unions_; }
  void set_object_unions(bool unions) { object_unions_ = unions; }
  // See Solver::undecided().
  uint64_t undecided() const { return solver_.undecided(); }
  uint64_t solver_steps() const { return solver_.steps(); }
  size_t frame_count() const { return frames_.size(); }

  Key Start() override;
  uint32_t StepLexeme(uint32_t lexeme, uint8_t byte) override;
  Key StepFrame(Key state, uint8_t byte) override;
  bool Accepting(Key state) override;
  std::optional<std::string> CompletionBytes(Key state) override;
  std::vector<std::string> SampleTexts(size_t bytes) override;
  bool Ends(Key state) override;
  std::bitset<256> LastBytes() override;
  bool TracksText(uint32_t frame) override {
    return nodes_[frame].tracks_items || nodes_[frame].reads_key;
  }
  uint32_t AppendText(uint32_t frame, uint8_t byte) override;
  MachineMasks* Masks(const Vocabulary& vocabulary) override;
  size_t MemoryBytes() const override;
  size_t GrowthHint() const override;
  uint64_t steps() const override {
    const SearchSpending& spending = *table_->spending;
    return static_cast<uint64_t>(spending.steps) + table_->regexes->work() + solver_.steps() +
           spending.states;
  }
  // Nodes of tries of tokens that were walked for masks: at most a few times the nodes of the
  // vocabulary for each mask, so they have no limit of their own.
  uint64_t nodes() const { return table_->spending->nodes; }
  // Nodes of tries that were walked for masks.
  void CountNodes(uint64_t nodes) { table_->spending->nodes += nodes; }

  // What follows is for the room of masks. States of the machine, seen from inside.
  using NodeId = uint32_t;
  using LexemeId = uint32_t;

  enum class Mode : uint8_t {
    kValue,      // a value comes
    kFirstItem,  // after '[': a value or ']'
    kFirstKey,   // after '{': a key or '}'
    kNextKey,    // after ',' in an object
    kColon,      // after a key
    kAfter,      // after a value: ',' or a closing bracket, or the end
    kString,
    kKey,
    kNumber,
    kLiteral,  // inside null, true, false
  };
  struct Lexeme {
    Mode mode;
    uint32_t search = 0;  // kString, kKey: index into strings_; kNumber: into numbers_; structure:
                          // the separator (',' or ':') whose white space is being read, 0 for none
    uint32_t state = 0;   // structure: white space read; scalars: state of the program; kLiteral: 8
                          // * kind + bytes read
    uint64_t part = 0;    // kString, kKey: of a code point
    friend bool operator==(const Lexeme&, const Lexeme&) = default;
  };
  struct Node {
    NodeId parent = 0;
    FrameId frame = kNoFrame;
    uint32_t text =
        0;  // what was read so far, as a chain of bytes (texts_); only while it is tracked
    uint32_t start = 0;         // the chain at the start of the item or key being read
    bool tracks_items = false;  // inside an array with uniqueItems
    bool reads_key = false;     // inside a key that the schema may not name
    friend bool operator==(const Node&, const Node&) = default;
  };
  const Lexeme& lexeme(uint32_t id) const { return lexemes_[id]; }
  const Node& node(uint32_t id) const { return nodes_[id]; }
  StringSearch& string(const Lexeme& lexeme) const { return *strings_[lexeme.search]; }
  NumberProgram& number(const Lexeme& lexeme) const { return *numbers_[lexeme.search]; }
  Frames& frames() { return frames_; }
  Solver& solver() { return solver_; }
  const JsonSchemaOptions& options() const { return options_; }
  StringSpelling spelling() const { return spelling_; }

  NodeId InternNode(const Node& node);
  uint32_t InternText(uint32_t before, uint8_t byte);
  std::string TextSince(uint32_t text, uint32_t start) const;
  // Bytes other than white space that can come in a structural mode.
  static const char* Following(Mode mode);
  static bool IsSpace(uint8_t byte) {
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
  }
  // White space that must come before anything else: what is left of a separator.
  std::string_view Owed(const Lexeme& lexeme) const;
  // White space that may come here.
  uint64_t SpacesAllowed(Key state) const;
  // A string as its shortest spelling, in quotes.
  std::string Quoted(std::string_view text) const;
  // StepLexeme inside a number.
  uint32_t StepNumber(LexemeId id, uint8_t byte);
  int RankOf(const ObjectLayout& layout, const StringProgram& program,
             StringProgram::StateId state) const;
  PlainKeys* PlainKeysOf(FrameId frame);  // nullptr where keys are not plain
  Key AfterKey(NodeId node, const StringProgram& program, StringProgram::StateId state, int rank,
               NameId name);
  // The pending value of node's frame is there; `truth` are the outcomes of its tracks. `last`: the
  // byte that ends the value when it belongs to it (a quote, a bracket, the last letter of a
  // literal), -1 for numbers.
  Key EndValue(NodeId node, const std::vector<bool>& truth, int last);
  // The same behind a number, whose end no byte belongs to.
  Key EndNumber(NodeId node, const Lexeme& lexeme);
  Key StepText(Key state, std::string_view text) {
    for (size_t i = 0; i < text.size() && state != kDead; ++i)
      state = Step(state, static_cast<uint8_t>(text[i]));
    return state;
  }

 private:
  bool object_unions_ = false;
  static constexpr const char* kLiterals[] = {"null", "false", "true"};  // by Kind
  struct Text {
    uint32_t before;
    uint8_t byte;
    bool operator==(const Text&) const = default;
  };

  LexemeId InternLexeme(const Lexeme& lexeme);
  LexemeId Structure(Mode mode, uint32_t spaces = 0) { return InternLexeme({mode, 0, spaces, 0}); }
  // What comes after a comma or a colon.
  LexemeId Behind(uint8_t separator, Mode mode) {
    const bool spaced =
        (separator == ',' ? options_.item_separator : options_.key_separator).size() > 1;
    return spaced ? InternLexeme({mode, separator, 0, 0}) : Structure(mode);
  }
  NodeId WithFrame(NodeId node, FrameId frame);

  uint32_t IndexOf(StringSearch& search);
  uint32_t IndexOf(NumberProgram* program);
  StringSearch& KeySearch(FrameId frame);
  // Keys beyond the named ones that the frame has already and that a new key could run into: some
  // beginning of theirs has few continuations that may be keys here.
  IdSets::Id KeysApart(const Frame& frame);
  IdSets::Id NamedKeys(uint32_t layout, IdSets::Id seen);
  bool KeyAllowed(FrameId frame, StringProgram& program, StringProgram::StateId state, AtomId taken,
                  bool has_taken);

  // The state after one more white space character, kDead when the options forbid it here.
  Key Space(Key state, const Lexeme& lexeme, uint8_t byte);
  // A JSON text as the options would have it written; `text` is compact and begins outside strings.
  std::string Written(std::string text) const;
  // A byte that ends a lexeme, or structure; white space apart.
  Key Leave(NodeId node, const Lexeme& lexeme, uint8_t byte);
  Key BeginValue(NodeId node, uint8_t byte);
  Key BeginKey(NodeId node);
  Key EndKey(NodeId node, const Lexeme& lexeme);
  Key OpenContainer(NodeId node, Kind kind);
  Key CloseContainer(NodeId node, uint8_t byte);
  Key AfterByte(NodeId node, uint8_t byte);
  // What completes the item (or key) that is being read to one that is not among the `taken` ones
  // there already; `shortest`: what completes it to any. nullopt when none is found.
  std::optional<std::string> NewString(Key state, const std::string& shortest, size_t taken);
  std::optional<std::string> NewNumber(Key state, const std::string& shortest);
  std::optional<std::string> NewKey(Key state);
  // The state after a piece of a completion, kDead where it does not fit.
  Key AfterPiece(Key state, const std::string& piece);
  // The same after the key at piece[read], with the comma before it; nullopt where there is none.
  std::optional<Key> ReadKey(Key state, std::string_view piece, size_t& read);
  // What is missing of a container, its bracket included; `mode`: where it stands in it.
  std::optional<std::string> RestOf(FrameId frame, Mode mode);
  // The rest of an array whose missing items were counted, and the state after it; kDead where they
  // were not, or where the text `wanted` does not begin with it. `mode`: kAfter or kFirstItem.
  struct Closed {
    Key state = kDead;
    std::string text = {};
  };
  Closed CloseCounted(NodeId id, Mode mode, std::optional<std::string_view> wanted = {});
  std::optional<Key> ReadCounted(Key state, std::string_view piece, size_t& read);

  std::unique_ptr<SchemaTable> table_;
  JsonSchemaOptions options_;
  const StringSpelling spelling_;
  Frames frames_;
  Solver solver_;

  std::vector<Lexeme> lexemes_;
  HashIndex lexeme_index_;
  std::vector<Node> nodes_;
  HashIndex node_index_;
  std::vector<Text> texts_;
  HashIndex text_index_;
  std::vector<StringSearch*> strings_;
  std::unordered_map<StringSearch*, uint32_t> string_index_;
  std::vector<NumberProgram*> numbers_;
  // What StepLexeme said inside numbers, by lexeme and character: numbers are read by the thousand.
  static constexpr uint32_t kNoRow = UINT32_MAX;
  std::vector<uint32_t> number_row_;  // by lexeme
  std::vector<std::array<uint32_t, 16>> number_rows_;
  std::unordered_map<NumberProgram*, uint32_t> number_index_;
  struct KeyEntry {
    std::shared_ptr<StringProgram> program;
    std::unique_ptr<StringSearch> search;
    size_t MemoryBytes() const { return HeapBytes(search); }  // the program is one of the scalars'
  };
  std::unordered_map<FrameId, KeyEntry> keys_;
  std::map<std::pair<FrameId, IdSets::Id>, IdSets::Id> keys_apart_;  // by frame without its others
  std::map<std::pair<uint32_t, IdSets::Id>, IdSets::Id> named_keys_;

  static constexpr uint32_t kNotAsked = UINT32_MAX, kNotPlain = UINT32_MAX - 1;
  std::vector<uint32_t> plain_;  // by frame: index into plain_keys_
  std::vector<std::unique_ptr<PlainKeys>> plain_keys_;
  std::unordered_map<uint64_t, uint32_t> plain_index_;  // by layout and formula

  const MakeMasks make_masks_;
  std::unique_ptr<MachineMasks> masks_;
};

}  // namespace pawl::schema

#endif  // PAWL_SCHEMAS_MACHINE_SCHEMA_MACHINE_H_
