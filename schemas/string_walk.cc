// Two ways to fill the words give the same: to begin with nothing and add what is alive, or to
// begin with what any string allows and take away what is dead. The first bytes of the tokens tell
// which has less to do.
#include "schemas/string_walk.h"

#include <algorithm>
#include <cstring>
#include <tuple>

#include "schemas/json_string.h"

namespace pawl::schema {
namespace {

class Walk {
 public:
  Walk(StringSearch& search, const TokenTrie& trie, const StringTokens& tokens,
       const StringIndex& index, bool canonical, uint32_t* words,
       std::vector<StringClosings>& closings)
      : search_(search),
        trie_(trie),
        tokens_(tokens),
        index_(index),
        canonical_(canonical),
        words_(words),
        closings_(closings) {}

  void Run(StringSearch::StateId state, uint32_t node, bool fresh) {
    const bool root = root_ = node == TokenTrie::kRoot;
    const auto nodes = trie_.nodes();
    const uint32_t begin = root ? 0 : node + 1;
    const auto end = root ? static_cast<uint32_t>(nodes.size()) : nodes[node].end;
    const uint16_t top = root ? 0 : nodes[node].depth;
    if (const auto freedom = search_.FreedomOf(state)) {
      if (fresh) {
        CopyBase(freedom->max);
        Close(index_.first(), index_.last(), state, 0, *freedom);
      } else if (freedom->max >= tokens_.longest()) {
        for (const auto& [word, bits] : index_.inside()) words_[word] |= bits;
        Close(index_.first(), index_.last(), state, 0, *freedom);
      } else {
        Free(begin, end, state, 0, *freedom);
      }
    } else {
      taking_away_ = fresh && MostIsFree(state);
      if (taking_away_) CopyBase(kUnbounded);
      stack_.resize(static_cast<size_t>(trie_.max_depth()) + 1);
      parts_.resize(stack_.size());
      stack_[top] = {state, 0, Where::kBoundary};
      for (uint32_t i = begin; i < end;) i = Plain(nodes[i].byte) ? VisitPlain(i) : Visit(i);
    }
    // So far the groups held places in the order of the tokens.
    for (StringClosings& group : closings_)
      std::tie(group.begin, group.end) = index_.CrossingsOf(group.begin, group.end);
    std::erase_if(closings_, [](const StringClosings& group) { return group.begin == group.end; });
  }

 private:
  // Between two bytes of a token. kBeyond: inside a code point beyond ASCII, all of which lead to
  // `state`; kPart: inside a code point that needs a closer look, see parts_.
  enum class Where : uint8_t { kBoundary, kBeyond, kPart };
  struct At {
    StringSearch::StateId state = 0;
    uint16_t read = 0;  // code points begun
    Where where = Where::kBoundary;
  };

  static bool Plain(uint8_t byte) {
    return byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
  }

  // Both return the node to go on with. VisitPlain is for bytes that stand for themselves: nearly
  // all the nodes of a wide walk, so it is kept short.
  uint32_t VisitPlain(uint32_t i) {
    const TokenTrie::Node& node = trie_.nodes()[i];
    At at = stack_[node.depth - 1u];
    if (at.where != Where::kBoundary) return Visit(i);
    ++at.read;
    at.state = search_.NextAscii(at.state, node.byte);
    if (at.state == StringSearch::kNoState) return Dead(i);
    if ((at.state & StringSearch::kFreeFlag) != 0) {
      at.state &= ~StringSearch::kFreeFlag;
      return Reached(i, at);
    }
    if (!taking_away_) trie_.SetBits(node, words_);
    stack_[node.depth] = at;
    return i + 1;
  }

  uint32_t Visit(uint32_t i) {
    const TokenTrie::Node& node = trie_.nodes()[i];
    At at = stack_[node.depth - 1u];
    StringPosition position{at.state, 0};
    if (at.where == Where::kBoundary) {
      if (node.byte == '"') {
        if (search_.Accepts(at.state))
          closings_.push_back(
              {trie_.FirstToken(i), trie_.FirstToken(node.end), at.state, at.read, false});
        return node.end;
      }
      ++at.read;
      // Bytes of code points beyond ASCII: which of them may follow each other is the same for all
      // strings, known from the root on.
      if (root_ && node.byte >= 0xC2) {
        const StringSearch::StateId beyond = search_.NextBeyondAscii(at.state);
        if (beyond != StringSearch::kNoState) {
          if (!search_.Live(beyond) || tokens_.IsOutside(i)) return Dead(i);
          at.state = beyond;
          at.where = Where::kBeyond;
          return Reached(i, at);
        }
      }
    } else if (at.where == Where::kBeyond) {
      if (tokens_.IsOutside(i)) return Dead(i);
      if (tokens_.AtBoundary(i)) at.where = Where::kBoundary;
      return Keep(i, at);
    } else {
      position = parts_[node.depth - 1u];
    }
    if (StepString(search_, position, node.byte, canonical_) != StringStep::kInside) return Dead(i);
    at.state = position.state;
    at.where = position.part == 0 ? Where::kBoundary : Where::kPart;
    parts_[node.depth] = position;
    return position.part == 0 ? Reached(i, at) : Keep(i, at);
  }

  // At `at` after node i: the whole subtree at once where it is free.
  uint32_t Reached(uint32_t i, const At& at) {
    if (const auto freedom = search_.FreedomOf(at.state)) {
      Free(i, trie_.nodes()[i].end, at.state, at.read, *freedom);
      return trie_.nodes()[i].end;
    }
    return Keep(i, at);
  }

  uint32_t Keep(uint32_t i, const At& at) {
    if (!taking_away_) {
      for (uint32_t t = trie_.FirstToken(i); t < trie_.FirstToken(i + 1); ++t)
        Set(trie_.order()[t]);
    }
    stack_[trie_.nodes()[i].depth] = at;
    return i + 1;
  }

  uint32_t Dead(uint32_t i) {
    const uint32_t end = trie_.nodes()[i].end;
    if (taking_away_) {
      for (uint32_t t = trie_.FirstToken(i); t < trie_.FirstToken(end); ++t)
        Clear(trie_.order()[t]);
    }
    return end;
  }

  // The tokens of the nodes begin ... end - 1, of which `read` code points have led to `state`.
  void Free(uint32_t begin, uint32_t end, StringSearch::StateId state, uint16_t read,
            const StringSearch::Freedom& freedom) {
    const uint32_t first = trie_.FirstToken(begin), last = trie_.FirstToken(end);
    const bool all = freedom.max >= tokens_.longest();
    if (!all || !taking_away_) {
      for (uint32_t t = first; t < last; ++t) {
        const uint16_t length = index_.length(t);
        if (length == StringIndex::kOutside) continue;
        const bool allowed = all || uint64_t{length} - std::min(length, read) <= freedom.max;
        if (allowed == taking_away_) continue;
        if (allowed) {
          Set(trie_.order()[t]);
        } else {
          Clear(trie_.order()[t]);
        }
      }
    }
    Close(first, last, state, read, freedom);
  }

  void Close(uint32_t first, uint32_t last, StringSearch::StateId state, uint16_t read,
             const StringSearch::Freedom& freedom) {
    // Neighbours that are alike are one group.
    if (!closings_.empty()) {
      StringClosings& last_group = closings_.back();
      if (last_group.free && last_group.end == first && last_group.state == state &&
          last_group.read == read) {
        last_group.end = last;
        return;
      }
    }
    closings_.push_back({first, last, state, read, true, freedom.min, freedom.max});
  }

  void CopyBase(uint64_t most) {
    const auto base = tokens_.AtMost(most);
    std::memcpy(words_, base.data(), base.size_bytes());
  }
  void Set(TokenId token) { words_[static_cast<size_t>(token) >> 5] |= 1u << (token & 31); }
  void Clear(TokenId token) { words_[static_cast<size_t>(token) >> 5] &= ~(1u << (token & 31)); }

  // The children of the root with the most tokens tell.
  bool MostIsFree(StringSearch::StateId state) {
    int64_t balance = 0;
    for (const uint32_t i : tokens_.largest()) {
      const int64_t size = trie_.FirstToken(trie_.nodes()[i].end) - trie_.FirstToken(i);
      const uint8_t byte = trie_.nodes()[i].byte;
      StringSearch::StateId next = StringSearch::kNoState;
      if (byte >= 0x80) {
        next = search_.NextBeyondAscii(state);
      } else if (Plain(byte)) {
        next = search_.NextAscii(state, byte);
        if (next != StringSearch::kNoState) next &= ~StringSearch::kFreeFlag;
      }
      if (next == StringSearch::kNoState || !search_.Live(next)) {
        balance -= size;
      } else if (search_.FreedomOf(next)) {
        balance += size;
      }
    }
    return balance > 0;
  }

  StringSearch& search_;
  const TokenTrie& trie_;
  const StringTokens& tokens_;
  const StringIndex& index_;
  const bool canonical_;
  uint32_t* words_;
  std::vector<StringClosings>& closings_;
  bool root_ = false;
  bool taking_away_ = false;
  std::vector<At> stack_;
  std::vector<StringPosition> parts_;
};

}  // namespace

void WalkString(StringSearch& search, StringSearch::StateId state, const TokenTrie& trie,
                uint32_t node, const StringTokens& tokens, const StringIndex& index, bool canonical,
                bool fresh, uint32_t* words, std::vector<StringClosings>& closings) {
  Walk(search, trie, tokens, index, canonical, words, closings).Run(state, node, fresh);
}

}  // namespace pawl::schema
