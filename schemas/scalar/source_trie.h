// SourceTrie: the spans of a text, as the trie of all of them, of which only the nodes that are met
// are made.
//
//   SourceTrie trie(source, SpanKind::kSpan);
//   uint32_t node = trie.Child(trie.start(), U'A');   // kNone: no span begins so
//
// Not thread-safe.
#ifndef PAWL_SCHEMAS_SCALAR_SOURCE_TRIE_H_
#define PAWL_SCHEMAS_SCALAR_SOURCE_TRIE_H_

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "grammar/hash_index.h"
#include "src/base/memory_size.h"
#include "src/base/source_text.h"

namespace pawl::schema {

class SourceTrie {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;
  using Occurrences = SourceText::Occurrences;

  // `text` outlives the trie.
  SourceTrie(SourceText& text, SpanKind kind) : text_(&text), kind_(kind) {
    const Occurrences all = text.All(kind);
    start_ = all.empty() ? kNone : Node(all);
  }

  SourceText& text() { return *text_; }
  SpanKind kind() const { return kind_; }
  // kNone: the text has no span.
  uint32_t start() const { return start_; }
  uint32_t Child(uint32_t node, char32_t c) {
    const Occurrences next = Next(at(node), c);
    return next.empty() ? kNone : Node(next);
  }
  // The value so far is a span.
  bool IsSpan(uint32_t node) const {
    int8_t& known = spans_[node];
    if (known < 0) known = text_->EndsSpan(kind_, nodes_[node]) ? 1 : 0;
    return known == 1;
  }
  std::vector<char32_t> Following(uint32_t node) {
    std::vector<char32_t> out;
    ForFollowing(at(node), [&](char32_t c, const Occurrences&) { out.push_back(c); });
    return out;
  }
  // What the shortest way to a span takes: nothing where the value so far is one.
  std::u32string_view ToEnd(uint32_t node) {
    constexpr uint32_t kMany = 64;  // occurrences, which are walked
    SourceText::NearestEnd end{0, 0};
    if (at(node).hi - at(node).lo < kMany) {
      end = text_->Nearest(kind_, at(node));
    } else {
      const auto [known, fresh] = nearest_.try_emplace(node, end);
      if (fresh) known->second = text_->Nearest(kind_, at(node));
      end = known->second;
    }
    return text_->text().substr(end.from, end.missing);
  }
  // kNone: no span goes on so.
  uint32_t After(uint32_t node, std::u32string_view text) {
    const Occurrences after = text_->After(kind_, at(node), text);
    return after.empty() ? kNone : Node(after);
  }

  // The same without nodes, for walks that keep nothing.
  const Occurrences& at(uint32_t node) const { return nodes_[node]; }
  Occurrences Next(const Occurrences& from, char32_t c) { return text_->Next(kind_, from, c); }
  // fn(code point, Next) for each code point with which they go on, ascending.
  template <typename Fn>
  void ForFollowing(const Occurrences& from, Fn&& fn) {
    text_->ForFollowing(kind_, from, fn);
  }
  bool GoesOn(const Occurrences& from, char32_t lo, char32_t hi) {
    return text_->GoesOn(kind_, from, lo, hi);
  }
  template <typename Fn>
  bool AnyWithin(const Occurrences& from, char32_t lo, char32_t hi, Fn&& fn) {
    return text_->AnyWithin(kind_, from, lo, hi, fn);
  }
  bool IsSpan(const Occurrences& of) { return text_->EndsSpan(kind_, of); }
  uint32_t Node(const Occurrences& of) {
    const uint32_t node = index_.Intern(HashMix(HashMix(of.lo, of.hi), of.length), nodes_, of);
    if (node == spans_.size()) spans_.push_back(-1);
    return node;
  }

  size_t MemoryBytes() const { return HeapBytes(nodes_, spans_, nearest_, index_); }

 private:
  SourceText* text_;
  SpanKind kind_;
  uint32_t start_;
  std::vector<Occurrences> nodes_;
  mutable std::vector<int8_t> spans_;                             // by node, -1: not asked
  std::unordered_map<uint32_t, SourceText::NearestEnd> nearest_;  // by node, of many occurrences
  HashIndex index_;
};

}  // namespace pawl::schema

#endif  // PAWL_SCHEMAS_SCALAR_SOURCE_TRIE_H_
