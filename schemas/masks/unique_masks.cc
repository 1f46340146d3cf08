// Masks under uniqueItems. There the text of every item is remembered, so hardly two states are the
// same. But uniqueness can refuse a token only if an item ends in it; for all others a twin of the
// state will do, which remembers nothing. The few that are left are tried on the state itself.
#include <algorithm>

#include "grammar/masks/mask_builder.h"
#include "grammar/masks/mask_path.h"
#include "schemas/machine/schema_machine.h"
#include "schemas/unique/item_tokens.h"
#include "src/base/json.h"

namespace pawl::schema {
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

SchemaMachine::NodeId SchemaMachine::TwinNode(NodeId id) {
  Node node = nodes_[id];
  if (!node.tracks_items) return id;
  const std::string key = node.reads_key ? TextSince(node.text, node.start) : "";
  node.tracks_items = false;
  node.parent = TwinNode(node.parent);
  node.text = node.start = 0;
  for (const char c : key) node.text = InternText(node.text, static_cast<uint8_t>(c));
  return InternNode(node);
}

std::optional<std::string> SchemaMachine::BegunString(NodeId id) const {
  const std::string text = TextSince(nodes_[id].text, nodes_[id].start);
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

bool SchemaMachine::HasItems(NodeId id) const {
  for (; id != 0 && nodes_[id].tracks_items; id = nodes_[id].parent) {
    if (frames_[nodes_[id].frame].items != IdSets::kEmpty) return true;
  }
  return false;
}

bool SchemaMachine::OccursInItems(NodeId id, const std::string& text) {
  for (uint32_t item = indexed_items_; item < frames_.item_count(); ++item) {
    std::vector<std::string> strings;
    auto value = json::Parse(frames_.ItemText(item), {.max_depth = 1 << 20});
    if (value.ok()) CollectStrings(*value, strings);
    for (std::string& one : strings) items_with_[std::move(one)].push_back(item);
  }
  indexed_items_ = frames_.item_count();
  const auto found = items_with_.find(text);
  if (found == items_with_.end()) return false;
  for (; id != 0 && nodes_[id].tracks_items; id = nodes_[id].parent) {
    const IdSets::Id items = frames_[nodes_[id].frame].items;
    for (const uint32_t item : found->second) {
      if (frames_.items().Contains(items, item)) return true;
    }
  }
  return false;
}

bool SchemaMachine::StringsAreFree(const Frame& frame) {
  if (!frames_.PlainUnique(frame)) return false;
  FormulaArena& formulas = table_->formulas;
  for (const AtomId id : formulas.MustAtoms(frame.must)) {
    const ArrayAtom& array = table_->array(id);
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
void SchemaMachine::RefuseItems(const Below& below) {
  const NodeId id = FrameOf(below.state);
  const Node node = nodes_[id];
  const std::optional<std::string> begun = BegunString(id);
  const bool first = !HasItems(id);
  const bool item = frames_.NeedsCanonicalItems(frames_[node.frame]);
  const bool free = item && StringsAreFree(frames_[node.frame]);
  const bool around = !item || nodes_[node.parent].tracks_items;
  std::unordered_map<uint32_t, bool> like_others;  // by rest
  for (const StringIndex::Crossing& crossing : below.index.crossings()) {
    uint32_t& word = below.words[static_cast<size_t>(crossing.token) >> 5];
    const uint32_t bit = 1u << (crossing.token & 31);
    if ((word & bit) == 0) continue;
    const std::string_view bytes = below.vocabulary.bytes(crossing.token);
    const size_t quote = below.vocabulary.trie().nodes()[crossing.quote].depth - 1u;
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
      if (unknown) it->second = WalkToken(below, crossing.token) != kDead;
      if (!it->second) word &= ~bit;
      continue;
    }
    if (WalkToken(below, crossing.token) == kDead) word &= ~bit;
  }
}

bool SchemaMachine::FillTracked(Key state, const Vocabulary& vocabulary, uint32_t* words) {
  const Lexeme lexeme = lexemes_[LexemeOf(state)];
  const NodeId node = FrameOf(state);
  const Key twin = MakeKey(TwinNode(node), LexemeOf(state));
  if (!FillBelow(twin, vocabulary, TokenTrie::kRoot, true, words)) return false;
  if (lexeme.mode == Mode::kString || lexeme.mode == Mode::kKey) {
    RefuseItems({state, vocabulary, TokenTrie::kRoot, *TokensOf(vocabulary).Below(TokenTrie::kRoot),
                 words});
    last_mask_path = MaskPath::kUniqueItems;
    return true;
  }
  if (lexeme.mode == Mode::kNumber && numbers_[lexeme.search]->Accepts(lexeme.state)) {
    // It goes on, or it is there; then the items are known that follow.
    const Key detached = Detached(twin);
    if (detached == kDead) return false;
    const Goal goal = frames_.PendingGoal(nodes_[node].frame);
    const Key after = EndValue(node, solver_.scalars().NumberTruth(goal, lexeme.state), -1);
    std::vector<uint32_t> behind(static_cast<size_t>(vocabulary.mask_words()), 0);
    if (after != kDead && !FillTracked(after, vocabulary, behind.data())) return false;
    const ValueMask& mask = ValueMaskOf(detached, vocabulary);
    for (size_t i = 0; i < behind.size(); ++i) words[i] = mask.words[i] | behind[i];
  }
  const auto set = [&](TokenId token, bool fits) {
    const uint32_t bit = 1u << (token & 31);
    uint32_t& word = words[static_cast<size_t>(token) >> 5];
    word = fits ? word | bit : word & ~bit;
  };
  const ItemTokens& tokens = vocabulary.Derived<ItemTokens>();
  for (const TokenId token : tokens.ids()) set(token, false);
  const TokenTrie& trie = tokens.trie();
  std::vector<Key> stack(static_cast<size_t>(trie.max_depth()) + 1);
  stack[0] = state;
  StepThrough(
      *this, trie, 0, trie.size(), stack, [](Key, uint32_t) { return false; },
      [&](uint32_t i, Key) {
        for (TokenId at = trie.nodes()[i].token; at != kNoToken; at = trie.NextSame(at))
          set(tokens.ids()[static_cast<size_t>(at)], true);
        return i + 1;
      });
  last_mask_path = MaskPath::kUniqueItems;
  return true;
}

}  // namespace pawl::schema
