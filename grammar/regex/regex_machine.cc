// UTF-8 on top of a DFA over code points: inside a sequence the position keeps the bits read so
// far, and is live when some code point that begins with them leads on. Where all of those lead to
// the same state, the position keeps that state instead.
#include "grammar/regex/regex_machine.h"

#include <algorithm>
#include <bit>
#include <queue>

#include "grammar/byte_class.h"
#include "src/base/stop_scope.h"
#include "src/base/utf8.h"

namespace pawl {
namespace {
constexpr size_t kMaxCompletion = size_t{1} << 16;  // code points
// Completions of so many characters are always searched for.
constexpr uint32_t kSearchedLength = 64;
constexpr size_t kMaxSeen = size_t{1} << 20;
// States that a search for a completion goes on from: as many for a shortest one, then for any. And
// more for each character that is needed at least.
constexpr size_t kExactVisits = 500, kExactVisitsEach = 16;
constexpr size_t kVisits = 4000, kVisitsEach = 64;
// States that searches of the DFA's may see in vain meanwhile.
constexpr int64_t kUndecided = 1000;
// Steps of the arena that a search for a completion may take: about a second.
constexpr uint64_t kCompletionWork = uint64_t{1} << 24;
// And all searches for emptiness of a machine. A conjunction of twenty patterns that each count has
// states by the million, and each of them is searched.
constexpr RegexDfaLimits kLimits{.max_emptiness_work = uint64_t{1} << 24};

// false: no character beyond ASCII may follow. Answers at once, and only where they are all alike.
bool LeadsBeyondAscii(RegexDfa& dfa, uint32_t state) {
  const auto boundaries = dfa.boundaries();
  const auto classes = dfa.interval_class();
  const size_t last = boundaries.size() - 1;  // before it the surrogates, then what is below them
  if (last < 2 || boundaries[last] != 0xE000 || boundaries[last - 2] > 0x80) return true;
  if (classes[last] != classes[last - 2]) return true;
  return dfa.Next(state, classes[last]) != RegexDfa::kDead;
}
}  // namespace

RegexMachine::RegexMachine(std::shared_ptr<RegexArena> arena, ReId regex)
    : RegexMachine(std::move(arena), std::span<const ReId>(&regex, 1)) {}

RegexMachine::RegexMachine(std::shared_ptr<RegexArena> arena, std::span<const ReId> regexes)
    : dfa_(std::move(arena), regexes, kLimits) {
  positions_.push_back({RegexDfa::kDead});
}

Machine::Key RegexMachine::StartOf(size_t number) {
  const uint32_t start = dfa_.StartOf(number);
  return start == RegexDfa::kDead ? kDead : MakeKey(1, Intern({start}));
}

uint32_t RegexMachine::Intern(const Position& position) {
  auto& bucket = index_[uint64_t{position.state} << 32 | position.value];
  for (const uint32_t id : bucket) {
    if (positions_[id] == position) return id;
  }
  positions_.push_back(position);
  bucket.push_back(static_cast<uint32_t>(positions_.size() - 1));
  return bucket.back();
}

std::pair<char32_t, char32_t> RegexMachine::Range(const Position& p) {
  const uint32_t shift = 6u * p.missing;
  const char32_t least = p.length == 2 ? 0x80 : p.length == 3 ? 0x800 : 0x10000;
  return {std::max<char32_t>(p.value << shift, least),
          std::min<char32_t>((p.value << shift) | ((1u << shift) - 1), kMaxCodepoint)};
}

std::optional<char32_t> RegexMachine::Pick(uint32_t state, char32_t lo, char32_t hi) {
  const auto boundaries = dfa_.boundaries();
  const auto classes = dfa_.interval_class();
  if (lo > hi) return std::nullopt;
  size_t i = static_cast<size_t>(std::upper_bound(boundaries.begin(), boundaries.end(), lo) -
                                 boundaries.begin()) -
             1;
  for (; i < boundaries.size() && boundaries[i] <= hi; ++i) {
    char32_t c = std::max(lo, boundaries[i]);
    const char32_t last =
        std::min<char32_t>(hi, i + 1 < boundaries.size() ? boundaries[i + 1] - 1 : kMaxCodepoint);
    if (c >= 0xD800 && c <= 0xDFFF) c = 0xE000;
    if (c <= last && dfa_.Next(state, classes[i]) != RegexDfa::kDead) return c;
  }
  return std::nullopt;
}

uint32_t RegexMachine::Common(uint32_t state, char32_t lo, char32_t hi) {
  const auto boundaries = dfa_.boundaries();
  const auto classes = dfa_.interval_class();
  if (hi > kMaxCodepoint) return RegexDfa::kDead;
  auto i = static_cast<size_t>(std::upper_bound(boundaries.begin(), boundaries.end(), lo) -
                               boundaries.begin()) -
           1;
  const uint32_t common = dfa_.Next(state, classes[i]);
  for (++i; i < boundaries.size() && boundaries[i] <= hi && common != RegexDfa::kDead; ++i) {
    if (dfa_.Next(state, classes[i]) != common) return RegexDfa::kDead;
  }
  return common;
}

void RegexMachine::AddTable(uint32_t lexeme) {
  if (tables_.size() <= lexeme) tables_.resize(std::max<size_t>(lexeme + 1, 2 * tables_.size()));
  tables_[lexeme] = std::make_unique<uint32_t[]>(257);
  std::fill_n(tables_[lexeme].get(), 256, kUnknownStep);
  tables_[lexeme][256] = Accepting(MakeKey(1, lexeme)) ? 1 : 0;
}

bool RegexMachine::FindLoops(uint32_t lexeme, uint64_t wanted) {
  // Within a character: it ends where the state loops on characters like it, or where the position
  // holds the state after it.
  if (positions_[lexeme].missing > 0) {
    if (positions_[lexeme].length > 0) wanted |= uint64_t{1} << kBeyondAsciiClass;
    lexeme = AtBoundary(positions_[lexeme].state);
  }
  if (loops_.size() <= lexeme) loops_.resize(std::max<size_t>(lexeme + 1, 2 * loops_.size()));
  const uint32_t state = positions_[lexeme].state;
  const auto loops = [&](int cls) {
    if (cls == kMalformedClass) return false;
    if (cls == kBeyondAsciiClass) {
      // Every interval but the surrogates, whose class leads nowhere.
      const auto boundaries = dfa_.boundaries();
      const auto classes = dfa_.interval_class();
      const int surrogates = dfa_.ClassOf(0xD800);
      for (size_t i = 0; i < classes.size(); ++i) {
        const bool beyond = i + 1 == boundaries.size() || boundaries[i + 1] > 0x80;
        if (beyond && classes[i] != surrogates && dfa_.Next(state, classes[i]) != state)
          return false;
      }
      return true;
    }
    for (size_t half = 0; half < 2; ++half) {
      for (uint64_t left = kAsciiMembers[static_cast<size_t>(cls)][half]; left != 0;
           left &= left - 1) {
        const auto byte =
            static_cast<uint8_t>(half * 64 + static_cast<size_t>(std::countr_zero(left)));
        if (StepByTable(lexeme, byte) != lexeme) return false;
      }
    }
    return true;
  };
  Loops& known = loops_[lexeme];
  for (uint64_t left = wanted & ~known.known; left != 0; left &= left - 1) {
    const int cls = std::countr_zero(left);
    const uint64_t bit = uint64_t{1} << cls;
    known.known |= bit;
    if (!loops(cls)) break;
    known.loops |= bit;
  }
  return (known.loops & wanted) == wanted;
}

uint32_t RegexMachine::AtBoundary(uint32_t state) {
  if (boundary_.size() <= state)
    boundary_.resize(std::max<size_t>(state + 1, 2 * boundary_.size()));
  if (boundary_[state] == 0) boundary_[state] = Intern({state});
  return boundary_[state];
}

uint32_t RegexMachine::StepLexeme(uint32_t lexeme, uint8_t byte) {
  const Position& p = positions_[lexeme];
  if (p.missing == 0 && byte < 0x80) {
    const uint32_t next = dfa_.Next(p.state, dfa_.ClassOf(byte));
    return next == RegexDfa::kDead ? kDeadLexeme : AtBoundary(next);
  }
  // What cannot be is not kept: a grammar of 50,000 words would keep 128 such steps for each.
  const bool begins = byte >= 0xC2 && byte <= 0xF4, goes_on = (byte & 0xC0) == 0x80;
  if (p.missing == 0 ? !begins || !LeadsBeyondAscii(dfa_, p.state) : !goes_on) return kDeadLexeme;
  const uint64_t key = uint64_t{lexeme} << 8 | byte;
  if (const uint32_t* known = sequence_steps_.Find(key)) return *known;
  const uint32_t next = StepInSequence(lexeme, byte);
  sequence_steps_.Insert(key, next);
  return next;
}

// A byte that begins a sequence of UTF-8 or stands in one.
uint32_t RegexMachine::StepInSequence(uint32_t lexeme, uint8_t byte) {
  Position p = positions_[lexeme];
  if (p.missing == 0) {
    if (byte < 0xC2 || byte > 0xF4) return kDeadLexeme;
    p.length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2;
    p.missing = static_cast<uint8_t>(p.length - 1);
    p.value = byte & (0x7Fu >> p.length);
  } else {
    if ((byte & 0xC0) != 0x80) return kDeadLexeme;
    if (p.length == 0) return --p.missing > 0 ? Intern(p) : AtBoundary(p.state);
    p.value = p.value << 6 | (byte & 0x3F);
    --p.missing;
  }
  const auto [lo, hi] = Range(p);
  if (!Pick(p.state, lo, hi)) return kDeadLexeme;
  if (p.missing > 0) {
    // Where what is left of the character does not matter, neither does what was read of it: else
    // each of a hundred thousand beginnings would be a place of its own.
    const uint32_t shift = 6u * p.missing;
    const bool all = lo == p.value << shift && hi == (lo | ((1u << shift) - 1));
    const uint32_t common = all ? Common(p.state, lo, hi) : RegexDfa::kDead;
    return Intern(common == RegexDfa::kDead ? p : Position{common, p.missing});
  }
  return AtBoundary(dfa_.Next(p.state, dfa_.ClassOf(p.value)));
}

bool RegexMachine::Accepting(Key state) {
  const Position& p = positions_[LexemeOf(state)];
  return p.missing == 0 && p.state != RegexDfa::kDead && dfa_.Accepting(p.state);
}

bool RegexMachine::Ends(Key state) {
  const Position& p = positions_[LexemeOf(state)];
  return p.missing == 0 && dfa_.arena().MaxLength(dfa_.Term(p.state)) == 0;
}

std::optional<std::string> RegexMachine::CompletionBytes(Key key) {
  Position p = positions_[LexemeOf(key)];
  std::string out;
  if (p.missing > 0 && p.length == 0) {
    out.assign(p.missing, '\x80');
    p = {p.state};
  } else if (p.missing > 0) {
    const auto [lo, hi] = Range(p);
    const auto c = Pick(p.state, lo, hi);
    if (!c) return std::nullopt;
    std::string whole;
    AppendUtf8(*c, whole);
    out = whole.substr(whole.size() - p.missing);
    p = {dfa_.Next(p.state, dfa_.ClassOf(*c))};
  }
  // What is long and has a simple structure is read off that: the search would derive a term for
  // each character, and the terms may be as large as the text is long.
  const ReId term = dfa_.Term(p.state);
  if (dfa_.MinLength(p.state) > kSearchedLength) {
    if (const auto text = dfa_.arena().ShortestText(term, kMaxCompletion)) {
      for (const char32_t c : *text) AppendUtf8(c, out);
      return out;
    }
  }
  // A* over the DFA: characters taken plus those that the term still needs at least; of equals the
  // deepest first. Where what the parts of a conjunction need says little of what all of them
  // need, that sees every text of some length. From some point on the search therefore looks for
  // any end, by what is needed alone.
  //
  // Whether a state is live takes a search of its own, which marks the path that it finds. So only
  // states that the search goes on from are asked, not all their neighbours.
  struct Entry {
    uint64_t total, depth;
    bool live;
    uint32_t state;
    bool operator<(const Entry& other) const {
      if (total != other.total) return total > other.total;
      return depth != other.depth ? depth < other.depth : state > other.state;
    }
  };
  std::unordered_map<uint32_t, std::pair<uint32_t, int>> from = {{p.state, {p.state, -1}}};
  std::priority_queue<Entry> queue;
  bool exact = true;
  // What needs more characters than a completion may have is not looked at.
  const auto push = [&](uint64_t depth, uint32_t state) {
    const uint64_t needed = dfa_.MinLength(state);
    if (depth + needed <= kMaxCompletion)
      queue.push({exact ? depth + needed : needed, depth, dfa_.KnownLive(state), state});
  };
  push(0, p.state);
  const size_t least = dfa_.MinLength(p.state);
  const int64_t undecided = dfa_.undecided();
  const uint64_t most_work = dfa_.arena().work() + kCompletionWork;
  for (size_t visits = 0; !queue.empty() && from.size() < kMaxSeen; ++visits) {
    if (dfa_.arena().work() > most_work) break;
    if (visits > kVisits + kVisitsEach * least) break;
    if (exact && visits > kExactVisits + kExactVisitsEach * least) {
      exact = false;
      for (std::priority_queue<Entry> open = std::exchange(queue, {}); !open.empty(); open.pop())
        push(open.top().depth, open.top().state);
    }
    const auto [total, depth, live, state] = queue.top();
    queue.pop();
    // That may take as long to find out as an end: not asked for long.
    if (!live && dfa_.undecided() <= undecided + kUndecided && !dfa_.Lives(state)) {
      --visits;
      continue;
    }
    if (dfa_.Accepting(state)) {
      std::u32string path;
      for (uint32_t s = state; from.at(s).second >= 0; s = from.at(s).first) {
        path.push_back(dfa_.Representative(from.at(s).second));
      }
      for (auto it = path.rbegin(); it != path.rend(); ++it) AppendUtf8(*it, out);
      return out;
    }
    for (int cls = 0; cls < dfa_.classes(); ++cls) {
      StopScope::Step();
      const uint32_t next = dfa_.NextPerhapsDead(state, cls);
      if (next == RegexDfa::kDead || from.contains(next)) continue;
      from.emplace(next, std::pair(state, cls));
      push(depth + 1, next);
    }
  }
  return std::nullopt;
}

}  // namespace pawl
