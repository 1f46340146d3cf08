// A byte trie, walked from every position where some token can start. Tokens are at most a few
// kilobytes long (the loader sees to it), so this stays near linear without failure links.
#include "src/text/added_tokens.h"

#include <algorithm>

#include "src/base/stop_scope.h"
#include "src/base/utf8.h"
#include "src/text/split_regex.h"

namespace pawl {
namespace {

bool Has(std::string_view property, char32_t c) {
  const auto ranges = UnicodeProperty(property);
  const auto at =
      std::upper_bound(ranges.begin(), ranges.end(), c,
                       [](char32_t key, const CodepointRange& r) { return key < r.lo; });
  return at != ranges.begin() && c <= (at - 1)->hi;
}
bool IsSpace(char32_t c) { return Has("White_Space", c); }
bool IsWord(char32_t c) {
  return Has("Alphabetic", c) || Has("M", c) || Has("Nd", c) || Has("Pc", c) ||
         Has("Join_Control", c);
}

// The last code point of `text`; an invalid byte counts as kReplacement. REQUIRES: !text.empty().
DecodedCodepoint DecodeLast(std::string_view text) {
  for (size_t length = std::min<size_t>(4, text.size()); length > 1; --length) {
    const DecodedCodepoint d = DecodeUtf8(text.substr(text.size() - length));
    if (d.valid && static_cast<size_t>(d.length) == length) return d;
  }
  return DecodeUtf8(text.substr(text.size() - 1));
}

size_t SpacesAtStart(std::string_view text) {
  size_t i = 0;
  StopSteps steps;
  while (i < text.size()) {
    steps.Step();
    const DecodedCodepoint d = DecodeUtf8(text.substr(i));
    if (!d.valid || !IsSpace(d.codepoint)) break;
    i += static_cast<size_t>(d.length);
  }
  return i;
}

size_t SpacesAtEnd(std::string_view text) {
  size_t i = 0;
  StopSteps steps;
  while (i < text.size()) {
    steps.Step();
    const DecodedCodepoint d = DecodeLast(text.substr(0, text.size() - i));
    if (!d.valid || !IsSpace(d.codepoint)) break;
    i += static_cast<size_t>(d.length);
  }
  return i;
}

}  // namespace

void AddedTokenMatcher::Add(const AddedToken& token, std::string_view form) {
  if (form.empty()) return;  // nothing is left of it after normalizing
  int32_t node = 0;
  for (const char c : form) {
    const auto byte = static_cast<unsigned char>(c);
    int32_t child = Child(node, byte);
    if (child < 0) {
      child = static_cast<int32_t>(nodes_.size());
      auto& next = nodes_[static_cast<size_t>(node)].next;
      next.insert(std::lower_bound(next.begin(), next.end(), std::pair(byte, int32_t{0})),
                  {byte, child});
      nodes_.emplace_back();
    }
    node = child;
  }
  nodes_[static_cast<size_t>(node)].token = static_cast<int32_t>(tokens_.size());
  tokens_.push_back(token);
}

int32_t AddedTokenMatcher::Child(int32_t node, unsigned char byte) const {
  const auto& next = nodes_[static_cast<size_t>(node)].next;
  const auto at = std::lower_bound(next.begin(), next.end(), std::pair(byte, int32_t{0}));
  return at != next.end() && at->first == byte ? at->second : -1;
}

std::pair<int32_t, size_t> AddedTokenMatcher::Longest(std::string_view text,
                                                      const Filter& filter) const {
  std::pair<int32_t, size_t> best{-1, 0};
  int32_t node = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    node = Child(node, static_cast<unsigned char>(text[i]));
    if (node < 0) break;
    const int32_t token = nodes_[static_cast<size_t>(node)].token;
    if (token < 0) continue;
    if (filter.ordinary || IsSpecial(tokens_[static_cast<size_t>(token)], filter)) {
      best = {token, i + 1};
    }
  }
  return best;
}

bool AddedTokenMatcher::IsSpecial(const AddedToken& token, const Filter& filter) {
  return token.special ||
         std::find(filter.control.begin(), filter.control.end(), token.id) != filter.control.end();
}

void AddedTokenMatcher::Split(std::string_view text, const Filter& filter,
                              std::vector<Part>& out) const {
  size_t done = 0;  // everything before is in `out`
  size_t next_data = 0;
  StopSteps steps;
  for (size_t i = 0; !tokens_.empty() && i < text.size();) {
    steps.Step();
    while (next_data < filter.data.size() && filter.data[next_data].end <= i) ++next_data;
    size_t limit = text.size();
    if (next_data < filter.data.size()) {
      if (filter.data[next_data].begin <= i) {
        i = std::min(filter.data[next_data].end, text.size());
        continue;
      }
      limit = std::min(limit, filter.data[next_data].begin);
    }
    const auto [index, length] = Longest(text.substr(i, limit - i), filter);
    if (index < 0) {
      ++i;
      continue;
    }
    size_t begin = i, end = i + length;
    i = end;
    const AddedToken& token = tokens_[static_cast<size_t>(index)];
    if (!filter.special && IsSpecial(token, filter)) continue;
    if (token.single_word) {
      if (begin > 0 && IsWord(DecodeLast(text.substr(0, begin)).codepoint)) continue;
      if (end < text.size() && IsWord(DecodeUtf8(text.substr(end)).codepoint)) continue;
    }
    if (token.lstrip) begin = std::max(begin - SpacesAtEnd(text.substr(0, begin)), done);
    if (token.rstrip) end += SpacesAtStart(text.substr(end));
    if (done < begin) out.push_back({text.substr(done, begin - done), kNoToken});
    out.push_back({text.substr(begin, end - begin), token.id});
    done = end;
  }
  if (done < text.size()) out.push_back({text.substr(done), kNoToken});
}

}  // namespace pawl
