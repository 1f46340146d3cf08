// The product of the regexes' outlines (regex_outline.cc), explored from the program's start to
// everything, and measured backwards from the ends: a breadth-first search over a small graph.
//
// Its points are pairs of alternatives rather than of choices (V. Antimirov, "Partial derivatives
// of regular expressions and finite automaton constructions", TCS 1996). A pattern that may stand
// anywhere in a text is a choice of as many places as it can have begun at; a choice ends where one
// of its alternatives does, so each is looked at alone, and there are no more of them than places
// in the pattern.
//
// Once nothing but one regex without And and Not is left, how far the end is can be read off that
// regex. Such points are not explored.
#include "schemas/scalar/string_outline.h"

#include <algorithm>
#include <queue>

#include "schemas/limits.h"
#include "src/base/sorted.h"
#include "src/base/stop_scope.h"

namespace pawl::schema {

StringOutline::StringOutline(StringProgram& program)
    : program_(program),
      arena_(program.regex_arena()),
      width_(program.RegexCount()),
      classes_(static_cast<size_t>(program.classes())),
      sides_(width_) {
  std::vector<uint32_t> from;
  const auto add = [&](uint32_t point) { from.push_back(point); };
  std::vector<Span> spans;
  for (size_t i = 0; i < width_; ++i) spans.push_back(SideOf(program_.start(), i).wide);
  ForPoints(spans, add);
  for (size_t i = 0; i < width_; ++i) {
    const ReId term = program_.RegexTerm(program_.start(), i);
    spans[i] = AddParts(arena_.OutlineOf(term).kernel);
  }
  ForPoints(spans, add);
  failed_ = !Explore(from, limits::kOutlineSteps, true);
}

uint32_t StringOutline::PartOf(ReId term) {
  const auto [it, fresh] = part_of_.try_emplace(term, static_cast<uint32_t>(parts_.size()));
  if (fresh) parts_.push_back({term});
  return it->second;
}

StringOutline::Span StringOutline::AddParts(ReId term) {
  Span span{static_cast<uint32_t>(members_.size()), 0};
  if (term == RegexArena::kNothing) return span;
  for (const ReId part : arena_.Alternatives(term)) {
    members_.push_back(PartOf(part));
    ++span.count;
  }
  return span;
}

StringOutline::Span StringOutline::Next(uint32_t part, int cls) {
  if (parts_[part].row == kNone) {
    parts_[part].row = static_cast<uint32_t>(cells_.size() / classes_);
    cells_.resize(cells_.size() + classes_);
  }
  const size_t cell = size_t{parts_[part].row} * classes_ + static_cast<size_t>(cls);
  if (cells_[cell].begin == kNone) {
    std::vector<ReId> after;
    Derive(parts_[part].term, program_.Representative(cls), after);
    SortUnique(after);
    const Span span{static_cast<uint32_t>(members_.size()), static_cast<uint32_t>(after.size())};
    for (const ReId term : after) members_.push_back(PartOf(term));
    cells_[cell] = span;
  }
  return cells_[cell];
}

const std::vector<uint16_t>& StringOutline::ClassesFrom(uint32_t part) {
  if (!parts_[part].knows_classes) {
    parts_[part].knows_classes = true;
    program_.spending().steps += static_cast<int64_t>(classes_);
    derivatives_ += static_cast<int64_t>(classes_);
    for (size_t cls = 0; cls < classes_; ++cls) {
      const char32_t c = program_.Representative(static_cast<int>(cls));
      if (c >= 0xD800 && c <= 0xDFFF) continue;
      if (Next(part, static_cast<int>(cls)).count > 0)
        parts_[part].classes.push_back(static_cast<uint16_t>(cls));
    }
  }
  return parts_[part].classes;
}

// The alternatives of the derivative. Those of a search stay apart: a choice of all of them would
// look for what they have in common, and each such choice is a new term.
void StringOutline::Derive(ReId term, char32_t c, std::vector<ReId>& out) {
  for (ReId rest = arena_.AfterAnything(term); rest != RegexArena::kNothing;
       rest = arena_.AfterAnything(term)) {
    out.push_back(term);
    term = rest;
  }
  const ReId after = arena_.Derive(term, c);
  if (arena_.derive_failed()) failed_ = true;
  if (after == RegexArena::kNothing) return;
  arena_.ForAlternatives(after, [&](ReId each) { out.push_back(each); });
}

uint32_t StringOutline::PointOf(const uint32_t* parts) {
  uint64_t hash = 0;
  for (size_t i = 0; i < width_; ++i) hash = HashMix(hash, parts[i]);
  const uint32_t known = index_.Find(hash, [&](uint32_t point) {
    return std::equal(parts, parts + width_, &points_[size_t{point} * width_]);
  });
  if (known != HashIndex::kNone) return known;
  const auto point = static_cast<uint32_t>(info_.size());
  points_.insert(points_.end(), parts, parts + width_);
  info_.emplace_back();
  stamps_.push_back(kNone);
  index_.Insert(hash, point);
  return point;
}

template <typename Fn>
void StringOutline::ForPoints(const std::vector<Span>& spans, const Fn& fn) {
  size_t count = 1;
  for (const Span& span : spans) count *= span.count;
  std::array<uint32_t, limits::kRegexesInGroup> parts{};
  for (size_t n = 0; n < count; ++n) {
    size_t rest = n;
    for (size_t i = 0; i < width_; ++i) {
      parts[i] = members_[spans[i].begin + rest % spans[i].count];
      rest /= spans[i].count;
    }
    fn(PointOf(parts.data()));
  }
}

bool StringOutline::Accepts(uint32_t point) const {
  const uint32_t* const parts = &points_[size_t{point} * width_];
  return std::all_of(parts, parts + width_,
                     [&](uint32_t part) { return arena_.Nullable(parts_[part].term); });
}

bool StringOutline::OneIsLeft(uint32_t point, uint32_t& distance, uint32_t& part) const {
  distance = 0;
  part = kNone;
  for (size_t i = 0; i < width_; ++i) {
    const uint32_t each = points_[size_t{point} * width_ + i];
    const ReId term = parts_[each].term;
    if (term == RegexArena::kAnything) continue;
    if (part != kNone || arena_.MayBeEmpty(term)) return false;
    part = each;
    distance = arena_.MinLength(term);
  }
  return true;
}

bool StringOutline::Explore(const std::vector<uint32_t>& from, int64_t steps, bool main) {
  std::vector<uint32_t> points;
  std::vector<Edge> edges;
  const auto meet = [&](uint32_t point) {
    if (stamps_[point] == kNone) {
      stamps_[point] = static_cast<uint32_t>(points.size());
      points.push_back(point);
    }
    return stamps_[point];
  };
  for (const uint32_t point : from) meet(point);
  std::vector<Span> spans(width_);
  int64_t left = steps;
  for (uint32_t at = 0; at < points.size() && left > 0 && !overflow(); ++at) {
    if (main && derivatives_ > limits::kOutlineDerivatives) left = 0;
    const uint32_t point = points[at];
    uint32_t distance = 0, part = 0;
    if (info_[point].main || OneIsLeft(point, distance, part)) continue;
    const std::vector<uint16_t>* fewest = nullptr;
    for (size_t i = 0; i < width_; ++i) {
      const std::vector<uint16_t>& some = ClassesFrom(points_[size_t{point} * width_ + i]);
      if (fewest == nullptr || some.size() < fewest->size()) fewest = &some;
    }
    for (const uint16_t cls : *fewest) {
      StopScope::Step();
      --left;
      bool any = true;
      for (size_t i = 0; i < width_ && any; ++i) {
        spans[i] = Next(points_[size_t{point} * width_ + i], cls);
        any = spans[i].count > 0;
      }
      if (!any) continue;
      ForPoints(spans, [&](uint32_t next) {
        --left;
        edges.push_back({meet(next), at, cls});
      });
    }
  }
  program_.spending().steps += steps - left;
  const bool whole = left > 0 && !overflow();
  if (whole) Measure(points, edges, main);
  for (const uint32_t point : points) stamps_[point] = kNone;
  return whole;
}

void StringOutline::Measure(const std::vector<uint32_t>& points, std::vector<Edge>& edges,
                            bool main) {
  std::vector<uint32_t> first(points.size() + 1, 0);
  for (const Edge& edge : edges) ++first[edge.to + 1];
  for (size_t i = 0; i < points.size(); ++i) first[i + 1] += first[i];
  std::vector<uint32_t> fill(first.begin(), first.end() - 1);
  std::vector<Edge> to(edges.size());
  for (const Edge& edge : edges) to[fill[edge.to]++] = edge;
  std::vector<uint32_t> distances(points.size(), kNoEnd);
  using Entry = std::pair<uint32_t, uint32_t>;  // distance, place
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  for (uint32_t at = 0; at < points.size(); ++at) {
    uint32_t distance = 0, part = 0;
    const Info& info = info_[points[at]];
    if (info.main) {
      distance = info.distance;
    } else if (!OneIsLeft(points[at], distance, part)) {
      distance = Accepts(points[at]) ? 0 : kNoEnd;
    }
    distances[at] = distance;
    if (distance != kNoEnd) queue.emplace(distance, at);
  }
  std::vector<int> via(points.size(), -1);
  while (!queue.empty()) {
    const auto [distance, at] = queue.top();
    queue.pop();
    if (distance > distances[at]) continue;
    for (uint32_t k = first[at]; k < first[at + 1]; ++k) {
      if (distances[to[k].from] <= distance + 1) continue;
      distances[to[k].from] = distance + 1;
      via[to[k].from] = to[k].cls;
      queue.emplace(distance + 1, to[k].from);
    }
  }
  for (uint32_t at = 0; at < points.size(); ++at) {
    Info& info = info_[points[at]];
    if (info.main) continue;
    info = {distances[at], via[at], main};
  }
}

int StringOutline::ClassTowards(uint32_t part) {
  const uint32_t distance = arena_.MinLength(parts_[part].term);
  if (distance == 0) return -1;
  for (const uint16_t cls : ClassesFrom(part)) {
    ++program_.spending().steps;
    const Span next = Next(part, cls);
    for (uint32_t i = 0; i < next.count; ++i) {
      const ReId term = parts_[members_[next.begin + i]].term;
      if (arena_.MinLength(term) < distance) return cls;
    }
  }
  return -1;
}

StringOutline::Answer StringOutline::At(StateId state) {
  if (failed_ || state == StringProgram::kPeeked) return {};
  if (state >= answers_.size())
    answers_.resize(std::max<size_t>(program_.size(), size_t{state} + 1), {kUnasked});
  if (answers_[state].distance == kUnasked) {
    const Answer answer = Find(state);
    answers_[state] = overflow() ? Answer{} : answer;
  }
  return answers_[state];
}

uint32_t StringOutline::AtLeast(StateId state) {
  const Answer answer = At(state);
  if (!answer.live) return answer.distance;
  if (state >= at_least_.size())
    at_least_.resize(std::max<size_t>(program_.size(), size_t{state} + 1), kUnasked);
  if (at_least_[state] == kUnasked) {
    std::vector<const Side*> sides;
    for (size_t i = 0; i < width_; ++i) sides.push_back(&SideOf(state, i));
    const uint32_t distance = FindPossible(sides).distance;
    at_least_[state] = overflow() ? kUnknown : distance;
  }
  return at_least_[state];
}

const StringOutline::Side& StringOutline::SideOf(StateId state, size_t regex) {
  const uint32_t s = program_.RegexStateOf(state, regex);
  if (s >= sides_[regex].size()) sides_[regex].resize(size_t{s} + 1);
  Side& side = sides_[regex][s];
  if (side.known) return side;
  side.known = true;
  const ReId term = program_.RegexTerm(state, regex);
  side.wide = AddParts(arena_.OutlineOf(term).wide);
  for (const ReId each : arena_.Alternatives(term)) {
    const RegexArena::Outline outline = arena_.OutlineOf(each);
    const Span span = AddParts(outline.kernel);
    if (span.count > 0) side.kernels.emplace_back(span, outline.length);
  }
  return side;
}

uint32_t StringOutline::DistanceOf(uint32_t point) const {
  uint32_t distance = 0, part = 0;
  return OneIsLeft(point, distance, part) ? distance : info_[point].distance;
}

int StringOutline::ViaOf(uint32_t point) {
  uint32_t distance = 0, part = 0;
  if (!OneIsLeft(point, distance, part)) return info_[point].via;
  return part == kNone ? -1 : ClassTowards(part);
}

StringOutline::Answer StringOutline::FindCertain(const std::vector<const Side*>& sides) {
  size_t count = 1;
  for (const Side* side : sides) count *= side->kernels.size();
  if (count > limits::kOutlinePoints) return {};
  Answer answer;
  uint32_t best = kNone;
  std::vector<Span> spans(width_);
  for (size_t n = 0; n < count; ++n) {
    uint32_t length = kAlways;
    size_t rest = n;
    for (size_t i = 0; i < width_; ++i) {
      const auto& [span, holds] = sides[i]->kernels[rest % sides[i]->kernels.size()];
      rest /= sides[i]->kernels.size();
      spans[i] = span;
      length = std::min(length, holds);
    }
    ForPoints(spans, [&](uint32_t point) {
      ++program_.spending().steps;
      const uint32_t distance = DistanceOf(point);
      if (distance >= kUnasked || distance > length || distance >= answer.distance) return;
      answer.distance = distance;
      answer.live = true;
      best = point;
    });
  }
  if (best != kNone) answer.via = ViaOf(best);
  return answer;
}

StringOutline::Answer StringOutline::FindPossible(const std::vector<const Side*>& sides) {
  std::vector<Span> spans;
  size_t count = 1;
  for (const Side* side : sides) {
    spans.push_back(side->wide);
    count *= side->wide.count;
    if (count > limits::kOutlinePoints) return {};
  }
  std::vector<uint32_t> points;
  ForPoints(spans, [&](uint32_t point) { points.push_back(point); });
  Answer answer{kNoEnd};
  bool unknown = false;
  uint32_t best = kNone;
  for (const uint32_t point : points) {
    ++program_.spending().steps;
    if (DistanceOf(point) == kUnasked && !Explore({point}, limits::kOutlineStepsLater, false))
      info_[point].distance = kUnknown;
    const uint32_t distance = DistanceOf(point);
    unknown = unknown || distance == kUnknown;
    if (distance >= kUnknown || distance >= answer.distance) continue;
    answer.distance = distance;
    best = point;
  }
  if (best == kNone) return unknown ? Answer{} : answer;
  answer.via = ViaOf(best);
  return answer;
}

StringOutline::Answer StringOutline::Find(StateId state) {
  std::vector<const Side*> sides;
  for (size_t i = 0; i < width_; ++i) sides.push_back(&SideOf(state, i));
  const Answer certain = FindCertain(sides);
  return certain.live ? certain : FindPossible(sides);
}

}  // namespace pawl::schema
