// A backtracking matcher over code points with an explicit stack, after the virtual machine of
// Thompson and Pike as Russ Cox tells it ("Regular Expression Matching: the Virtual Machine
// Approach", 2009). Backtracking rather than an automaton, because these patterns depend on the
// order of alternatives and on lookahead.
//
// A repetition of a single class, which is nearly all of such patterns, is one instruction and at
// most one stack frame: the frame holds the range of ends still to try. Lookahead and atomic groups
// call the matcher again, so C++ recursion is bounded by the nesting of the pattern, never by the
// text.
#include "src/text/split_regex.h"

#include <algorithm>
#include <map>

#include "src/base/stop_scope.h"
#include "src/base/utf8.h"

namespace pawl {

// A UnitSet is a two-level bitmap: the high bits of a code point choose a page of 256 bits, and
// equal pages (most are all zeros or all ones) are stored once, so a set takes some 10 KB and a
// lookup two loads.

void DecodeUnits(std::string_view text, std::vector<char32_t>& out) {
  StopSteps steps;
  for (size_t i = 0; i < text.size();) {
    steps.Step();
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x80) {
      out.push_back(byte);
      ++i;
      continue;
    }
    const DecodedCodepoint d = DecodeUtf8(text.substr(i));
    out.push_back(d.valid ? d.codepoint : kInvalidByte + byte);
    i += static_cast<size_t>(d.length);
  }
}

std::vector<CodepointRange> NormalizeRanges(std::vector<CodepointRange> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const CodepointRange& a, const CodepointRange& b) { return a.lo < b.lo; });
  std::vector<CodepointRange> out;
  for (const CodepointRange& range : ranges) {
    if (!out.empty() && range.lo <= out.back().hi + 1) {
      out.back().hi = std::max(out.back().hi, range.hi);
    } else {
      out.push_back(range);
    }
  }
  return out;
}

std::vector<CodepointRange> ComplementRanges(std::vector<CodepointRange> ranges) {
  std::vector<CodepointRange> out;
  char32_t next = 0;
  for (const CodepointRange& range : NormalizeRanges(std::move(ranges))) {
    if (range.lo > next) out.push_back({next, range.lo - 1});
    next = range.hi + 1;
  }
  if (next <= kMaxUnit) out.push_back({next, kMaxUnit});
  return out;
}

std::vector<CodepointRange> FoldCaseRanges(std::vector<CodepointRange> ranges) {
  ranges = NormalizeRanges(std::move(ranges));
  const UnitSet set(ranges);
  std::vector<char32_t> folded;  // what some member folds to
  for (const CaseFold& fold : SimpleCaseFolds()) {
    if (set.Contains(fold.from) || set.Contains(fold.to)) folded.push_back(fold.to);
  }
  std::sort(folded.begin(), folded.end());
  for (const CaseFold& fold : SimpleCaseFolds()) {
    if (!std::binary_search(folded.begin(), folded.end(), fold.to)) continue;
    ranges.push_back({fold.from, fold.from});
    ranges.push_back({fold.to, fold.to});
  }
  return NormalizeRanges(std::move(ranges));
}

UnitSet::UnitSet(std::vector<CodepointRange> ranges)
    : ranges_(NormalizeRanges(std::move(ranges))), page_of_((kMaxUnit >> 8) + 1) {
  std::map<Page, uint16_t> known;
  size_t r = 0;
  for (char32_t page = 0; page < page_of_.size(); ++page) {
    Page bits{};
    const char32_t first = page << 8, last = first + 255;
    for (; r < ranges_.size() && ranges_[r].lo <= last; ++r) {
      const char32_t lo = std::max(ranges_[r].lo, first), hi = std::min(ranges_[r].hi, last);
      for (char32_t c = lo; c <= hi; ++c) bits[(c >> 6) & 3] |= uint64_t{1} << (c & 63);
      if (ranges_[r].hi > last) break;  // goes on in the next page
    }
    const auto [at, is_new] = known.try_emplace(bits, static_cast<uint16_t>(pages_.size()));
    if (is_new) pages_.push_back(bits);
    page_of_[page] = at->second;
  }
  ascii_ = {pages_[page_of_[0]][0], pages_[page_of_[0]][1]};
}

namespace {
constexpr uint64_t kStepsPerUnit = 2000;
constexpr uint64_t kStepsAtLeast = 1'000'000;
}  // namespace

// A choice to come back to: go on at `pc` from `position`, and after that from the positions up to
// `bound`.
struct SplitRegex::Frame {
  uint32_t pc;
  int direction;  // 0: this position only, -1: shorter and shorter, +1: longer and longer
  size_t position;
  size_t bound;
};

struct SplitRegex::Run {
  // False: there are no more steps.
  bool Spend(uint64_t steps) {
    stop.Step(steps);
    if (steps_left >= steps) {
      steps_left -= steps;
    } else {
      exhausted = true;
    }
    return !exhausted;
  }

  std::span<const char32_t> units;
  uint64_t steps_left;
  bool exhausted = false;
  std::vector<Frame> stack;
  StopSteps stop;
};

// Whether an assertion without a body holds at the position.
bool SplitRegex::Holds(const Instruction& in, std::span<const char32_t> units,
                       size_t position) const {
  switch (in.op) {
    case Op::kBeginLine:
      return position == 0 || (units[position - 1] == '\n' && position < units.size());
    case Op::kEndLine:
      return position == units.size() || units[position] == '\n';
    case Op::kBeginText:
      return position == 0;
    case Op::kEndText:
      return position == units.size();
    default: {  // kWordBoundary
      const UnitSet& word = sets_[in.set];
      const bool before = position > 0 && word.Contains(units[position - 1]);
      const bool after = position < units.size() && word.Contains(units[position]);
      return (before != after) != in.negative;
    }
  }
}

// A repetition of one set, `next` behind it; the lengths that are left to try go on the stack.
// False: there are too few.
bool SplitRegex::Repeat(Run& run, const Instruction& in, uint32_t next, size_t& position) const {
  const UnitSet& set = sets_[in.set];
  const size_t most = std::min<size_t>(in.max, run.units.size() - position);
  const size_t wanted = in.mode == Mode::kLazy ? std::min<size_t>(in.min, most) : most;
  size_t n = 0;
  for (size_t part = 0; n < wanted && part == n;) {
    part = std::min(wanted, n + StopSteps::kBetween);
    const size_t before = n;
    while (n < part && set.Contains(run.units[position + n])) ++n;
    run.Spend(n - before);
  }
  if (n < in.min) return false;
  if (in.mode == Mode::kGreedy && n > in.min) {
    run.stack.push_back({next, -1, position + n - 1, position + in.min});
  } else if (in.mode == Mode::kLazy && n < most) {
    run.stack.push_back({next, +1, position + n, position + most});
  }
  position += n;
  return true;
}

// Goes back to the last choice above `base` that has something left to try. False: there is none.
bool SplitRegex::Backtrack(Run& run, size_t base, uint32_t& pc, size_t& position) const {
  while (run.stack.size() > base) {
    Frame& frame = run.stack.back();
    pc = frame.pc;
    position = frame.position;
    if (frame.direction == 0) {
      run.stack.pop_back();
      return true;
    }
    if (frame.direction < 0) {
      if (frame.position-- == frame.bound) run.stack.pop_back();
      return true;
    }
    const bool fits = sets_[program_[pc - 1].set].Contains(run.units[position]);
    position = ++frame.position;
    if (!fits || frame.position == frame.bound) run.stack.pop_back();
    if (fits) return true;
  }
  return false;
}

bool SplitRegex::Step(Run& run, uint32_t pc, size_t position, size_t& end) const {
  const size_t base = run.stack.size();
  const std::span<const char32_t> units = run.units;
  while (true) {
    bool ok = run.Spend(1);
    if (!ok) {
      run.stack.resize(base);
      return false;
    }
    const Instruction& in = program_[pc];
    switch (in.op) {
      case Op::kSet:
        ok = position < units.size() && sets_[in.set].Contains(units[position]);
        ++position;
        ++pc;
        break;
      case Op::kSetLoop:
        ok = Repeat(run, in, ++pc, position);
        break;
      case Op::kSplit:
        run.stack.push_back({in.y, 0, position, position});
        pc = in.x;
        break;
      case Op::kJump:
        pc = in.x;
        break;
      case Op::kLook:
      case Op::kAtomic: {
        size_t inner_end = position;
        const bool matched = Step(run, pc + 1, position, inner_end);
        if (run.exhausted)
          ok = false;
        else
          ok = matched != in.negative;
        if (in.op == Op::kAtomic) position = inner_end;
        pc = in.x;
        break;
      }
      case Op::kBeginLine:
      case Op::kEndLine:
      case Op::kBeginText:
      case Op::kEndText:
      case Op::kWordBoundary:
        ok = Holds(in, units, position);
        ++pc;
        break;
      case Op::kAccept:
        end = position;
        run.stack.resize(base);
        return true;
    }
    if (!ok && !Backtrack(run, base, pc, position)) return false;
  }
}

void SplitRegex::FindAll(std::span<const char32_t> units, std::vector<Match>& out) const {
  ForEach(units, [&](const Match& match) { out.push_back(match); });
}

void SplitRegex::ForEach(std::span<const char32_t> units,
                         const std::function<void(const Match&)>& take) const {
  Run run{units, kStepsAtLeast + kStepsPerUnit * units.size(), false, {}, {}};
  size_t start = 0;
  size_t last_end = SIZE_MAX;
  while (start <= units.size()) {
    size_t begin = start, end = 0;
    bool found = false;
    for (; begin <= units.size() && !found; ++begin) {
      found = Step(run, 0, begin, end);
      if (run.exhausted) return;
    }
    if (!found) return;
    --begin;
    if (begin == end && end == last_end) {
      ++start;
      continue;
    }
    take({begin, end});
    start = last_end = end;
  }
}

}  // namespace pawl
