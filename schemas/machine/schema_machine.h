// SchemaMachine: the automaton over bytes of JSON texts that are valid for a schema.
//
// The upper half of a state is a node of the persistent stack of frames (frames.h), the lower half
// a lexeme state: white space and structure, or a position in a string, number or literal together
// with the search that knows which of its continuations are acceptable. docs/json_schema.md tells
// the whole story.
#ifndef PAWL_SCHEMAS_SCHEMA_MACHINE_H_
#define PAWL_SCHEMAS_SCHEMA_MACHINE_H_

#include <array>
#include <bitset>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "grammar/machine.h"
#include "grammar/masks/mask_path.h"
#include "grammar/masks/token_trie.h"
#include "pawl/json_schema_options.h"
#include "schemas/formula/atoms.h"
#include "schemas/frames/frames.h"
#include "schemas/masks/plain_keys.h"
#include "schemas/scalar/json_string.h"
#include "schemas/scalar/string_tokens.h"
#include "schemas/scalar/string_walk.h"
#include "schemas/solve/solver.h"
#include "src/base/memory_size.h"

namespace pawl::schema {

class SchemaMachine : public Machine {
 public:
  SchemaMachine(std::unique_ptr<SchemaTable> table, const JsonSchemaOptions& options);

  // Whether any value fits the schema: kUnsatisfiable when none does.
  Status CheckSatisfiable();

  // See Solver::undecided().
  uint64_t undecided() const { return solver_.undecided(); }
  uint64_t solver_steps() const { return solver_.steps(); }

  Key Start() override;
  uint32_t StepLexeme(uint32_t lexeme, uint8_t byte) override;
  Key StepFrame(Key state, uint8_t byte) override;
  bool Accepting(Key state) override;
  std::optional<std::string> ShortestCompletion(Key state) override;
  bool Ends(Key state) override;
  std::bitset<256> LastBytes() override;
  bool TracksText(uint32_t frame) override {
    return nodes_[frame].tracks_items || nodes_[frame].reads_key;
  }
  uint32_t AppendText(uint32_t frame, uint8_t byte) override;
  size_t MemoryBytes() const override;
  size_t GrowthHint() const override;
  bool FillBelow(Key state, const Vocabulary& vocabulary, uint32_t node, bool fresh,
                 uint32_t* words) override;

 private:
  static constexpr const char* kLiterals[] = {"null", "false", "true"};  // by Kind
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
  struct Text {
    uint32_t before;
    uint8_t byte;
  };

  LexemeId InternLexeme(const Lexeme& lexeme);
  LexemeId Structure(Mode mode, uint32_t spaces = 0) { return InternLexeme({mode, 0, spaces, 0}); }
  // What comes after a comma or a colon.
  LexemeId Behind(uint8_t separator, Mode mode) {
    const bool spaced =
        (separator == ',' ? options_.item_separator : options_.key_separator).size() > 1;
    return spaced ? InternLexeme({mode, separator, 0, 0}) : Structure(mode);
  }
  NodeId InternNode(const Node& node);
  uint32_t InternText(uint32_t before, uint8_t byte);
  std::string TextSince(uint32_t text, uint32_t start) const;
  NodeId WithFrame(NodeId node, FrameId frame);

  // Bytes beside white space that can come in a structural mode.
  static const char* Following(Mode mode);
  uint32_t StepNumber(LexemeId id, uint8_t byte);
  uint32_t IndexOf(StringSearch& search);
  uint32_t IndexOf(NumberProgram* program);
  StringSearch& KeySearch(FrameId frame);
  // Keys beyond the named ones that the frame has already and that a new key could run into: some
  // beginning of theirs has few continuations that may be keys here.
  IdSets::Id KeysApart(const Frame& frame);
  IdSets::Id NamedKeys(uint32_t layout, IdSets::Id seen);
  bool KeyAllowed(FrameId frame, StringProgram& program, StringProgram::StateId state, AtomId taken,
                  bool has_taken);
  int RankOf(const ObjectLayout& layout, const StringProgram& program,
             StringProgram::StateId state) const;

  bool IsSpace(uint8_t byte) const {
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
  }
  // The state after one more white space character, kDead when the options forbid it here.
  Key Space(Key state, const Lexeme& lexeme, uint8_t byte);
  // White space that must come before anything else: what is left of a separator.
  std::string_view Owed(const Lexeme& lexeme) const;
  // A JSON text as the options would have it written; `text` is compact and begins outside strings.
  std::string Written(std::string text) const;
  // A string as its shortest spelling, in quotes.
  std::string Quoted(std::string_view text) const;
  Key BeginValue(NodeId node, uint8_t byte);
  Key BeginKey(NodeId node);
  Key EndKey(NodeId node, const Lexeme& lexeme, uint8_t byte);
  Key AfterKey(NodeId node, const StringProgram& program, StringProgram::StateId state, int rank,
               NameId name);
  Key OpenContainer(NodeId node, Kind kind, uint8_t byte);
  Key CloseContainer(NodeId node, uint8_t byte);
  // The pending value of node's frame is there; `truth` are the outcomes of its tracks. `last`: the
  // byte that ends the value when it belongs to it (a quote, a bracket, the last letter of a
  // literal), -1 for numbers.
  Key EndValue(NodeId node, const std::vector<bool>& truth, int last);
  Key AfterByte(NodeId node, uint8_t byte);
  // What completes the item (or key) that is being read to one that is not among the `taken` ones
  // there already; `shortest`: what completes it to any. nullopt when none is found.
  std::optional<std::string> NewString(Key state, const std::string& shortest, size_t taken);
  std::optional<std::string> NewNumber(Key state, const std::string& shortest);

  // Values seen apart from what is around them, value_masks.cc.
  //
  // While a value is read nothing but its goal matters; when it has ended nothing but what is
  // around it does. A detached state is the same place in a text that is this value and nothing
  // else, so all places that want the same share what was found for one.
  struct ValueMask {
    std::vector<uint32_t> words;  // tokens that end inside the value, or with it
    bool ends_here = false;       // the value may be complete already
    std::vector<uint32_t> exits;  // trie nodes whose byte is the first behind the value
    // Tokens that close a string, which is the value, and have something behind the quote.
    std::vector<std::pair<TokenId, uint32_t>> closings;  // with the place of that in rests()
    size_t MemoryBytes() const { return HeapBytes(words, exits, closings); }
  };
  // kDead where the value cannot be seen apart: its outcome matters to a choice, or its text does.
  Key Detached(Key state);
  // Of a detached state: the value is there, and `byte` does not belong to it.
  bool Exits(Key state, uint8_t byte);
  // The state of which `state` is the pending value's, after that value.
  Key AfterDetached(Key state);
  const ValueMask& ValueMaskOf(Key detached, const Vocabulary& vocabulary);
  // White space that may come here.
  uint64_t SpacesAllowed(Key state) const;
  // The mask of a state outside strings by walking the trie. Its words are zero.
  void WalkAll(Key state, const Vocabulary& vocabulary, uint32_t* words);
  // Whether a trie node leaves the value that is being seen apart; if so it is taken down.
  auto Leaves(const Vocabulary& vocabulary) {
    return [this, &vocabulary](Key before, uint32_t node) {
      if (detaching_ == nullptr || !Exits(before, vocabulary.trie().nodes()[node].byte))
        return false;
      detaching_->exits.push_back(node);
      return true;
    };
  }
  // The tokens below a node that has led into a number.
  void FillNumber(Key state, const Vocabulary& vocabulary, uint32_t node, uint32_t* words);
  bool FillValue(Key state, const Vocabulary& vocabulary, uint32_t* words);

  // Masks inside strings, schema_masks.cc.
  using Rests = std::vector<uint64_t>;  // bits of the texts behind a quote that may follow
  // Of a detached state: what is there inside the value, and the nodes of rests() that leave it.
  struct ValueRests {
    Rests inside;
    std::vector<uint32_t> exits;
    size_t MemoryBytes() const { return HeapBytes(inside, exits); }
  };
  struct Below {
    Key state;
    const Vocabulary& vocabulary;
    uint32_t node;
    const StringIndex& index;
    uint32_t* words;
  };
  const StringTokens& TokensOf(const Vocabulary& vocabulary);
  const Rests& RestsAfter(Key state);
  const ValueRests& ValueRestsAfter(Key detached);
  // Of a key in the object of the node; rank -1: of a key that the schema does not name and that is
  // not there yet.
  const Rests& RestsAfterKey(NodeId node, const StringProgram& program,
                             StringProgram::StateId state, int rank);
  // Of the keys of a group that is not free, and of all others that end in its state; `walk` reads
  // one of them. nullptr when there are not so many that they are all alike.
  const Rests* RestsAfterKeys(const Below& below, const StringClosings& group,
                              const std::function<Key()>& walk);
  // Masks under uniqueItems, unique_masks.cc.
  bool FillTracked(Key state, const Vocabulary& vocabulary, uint32_t* words);
  // Takes away the tokens that end an item which is there already, inside a string.
  void RefuseItems(const Below& below);
  // The array takes all strings or none, wherever they come.
  bool StringsAreFree(const Frame& frame);
  // The same place in a text of which nothing is remembered; its arrays take an item twice.
  NodeId TwinNode(NodeId node);
  // Arrays around (or at) the node that want unique items: whether they have any; whether one of
  // those items has the string in it.
  bool HasItems(NodeId node) const;
  bool OccursInItems(NodeId node, const std::string& text);
  // The string that is being read, decoded; nullopt where that cannot be said.
  std::optional<std::string> BegunString(NodeId node) const;

  // Masks inside plain keys, key_masks.cc.
  using SparseWords = std::vector<std::pair<uint32_t, uint32_t>>;  // (index of the word, bits)
  PlainKeys* PlainKeysOf(FrameId frame);  // nullptr where keys are not plain
  bool FillPlainKeys(const Below& below, bool fresh);
  // The tokens of the index that close a string and go on with one of the rests, but for the
  // intricate ones.
  const SparseWords& SimpleClosings(const StringIndex& index, const Rests& rests);
  void SetRests(const Below& below, const Rests& rests, uint32_t first, uint32_t last);
  // The state after the bytes of the token below `below.node`, up to `end` of all its bytes.
  Key WalkToken(const Below& below, TokenId token, size_t end = SIZE_MAX);
  // Follows the name from its character number `depth` on through the trie, setting the bits of the
  // tokens that are part of it (unless `others` are set already); the node of its closing quote.
  // `escapes`: nodes of escapes on the way that were walked.
  std::optional<uint32_t> FollowName(const Below& below, const PlainKeys::Name& name, size_t depth,
                                     bool others, std::vector<uint32_t>& escapes);
  // Sets the tokens that fit at and below a node on the way to which one name is spelled.
  void WalkEscape(const Below& below, uint32_t escape);

  void CloseStrings(const Below& below, const std::vector<StringClosings>& closings);
  void CloseKeys(const Below& below, const std::vector<StringClosings>& closings);
  template <typename Fn>
  static void ForEach(const Below& below, const StringClosings& group, const Fn& fn);
  static bool Allows(const Rests& rests, const StringIndex::Crossing& crossing);
  static void Allow(const Below& below, const Rests& rests, const StringIndex::Crossing& crossing);
  // What was read of the key so far; nullopt when it is no text yet.
  std::optional<std::string> BegunKey(const Below& below) const;
  // Trie nodes of the quotes that would close a key which is there already, sorted.
  std::vector<uint32_t> QuotesOfSeenKeys(const Below& below);
  // A key that is not there yet.
  NameId FreshName(const Frame& frame);

  std::unique_ptr<SchemaTable> table_;
  JsonSchemaOptions options_;
  const StringSpelling spelling_;
  Frames frames_;
  Solver solver_;

  std::vector<Lexeme> lexemes_;
  std::unordered_multimap<uint64_t, LexemeId> lexeme_index_;
  std::vector<Node> nodes_;
  std::unordered_multimap<uint64_t, NodeId> node_index_;
  std::vector<Text> texts_;
  std::unordered_map<uint64_t, uint32_t> text_index_;
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

  uint32_t indexed_items_ = 0;
  std::unordered_map<std::string, std::vector<uint32_t>> items_with_;  // items by strings in them

  const StringTokens* tokens_ = nullptr;
  size_t mask_bytes_ = 0;  // of a mask of the vocabulary that tokens_ is of
  std::unordered_map<Key, std::unique_ptr<ValueMask>> value_masks_;  // by detached state
  ValueMask* detaching_ = nullptr;  // the mask being made, which takes down what leaves the value
  std::unordered_map<Key, const Rests*> rests_;
  std::set<Rests> distinct_rests_;
  std::map<std::pair<const StringIndex*, const Rests*>, SparseWords> simple_closings_;
  std::unordered_map<Key, ValueRests> value_rests_;
  // Walks of strings under several conditions, by search and state: in keys, the text of which is
  // remembered, the same ones are asked for at many places.
  struct WideWalk {
    std::vector<uint32_t> words;
    std::vector<StringClosings> closings;
    MaskPath path;
    size_t MemoryBytes() const { return HeapBytes(words, closings); }
  };
  std::unordered_map<uint64_t, std::shared_ptr<WideWalk>> wide_walks_;
  std::unordered_map<uint64_t, const Rests*> key_rests_;  // by node, and rank or state of the key
};

}  // namespace pawl::schema

#endif  // PAWL_SCHEMAS_SCHEMA_MACHINE_H_
