// The tokens that may follow inside a span of a text. What the text goes on with is few characters,
// so these are looked up in the trie of tokens, and the occurrences of what was read are narrowed
// on the way; nothing is kept. Escapes and characters beyond ASCII go byte by byte through
// StepString, as in any string.
#include <algorithm>
#include <vector>

#include "grammar/masks/token_trie.h"
#include "grammar/vocabulary_tables.h"
#include "schemas/scalar/json_string.h"
#include "schemas/scalar/string_walk.h"
#include "src/base/stop_scope.h"

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

class SourceWalk {
 public:
  using Occurrences = SourceTrie::Occurrences;

  SourceWalk(StringSearch& search, const TokenTrie& trie, StringSpelling spelling, uint32_t* words,
             std::vector<StringClosings>& closings)
      : search_(search),
        program_(search.program()),
        source_(program_.only_source()),
        trie_(trie),
        spelling_(spelling),
        words_(words),
        closings_(closings) {}

  // What follows `at` below a node, TokenTrie::kRoot for all tokens.
  void Below(uint32_t node, Occurrences at, uint16_t read) {
    StopScope::Step();
    const auto next = static_cast<uint16_t>(read + 1);
    char32_t before = 0;  // of characters beyond ASCII: the first byte, looked at once
    source_.ForFollowing(at, [&](char32_t c, const Occurrences& after) {
      if (c < 0x80) {
        if (IsPlainAscii(static_cast<uint8_t>(c))) return Reach(Child(node, c), after, next);
        if (c != '"' && c != '\\') ByBytes(Child(node, c), at, read);
        return;
      }
      const char32_t first = c < 0x800     ? 0xC0 | c >> 6
                             : c < 0x10000 ? 0xE0 | c >> 12
                                           : 0xF0 | c >> 18;
      if (first != before) ByBytes(Child(node, first), at, read);
      before = first;
    });
    ByBytes(Child(node, '\\'), at, read);
    const uint32_t quote = Child(node, '"');
    if (quote == TokenTrie::kNone || !source_.IsSpan(at)) return;
    closings_.push_back({trie_.FirstToken(quote), trie_.FirstToken(trie_.nodes()[quote].end),
                         program_.AtSourceNode(source_.Node(at)), read, false});
  }

  uint64_t visited() const { return visited_; }

 private:
  uint32_t Child(uint32_t node, char32_t byte) const {
    return trie_.Child(node, static_cast<uint8_t>(byte));
  }

  // At `at` after the node, which may be none.
  void Reach(uint32_t node, Occurrences at, uint16_t read) {
    if (node == TokenTrie::kNone) return;
    ++visited_;
    const TokenTrie::Node& here = trie_.nodes()[node];
    trie_.SetBits(here, words_);
    if (here.end > node + 1) Below(node, at, read);
  }

  // The subtree of a node, whose byte is the first one after `at`.
  void ByBytes(uint32_t node, Occurrences at, uint16_t read) {
    if (node == TokenTrie::kNone) return;
    const TokenTrie::Node& top = trie_.nodes()[node];
    if (stack_.empty()) stack_ = WalkStack<SourcePlace>(trie_);
    StringPosition inside;
    inside.state = program_.AtSourceNode(source_.Node(at));
    stack_[top.depth - 1u] = {at, inside, static_cast<uint16_t>(read + 1), true};
    WalkSpan(trie_, node, top.end, stack_, [&](const SourcePlace& before, uint32_t i) {
      const TokenTrie::Node& here = trie_.nodes()[i];
      ++visited_;
      SourcePlace after = before;
      if (StepString(search_, after.inside, here.byte, spelling_) != StringStep::kInside)
        return SourcePlace{};
      if (after.inside.part == 0) {
        Reach(i, source_.at(program_.SourceNode(after.inside.state)), after.read);
        return SourcePlace{};
      }
      trie_.SetBits(here, words_);
      return after;
    });
  }

  StringSearch& search_;
  StringProgram& program_;
  SourceTrie& source_;
  const TokenTrie& trie_;
  const StringSpelling spelling_;
  uint32_t* const words_;
  std::vector<StringClosings>& closings_;
  std::vector<SourcePlace> stack_;  // of ByBytes, by depth
  uint64_t visited_ = 0;
};

}  // namespace

void WalkSource(StringSearch& search, StringSearch::StateId state, const Vocabulary& vocabulary,
                uint32_t node, StringSpelling spelling, uint32_t* words,
                std::vector<StringClosings>& closings) {
  StringProgram& program = search.program();
  SourceWalk walk(search, TrieOf(vocabulary), spelling, words, closings);
  const auto before = static_cast<ptrdiff_t>(closings.size());
  walk.Below(node, program.only_source().at(program.SourceNode(state)), 0);
  std::sort(closings.begin() + before, closings.end(),
            [](const StringClosings& a, const StringClosings& b) { return a.begin < b.begin; });
  program.spending().nodes += walk.visited();
}

}  // namespace pawl::schema
