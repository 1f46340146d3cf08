// A live state that a step leads back to itself can be passed any number of times, each time with
// another value; looking for such a loop nearby is enough for the programs that schemas give
// (patterns with a star, unbounded lengths and numbers). Where lengths are bounded, as in the
// labels of a host name, a path on which several letters lead to the same state has as many texts
// as all its choices multiplied: more than any array will have items.
#include "schemas/solve/distinct.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>

#include "schemas/limits.h"
#include "src/base/stop_scope.h"

namespace pawl::schema {
namespace {

constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyz0123456789";

// A digit of `digits` that can follow for ever.
bool Loops(NumberProgram& program, NumberProgram::StateId state, std::string_view digits) {
  if (program.combines()) return program.Endless(state);
  if (program.DigitsLeft(state) < limits::kCountlessDigits) return false;
  for (const char digit : digits) {
    NumberProgram::StateId at = state;
    for (int i = 0; i < limits::kLoopSteps && at != 0; ++i) {
      const NumberProgram::StateId next = program.Step(at, digit);
      if (next != 0 && program.Equivalent(next, at)) return true;
      at = next;
    }
  }
  return false;
}

// Up to `count` texts that lead from `start` to where `accepts` holds, short ones first. The first
// `count` ways to a state are enough for them: any later one could be put in place of one of those.
template <typename Text, typename StateId, typename Alphabet, typename Accepts, typename Next>
std::vector<Text> FirstTexts(StateId start, const Alphabet& alphabet, size_t count,
                             const Accepts& accepts, const Next& next) {
  struct Visit {
    StateId state;
    size_t before;
    typename Text::value_type last;
  };
  std::vector<Text> out;
  std::vector<Visit> visits = {{start, 0, 0}};
  std::unordered_map<StateId, size_t> ways;
  for (size_t at = 0; at < visits.size() && at < limits::kContinuationStates && out.size() < count;
       ++at) {
    const StateId state = visits[at].state;
    if (accepts(state)) {
      Text& text = out.emplace_back();
      for (size_t i = at; i != 0; i = visits[i].before) text += visits[i].last;
      std::ranges::reverse(text);
    }
    for (const auto c : alphabet) {
      StopScope::Step();
      const std::optional<StateId> to =
          visits.size() < limits::kContinuationStates ? next(state, c) : std::nullopt;
      if (to && ways[*to]++ < count) visits.push_back({*to, at, c});
    }
  }
  return out;
}

}  // namespace

// A path on which letters can be chosen so often that no program will see all texts.
static bool HasCountless(StringSearch& search, StringSearch::StateId state) {
  StringProgram& program = search.program();
  double texts = 1;
  for (size_t step = 0; step < limits::kChoices && texts < limits::kCountless; ++step) {
    std::map<int, int> letters;  // by class
    for (const char c : kPlain) ++letters[program.ClassOf(static_cast<char32_t>(c))];
    int most = 1;
    StringSearch::StateId next = state;
    for (const auto& [cls, count] : letters) {
      if (count <= most) continue;
      const StringSearch::StateId to = program.Next(state, cls);
      if (!search.Live(to)) continue;
      most = count;
      next = to;
    }
    if (most == 1) return false;
    texts *= most;
    state = next;
  }
  return texts >= limits::kCountless;
}

bool Endless(StringSearch& search, StringSearch::StateId start) {
  StringProgram& program = search.program();
  std::deque<StringSearch::StateId> queue = {start};
  std::set<StringSearch::StateId> seen = {start};
  while (!queue.empty()) {
    const StringSearch::StateId state = queue.front();
    queue.pop_front();
    for (int cls = 0; cls < program.classes(); ++cls) {
      const char32_t c = program.Representative(cls);
      if (c >= 0xD800 && c <= 0xDFFF) continue;
      const StringSearch::StateId next = program.Next(state, cls);
      if (!search.Live(next)) continue;
      if (next == state) return true;
      if (seen.size() < limits::kLoopStates && seen.insert(next).second) queue.push_back(next);
    }
  }
  return HasCountless(search, start);
}

bool Endless(NumberProgram& program, NumberProgram::StateId state, const std::string& text,
             bool every_spelling) {
  if (state == 0) return false;
  if (text.find_first_of("eE") != std::string::npos) return false;
  if (text.find('.') != std::string::npos) return Loops(program, state, "123456789");
  const NumberProgram::StateId dot = program.Step(state, '.');
  if (dot != 0 && Loops(program, dot, "123456789")) return true;
  if (dot != 0 && every_spelling) return false;
  // Any digit makes an integer another one, unless it is zero.
  return text != "0" && text != "-0" && Loops(program, state, "0123456789");
}

// In the order of a search in breadth, so endless ones are noticed by their number.
bool ListTexts(StringSearch& search, const std::function<bool(size_t, size_t)>& within,
               std::vector<std::u32string>& out) {
  StringProgram& program = search.program();
  std::vector<std::pair<StringSearch::StateId, std::u32string>> queue;
  if (search.Live(program.start())) queue.emplace_back(program.start(), U"");
  for (size_t i = 0; i < queue.size(); ++i) {
    const auto [state, text] = queue[i];
    if (search.Accepts(state)) out.push_back(text);
    if (!within(queue.size(), out.size())) return false;
    // Characters beyond ASCII come in thousands.
    const auto live = [&, from = state](int cls) { return search.Live(program.Next(from, cls)); };
    if (program.AnyClassIn(128, 0x10FFFF, live)) return false;
    std::vector<std::optional<StringSearch::StateId>> after;  // by class, of the live ones
    for (int place = 0; place < program.ascii_classes(); ++place) {
      const StringSearch::StateId next =
          program.Next(state, program.ClassOfAsciiClass(static_cast<uint8_t>(place)));
      after.push_back(search.Live(next) ? std::optional(next) : std::nullopt);
    }
    for (char32_t c = 0; c < 128; ++c) {
      const auto& next = after[program.AsciiClass(static_cast<uint8_t>(c))];
      if (next) queue.emplace_back(*next, text + c);
    }
  }
  return true;
}

std::vector<std::u32string> Continuations(StringSearch& search, StringSearch::StateId start,
                                          size_t count) {
  StringProgram& program = search.program();
  std::vector<char32_t> alphabet(kPlain.begin(), kPlain.end());
  for (int cls = 0; cls < program.classes(); ++cls) {
    const char32_t c = program.Representative(cls);
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    if (c >= 128 || kPlain.find(static_cast<char>(c)) == std::string_view::npos)
      alphabet.push_back(c);
  }
  return FirstTexts<std::u32string>(
      start, alphabet, count, [&](auto state) { return search.Accepts(state); },
      [&](auto state, char32_t c) -> std::optional<StringSearch::StateId> {
        const StringSearch::StateId next = program.Next(state, program.ClassOf(c));
        if (!search.Live(next)) return std::nullopt;
        return next;
      });
}

std::vector<std::string> Continuations(NumberProgram& program, NumberProgram::StateId start,
                                       size_t count) {
  return FirstTexts<std::string>(
      start, std::string_view("0123456789.-eE+"), count,
      [&](auto state) { return program.Accepts(state); },
      [&](auto state, char c) -> std::optional<NumberProgram::StateId> {
        const NumberProgram::StateId next = program.Step(state, c);
        if (next == 0) return std::nullopt;
        return next;
      });
}

}  // namespace pawl::schema
