// One pass over the trie of bytes sorts its nodes into classes: each byte at the boundary of a code
// point goes one class down, the others of a code point stay. The children are found in a table
// that lives as long as the pass.
#include "schemas/scalar/class_trie.h"

#include <algorithm>
#include <array>
#include <utility>

#include "grammar/vocabulary_tables.h"
#include "schemas/limits.h"

namespace pawl::schema {
namespace {

constexpr uint32_t kNoChild = 0;  // no child is the root

}  // namespace

struct ClassTrie::Builder {
  struct Draft {
    std::array<uint32_t, kCharClasses> children;
    std::vector<TokenId> tokens;
    uint32_t spelled;
    CharClass like;
  };
  // After a node of the trie of bytes.
  struct At {
    uint32_t draft = 0;
    uint8_t missing = 0;  // bytes of the code point begun
    uint32_t value = 0;   // of it so far
  };

  explicit Builder(const TokenTrie& byte_trie) : trie(byte_trie), leads(byte_trie.size()) {
    Add(0, TokenTrie::kRoot);
  }

  uint32_t Add(CharClass like, uint32_t spelled) {
    Draft& draft = drafts.emplace_back();
    draft.children.fill(kNoChild);
    draft.like = like;
    draft.spelled = spelled;
    return static_cast<uint32_t>(drafts.size() - 1);
  }

  uint32_t Child(uint32_t draft, CharClass like, uint32_t byte_node) {
    if (drafts[draft].children[like] == kNoChild) {
      const bool single = like >= kFirstSingle && drafts[draft].spelled != kManySpellings;
      drafts[draft].children[like] = Add(like, single ? byte_node : kManySpellings);
    }
    return drafts[draft].children[like];
  }

  // The nodes above i, which is at the top of the path, and the subtree of i as far as `end`.
  void Leads(std::span<const uint32_t> path, uint32_t i, uint32_t end) {
    for (const uint32_t above : path) leads[above] = true;
    for (uint32_t n = i; n < end; ++n) leads[n] = true;
  }

  void Run() {
    const auto nodes = trie.nodes();
    std::vector<At> stack(static_cast<size_t>(trie.max_depth()) + 1);
    std::vector<uint32_t> path(stack.size());  // of depth 1, 2, ...
    for (uint32_t i = 0; i < nodes.size();) {
      const TokenTrie::Node& node = nodes[i];
      const uint8_t byte = node.byte;
      At at = stack[node.depth - 1u];
      path[node.depth - 1u] = i;
      const std::span<const uint32_t> above(path.data(), node.depth);
      bool plain = true;
      if (at.missing > 0) {
        if ((byte & 0xC0) != 0x80) {
          i = node.end;
          continue;
        }
        at.value = at.value << 6 | (byte & 0x3F);
        --at.missing;
      } else if (byte == '"' || byte == '\\') {
        Leads(above, i, byte == '"' ? i + 1 : node.end);
        i = node.end;
        continue;
      } else if (byte >= 0x80) {
        if (byte < 0xC2 || byte > 0xF4) {
          i = node.end;
          continue;
        }
        at.missing = byte >= 0xF0 ? 3 : byte >= 0xE0 ? 2 : 1;
        at.value = byte & (0x3Fu >> at.missing);
        at.draft = Child(at.draft, kBeyondClass, i);
      } else if (byte < 0x20) {
        i = node.end;
        continue;
      } else {
        at.draft = Child(at.draft, ClassOfAscii(byte), i);
        at.value = 0;
      }
      if (byte >= 0x80) {
        // All code points that may still come out of it. What is no code point counts as intricate:
        // the trie of bytes knows.
        const uint32_t shift = 6u * at.missing;
        const uint32_t lo = at.value << shift, hi = lo | ((1u << shift) - 1);
        const bool sure = Sure(path, node.depth, at.missing, lo, hi);
        if (at.missing == 0 && (!sure || IsSetApart(lo))) {
          Leads(above, i, node.end);
          i = node.end;
          continue;
        }
        if (!sure || AnySetApart(lo, hi)) {
          if (node.token != kNoToken) Leads(above, i, i + 1);
          plain = false;
        }
      }
      stack[node.depth] = at;
      if (plain) {
        auto& tokens = drafts[at.draft].tokens;
        trie.ForTokens(node, [&](TokenId t) { tokens.push_back(t); });
      }
      ++i;
    }
  }

  // Whether all of lo..hi are code points, spelled as short as can be.
  bool Sure(std::span<const uint32_t> path, uint16_t depth, uint8_t missing, uint32_t lo,
            uint32_t hi) const {
    uint16_t first = depth;  // of the code point
    while ((trie.nodes()[path[first - 1u]].byte & 0xC0) == 0x80) --first;
    const uint32_t length = depth - first + 1u + missing;
    const uint32_t least = length == 2 ? 0x80 : length == 3 ? 0x800 : 0x10000;
    return lo >= least && hi <= 0x10FFFF && (hi < 0xD800 || lo > 0xDFFF);
  }

  const TokenTrie& trie;
  std::vector<Draft> drafts;
  std::vector<bool> leads;
};

ClassTrie::ClassTrie(const Vocabulary& vocabulary) {
  Builder builder(TrieOf(vocabulary));
  builder.Run();

  // Depth first, with the parents known on the way back.
  struct Open {
    uint32_t draft, node;
    size_t next;  // child to look at
  };
  std::vector<Open> open;
  const auto enter = [&](uint32_t draft) {
    const Builder::Draft& d = builder.drafts[draft];
    const auto node = static_cast<uint32_t>(nodes_.size());
    nodes_.push_back({0, static_cast<uint32_t>(order_.size()), 0, d.spelled,
                      static_cast<uint16_t>(open.size()), d.like});
    max_depth_ = std::max(max_depth_, nodes_.back().depth);
    order_.insert(order_.end(), d.tokens.begin(), d.tokens.end());
    ends_here_.push_back(static_cast<uint32_t>(order_.size()));
    open.push_back({draft, node, 0});
  };
  enter(0);
  while (!open.empty()) {
    Open& top = open.back();
    const auto& children = builder.drafts[top.draft].children;
    while (top.next < children.size() && children[top.next] == kNoChild) ++top.next;
    if (top.next < children.size()) {
      enter(children[top.next++]);
      continue;
    }
    const Node done = nodes_[top.node];
    nodes_[top.node].end = static_cast<uint32_t>(nodes_.size());
    open.pop_back();
    if (!open.empty()) nodes_[open.back().node].below |= done.below | uint64_t{1} << done.like;
  }

  intricate_ = StepsOf(builder.leads, TrieOf(vocabulary));
  MakeCuts(vocabulary.mask_words());
}

std::vector<ClassTrie::Step> ClassTrie::StepsOf(const std::vector<bool>& marked,
                                                const TokenTrie& trie) {
  std::vector<Step> steps;
  for (uint32_t i = 0; i < marked.size(); ++i) {
    if (marked[i]) steps.push_back({i, 0});
  }
  for (Step& step : steps) {
    const uint32_t end = trie.nodes()[step.node].end;
    step.after = static_cast<uint32_t>(
        std::lower_bound(steps.begin(), steps.end(), end,
                         [](const Step& s, uint32_t node) { return s.node < node; }) -
        steps.begin());
  }
  return steps;
}

void ClassTrie::MakeCuts(int words) {
  std::vector<uint32_t> cuts;
  const auto cut = [&](uint32_t place) {
    if (cuts.empty() ? place > 0 : place > cuts.back()) cuts.push_back(place);
  };
  for (uint32_t i = 0; i < nodes_.size(); ++i) {
    const uint32_t place = nodes_[i].place;
    const bool many = ends_here_[i] - place >= TokenRanges::kMany;
    if (many || place - (cuts.empty() ? 0 : cuts.back()) >= limits::kCutTokens) cut(place);
    if (many) cut(ends_here_[i]);
  }
  cut(static_cast<uint32_t>(order_.size()));
  ranges_ = TokenRanges(order_, std::move(cuts), words);
}

}  // namespace pawl::schema
