// The runs of consecutive chunks are the factors of a word over an alphabet whose letters are the
// distinct chunks. Blumer et al.'s suffix automaton ("The smallest automaton recognizing the
// subwords of a text", 1985) has at most 2n states and 3n edges for them, and every state accepts,
// unless runs may not end with the chunk that leads to it: all edges to a state have the same one.
// It has no cycles, so each state becomes one term: the empty text, or an edge's chunk and then the
// term of the state it leads to. Edges whose chunks begin alike share their beginning (a trie), so
// that a derivative need not look at ten thousand alternatives.
#include "grammar/languages/substring_regex.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "grammar/regex/codepoint_set.h"
#include "src/base/utf8.h"

namespace pawl {
namespace {

constexpr uint32_t kNone = UINT32_MAX;

struct SuffixState {
  uint32_t length = 0;
  uint32_t link = kNone;
  uint32_t letter = kNone;            // of all edges that lead here
  std::map<uint32_t, uint32_t> next;  // by chunk
};

std::vector<SuffixState> SuffixAutomaton(std::span<const uint32_t> word) {
  std::vector<SuffixState> states(1);
  uint32_t last = 0;
  for (const uint32_t letter : word) {
    const auto fresh = static_cast<uint32_t>(states.size());
    states.emplace_back();
    states[fresh].length = states[last].length + 1;
    states[fresh].letter = letter;
    uint32_t at = last;
    while (at != kNone && states[at].next.emplace(letter, fresh).second) at = states[at].link;
    if (at == kNone) {
      states[fresh].link = 0;
    } else {
      const uint32_t old = states[at].next[letter];
      if (states[at].length + 1 == states[old].length) {
        states[fresh].link = old;
      } else {
        const auto clone = static_cast<uint32_t>(states.size());
        SuffixState copy = states[old];
        copy.length = states[at].length + 1;
        states.push_back(std::move(copy));
        for (; at != kNone; at = states[at].link) {
          const auto edge = states[at].next.find(letter);
          if (edge == states[at].next.end() || edge->second != old) break;
          edge->second = clone;
        }
        states[old].link = clone;
        states[fresh].link = clone;
      }
    }
    last = fresh;
  }
  return states;
}

// The union of text and then term, over all pairs. Pairs are sorted by text; equal texts stand
// together. Built from the back with the trie's current path on a stack.
ReId TrieOf(RegexArena& arena, std::span<const std::pair<const std::u32string*, ReId>> pairs) {
  struct Level {
    char32_t letter;                 // that leads here
    std::vector<ReId> alternatives;  // found below here
  };
  std::vector<Level> path(1);
  const auto close_to = [&](size_t depth) {
    while (path.size() > depth + 1) {
      Level level = std::move(path.back());
      path.pop_back();
      const ReId below =
          level.alternatives.size() == 1 ? level.alternatives[0] : arena.Or(level.alternatives);
      path.back().alternatives.push_back(arena.Concat(arena.Char(level.letter), below));
    }
  };
  const std::u32string* before = nullptr;
  for (const auto& [text, term] : pairs) {
    size_t common = 0;
    if (before != nullptr) {
      common = static_cast<size_t>(
          std::mismatch(before->begin(), before->end(), text->begin(), text->end()).first -
          before->begin());
    }
    close_to(common);
    for (size_t i = common; i < text->size(); ++i) path.push_back({(*text)[i], {}});
    path.back().alternatives.push_back(term);
    before = text;
  }
  close_to(0);
  return arena.Or(path[0].alternatives);
}

}  // namespace

ReId SubstringRegex(RegexArena& arena, std::span<const std::u32string> chunks,
                    const std::function<bool(const std::u32string&)>& borders) {
  std::map<std::u32string_view, uint32_t> ids;
  std::vector<const std::u32string*> texts;
  for (const std::u32string& chunk : chunks) ids.emplace(chunk, 0);
  std::vector<std::u32string> sorted;
  for (auto& [text, id] : ids) {
    id = static_cast<uint32_t>(sorted.size());
    sorted.emplace_back(text);
  }
  std::vector<uint32_t> word;
  for (const std::u32string& chunk : chunks) {
    if (!chunk.empty()) word.push_back(ids[chunk]);
  }
  const std::vector<SuffixState> states = SuffixAutomaton(word);
  // Edges lead to longer states, so the longest come first.
  std::vector<uint32_t> order(states.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return states[a].length > states[b].length; });
  std::vector<ReId> terms(states.size());
  std::vector<std::pair<const std::u32string*, ReId>> pairs;
  for (const uint32_t state : order) {
    pairs.clear();
    for (const auto& [chunk, to] : states[state].next) {
      if (state != 0 || borders == nullptr || borders(sorted[chunk]))
        pairs.emplace_back(&sorted[chunk], terms[to]);
    }
    terms[state] = TrieOf(arena, pairs);
    if (state == 0 || borders == nullptr || borders(sorted[states[state].letter]))
      terms[state] = arena.Or(terms[state], RegexArena::kEpsilon);
    if (arena.overflow()) break;
  }
  return terms[0];
}

std::vector<std::u32string> ChunkCharacters(std::string_view text) {
  std::vector<std::u32string> chunks;
  for (const char32_t c : DecodeCodepoints(text)) chunks.emplace_back(1, c);
  return chunks;
}

std::vector<std::u32string> ChunkWords(std::string_view text) {
  const CodepointSet space = CodepointSet::FromRanges(UnicodeProperty("White_Space"));
  const CodepointSet word = CodepointSet::FromRanges(UnicodeProperty("Alphabetic"))
                                .Union(CodepointSet::FromRanges(UnicodeProperty("N")))
                                .Union(CodepointSet::Of('_'));
  std::vector<std::u32string> chunks;
  int kind_before = -1;
  for (const char32_t c : DecodeCodepoints(text)) {
    const int kind = space.Contains(c) ? 0 : word.Contains(c) ? 1 : 2;
    if (kind != kind_before) chunks.emplace_back();
    chunks.back() += c;
    kind_before = kind;
  }
  return chunks;
}

}  // namespace pawl
