// Where much may follow the plain tokens are left to WalkClasses, and the trie of bytes is walked
// on the ways to the intricate ones alone (class_trie.h). Where little may, all of it is: most
// branches end at the first byte.
//
// Of a product that has grown too large (StringSearch::Apart) hardly two nodes of the trie have the
// same state, and making one for each would cost more than all else. There the walk carries the
// words of the states along, looks at them where a step has settled something, and keeps the states
// of closing quotes alone.
#include "schemas/scalar/string_walk.h"

#include <algorithm>
#include <tuple>

#include "grammar/vocabulary_tables.h"
#include "schemas/limits.h"
#include "schemas/scalar/json_string.h"
#include "schemas/scalar/settling_tokens.h"
#include "src/base/stop_scope.h"
#include "src/base/utf8.h"

namespace pawl::schema {
namespace {

class Walk {
 public:
  Walk(StringSearch& search, const Vocabulary& vocabulary, const StringTokens& tokens,
       const StringIndex& index, StringSpelling spelling, uint32_t* words,
       std::vector<StringClosings>& closings)
      : search_(search),
        vocabulary_(vocabulary),
        trie_(TrieOf(vocabulary)),
        tokens_(tokens),
        index_(index),
        spelling_(spelling),
        words_(words),
        closings_(closings) {}

  MaskStrategy Run(StringSearch::StateId state, uint32_t node, bool fresh) {
    const bool root = root_ = node == TokenTrie::kRoot;
    const auto nodes = trie_.nodes();
    const uint32_t begin = root ? 0 : node + 1;
    const auto end = root ? static_cast<uint32_t>(nodes.size()) : nodes[node].end;
    const uint16_t top = root ? 0 : nodes[node].depth;
    const auto freedom = search_.FreedomOf(state);
    MaskStrategy path = freedom ? MaskStrategy::kFreeString : MaskStrategy::kNarrowString;
    if (freedom && fresh) {
      const auto base = tokens_.AtMost(freedom->max);
      std::ranges::copy(base, words_);
      Close(index_.first(), index_.last(), state, 0, *freedom);
    } else if (freedom && freedom->max >= tokens_.longest()) {
      for (const auto& [word, bits] : index_.inside()) words_[word] |= bits;
      Close(index_.first(), index_.last(), state, 0, *freedom);
    } else if (freedom) {
      Free(begin, end, state, 0, *freedom);
    } else if (search_.IsSource() || search_.source_table() != nullptr) {
      WalkSource(search_, state, vocabulary_, node, spelling_, words_, closings_);
    } else {
      stack_.resize(static_cast<size_t>(trie_.max_depth()) + 1);
      parts_.resize(stack_.size());
      stack_[top] = {state, 0, Where::kBoundary};
      const ClassTrie& classes = tokens_.classes();
      // Where all is ASCII the classes beyond it would mislead, and far fewer tokens fit.
      apart_ = search_.Apart();
      if (apart_) {
        width_ = search_.program().width();
        keys_.resize(stack_.size() * width_);
        search_.program().CopyKey(state, KeyAt(top));
        settling_.resize(stack_.size());
        if (fresh && !search_.FoundDead()) SetPlainApart(KeyAt(top));
        Carry(top, 0, calm_);
      }
      const bool wide = !apart_ && fresh && !spelling_.ascii && !search_.program().HasSources() &&
                        CountBeginnings(search_, state, trie_, classes) >= limits::kWidePlace;
      if (wide && WalkClasses(search_, state, vocabulary_, classes, words_)) {
        path = MaskStrategy::kWideString;
        steps_ = classes.intricate();
        VisitSteps();
      } else if (!steps_.empty()) {
        VisitSteps();
      } else {
        for (uint32_t i = begin; i < end;) {
          const uint32_t to = Hurry(i, end);
          visited_ += to - i + 1;
          i = VisitAny(to);
        }
      }
    }
    search_.program().spending().nodes += visited_;
    Gather();
    return path;
  }

 private:
  // Between two bytes of a token. kCarried: at a boundary, the state's words are KeyAt the depth;
  // kCarriedPart: inside a code point beyond ASCII, the words before it are at Beyond::depth.
  // kBeyond: inside a code point beyond ASCII, all of which lead to
  // `state`; kPart: inside a code point that needs a closer look, see parts_.
  enum class Where : uint8_t { kBoundary, kBeyond, kPart, kCarried, kCarriedPart };
  struct At {
    StringSearch::StateId state = 0;
    uint16_t read = 0;  // code points begun
    Where where = Where::kBoundary;
    bool calm = false;  // kCarried: no characters with a class settle all
  };

  // So far the groups held places in the order of the tokens. Free neighbours that are alike become
  // one.
  void Gather() {
    size_t kept = 0;
    for (StringClosings group : closings_) {
      std::tie(group.begin, group.end) = index_.CrossingsOf(group.begin, group.end);
      if (group.begin == group.end) continue;
      StringClosings* const last = kept > 0 ? &closings_[kept - 1] : nullptr;
      if (last != nullptr && last->free && group.free && last->end == group.begin &&
          last->state == group.state && last->read == group.read) {
        last->end = group.end;
      } else {
        closings_[kept++] = group;
      }
    }
    closings_.resize(kept);
  }

  // The nodes from i on whose steps are remembered and lead to live states that are not free:
  // nearly all of a wide walk. Returns the first other one. Branches that cannot be predicted,
  // whether a node is a leaf and has a token, are not taken.
  uint32_t Hurry(uint32_t i, uint32_t end) {
    const auto nodes = trie_.nodes();
    At* const stack = stack_.data();
    for (; i + 1 < end; ++i) {
      const TokenTrie::Node& node = nodes[i];
      const At& before = stack[node.depth - 1u];
      if (before.where != Where::kBoundary || !IsPlainAscii(node.byte) || node.several) break;
      const StringSearch::StateId next = search_.KnownAscii(before.state, node.byte);
      if (next >= StringSearch::kFreeFlag) break;
      stack[node.depth] = {next, static_cast<uint16_t>(before.read + 1), Where::kBoundary};
      const bool has = node.token != kNoToken;
      const auto token = static_cast<uint32_t>(has ? node.token : 0);
      words_[token >> 5] |= uint32_t{has} << (token & 31);
    }
    return i;
  }

  // Sets the bits of the tokens for which the trie of bytes need not be walked, and what is left of
  // the trie in steps_; no steps where all of it is.
  void SetPlainApart(const uint32_t* words) {
    if (!search_.LosesHope()) {
      // Whatever comes, each state is live until all is settled.
      if (spelling_.ascii || !search_.program().NeverSettled(words)) return;
      calm_ = true;
      const ClassTrie& classes = tokens_.classes();
      classes.SetBits(0, static_cast<uint32_t>(classes.order().size()), words_);
      steps_ = classes.intricate();
      return;
    }
    if (!SettlingTokens::Knows(search_.program(), words)) return;
    std::shared_ptr<SettlingTokens>& settling = search_.settling_tokens();
    if (settling == nullptr || !settling->Is(tokens_))
      settling = std::make_shared<SettlingTokens>(search_.program(), trie_, tokens_);
    if (settling->Fill(search_, words, words_)) steps_ = settling->others();
  }

  void VisitSteps() {
    for (step_ = 0; step_ < steps_.size();) {
      const ClassTrie::Step& step = steps_[step_];
      const bool on = VisitAny(step.node) == step.node + 1;
      ++visited_;
      step_ = on ? step_ + 1 : step.after;
    }
  }

  uint32_t VisitAny(uint32_t i) {
    StopScope::Step();
    if (apart_ && stack_[trie_.nodes()[i].depth - 1u].where >= Where::kCarried)
      return VisitCarried(i);
    return IsPlainAscii(trie_.nodes()[i].byte) ? VisitPlain(i) : Visit(i);
  }

  // Both return the node to go on with. VisitPlain is for bytes that stand for themselves: nearly
  // all the nodes of a wide walk, so it is kept short.
  uint32_t VisitPlain(uint32_t i) {
    const TokenTrie::Node& node = trie_.nodes()[i];
    At at = stack_[node.depth - 1u];
    if (at.where != Where::kBoundary) return Visit(i);
    if (node.end == i + 1) {
      if (search_.LivesAfterAscii(at.state, node.byte)) trie_.SetBits(node, words_);
      return node.end;
    }
    ++at.read;
    at.state = search_.NextAscii(at.state, node.byte);
    if (at.state == StringSearch::kNoState) return node.end;
    if ((at.state & StringSearch::kFreeFlag) != 0) {
      at.state &= ~StringSearch::kFreeFlag;
      return Reached(i, at);
    }
    trie_.SetBits(node, words_);
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
          if (!search_.Live(beyond) || tokens_.IsOutside(i)) return node.end;
          at.state = beyond;
          at.where = Where::kBeyond;
          return Reached(i, at);
        }
      }
    } else if (at.where == Where::kBeyond) {
      if (tokens_.IsOutside(i)) return node.end;
      if (tokens_.AtBoundary(i)) at.where = Where::kBoundary;
      return Keep(i, at);
    } else {
      position = parts_[node.depth - 1u];
    }
    if (StepString(search_, position, node.byte, spelling_) != StringStep::kInside) return node.end;
    at.state = position.state;
    at.where = position.part == 0 ? Where::kBoundary : Where::kPart;
    parts_[node.depth] = position;
    return position.part == 0 ? Reached(i, at) : Keep(i, at);
  }

  // The words of the state after `depth` bytes.
  uint32_t* KeyAt(size_t depth) { return &keys_[depth * width_]; }

  // Whether a step of the class from the state at a depth may settle something.
  bool Settles(size_t depth, int cls) const {
    const uint8_t slot = search_.program().SlotOfClass(cls);
    return (settling_[depth][slot >> 6] >> (slot & 63) & 1) != 0;
  }
  void Carry(size_t depth, int read, bool calm) {
    stack_[depth] = {0, static_cast<uint16_t>(read), Where::kCarried, calm};
    if (calm) {
      settling_[depth] = kCalm;
    } else if (search_.FoundDead()) {
      settling_[depth] = {UINT64_MAX, UINT64_MAX};
    } else {
      settling_[depth] = search_.program().SettlingKey(KeyAt(depth));
    }
  }

  uint32_t VisitCarried(uint32_t i) {
    const TokenTrie::Node& node = trie_.nodes()[i];
    At& before = stack_[node.depth - 1u];
    StringProgram& program = search_.program();
    if (before.where == Where::kCarriedPart) return VisitBeyond(i, before.read);
    if (IsPlainAscii(node.byte)) {
      const int cls = program.ClassOf(node.byte);
      const bool settles = Settles(node.depth - 1u, cls);
      if (!settles && node.end == i + 1) {
        trie_.SetBits(node, words_);
        return node.end;
      }
      program.StepKey(KeyAt(node.depth - 1u), cls, KeyAt(node.depth));
      return ReachedCarried(i, before.read + 1, settles, before.calm);
    }
    if (root_ && node.byte >= 0xC2) {
      if (parts_beyond_.empty()) parts_beyond_.resize(stack_.size());
      parts_beyond_[node.depth - 1u] = {0, 0, static_cast<uint16_t>(node.depth - 1u)};
      return VisitBeyond(i, before.read + 1);
    }
    // Quotes, escapes and what is no text: few, and the states there are kept.
    const At carried = before;
    before = {program.KeepKey(KeyAt(node.depth - 1u)), carried.read, Where::kBoundary};
    const uint32_t next = search_.Live(before.state) ? Visit(i) : node.end;
    stack_[node.depth - 1u] = carried;
    return next;
  }

  // A byte of a code point beyond ASCII, of which `read` have begun.
  uint32_t VisitBeyond(uint32_t i, int read) {
    const TokenTrie::Node& node = trie_.nodes()[i];
    if (tokens_.IsOutside(i)) return node.end;
    StringProgram& program = search_.program();
    Beyond part = parts_beyond_[node.depth - 1u];
    if (part.missing == 0) {
      part.missing = node.byte >= 0xF0 ? 3 : node.byte >= 0xE0 ? 2 : 1;
      part.code = node.byte & (0x3Fu >> part.missing);
    } else {
      --part.missing;
      part.code = part.code << 6 | (node.byte & 0x3F);
    }
    const uint32_t* const words = KeyAt(part.depth);
    uint32_t* const after = KeyAt(node.depth);
    if (part.missing == 0) {
      const int cls = program.ClassOf(part.code);
      const bool settles = Settles(part.depth, cls);
      if (!settles && node.end == i + 1) {
        trie_.SetBits(node, words_);
        return node.end;
      }
      program.StepKey(words, cls, after);
      return ReachedCarried(i, read, settles, stack_[part.depth].calm && !IsSetApart(part.code));
    }
    // Any of the code points that may come of it.
    static constexpr char32_t kLeast[] = {0, 0x80, 0x800, 0x10000};
    const int bits = 6 * part.missing;
    const char32_t lo = std::max<char32_t>(part.code << bits, kLeast[part.missing]);
    char32_t hi = std::min<char32_t>((part.code << bits) + (1u << bits) - 1, kMaxCodepoint);
    if (lo < 0xD800 && hi > 0xD7FF && hi < 0xE000) hi = 0xD7FF;  // no surrogates
    const bool live = program.AnyClassIn(lo, hi, [&](int cls) {
      if (!Settles(part.depth, cls)) return true;
      program.StepKey(words, cls, after);
      return LiveCarried(after);
    });
    if (!live) return node.end;
    trie_.SetBits(node, words_);
    stack_[node.depth] = {0, static_cast<uint16_t>(read), Where::kCarriedPart};
    parts_beyond_[node.depth] = part;
    return i + 1;
  }

  bool LiveCarried(const uint32_t* words) {
    if (search_.program().QuietKey(words)) return search_.Live(search_.program().KeepKey(words));
    return !search_.Hopeless(words);
  }

  uint32_t ReachedCarried(uint32_t i, int read, bool settled, bool calm) {
    const TokenTrie::Node& node = trie_.nodes()[i];
    const uint32_t* const words = KeyAt(node.depth);
    if (settled && search_.program().QuietKey(words)) {
      const StringSearch::StateId state = search_.program().KeepKey(words);
      if (!search_.Live(state)) return node.end;
      return Reached(i, {state, static_cast<uint16_t>(read), Where::kBoundary});
    }
    if (settled && search_.Hopeless(words)) return node.end;
    trie_.SetBits(node, words_);
    if (node.end > i + 1) Carry(node.depth, read, calm);
    return i + 1;
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
    trie_.SetBits(trie_.nodes()[i], words_);
    stack_[trie_.nodes()[i].depth] = at;
    return i + 1;
  }

  // The tokens of the nodes begin ... end - 1, of which `read` code points have led to `state`.
  void Free(uint32_t begin, uint32_t end, StringSearch::StateId state, uint16_t read,
            const StringSearch::Freedom& freedom) {
    const uint32_t first = trie_.FirstToken(begin), last = trie_.FirstToken(end);
    if (steps_.empty()) {
      SetFree(first, last, read, freedom.max);
    } else {
      for (size_t s = step_; s < steps_[step_].after; ++s) {
        const uint32_t node = steps_[s].node;
        SetFree(trie_.FirstToken(node), trie_.FirstToken(node + 1), read, freedom.max);
      }
    }
    Close(first, last, state, read, freedom);
  }

  void SetFree(uint32_t first, uint32_t last, uint16_t read, uint64_t max) {
    for (uint32_t t = first; t < last; ++t) {
      const uint16_t length = index_.length(t);
      if (length != StringIndex::kOutside && uint64_t{length} - std::min(length, read) <= max)
        Set(trie_.order()[t]);
    }
  }

  void Close(uint32_t first, uint32_t last, StringSearch::StateId state, uint16_t read,
             const StringSearch::Freedom& freedom) {
    closings_.push_back({first, last, state, read, true, freedom.min, freedom.max});
  }

  void Set(TokenId token) { words_[static_cast<size_t>(token) >> 5] |= 1u << (token & 31); }

  StringSearch& search_;
  const Vocabulary& vocabulary_;
  const TokenTrie& trie_;
  const StringTokens& tokens_;
  const StringIndex& index_;
  const StringSpelling spelling_;
  uint32_t* words_;
  std::vector<StringClosings>& closings_;
  bool root_ = false;
  uint64_t visited_ = 0;                    // nodes
  std::span<const ClassTrie::Step> steps_;  // the nodes to visit, where it is not all of them
  size_t step_ = 0;
  std::vector<At> stack_;
  std::vector<StringPosition> parts_;
  // Where states are not kept: the words of one for each depth, and by depth the bits of a code
  // point so far, how many bytes of it are missing, and at what depth it began.
  struct Beyond {
    char32_t code = 0;
    int missing = 0;
    uint16_t depth = 0;
  };
  bool apart_ = false;
  bool calm_ = false;  // the state where the walk begins
  // What may settle all in a calm state: steps by characters beyond ASCII, some of which have no
  // class.
  static constexpr RegexGroup::ClassBits kCalm = {0, uint64_t{3} << 62};
  size_t width_ = 0;
  std::vector<uint32_t> keys_;
  std::vector<RegexGroup::ClassBits> settling_;  // by depth
  std::vector<Beyond> parts_beyond_;
};

}  // namespace

MaskStrategy WalkString(StringSearch& search, StringSearch::StateId state,
                        const Vocabulary& vocabulary, uint32_t node, const StringTokens& tokens,
                        const StringIndex& index, StringSpelling spelling, bool fresh,
                        uint32_t* words, std::vector<StringClosings>& closings) {
  return Walk(search, vocabulary, tokens, index, spelling, words, closings).Run(state, node, fresh);
}

}  // namespace pawl::schema
