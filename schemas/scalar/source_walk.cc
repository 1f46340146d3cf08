// The tokens that may follow inside a span of a text. A place in the trie of tokens has the
// occurrences of what was read; they are narrowed character by character and nothing is kept.
// Escapes and characters beyond ASCII go byte by byte through StepString, as in any string.
#include <vector>

#include "grammar/masks/token_trie.h"
#include "grammar/vocabulary_tables.h"
#include "schemas/scalar/json_string.h"
#include "schemas/scalar/string_walk.h"

namespace pawl::schema {
namespace {

struct SourcePlace {
  SourceTrie::Occurrences at;
  StringPosition inside;  // of a code point whose bytes are not all there: part is not 0
  uint16_t read = 0;      // code points begun
  bool live = false;
  friend bool operator==(const SourcePlace& a, const SourcePlace& b) {
    return a.live == b.live && a.at == b.at && a.inside.part == b.inside.part;
  }
};

}  // namespace

void WalkSource(StringSearch& search, StringSearch::StateId state, const Vocabulary& vocabulary,
                uint32_t node, StringSpelling spelling, uint32_t* words,
                std::vector<StringClosings>& closings) {
  const TokenTrie& trie = TrieOf(vocabulary);
  StringProgram& program = search.program();
  SourceTrie& source = program.only_source();
  std::vector<SourcePlace> stack = WalkStack<SourcePlace>(trie);
  const SourcePlace start{source.at(program.SourceNode(state)), {}, 0, true};
  uint64_t visited = 0;
  Walk(trie, node, start, stack, [&](const SourcePlace& before, uint32_t i) {
    const TokenTrie::Node& here = trie.nodes()[i];
    ++visited;
    SourcePlace after = before;
    const bool boundary = before.inside.part == 0;
    if (boundary && here.byte == '"') {
      if (!source.IsSpan(before.at)) return SourcePlace{};
      closings.push_back({trie.FirstToken(i), trie.FirstToken(here.end),
                          program.AtSourceNode(source.Node(before.at)), before.read, false});
      return SourcePlace{};
    }
    if (boundary) ++after.read;
    if (boundary && IsPlainAscii(here.byte)) {
      after.at = source.Next(before.at, here.byte);
      if (after.at.empty()) return SourcePlace{};
    } else {
      if (boundary) after.inside.state = program.AtSourceNode(source.Node(before.at));
      if (StepString(search, after.inside, here.byte, spelling) != StringStep::kInside)
        return SourcePlace{};
      if (after.inside.part == 0) after.at = source.at(program.SourceNode(after.inside.state));
    }
    trie.SetBits(here, words);
    return after;
  });
  program.spending().nodes += visited;
}

}  // namespace pawl::schema
