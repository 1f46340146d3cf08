// Masks under uniqueItems. There the text of every item is remembered, so hardly two states are the
// same. But uniqueness can refuse a token only if an item ends in it; for all others a twin of the
// state will do, which remembers nothing. The few that are left are tried on the state itself.
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/masks/token_trie.h"
#include "grammar/vocabulary_tables.h"
#include "pawl/vocabulary.h"
#include "schemas/masks/schema_masks.h"
#include "src/base/json.h"
#include "src/base/utf8.h"

namespace pawl::schema {

// The tokens of a vocabulary in which a JSON value may end, whatever the schema. Where items have
// to be unique, the byte that ends an item may be refused for what the item is. Only these tokens
// can hold such a byte, unless they end a string that was begun before them.

// Immutable; get it as TableOf<ItemTokens>(vocabulary).
class ItemTokens {
 public:
  explicit ItemTokens(const Vocabulary& vocabulary);

  // Their trie; its tokens are places in ids().
  const TokenTrie& trie() const { return *trie_; }
  const std::vector<TokenId>& ids() const { return ids_; }
  // Whether a whole value may end in `rest` that has also begun there.
  static bool HoldsValue(std::string_view rest);

 private:
  std::vector<TokenId> ids_;
  std::unique_ptr<TokenTrie> trie_;
};

// A value ends with a bracket, a quote, the last letter of a literal, or before what follows a
// number. A token without any of these cannot end one; the others get a trie of their own, far
// smaller than the vocabulary's.

namespace {

bool EndsNumber(char c) { return std::string_view(" \t\r\n,]}").find(c) != std::string_view::npos; }

// A run of letters that may be the end of a literal.
bool EndsLiteral(std::string_view letters) {
  for (const std::string_view literal : {"true", "false", "null"}) {
    if (literal.ends_with(letters)) return true;
  }
  return false;
}

bool MayEndValue(std::string_view token) {
  int quotes = 0;
  size_t letters = 0;  // where the run of letters up to here begins
  for (size_t i = 0; i < token.size(); ++i) {
    const char c = token[i];
    if (c == ']' || c == '}' || (c == '"' && ++quotes > 1)) return true;
    if (i > 0 && IsDigit(token[i - 1]) && EndsNumber(c)) return true;
    if (IsLetter(c)) continue;
    if (i > letters && EndsLiteral(token.substr(letters, i - letters))) return true;
    letters = i + 1;
  }
  return token.size() > letters && EndsLiteral(token.substr(letters));
}

}  // namespace

ItemTokens::ItemTokens(const Vocabulary& vocabulary) {
  std::vector<std::string> texts;
  std::vector<TokenId> places;
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    if (vocabulary.is_special(id) || !MayEndValue(vocabulary.bytes(id))) continue;
    places.push_back(static_cast<TokenId>(ids_.size()));
    ids_.push_back(id);
    texts.emplace_back(vocabulary.bytes(id));
  }
  trie_ = std::make_unique<TokenTrie>(texts, places);
}

bool ItemTokens::HoldsValue(std::string_view rest) {
  const size_t comma = rest.find(',');
  return comma != std::string_view::npos && MayEndValue(rest.substr(comma));
}

namespace {

void CollectStrings(const json::Value& value, std::vector<std::string>& out) {
  if (value.type == json::Type::kString) out.push_back(value.text);
  for (const json::Value& item : value.items) CollectStrings(item, out);
  for (const auto& [name, member] : value.members) {
    out.push_back(name);
    CollectStrings(member, out);
  }
}

}  // namespace

SchemaMasks::NodeId SchemaMasks::TwinNode(NodeId id) {
  Node node = machine_.node(id);
  if (!node.tracks_items) return id;
  const std::string key = node.reads_key ? machine_.TextSince(node.text, node.start) : "";
  node.tracks_items = false;
  node.parent = TwinNode(node.parent);
  node.text = node.start = 0;
  for (const char c : key) node.text = machine_.InternText(node.text, static_cast<uint8_t>(c));
  return machine_.InternNode(node);
}

std::optional<std::string> SchemaMasks::BegunString(NodeId id) const {
  const std::string text = machine_.TextSince(machine_.node(id).text, machine_.node(id).start);
  size_t open = std::string::npos;
  bool inside = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (inside && text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      inside = !inside;
      if (inside) open = i;
    }
  }
  if (!inside) return std::nullopt;
  if (text.find('\\', open) == std::string::npos) return text.substr(open + 1);
  auto parsed = json::Parse(text.substr(open) + "\"");
  if (!parsed.ok()) return std::nullopt;
  return std::move(parsed->text);
}

bool SchemaMasks::HasItems(NodeId id) const {
  for (; id != 0 && machine_.node(id).tracks_items; id = machine_.node(id).parent) {
    if (frames_[machine_.node(id).frame].items != IdSets::kEmpty) return true;
  }
  return false;
}

// Of the items that were ever tried most are in no array: only those that are get an entry.
void SchemaMasks::IndexItems(IdSets::Id items) {
  const IdSets& sets = frames_.items();
  for (; items != IdSets::kEmpty && indexed_sets_.insert(items).second;
       items = sets.Before(items)) {
    const uint32_t item = sets.Last(items);
    if (!indexed_items_.insert(item).second) continue;
    std::vector<std::string> strings;
    auto value = json::Parse(frames_.ItemText(item), {.max_depth = 1 << 20});
    if (value.ok()) CollectStrings(*value, strings);
    for (std::string& one : strings) items_with_[std::move(one)].push_back(item);
  }
}

bool SchemaMasks::OccursInItems(NodeId id, const std::string& text) {
  for (; id != 0 && machine_.node(id).tracks_items; id = machine_.node(id).parent) {
    const IdSets::Id items = frames_[machine_.node(id).frame].items;
    IndexItems(items);
    const auto found = items_with_.find(text);
    if (found == items_with_.end()) continue;
    for (const uint32_t item : found->second) {
      if (frames_.items().Contains(items, item)) return true;
    }
  }
  return false;
}

bool SchemaMasks::StringsAreFree(const Frame& frame) {
  if (!frames_.PlainUnique(frame)) return false;
  FormulaArena& formulas = frames_.table().formulas;
  for (const AtomId id : formulas.MustAtoms(frame.must)) {
    const ArrayAtom& array = frames_.table().array(id);
    const auto free = [&](FormulaId item) {
      return formulas.IsConstant(formulas.ForKind(item, kStringValue));
    };
    if (!free(array.items) || !std::ranges::all_of(array.prefix, free)) return false;
  }
  return true;
}

// Where a string ends, three things may happen to the items around it: none of them ends there; the
// string is an item, of an array that takes any string; or an item ends of which it is a part. Then
// an item that is new is like any other new one.
void SchemaMasks::RefuseItems(const Place& place) {
  const NodeId id = Machine::FrameOf(place.state);
  const Node node = machine_.node(id);
  const std::optional<std::string> begun = BegunString(id);
  const bool first = !HasItems(id);
  const bool item = frames_.NeedsCanonicalItems(frames_[node.frame]);
  const bool free = item && StringsAreFree(frames_[node.frame]);
  const bool around = !item || machine_.node(node.parent).tracks_items;
  std::unordered_map<uint32_t, bool> like_others;  // by rest
  for (const StringIndex::Crossing& crossing : place.index->crossings()) {
    uint32_t& word = place.words[static_cast<size_t>(crossing.token) >> 5];
    const uint32_t bit = 1u << (crossing.token & 31);
    if ((word & bit) == 0) continue;
    const std::string_view bytes = vocabulary_.bytes(crossing.token);
    const size_t quote = trie_.nodes()[crossing.quote].depth - 1u;
    const std::string_view rest = bytes.substr(quote + 1);
    const bool closes = rest.find_first_of("]}") != std::string_view::npos;
    if (!item && !closes) continue;
    const bool fresh =
        !ItemTokens::HoldsValue(rest) &&
        (first || (begun && !crossing.escaped &&
                   !OccursInItems(id, *begun + std::string(bytes.substr(0, quote)))));
    if (fresh && free && !(closes && around)) continue;
    if (fresh && !item) {
      const auto [it, unknown] = like_others.try_emplace(crossing.rest, false);
      if (unknown) it->second = WalkToken(place, crossing.token) != Machine::kDead;
      if (!it->second) word &= ~bit;
      continue;
    }
    if (WalkToken(place, crossing.token) == Machine::kDead) word &= ~bit;
  }
}

std::optional<MaskStrategy> SchemaMasks::FillTracked(const Place& place) {
  const Lexeme lexeme = LexemeAt(place.state);
  const NodeId node = Machine::FrameOf(place.state);
  if (!place.root() || !machine_.node(node).tracks_items) return std::nullopt;
  const Key twin = Machine::MakeKey(TwinNode(node), Machine::LexemeOf(place.state));
  if (!FillBelow(At(twin, TokenTrie::kRoot, place.words, nullptr))) return std::nullopt;
  if (lexeme.mode == Mode::kString || lexeme.mode == Mode::kKey) {
    RefuseItems(place);
    return MaskStrategy::kUniqueItems;
  }
  if (lexeme.mode == Mode::kNumber && machine_.number(lexeme).Accepts(lexeme.state)) {
    // It goes on, or it is there; then the items are known that follow.
    const Key detached = Standalone(twin);
    if (detached == Machine::kDead) return std::nullopt;
    const Key after = machine_.EndNumber(node, lexeme);
    std::vector<uint32_t> behind(static_cast<size_t>(vocabulary_.mask_words()), 0);
    if (after != Machine::kDead &&
        !FillTracked(At(after, TokenTrie::kRoot, behind.data(), nullptr))) {
      return std::nullopt;
    }
    const ValueMask& mask = ValueMaskOf(detached);
    for (size_t i = 0; i < behind.size(); ++i) place.words[i] = mask.words[i] | behind[i];
  }
  const ItemTokens& items = TableOf<ItemTokens>(vocabulary_);
  for (const TokenId token : items.ids()) Clear(place, token);
  const TokenTrie& trie = items.trie();
  std::vector<Key> stack = WalkStack<Key>(trie);
  Walk(trie, TokenTrie::kRoot, place.state, stack, [&](Key before, uint32_t i) {
    const Key after = machine_.Step(before, trie.nodes()[i].byte);
    if (after == Machine::kDead) return after;
    trie.ForTokens(trie.nodes()[i],
                   [&](TokenId at) { Set(place, items.ids()[static_cast<size_t>(at)]); });
    return after;
  });
  return MaskStrategy::kUniqueItems;
}

}  // namespace pawl::schema
