// Two passes: first along classes, where each node has one state, and what does not fit is put on a
// list of exceptions; then each exception is compared with what was assumed, byte by byte, until
// the two states meet. When too many tokens have to be read one by one the walk is given up: bytes
// are cheaper then.
#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/vocabulary_tables.h"
#include "schemas/limits.h"
#include "schemas/scalar/json_string.h"
#include "schemas/scalar/string_walk.h"
#include "src/base/stop_scope.h"

namespace pawl::schema {
namespace {

using StateId = StringSearch::StateId;
constexpr StateId kNoState = StringSearch::kNoState;

StateId WithoutFlag(StateId state) {
  return state == kNoState ? kNoState : state & ~StringSearch::kFreeFlag;
}

class ClassWalk {
 public:
  ClassWalk(StringSearch& search, const Vocabulary& vocabulary, const ClassTrie& classes,
            uint32_t* words)
      : search_(search),
        vocabulary_(vocabulary),
        trie_(TrieOf(vocabulary)),
        classes_(classes),
        words_(words),
        stack_(size_t{classes.max_depth()} + 1) {}

  bool Run(StateId start) {
    const auto nodes = classes_.nodes();
    start_ = start;
    stack_[0] = {&search_.RowOf(start), start, 0};
    if (search_.AlwaysLive(start)) {
      Allow(0, classes_.Place(nodes[0].end));
    } else {
      FindExceptions(0, nodes[0].below);
      for (uint32_t i = 1; i < nodes.size() && read_ <= most_read_; ++visited_) i = Visit(i);
    }
    uint64_t& nodes_walked = search_.program().spending().nodes;
    if (read_ > most_read_) {
      nodes_walked += visited_;
      std::fill_n(words_, vocabulary_.mask_words(), 0u);
      return false;
    }
    classes_.SetBits(first_, last_, words_);
    for (const Apart& apart : apart_) ReadTokens(apart);
    for (const Exception& exception : exceptions_) Compare(exception);
    nodes_walked += visited_ + read_;
    return true;
  }

 private:
  struct At {
    StringSearch::ClassRow* row;
    StateId state;
    uint64_t assumed;  // mixed classes for which assumed_ has a state
  };
  // The characters at this node of the trie of bytes lead to `state`, and not to `assumed`.
  struct Exception {
    uint32_t node;
    StateId state, assumed;
  };

  // The tokens first ... last - 1, to be read one by one: their first `read` characters lead to
  // `state`, and what the next ones lead to their class does not tell.
  struct Apart {
    uint32_t first, last;
    StateId state;
    size_t read;
  };

  // Returns the node to go on with.
  uint32_t Visit(uint32_t i) {
    StopScope::Step();
    const ClassTrie::Node& node = classes_.nodes()[i];
    const At& before = stack_[node.depth - 1u];
    StateId next = search_.NextOfClass(*before.row, node.like);
    if (next == kNoState) return node.end;
    if (next == StringSearch::kMixed) {
      if ((before.assumed >> node.like & 1) == 0) {
        apart_.push_back({node.place, classes_.Place(node.end), before.state, node.depth - 1u});
        read_ += apart_.back().last - apart_.back().first;
        return node.end;
      }
      next = assumed_[node.depth - 1u][node.like];
      if (next == kNoState) return node.end;
    }
    next = WithoutFlag(next);
    const uint32_t end = classes_.Place(node.end);
    if (end - node.place >= limits::kWorthAsking && search_.AlwaysLive(next)) {
      Allow(node.place, end);
      return node.end;
    }
    StringSearch::ClassRow& row = search_.RowOf(next);
    if (search_.Loops(row, node.below)) {
      Allow(node.place, end);
      return node.end;
    }
    Allow(node.place, classes_.EndsHere(i));
    stack_[node.depth] = {&row, next, 0};
    if (!restarts_ && node.spelled != ClassTrie::kManySpellings &&
        end - node.place >= limits::kWorthComparing)
      FindExceptions(i, node.below);
    return i + 1;
  }

  // Neighbours are one range.
  void Allow(uint32_t first, uint32_t last) {
    if (first == last) return;
    if (first != last_) {
      classes_.SetBits(first_, last_, words_);
      first_ = first;
    }
    last_ = last;
  }

  // At a node with one spelling: for each class below that is mixed, what most of its tokens lead
  // to becomes the assumption, and the others exceptions.
  void FindExceptions(uint32_t i, uint64_t below) {
    const ClassTrie::Node& node = classes_.nodes()[i];
    At& at = stack_[node.depth];
    for (CharClass like = 0; like < kBeyondClass; ++like) {
      if ((below >> like & 1) == 0) continue;
      if (search_.NextOfClass(*at.row, like) != StringSearch::kMixed) continue;
      Assume(node, like, at);
    }
    if (node.depth == 0 && search_.NextOfClass(*at.row, kBeyondClass) == StringSearch::kMixed) {
      // Not so rare that one state could stand for most: none is assumed.
      if (assumed_.empty()) assumed_.resize(stack_.size());
      assumed_[0][kBeyondClass] = kNoState;
      at.assumed |= uint64_t{1} << kBeyondClass;
      for (int byte = 0xC2; byte <= 0xF4; ++byte) {
        const uint32_t child = trie_.Child(TokenTrie::kRoot, static_cast<uint8_t>(byte));
        if (child != TokenTrie::kNone) exceptions_.push_back({child, at.state, kNoState});
      }
    }
  }

  void Assume(const ClassTrie::Node& node, CharClass like, At& at) {
    struct Child {
      uint32_t node;
      StateId next;
    };
    std::vector<Child> children;
    std::vector<std::pair<StateId, uint32_t>> weights;
    ForChildren(trie_, node.spelled, [&](uint32_t child, uint8_t byte) {
      if (!IsPlainAscii(byte) || ClassOfAscii(byte) != like) return;
      const StateId next = WithoutFlag(search_.NextAscii(at.state, byte));
      children.push_back({child, next});
      const uint32_t weight = trie_.FirstToken(trie_.nodes()[child].end) - trie_.FirstToken(child);
      for (auto& [known, sum] : weights) {
        if (known != next) continue;
        sum += weight;
        return;
      }
      weights.emplace_back(next, weight);
    });
    std::pair<StateId, uint32_t> most = {kNoState, 0};
    for (const auto& each : weights) {
      if (each.second > most.second) most = each;
    }
    if (assumed_.empty()) assumed_.resize(stack_.size());
    assumed_[node.depth][like] = most.first;
    at.assumed |= uint64_t{1} << like;
    for (const Child& child : children) {
      if (child.next != most.first) exceptions_.push_back({child.node, child.next, most.first});
    }
  }

 public:
  template <typename Fn>
  static void ForChildren(const TokenTrie& trie, uint32_t parent, const Fn& fn) {
    const auto nodes = trie.nodes();
    const bool root = parent == TokenTrie::kRoot;
    const auto end = root ? static_cast<uint32_t>(nodes.size()) : nodes[parent].end;
    for (uint32_t i = root ? 0 : parent + 1; i < end; i = nodes[i].end) fn(i, nodes[i].byte);
  }

 private:
  void ReadTokens(const Apart& apart) {
    for (uint32_t place = apart.first; place < apart.last; ++place) {
      StopScope::Step();
      const TokenId token = classes_.order()[place];
      const std::string_view bytes = vocabulary_.bytes(token);
      if (restarts_) {
        if (MayFollow(bytes, start_)) Set(token);
        continue;
      }
      size_t from = 0;
      for (size_t n = 0; n < apart.read; ++n) {
        ++from;
        while (from < bytes.size() && (static_cast<uint8_t>(bytes[from]) & 0xC0) == 0x80) ++from;
      }
      if (MayFollow(bytes.substr(from), apart.state)) Set(token);
    }
  }

  bool MayFollow(std::string_view bytes, StateId state) {
    StringPosition position{state, 0};
    for (const char c : bytes) {
      const auto byte = static_cast<uint8_t>(c);
      if (position.part == 0 && byte < 0x80) {
        position.state = WithoutFlag(search_.NextAscii(position.state, byte));
        if (position.state == kNoState) return false;
      } else if (StepString(search_, position, byte, {false, false}) != StringStep::kInside) {
        return false;
      }
    }
    return true;
  }

  // Walks the trie of bytes with both states, and sets and clears what the assumption got wrong.
  void Compare(const Exception& exception) {
    const auto nodes = trie_.nodes();
    if (pairs_.empty()) pairs_.resize(static_cast<size_t>(trie_.max_depth()) + 1);
    uint32_t i = exception.node;
    const uint32_t end = nodes[i].end;
    if (nodes[i].byte >= 0x80) {
      pairs_[nodes[i].depth - 1u] = {{exception.state, 0}, {exception.assumed, 0}};
    } else {
      pairs_[nodes[i].depth] = {{exception.state, 0}, {exception.assumed, 0}};
      i = Judge(i);
    }
    for (; i < end; ++visited_) i = VisitBoth(i);
  }

  struct Pair {
    StringPosition is, assumed;
  };

  uint32_t VisitBoth(uint32_t i) {
    StopScope::Step();
    const TokenTrie::Node& node = trie_.nodes()[i];
    Pair at = pairs_[node.depth - 1u];
    const bool boundary = at.is.part == 0 && at.assumed.part == 0;
    if (boundary && node.byte < 0x80) {
      if (!IsPlainAscii(node.byte)) return node.end;  // not of a plain token
      at.is.state = WithoutFlag(search_.NextAscii(at.is.state, node.byte));
      if (at.assumed.state != kNoState)
        at.assumed.state = WithoutFlag(search_.NextAscii(at.assumed.state, node.byte));
    } else {
      if (boundary && at.assumed.state != kNoState) {
        const StateId next = search_.NextOfClass(search_.RowOf(at.is.state), kBeyondClass);
        if (next != StringSearch::kMixed &&
            next == search_.NextOfClass(search_.RowOf(at.assumed.state), kBeyondClass))
          return node.end;
      }
      for (StringPosition* position : {&at.is, &at.assumed}) {
        if (position->state != kNoState &&
            StepString(search_, *position, node.byte, {false, false}) != StringStep::kInside)
          *position = {kNoState, 0};
      }
    }
    pairs_[node.depth] = at;
    return Judge(i);
  }

  // With the states after node i.
  uint32_t Judge(uint32_t i) {
    const TokenTrie::Node& node = trie_.nodes()[i];
    const auto& [is, assumed] = pairs_[node.depth];
    if (is.state == assumed.state && is.part == assumed.part) return node.end;
    if (is.state == kNoState) {
      for (uint32_t t = trie_.FirstToken(i); t < trie_.FirstToken(node.end); ++t)
        Clear(trie_.order()[t]);
      return node.end;
    }
    if (assumed.state == kNoState) {
      trie_.SetBits(node, words_);
    } else if (is.part == 0 && search_.AlwaysLive(is.state) && search_.AlwaysLive(assumed.state)) {
      return node.end;
    }
    return i + 1;
  }

  void Set(TokenId token) { words_[static_cast<size_t>(token) >> 5] |= 1u << (token & 31); }
  void Clear(TokenId token) { words_[static_cast<size_t>(token) >> 5] &= ~(1u << (token & 31)); }

  StringSearch& search_;
  const bool restarts_ = search_.Restarts();  // states behind the first step stand for others
  const uint32_t most_read_ = restarts_ ? limits::kTokensReadAgain : limits::kTokensRead;
  StateId start_ = 0;
  const Vocabulary& vocabulary_;
  const TokenTrie& trie_;
  const ClassTrie& classes_;
  uint32_t* words_;
  std::vector<At> stack_;
  std::vector<std::array<StateId, kBeyondClass + 1>> assumed_;  // by depth and class
  std::vector<Exception> exceptions_;
  std::vector<Pair> pairs_;
  std::vector<Apart> apart_;
  uint32_t read_ = 0;              // tokens in apart_
  uint64_t visited_ = 0;           // nodes
  uint32_t first_ = 0, last_ = 0;  // places allowed that have no bits yet
};

}  // namespace

bool WalkClasses(StringSearch& search, StateId state, const Vocabulary& vocabulary,
                 const ClassTrie& classes, uint32_t* words) {
  return ClassWalk(search, vocabulary, classes, words).Run(state);
}

uint32_t CountBeginnings(StringSearch& search, StateId state, const TokenTrie& trie,
                         const ClassTrie& classes) {
  uint32_t count = 0;
  StringSearch::ClassRow& row = search.RowOf(state);
  const auto nodes = classes.nodes();
  bool mixed = false;
  for (uint32_t i = 1; i < nodes.size(); i = nodes[i].end) {
    const StateId next = search.NextOfClass(row, nodes[i].like);
    if (next == kNoState) continue;
    mixed = mixed || (next == StringSearch::kMixed && nodes[i].like != kBeyondClass);
    if (next != StringSearch::kMixed || nodes[i].like == kBeyondClass)
      count += classes.Place(nodes[i].end) - nodes[i].place;
  }
  if (!mixed) return count;
  ClassWalk::ForChildren(trie, TokenTrie::kRoot, [&](uint32_t child, uint8_t byte) {
    if (!IsPlainAscii(byte)) return;
    if (search.NextOfClass(row, ClassOfAscii(byte)) != StringSearch::kMixed) return;
    if (search.NextAscii(state, byte) != kNoState)
      count += trie.FirstToken(trie.nodes()[child].end) - trie.FirstToken(child);
  });
  return count;
}

}  // namespace pawl::schema
