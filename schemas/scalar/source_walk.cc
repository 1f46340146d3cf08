// The tokens that may follow inside a span of a text. What the text goes on with is few characters,
// so these are looked up in the trie of tokens, and the occurrences of what was read are narrowed
// on the way; nothing is kept. Further conditions are followed next to them. Escapes and characters
// beyond ASCII go byte by byte through StepString, as in any string.
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
  SourceTable::Rest rest = 0;
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
  using Rest = SourceTable::Rest;

  SourceWalk(StringSearch& search, const TokenTrie& trie, StringSpelling spelling, uint32_t* words,
             std::vector<StringClosings>& closings)
      : search_(search),
        program_(search.program()),
        table_(search.source_table()),
        source_(table_ != nullptr ? table_->trie() : program_.only_source()),
        trie_(trie),
        spelling_(spelling),
        words_(words),
        closings_(closings) {}

  // What follows `at` below a node, TokenTrie::kRoot for all tokens.
  void Below(uint32_t node, Occurrences at, Rest rest, uint16_t read) {
    StopScope::Step();
    const auto next = static_cast<uint16_t>(read + 1);
    char32_t before = 0;  // of characters beyond ASCII: the first byte, looked at once
    source_.ForFollowing(at, [&](char32_t c, const Occurrences& after) {
      if (c < 0x80) {
        if (IsPlainAscii(static_cast<uint8_t>(c))) {
          const uint32_t child = Child(node, c);
          if (child == TokenTrie::kNone || (table_ != nullptr && !table_->Live(after))) return;
          return Reach(child, after, table_ == nullptr ? rest : table_->Next(rest, c), next);
        }
        if (c != '"' && c != '\\') ByBytes(Child(node, c), at, rest, read);
        return;
      }
      const char32_t first = c < 0x800     ? 0xC0 | c >> 6
                             : c < 0x10000 ? 0xE0 | c >> 12
                                           : 0xF0 | c >> 18;
      if (first != before) ByBytes(Child(node, first), at, rest, read);
      before = first;
    });
    ByBytes(Child(node, '\\'), at, rest, read);
    const uint32_t quote = Child(node, '"');
    if (quote == TokenTrie::kNone) return;
    if (table_ != nullptr ? !table_->Accepts(rest, at) : !source_.IsSpan(at)) return;
    closings_.push_back({trie_.FirstToken(quote), trie_.FirstToken(trie_.nodes()[quote].end),
                         StateAt(at, rest), read, false});
  }

  uint64_t visited() const { return visited_; }

 private:
  uint32_t Child(uint32_t node, char32_t byte) const {
    return trie_.Child(node, static_cast<uint8_t>(byte));
  }

  StringSearch::StateId StateAt(const Occurrences& at, Rest rest) {
    return table_ != nullptr ? table_->Keep(rest, at) : program_.AtSourceNode(source_.Node(at));
  }

  // At `at` after the node.
  void Reach(uint32_t node, Occurrences at, Rest rest, uint16_t read) {
    ++visited_;
    const TokenTrie::Node& here = trie_.nodes()[node];
    trie_.SetBits(here, words_);
    if (here.end > node + 1) Below(node, at, rest, read);
  }

  // The subtree of a node, whose byte is the first one after `at`.
  void ByBytes(uint32_t node, Occurrences at, Rest rest, uint16_t read) {
    if (node == TokenTrie::kNone) return;
    const TokenTrie::Node& top = trie_.nodes()[node];
    if (stack_.empty()) stack_ = WalkStack<SourcePlace>(trie_);
    StringPosition inside;
    inside.state = StateAt(at, rest);
    stack_[top.depth - 1u] = {at, rest, inside, static_cast<uint16_t>(read + 1), true};
    WalkSpan(trie_, node, top.end, stack_, [&](const SourcePlace& before, uint32_t i) {
      const TokenTrie::Node& here = trie_.nodes()[i];
      ++visited_;
      SourcePlace after = before;
      if (StepString(search_, after.inside, here.byte, spelling_) != StringStep::kInside)
        return SourcePlace{};
      if (after.inside.part == 0) {
        const StringSearch::StateId state = after.inside.state;
        if (table_ != nullptr) {
          Reach(i, table_->At(state), table_->RestOf(state), after.read);
        } else {
          Reach(i, source_.at(program_.SourceNode(state)), after.rest, after.read);
        }
        return SourcePlace{};
      }
      trie_.SetBits(here, words_);
      return after;
    });
  }

  StringSearch& search_;
  StringProgram& program_;
  SourceTable* const table_;  // of further conditions; nullptr: there are none
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
  SourceTable* const table = search.source_table();
  SourceWalk walk(search, TrieOf(vocabulary), spelling, words, closings);
  const auto before = static_cast<ptrdiff_t>(closings.size());
  if (table != nullptr) {
    walk.Below(node, table->At(state), table->RestOf(state), 0);
  } else {
    walk.Below(node, program.only_source().at(program.SourceNode(state)), 0, 0);
  }
  std::sort(closings.begin() + before, closings.end(),
            [](const StringClosings& a, const StringClosings& b) { return a.begin < b.begin; });
  program.spending().nodes += walk.visited();
}

}  // namespace pawl::schema
