// The automata read the text from all places at once where a span may begin. Two beginnings that
// are in the same state at the same place have one future, so from there on they are one group:
// the places of a group are a tree (union-find), and what the group meets is kept at its root. A
// place takes of what its root met only what came after the two became one.
#include "schemas/scalar/source_table.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "schemas/limits.h"
#include "src/base/stop_scope.h"

namespace pawl::schema {

std::optional<size_t> SourceTable::MainSource(const StringProgram& program,
                                              const std::vector<bool>& must) {
  if (program.critical_counts().size() + 1 > kMostRanges) return std::nullopt;
  for (size_t i = 0; i < must.size(); ++i) {
    // Each span is one of any characters as well, but not the other way round.
    const bool implies = must.size() == 1 || program.source(i).kind() == SpanKind::kSpan;
    if (must[i] && implies) return i;
  }
  return std::nullopt;
}

SourceTable::SourceTable(StringProgram& program, size_t main, Ask accept, Ask hopeless)
    : program_(program),
      main_(main),
      accept_(std::move(accept)),
      hopeless_(std::move(hopeless)),
      ranges_{0},
      width_(program.width()),
      classes_(static_cast<size_t>(program.classes())) {
  for (const uint64_t count : program_.critical_counts()) {
    if (count > 0) ranges_.push_back(count);
  }
  for (size_t i = 0; i < program_.source_count(); ++i) {
    SourceTrie& one = program_.source(i);
    beginnings_.push_back(one.start());
    spans_.push_back(one.start() == SourceTrie::kNone
                         ? SourceTrie::kNone
                         : one.After(one.start(), one.ToEnd(one.start())));
  }
  words_.resize(width_);
  after_.resize(width_);
  start_ = RestOf(program_.start());
  // What is longer than any accepted string need not be followed.
  program_.CopyKey(program_.start(), after_.data());
  for (size_t range = ranges_.size(); range-- > 0;) {
    program_.SetSources(after_.data(), beginnings_, ranges_[range]);
    if (!hopeless_(program_.PeekKey(after_.data()))) break;
    longest_accepted_ = range == 0 ? 0 : ranges_[range] - 1;
  }
  Read();
  MakeMost();
}

uint64_t SourceTable::RangeEnd(size_t range) const {
  return range + 1 < ranges_.size() ? ranges_[range + 1] - 1 : UINT64_MAX;
}

SourceTable::Rest SourceTable::RestOf(StateId state) {
  program_.CopyKey(state, words_.data());
  return Intern(words_.data());
}

SourceTable::Rest SourceTable::Intern(const uint32_t* words) {
  // `words` may be words_.
  std::copy_n(words, width_, after_.data());
  program_.SetSources(after_.data(), beginnings_, 0);
  uint64_t hash = 0;
  for (size_t i = 0; i < width_; ++i) hash = HashMix(hash, after_[i]);
  const uint32_t known = index_.Find(hash, [&](uint32_t rest) {
    return std::equal(after_.begin(), after_.end(),
                      keys_.begin() + static_cast<ptrdiff_t>(rest * width_));
  });
  if (known != HashIndex::kNone) return known;
  if (hopeless_ && hopeless_(program_.PeekKey(after_.data()))) return kNoRest;
  const auto rest = static_cast<Rest>(accepts_.size());
  keys_.insert(keys_.end(), after_.begin(), after_.end());
  index_.Insert(hash, rest);
  uint16_t accepts = 0;
  for (size_t range = 0; range < ranges_.size() && spans_[main_] != SourceTrie::kNone; ++range) {
    program_.SetSources(after_.data(), spans_, ranges_[range]);
    if (accept_(program_.PeekKey(after_.data())))
      accepts = static_cast<uint16_t>(accepts | 1u << range);
  }
  accepts_.push_back(accepts);
  return rest;
}

SourceTable::Rest SourceTable::Next(Rest rest, char32_t c) {
  constexpr size_t kCells = size_t{1} << 20;
  if (rest == kNoRest) return rest;
  const auto cls = static_cast<size_t>(program_.ClassOf(c));
  const size_t cell = rest * classes_ + cls;
  if (cell < next_.size() && next_[cell] != kNotAsked) return next_[cell];
  // The sources are not followed here, which a word without a node says.
  std::copy_n(keys_.begin() + static_cast<ptrdiff_t>(rest * width_), width_, words_.begin());
  program_.SetSources(words_.data(), {}, 0);
  std::vector<uint32_t> stepped(width_);
  program_.StepKey(words_.data(), static_cast<int>(cls), stepped.data());
  const Rest next = Intern(stepped.data());
  if (cell < kCells) {
    if (cell >= next_.size()) next_.resize((rest + 1) * classes_, kNotAsked);
    next_[cell] = next;
  }
  return next;
}

SourceTable::StateId SourceTable::Keep(Rest rest, const Occurrences& at) {
  std::copy_n(keys_.begin() + static_cast<ptrdiff_t>(rest * width_), width_, words_.begin());
  std::vector<uint32_t> nodes(program_.source_count(), SourceTrie::kNone);
  for (size_t i = 0; i < nodes.size(); ++i) {
    SourceTrie& one = program_.source(i);
    if (i == main_) {
      nodes[i] = one.Node(at);
    } else {
      const size_t from = trie().text().SortedPlaces(trie().kind())[at.lo];
      nodes[i] = one.After(one.start(), trie().text().text().substr(from, at.length));
    }
  }
  program_.SetSources(words_.data(), nodes, at.length);
  return program_.KeepKey(words_.data());
}

// Of all groups at one place.
struct SourceTable::Reading {
  struct Group {
    Rest rest;
    uint32_t root;
  };
  static constexpr uint32_t kNobody = UINT32_MAX;

  Reading(size_t places, size_t ranges)
      : count(ranges),
        parent(places, kNobody),
        joined(places, 0),
        youngest(places, 0),
        last(places * ranges, 0) {}

  void Begin(uint32_t place) {
    parent[place] = youngest[place] = place;
    joined[place] = place;
  }
  // Two groups become one at a place; its root.
  uint32_t Join(uint32_t a, uint32_t b, uint32_t place) {
    if (a > b) std::swap(a, b);
    parent[b] = a;
    joined[b] = place;
    youngest[a] = std::max(youngest[a], youngest[b]);
    return a;
  }
  // The last ends that a place has met so far are those at `last` then. Shortens the way to the
  // root.
  void Settle(uint32_t place) {
    path.clear();
    for (uint32_t at = place; parent[at] != at; at = parent[at]) path.push_back(at);
    for (size_t i = path.size(); i-- > 0;) {
      const uint32_t at = path[i], above = parent[at];
      // What the parent met since, with what it took from its own.
      for (size_t range = 0; range < count; ++range) {
        const uint32_t met = last[above * count + range];
        if (met >= joined[at]) last[at * count + range] = met;
      }
      if (parent[above] != above) {
        joined[at] = joined[above];
        parent[at] = parent[above];
      }
    }
  }

  const size_t count;
  // By place: of a group's tree; since when; the last member; the last ends, by range.
  std::vector<uint32_t> parent, joined, youngest, last, path;
  std::vector<Group> groups, next;
  std::vector<uint32_t> slots;  // by Rest: 1 + its place in next
};

void SourceTable::Read() {
  SourceText& source = trie().text();
  const SpanKind kind = trie().kind();
  const std::u32string_view text = source.text();
  const std::vector<uint32_t>& places = source.SortedPlaces(kind);
  longest_.assign(places.size(), 0);
  if (start_ == kNoRest || places.empty() || longest_accepted_ == 0) return;
  Reading at(text.size() + 1, ranges_.size());
  std::vector<uint32_t> found(text.size() + 1, 0);  // by place: length
  const auto enter = [&](Rest rest, uint32_t root, uint32_t place) {
    if (rest >= at.slots.size()) at.slots.resize(accepts_.size(), 0);
    uint32_t& slot = at.slots[rest];
    if (slot != 0) {
      at.next[slot - 1].root = at.Join(at.next[slot - 1].root, root, place);
      return;
    }
    at.next.push_back({rest, root});
    slot = static_cast<uint32_t>(at.next.size());
  };
  const auto settle = [&](uint32_t place, size_t range) {
    if (at.parent[place] == Reading::kNobody) return;
    at.Settle(place);
    const uint32_t end = at.last[place * at.count + range];
    if (end != 0 && end - place >= ranges_[range])
      found[place] = std::max(found[place], end - place);
  };
  for (size_t place = 0; place < text.size(); ++place) {
    if (text[place] == kTextBorderCode) {
      at.groups.clear();
    } else {
      at.next.clear();
      const char32_t c = text[place];
      const auto end = static_cast<uint32_t>(place + 1);
      const auto step = [&](const Reading::Group& group) {
        ++steps_;
        StopScope::Step();
        const Rest rest = Next(group.rest, c);
        if (rest != kNoRest) enter(rest, group.root, end);
      };
      for (const Reading::Group& group : at.groups) {
        if (end - at.youngest[group.root] <= longest_accepted_) step(group);
      }
      if (source.BeginsAt(kind, place)) {
        at.Begin(static_cast<uint32_t>(place));
        step({start_, static_cast<uint32_t>(place)});
      }
      at.groups.swap(at.next);
      for (const Reading::Group& group : at.groups) at.slots[group.rest] = 0;
      if (source.EndsAt(kind, place + 1)) {
        for (const Reading::Group& group : at.groups) {
          for (unsigned bits = accepts_[group.rest]; bits != 0; bits &= bits - 1)
            at.last[group.root * at.count + static_cast<size_t>(std::countr_zero(bits))] = end;
        }
      }
    }
    // Behind the last length of a range nothing that comes is of it.
    for (size_t range = 0; range + 1 < ranges_.size(); ++range) {
      if (RangeEnd(range) <= place + 1)
        settle(static_cast<uint32_t>(place + 1 - RangeEnd(range)), range);
    }
  }
  for (size_t range = 0; range < ranges_.size(); ++range) {
    const uint64_t last = RangeEnd(range);
    const size_t first = last <= text.size() ? text.size() - last + 1 : 0;
    for (size_t place = first; place < text.size(); ++place)
      settle(static_cast<uint32_t>(place), range);
  }
  for (size_t i = 0; i < places.size(); ++i) longest_[i] = found[places[i]];
}

void SourceTable::MakeMost() {
  if (longest_.empty()) return;
  std::vector<uint32_t> blocks((longest_.size() + kBlock - 1) / kBlock, 0);
  for (size_t i = 0; i < longest_.size(); ++i)
    blocks[i / kBlock] = std::max(blocks[i / kBlock], longest_[i]);
  most_.push_back(std::move(blocks));
  for (size_t width = 1; 2 * width <= most_[0].size(); width *= 2) {
    const std::vector<uint32_t>& half = most_.back();
    std::vector<uint32_t> whole(half.size() - width);
    for (size_t i = 0; i < whole.size(); ++i) whole[i] = std::max(half[i], half[i + width]);
    most_.push_back(std::move(whole));
  }
}

uint32_t SourceTable::Greatest(uint32_t lo, uint32_t hi) const {
  const auto among = [this](size_t from, size_t to) {
    uint32_t most = 0;
    for (size_t i = from; i < to; ++i) most = std::max(most, longest_[i]);
    return most;
  };
  const size_t first = (lo + kBlock - 1) / kBlock, last = hi / kBlock;
  if (first >= last) return among(lo, hi);
  const auto level = static_cast<size_t>(std::bit_width(last - first)) - 1;
  const std::vector<uint32_t>& row = most_[level];
  const uint32_t inner = std::max(row[first], row[last - (size_t{1} << level)]);
  return std::max({inner, among(lo, first * kBlock), among(last * kBlock, hi)});
}

bool SourceTable::Live(const Occurrences& at) const {
  return !at.empty() && Greatest(at.lo, at.hi) >= std::max<uint32_t>(at.length, 1);
}

bool SourceTable::LiveWithin(const Occurrences& at, char32_t lo, char32_t hi) {
  return trie().AnyWithin(at, lo, hi, [this](const Occurrences& next) { return Live(next); });
}

// The nearest of the ends of the occurrences, each of which is followed until it is farther away
// than the best one.
SourceText::NearestEnd SourceTable::Walk(const Occurrences& at, Rest rest) {
  SourceText& source = trie().text();
  const SpanKind kind = trie().kind();
  const std::vector<uint32_t>& places = source.SortedPlaces(kind);
  SourceText::NearestEnd best{UINT32_MAX, 0};
  size_t steps = 0;
  for (uint32_t i = at.lo; i < at.hi; ++i) {
    if (longest_[i] < std::max<uint32_t>(at.length, 1)) continue;
    const uint32_t from = places[i] + at.length;
    Rest here = rest;
    for (uint32_t missing = 0; missing < best.missing && here != kNoRest; ++missing) {
      StopScope::Step();
      const uint32_t end = from + missing, length = at.length + missing;
      if (length > 0 && (accepts_[here] >> RangeOf(length) & 1) != 0 && source.EndsAt(kind, end)) {
        best = {missing, from};
        break;
      }
      if (length >= longest_[i]) break;
      here = Next(here, source.text()[end]);
      ++steps;
    }
    if (best.missing <= 1 || (steps > limits::kNearestSteps && best.missing != UINT32_MAX)) break;
  }
  program_.spending().nodes += steps;
  return best;
}

std::optional<std::u32string_view> SourceTable::ToEnd(StateId state) {
  constexpr uint32_t kMany = 16;  // occurrences
  if (!Live(state)) return std::nullopt;
  const Occurrences at = At(state);
  SourceText::NearestEnd end{0, 0};
  if (const auto known = nearest_.find(state); known != nearest_.end()) {
    end = known->second;
  } else {
    end = Walk(at, RestOf(state));
    if (at.hi - at.lo >= kMany) nearest_.emplace(state, end);
  }
  if (end.missing == UINT32_MAX) return std::nullopt;
  return trie().text().text().substr(end.from, end.missing);
}

}  // namespace pawl::schema
