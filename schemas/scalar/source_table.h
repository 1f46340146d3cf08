// SourceTable: from which occurrences of a span's beginning a text goes on to a span that meets
// further conditions, and where the nearest such span ends.
//
//   SourceTable table(program, main, accept, hopeless);
//   table.Live(trie.at(node));                    // some span that begins so is accepted
//
// The text is read once, with the conditions' automata from all places at once where a span may
// begin. So the length of the longest accepted span from each place is known, and of a range of
// sorted places the greatest one decides. Time is linear in the text times the states that spans
// are in together at one place.
//
// Memory: about 5 bytes for each place at which a span may begin. Not thread-safe.
#ifndef PAWL_SCHEMAS_SCALAR_SOURCE_TABLE_H_
#define PAWL_SCHEMAS_SCALAR_SOURCE_TABLE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "grammar/hash_index.h"
#include "schemas/scalar/string_program.h"
#include "src/base/memory_size.h"

namespace pawl::schema {

class SourceTable {
 public:
  using Occurrences = SourceText::Occurrences;
  using StateId = StringProgram::StateId;
  using Ask = std::function<bool(StateId)>;
  // The state of all conditions but the source and the count of code points.
  using Rest = uint32_t;
  static constexpr Rest kNoRest = UINT32_MAX;

  // The source that every accepted string is a span of: its place among the program's; whether
  // there is one that a table can be made of, given which of the sources are asked of all strings.
  static std::optional<size_t> MainSource(const StringProgram& program,
                                          const std::vector<bool>& must);
  // `accept`, `hopeless`: as StringSearch has them. The program outlives the table.
  SourceTable(StringProgram& program, size_t main, Ask accept, Ask hopeless);

  SourceTrie& trie() { return program_.source(main_); }
  const Occurrences& At(StateId state) { return trie().at(program_.SourceNode(state, main_)); }
  bool Live(const Occurrences& at) const;
  bool Live(StateId state) {
    return program_.SourceNode(state, main_) != SourceTrie::kNone && Live(At(state));
  }
  // Some of them goes on with a code point of lo ... hi to an accepted span.
  bool LiveWithin(const Occurrences& at, char32_t lo, char32_t hi);

  Rest RestOf(StateId state);
  Rest Next(Rest rest, char32_t c);
  // The value so far is accepted.
  bool Accepts(Rest rest, const Occurrences& at) {
    return rest != kNoRest && (accepts_[rest] >> RangeOf(at.length) & 1) != 0 && trie().IsSpan(at);
  }
  // REQUIRES: Live(at).
  StateId Keep(Rest rest, const Occurrences& at);
  // The shortest text that leads to an accepted span; nullopt: there is none. After many steps any.
  std::optional<std::u32string_view> ToEnd(StateId state);
  // Steps of the automata that reading the text took.
  uint64_t steps() const { return steps_; }

  size_t MemoryBytes() const {
    return HeapBytes(ranges_, longest_, most_, keys_, next_, accepts_, nearest_, index_);
  }

 private:
  struct Reading;  // of the text
  static constexpr size_t kBlock = 32, kMostRanges = 16;
  static constexpr uint32_t kNotAsked = UINT32_MAX - 1;
  size_t RangeOf(uint64_t length) const {
    size_t range = 0;
    while (range + 1 < ranges_.size() && length >= ranges_[range + 1]) ++range;
    return range;
  }
  uint64_t RangeEnd(size_t range) const;  // the last length of it
  Rest Intern(const uint32_t* words);
  void Read();
  void MakeMost();
  uint32_t Greatest(uint32_t lo, uint32_t hi) const;
  SourceText::NearestEnd Walk(const Occurrences& at, Rest rest);

  StringProgram& program_;
  const size_t main_;
  const Ask accept_, hopeless_;
  std::vector<uint64_t> ranges_;  // of lengths that the conditions do not tell apart: the first
  uint64_t longest_accepted_ = UINT64_MAX;
  std::vector<uint32_t> beginnings_, spans_;  // by source: a node of the trie
  std::vector<uint32_t> longest_;             // by sorted place: of the accepted spans; 0: none
  std::vector<std::vector<uint32_t>> most_;   // of 2^i blocks of longest_, by i
  Rest start_ = kNoRest;
  size_t width_ = 0, classes_ = 0;
  std::vector<uint32_t> keys_, words_, after_;  // the words of each Rest
  std::vector<uint32_t> next_;                  // by Rest and class, of the first ones
  std::vector<uint16_t> accepts_;               // by Rest: bits by range
  std::unordered_map<StateId, SourceText::NearestEnd> nearest_;
  HashIndex index_;
  uint64_t steps_ = 0;
};

}  // namespace pawl::schema

#endif  // PAWL_SCHEMAS_SCALAR_SOURCE_TABLE_H_
