// Each token is read as a piece of a string without any condition: how many code points it brings,
// and where a quote closes the string. Texts behind the quote get a trie of their own. Places
// inside an escape or a code point begin elsewhere and are read when the first text stands there.
#include "schemas/scalar/string_tokens.h"

#include <algorithm>
#include <numeric>

#include "grammar/vocabulary_tables.h"
#include "schemas/scalar/json_string.h"
#include "src/base/json.h"

namespace pawl::schema {
namespace {

// The string without any condition.
struct FreeString {
  SchemaTable table;
  StringProgram program{table, {}};
  StringSearch search{program, [](StringProgram::StateId) { return true; }, 1};
};

// Whether the text behind a closing quote may hold a whole string after a comma.
bool MayHoldKey(std::string_view rest) {
  bool inside = false, after_comma = false;
  for (const char c : rest) {
    if (c == '"') {
      if (inside && after_comma) return true;
      inside = !inside;
    } else if (!inside && std::string_view(" \t\r\n").find(c) == std::string_view::npos) {
      after_comma = c == ',';
    }
  }
  return false;
}

}  // namespace

std::pair<uint32_t, uint32_t> StringIndex::CrossingsOf(uint32_t first, uint32_t last) const {
  const auto at = [this](uint32_t order) {
    const auto it = std::lower_bound(crossings_.begin(), crossings_.end(), order,
                                     [](const Crossing& c, uint32_t o) { return c.order < o; });
    return static_cast<uint32_t>(it - crossings_.begin());
  };
  return {at(first), at(last)};
}

StringTokens::StringTokens(const Vocabulary& vocabulary, StringSpelling spelling)
    : vocabulary_(vocabulary), spelling_(spelling), classes_(TableOf<ClassTrie>(vocabulary)) {
  places_.resize(TrieOf(vocabulary).size(), Place::kOutside);
  below_.emplace(TokenTrie::kRoot, Read(TokenTrie::kRoot));
  const StringIndex& root = below_.at(TokenTrie::kRoot);
  for (uint32_t i = root.first(); i < root.last(); ++i) {
    if (root.length(i) == StringIndex::kOutside) continue;
    longest_ = std::max(longest_, root.length(i));
  }
  at_most_.resize(size_t{longest_} + 1);
  up_to_.resize(at_most_.size() + 1, 0);
  for (uint32_t i = root.first(); i < root.last(); ++i) {
    if (root.length(i) != StringIndex::kOutside) ++up_to_[root.length(i) + 1u];
  }
  std::partial_sum(up_to_.begin(), up_to_.end(), up_to_.begin());
  by_length_.resize(up_to_.back());
  std::vector<uint32_t> next = up_to_;
  for (uint32_t i = root.first(); i < root.last(); ++i) {
    if (root.length(i) != StringIndex::kOutside)
      by_length_[next[root.length(i)]++] = TrieOf(vocabulary).order()[i];
  }
  AtMost(longest_);
  FindOpenings();
  std::vector<TokenId> ids;
  for (size_t i = 1; i < rest_texts_.size(); ++i) ids.push_back(static_cast<TokenId>(i));
  rests_ = std::make_unique<TokenTrie>(rest_texts_, ids);
}

void StringTokens::FindOpenings() {
  const TokenTrie& trie = TrieOf(vocabulary_);
  const auto nodes = trie.nodes();
  for (uint32_t i = 0; i < nodes.size();) {
    const uint8_t byte = nodes[i].byte;
    if (byte == '"') {
      if (nodes[i].end > i + 1) below_.emplace(i, Read(i));
      i = nodes[i].end;
    } else if (std::string_view(" \t\n\r{}[]:,").find(static_cast<char>(byte)) !=
               std::string_view::npos) {
      ++i;
    } else {
      i = nodes[i].end;
    }
  }
}

StringIndex StringTokens::Read(uint32_t from) {
  const TokenTrie& trie = TrieOf(vocabulary_);
  const auto nodes = trie.nodes();
  const bool root = from == TokenTrie::kRoot;
  const uint32_t begin = root ? 0 : from + 1;
  const auto end = root ? static_cast<uint32_t>(nodes.size()) : nodes[from].end;
  const uint16_t top = root ? 0 : nodes[from].depth;
  StringIndex index;
  index.first_ = trie.FirstToken(begin);
  index.lengths_.assign(trie.FirstToken(end) - index.first_, StringIndex::kOutside);

  FreeString free;
  struct At {
    StringPosition position;
    uint16_t length = 0;
    bool escaped = false;
  };
  std::vector<At> stack(static_cast<size_t>(trie.max_depth()) + 1);
  stack[top].position = {free.program.start(), 0};
  for (uint32_t i = begin; i < end;) {
    const TokenTrie::Node& node = nodes[i];
    At at = stack[node.depth - 1u];
    if (at.position.part == 0) {
      if (node.byte == '"') {
        for (uint32_t t = trie.FirstToken(i); t < trie.FirstToken(node.end); ++t) {
          const TokenId token = trie.order()[t];
          const std::string rest(vocabulary_.bytes(token).substr(node.depth));
          const auto [it, fresh] =
              rest_ids_.try_emplace(rest, static_cast<uint32_t>(rest_texts_.size()));
          if (fresh) rest_texts_.push_back(rest);
          index.crossings_.push_back(
              {t, i, token, it->second, at.length, at.escaped, MayHoldKey(rest)});
        }
        i = node.end;
        continue;
      }
      ++at.length;
      at.escaped = at.escaped || node.byte == '\\';
    }
    if (StepString(free.search, at.position, node.byte, spelling_) != StringStep::kInside) {
      i = node.end;
      continue;
    }
    stack[node.depth] = at;
    if (root) places_[i] = at.position.part == 0 ? Place::kBoundary : Place::kPart;
    for (uint32_t t = trie.FirstToken(i); t < trie.FirstToken(i + 1); ++t)
      index.lengths_[t - index.first_] = at.length;
    ++i;
  }
  std::vector<uint32_t> inside(static_cast<size_t>(vocabulary_.mask_words()));
  for (uint32_t t = index.first(); t < index.last(); ++t) {
    const TokenId token = trie.order()[t];
    if (index.length(t) != StringIndex::kOutside)
      inside[static_cast<size_t>(token) >> 5] |= 1u << (token & 31);
  }
  for (uint32_t word = 0; word < inside.size(); ++word) {
    if (inside[word] != 0) index.inside_.emplace_back(word, inside[word]);
  }
  for (uint32_t k = 0; k < index.crossings_.size(); ++k) {
    const StringIndex::Crossing& crossing = index.crossings_[k];
    if (!crossing.escaped && !crossing.intricate) continue;
    const std::string_view bytes = vocabulary_.bytes(crossing.token);
    const auto text =
        json::Parse("\"" + std::string(bytes.substr(top, nodes[crossing.quote].depth - top)));
    index.special_.push_back({k, text.ok() ? std::optional(text->text) : std::nullopt});
  }
  return index;
}

const StringIndex* StringTokens::Below(uint32_t node) const {
  const auto it = below_.find(node);
  return it == below_.end() ? nullptr : &it->second;
}

std::span<const uint32_t> StringTokens::AtMost(uint64_t most) const {
  const size_t slot = std::min<uint64_t>(most, longest_);
  std::lock_guard lock(mutex_);
  if (at_most_[slot] == nullptr) {
    // From none or, where that is nearer, from all of them.
    const size_t count = up_to_[slot + 1];
    const bool from_all = slot < longest_ && count > by_length_.size() / 2;
    auto words = from_all ? std::make_unique<std::vector<uint32_t>>(*at_most_[longest_])
                          : std::make_unique<std::vector<uint32_t>>(
                                static_cast<size_t>(vocabulary_.mask_words()));
    for (size_t i = from_all ? count : 0; i < (from_all ? by_length_.size() : count); ++i) {
      const auto token = static_cast<size_t>(by_length_[i]);
      (*words)[token >> 5] ^= 1u << (token & 31);
    }
    at_most_[slot] = std::move(words);
  }
  return *at_most_[slot];
}

}  // namespace pawl::schema
