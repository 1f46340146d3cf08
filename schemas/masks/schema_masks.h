// SchemaMasks: which tokens may follow a state of a SchemaMachine.
//
// A mask has several ways to be found, each for states of one sort; PAWL_MASK_STRATEGIES lists them
// in the order in which they are asked. A strategy decides nothing: what it finds equals trying
// every token, only faster. Where none knows the state, the vocabulary's trie is walked.
#ifndef PAWL_SCHEMAS_MASKS_SCHEMA_MASKS_H_
#define PAWL_SCHEMAS_MASKS_SCHEMA_MASKS_H_

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "grammar/masks/machine_masks.h"
#include "grammar/masks/mask_builder.h"
#include "grammar/masks/token_trie.h"
#include "pawl/vocabulary.h"
#include "schemas/machine/schema_machine.h"
#include "schemas/scalar/string_tokens.h"
#include "schemas/scalar/string_walk.h"
#include "src/base/memory_size.h"

namespace pawl::schema {

// Where the tokens of a vocabulary have the bytes of JSON's structure, whatever the schema.
// Between two values stand white space and one byte that matters. Most tokens have nothing of the
// kind, so a mask there asks only for the few trie nodes that do.
// Immutable; get it as TableOf<StructureTokens>(vocabulary).
class StructureTokens {
 public:
  explicit StructureTokens(const Vocabulary& vocabulary);

  // The trie nodes that `byte` leads to after nothing but white space, with the number of white
  // space characters before it.
  struct Place {
    uint32_t node;
    uint32_t spaces;
  };
  std::span<const Place> PlacesOf(uint8_t byte) const { return places_[byte]; }
  // Some token goes on from the trie node (kRoot: from the beginning) to a quote.
  bool LeadsToQuote(uint32_t node) const {
    return node == TokenTrie::kRoot || quotes_before_[ends_[node]] > quotes_before_[node];
  }
  // Sets the bits of the tokens that are white space and no longer than `most`.
  void SetSpaces(uint64_t most, std::span<uint32_t> words) const;

 private:
  std::array<std::vector<Place>, 256> places_;
  std::vector<uint32_t> quotes_before_, ends_;        // by trie node
  std::vector<std::pair<uint32_t, TokenId>> spaces_;  // (length, token)
};

// The strategies, one a line: each is a method of this name in a source of its own.
#define PAWL_MASK_STRATEGIES(way)                                          \
  way(FillTracked)    /* under uniqueItems, unique_masks.cc */             \
      way(FillKeys)   /* of keys that are independent, key_masks.cc */     \
      way(FillString) /* inside other strings and keys, string_masks.cc */ \
      way(FillNumber) /* inside a number within a token, value_masks.cc */ \
      way(FillValue)  /* outside strings, value_masks.cc */

// Bound to one machine and one vocabulary. Not thread-safe.
class SchemaMasks : public MachineMasks {
 public:
  SchemaMasks(SchemaMachine& machine, const Vocabulary& vocabulary);

  std::optional<MaskStrategy> Fill(Machine::Key state, uint32_t* words) override;
  size_t MemoryBytes() const override {
    return lexemes_.bytes() + HeapBytes(stack_, number_stack_, rest_stack_, value_masks_, rests_,
                                        distinct_rests_, simple_closings_, value_rests_, key_rests_,
                                        words_after_, scratch_words_, wide_walks_, indexed_sets_,
                                        indexed_items_, items_with_);
  }
  size_t GrowthHint() const override {
    const auto words = static_cast<size_t>(vocabulary_.mask_words()) * sizeof(uint32_t);
    const size_t rests = tokens_.rest_count() / 8;
    return lexemes_.bytes() + (value_masks_.size() + wide_walks_.size()) * (words + 200) +
           (distinct_rests_.size() + value_rests_.size()) * (rests + 100) +
           words_after_.size() * 600 + (rests_.size() + key_rests_.size()) * 40 +
           items_with_.size() * 100;
  }

 private:
  using Key = Machine::Key;
  using NodeId = SchemaMachine::NodeId;
  using Node = SchemaMachine::Node;
  using Lexeme = SchemaMachine::Lexeme;
  using Mode = SchemaMachine::Mode;
  using SparseWords = std::vector<std::pair<uint32_t, uint32_t>>;  // (index of the word, bits)
  using Remainders = std::vector<uint64_t>;  // bits of the texts behind a quote that may follow

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
  // What is asked for: the tokens below a node of the trie, `state` being the one after that node.
  struct Place {
    Key state;
    uint32_t node;             // TokenTrie::kRoot: all tokens
    uint32_t* words;           // zero where node is the root
    ValueMask* apart;          // of a value that is seen apart: takes down what leaves it
    const StringIndex* index;  // of the strings below the node; nullptr where there are none
    bool root() const { return node == TokenTrie::kRoot; }
  };
  // The place below a node; the tokens' index is looked up where the state is in a string.
  Place At(Key state, uint32_t node, uint32_t* words, ValueMask* apart) const;
  // Asks the ways in their order; nullopt where the trie has to be walked.
  std::optional<MaskStrategy> FillBelow(const Place& place);
#define PAWL_DECLARE_STRATEGY(name) std::optional<MaskStrategy> name(const Place& place);
  PAWL_MASK_STRATEGIES(PAWL_DECLARE_STRATEGY)
#undef PAWL_DECLARE_STRATEGY

  const Lexeme& LexemeAt(Key state) const { return machine_.lexeme(Machine::LexemeOf(state)); }
  const Node& NodeAt(Key state) const { return machine_.node(Machine::FrameOf(state)); }
  StringSearch& SearchAt(Key state) const { return machine_.string(LexemeAt(state)); }
  // The state after the bytes of the token below `place.node`, up to `end` of all its bytes.
  Key WalkToken(const Place& place, TokenId token, size_t end = SIZE_MAX);
  void Set(const Place& place, TokenId token) const {
    place.words[static_cast<size_t>(token) >> 5] |= 1u << (token & 31);
  }
  void Clear(const Place& place, TokenId token) const {
    place.words[static_cast<size_t>(token) >> 5] &= ~(1u << (token & 31));
  }
  void ClearBelow(const Place& place, uint32_t node) const {
    for (uint32_t t = trie_.FirstToken(node); t < trie_.FirstToken(trie_.nodes()[node].end); ++t)
      Clear(place, trie_.order()[t]);
  }
  // Inside a string or key, the text of which no items around it need. What is behind the quote of
  // one that is a part of a value seen apart may leave that value: only for the value itself that
  // is taken down.
  bool InString(const Place& place) const {
    return place.index != nullptr && !NodeAt(place.state).tracks_items &&
           (place.apart == nullptr || NodeAt(place.state).parent == 0);
  }
  // The tokens at and below a node that fit, `entered` being the live state after it.
  void WalkFrom(uint32_t node, Key entered, uint32_t* words, ValueMask* apart);

  // Values, value_masks.cc.
  //
  // kDead where the value cannot be seen apart: its outcome matters to a choice, or its text does.
  Key Standalone(Key state);
  // Of a detached state: the value is there, and `byte` does not belong to it.
  bool Exits(Key state, uint8_t byte) const;
  // The state of which `state` is the pending value's, after that value.
  Key AfterDetached(Key state) { return machine_.EndValue(Machine::FrameOf(state), {}, -1); }
  const ValueMask& ValueMaskOf(Key detached);
  // What may come in a state behind a value, where the value itself has ended.
  const SparseWords& WordsAfter(Key after);
  // The mask of a state outside strings by walking the trie. Its words are zero.
  void WalkAll(Key state, uint32_t* words, ValueMask* apart);

  // Strings, string_masks.cc.
  //
  // Of a detached state: what is there inside the value, and the nodes of rests() that leave it.
  struct ValueRests {
    Remainders inside;
    std::vector<uint32_t> exits;
    size_t MemoryBytes() const { return HeapBytes(inside, exits); }
  };
  template <typename Leaves>
  void TryRests(Key before, uint32_t begin, uint32_t end, Remainders& out, const Leaves& leaves);
  const Remainders& RestsAfter(Key state);
  const ValueRests& ValueRestsAfter(Key detached);
  // A node as it was before anything of the key was read.
  NodeId BeforeKey(NodeId node);
  // Of a key in the object of the node; rank -1: of a key that the schema does not name and that is
  // not there yet.
  const Remainders& RestsAfterKey(NodeId node, const StringProgram& program,
                                  StringProgram::StateId state, int rank);
  // Of the keys of a group that is not free, and of all others that end in its state; `walk` reads
  // one of them. nullptr when there are not so many that they are all alike.
  const Remainders* RestsAfterKeys(const Place& place, const StringClosings& group,
                                   const std::function<Key()>& walk);
  void Close(const Place& place, const std::vector<StringClosings>& closings);
  void CloseStrings(const Place& place, const std::vector<StringClosings>& closings);
  void CloseKeys(const Place& place, const std::vector<StringClosings>& closings);
  void CloseOneKey(const Place& place, const StringClosings& group);
  template <typename Fn>
  static void ForEach(const Place& place, const StringClosings& group, const Fn& fn);
  static bool Allows(const Remainders& rests, uint32_t rest) {
    return ((rests[rest >> 6] >> (rest & 63)) & 1) != 0;
  }
  void Allow(const Place& place, const Remainders& rests,
             const StringIndex::Crossing& crossing) const {
    if (Allows(rests, crossing.rest)) Set(place, crossing.token);
  }
  // What was read of the key so far; nullopt when it is no text yet.
  std::optional<std::string> BegunKey(const Place& place) const;
  // Trie nodes of the quotes that would close a key which is there already, sorted.
  std::vector<uint32_t> QuotesOfSeenKeys(const Place& place);
  // A key that is not there yet.
  NameId FreshName(const Frame& frame);

  // Plain keys, key_masks.cc.
  // The tokens of the index that close a string and go on with one of the rests, but for the
  // intricate ones.
  const SparseWords& SimpleClosings(const StringIndex& index, const Remainders& rests);
  // All keys that the schema does not name.
  void FillOtherKeys(const Place& place);
  // Follows the name from its character number `depth` on through the trie, setting the bits of the
  // tokens that are part of it (unless `others` are set already); the node of its closing quote.
  // `escapes`: nodes of escapes on the way that were walked.
  std::optional<uint32_t> FollowName(const Place& place, const PlainKeys::Name& name, size_t depth,
                                     bool others, std::vector<uint32_t>& escapes);
  // Sets the tokens that fit at and below a node on the way to which one name is spelled.
  void WalkEscape(const Place& place, uint32_t escape);

  // uniqueItems, unique_masks.cc.
  //
  // Takes away the tokens that end an item which is there already, inside a string.
  void RefuseItems(const Place& place);
  // The array takes all strings or none, wherever they come.
  bool StringsAreFree(const Frame& frame);
  // The same place in a text of which nothing is remembered; its arrays take an item twice.
  NodeId TwinNode(NodeId node);
  // Arrays around (or at) the node that want unique items: whether they have any; whether one of
  // those items has the string in it.
  bool HasItems(NodeId node) const;
  bool OccursInItems(NodeId node, const std::string& text);
  void IndexItems(IdSets::Id items);
  // The string that is being read, decoded; nullopt where that cannot be said.
  std::optional<std::string> BegunString(NodeId node) const;

  SchemaMachine& machine_;
  Frames& frames_;
  Solver& solver_;
  const JsonSchemaOptions& options_;
  const Vocabulary& vocabulary_;
  const TokenTrie& trie_;
  const StringTokens& tokens_;
  LexemeMasks lexemes_;
  std::vector<Key> stack_;              // scratch of walks over trie_
  std::vector<uint32_t> number_stack_;  // and of those inside numbers
  std::vector<Key> rest_stack_;         // and of those over the rests

  std::unordered_map<Key, std::unique_ptr<ValueMask>> value_masks_;  // by detached state
  std::unordered_map<Key, const Remainders*> rests_;
  std::set<Remainders> distinct_rests_;
  std::map<std::pair<const StringIndex*, const Remainders*>, SparseWords> simple_closings_;
  std::unordered_map<Key, ValueRests> value_rests_;
  std::unordered_map<Key, SparseWords> words_after_;
  std::vector<uint32_t> scratch_words_;
  std::unordered_map<uint64_t, const Remainders*>
      key_rests_;  // by node, and rank or state of the key
  // Walks of strings under several conditions, by search and state: in keys, the text of which is
  // remembered, the same ones are asked for at many places.
  struct WideWalk {
    std::vector<uint32_t> words;
    std::vector<StringClosings> closings;
    MaskStrategy path;
    size_t MemoryBytes() const { return HeapBytes(words, closings); }
  };
  std::unordered_map<uint64_t, std::shared_ptr<WideWalk>> wide_walks_;
  std::unordered_set<IdSets::Id> indexed_sets_;
  std::unordered_set<uint32_t> indexed_items_;
  std::unordered_map<std::string, std::vector<uint32_t>> items_with_;  // items by strings in them
};

// For SchemaMachine's constructor.
std::unique_ptr<MachineMasks> MakeSchemaMasks(SchemaMachine& machine, const Vocabulary& vocabulary);

}  // namespace pawl::schema

#endif  // PAWL_SCHEMAS_MASKS_SCHEMA_MASKS_H_
