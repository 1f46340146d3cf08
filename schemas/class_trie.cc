// One pass over the trie of bytes sorts its nodes into classes: each byte at the boundary of a code
// point goes one class down, the others of a code point stay. The children are found in a table
// that lives as long as the pass.
#include "schemas/class_trie.h"

#include <algorithm>
#include <array>

namespace pawl::schema {
namespace {

constexpr uint32_t kNoChild = 0;  // no child is the root
// Where cuts are made: around nodes with so many tokens, and between the others now and then.
constexpr uint32_t kManyHere = 768, kCutDistance = 2048;

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
        for (TokenId t = node.token; t != kNoToken; t = trie.NextSame(t)) tokens.push_back(t);
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
  Builder builder(vocabulary.trie());
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

  const auto bytes = vocabulary.trie().nodes();
  for (uint32_t i = 0; i < bytes.size(); ++i) {
    if (builder.leads[i]) intricate_.push_back({i, 0});
  }
  for (Step& step : intricate_) {
    const uint32_t end = bytes[step.node].end;
    step.after = static_cast<uint32_t>(
        std::lower_bound(intricate_.begin(), intricate_.end(), end,
                         [](const Step& s, uint32_t node) { return s.node < node; }) -
        intricate_.begin());
  }
  MakeCuts(vocabulary.mask_words());
}

void ClassTrie::MakeCuts(int words) {
  words_ = static_cast<size_t>(words);
  const auto cut = [&](uint32_t place) {
    if (cuts_.empty() ? place > 0 : place > cuts_.back()) cuts_.push_back(place);
  };
  for (uint32_t i = 0; i < nodes_.size(); ++i) {
    const uint32_t place = nodes_[i].place;
    const bool many = ends_here_[i] - place >= kManyHere;
    if (many || place - (cuts_.empty() ? 0 : cuts_.back()) >= kCutDistance) cut(place);
    if (many) cut(ends_here_[i]);
  }
  cut(static_cast<uint32_t>(order_.size()));
  std::vector<uint32_t> bits(words_);
  uint32_t place = 0;
  cut_words_.reserve(cuts_.size() * words_);
  for (const uint32_t at : cuts_) {
    for (; place < at; ++place)
      bits[static_cast<size_t>(order_[place]) >> 5] |= 1u << (order_[place] & 31);
    cut_words_.insert(cut_words_.end(), bits.begin(), bits.end());
  }
}

void ClassTrie::SetBits(uint32_t first, uint32_t last, uint32_t* words) const {
  const auto set = [&](uint32_t from, uint32_t to) {
    for (uint32_t i = from; i < to; ++i)
      words[static_cast<size_t>(order_[i]) >> 5] |= 1u << (order_[i] & 31);
  };
  if (last - first < kManyHere) return set(first, last);
  // All of a range behind the cut `low` (0: the beginning) and before the cut `high` at once.
  const auto low =
      static_cast<size_t>(std::lower_bound(cuts_.begin(), cuts_.end(), first) - cuts_.begin());
  const auto high = static_cast<size_t>(std::upper_bound(cuts_.begin(), cuts_.end(), last) -
                                        cuts_.begin());  // cuts_[high - 1] <= last
  const bool whole = first == 0;
  const uint32_t from = whole ? 0 : low < cuts_.size() ? cuts_[low] : last;
  const uint32_t to = high == 0 ? 0 : cuts_[high - 1];
  if (to < from || to - from < kManyHere) return set(first, last);
  const uint32_t* const upper = &cut_words_[(high - 1) * words_];
  if (whole) {
    for (size_t w = 0; w < words_; ++w) words[w] |= upper[w];
  } else {
    const uint32_t* const lower = &cut_words_[low * words_];
    for (size_t w = 0; w < words_; ++w) words[w] |= upper[w] & ~lower[w];
  }
  set(first, from);
  set(to, last);
}

}  // namespace pawl::schema
