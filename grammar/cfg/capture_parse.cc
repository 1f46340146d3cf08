// Three passes over the text.
//
// 1. Forwards, as the masks read it: which nodes of the program may be reached at each place, and
//    which lexemes may stand between which places. A routine that is called at the very end of
//    another returns to the caller of that one at once, so right recursion stays linear (as in
//    continuations.h).
// 2. Backwards, over the lexemes found: from which nodes can the end of the text be reached, where
//    the first pass has been as well? That rules out what left recursion would begin everywhere. An
//    activation of a routine is told apart by where it ends, so "node n within the activation that
//    ends at q" at a place p says: from p, node n can go on to the end of its routine at q exactly.
// 3. Forwards again, with a stack of activations: at each choice the preferred alternative of those
// that
//    the second pass knows. Whatever it knows can be completed, so nothing is ever taken back -
//    but for circles: a rule that stands for itself, a round of a loop without text. Every entry of
//    the second pass was found because of an earlier one, so a walk that only goes to earlier ones
//    ends; where a circle closes, the walk goes back to where it began and takes such steps until
//    it gets on in the text.
//
// A special token is one unit of the text, whatever the length of its name.
#include "grammar/cfg/capture_parse.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "grammar/cfg/capture_passes.h"
#include "grammar/regex/regex_machine.h"

namespace pawl {
namespace captures {
namespace {

constexpr int kMaxTries = 256;  // ways out of rounds without text, at one place

}  // namespace

class DerivationWalk {
 public:
  DerivationWalk(const CaptureParse& parse, const Units& units, const Reached& reached,
                 const BackwardPass& back)
      : parse_(parse), program_(parse.program_), units_(units), reached_(reached), back_(back) {}

  Result<std::vector<Capture>> Run() {
    const uint32_t start = program_.routines[program_.root].start;
    if (units_.size() == 0) {
      if (start != CfgProgram::kReturnNode) EmptyText(program_.root);
      return std::move(captures_);
    }
    stack_.push_back({start, 0, 0, kNever, 0, {}, {}, {}});
    while (!stack_.empty()) {
      if (!Step()) return Error{ErrorCode::kInternal, "no derivation was found", ""};
    }
    return std::move(captures_);
  }

 private:
  struct Done {  // how far everything was, to go back to
    size_t captures = 0, open = 0, hidden = 0;
  };
  struct Choice {
    uint32_t node, option;
    Done done;  // before it
  };
  struct Frame {
    uint32_t node, slot, begin;
    uint32_t careful;              // the place at which only earlier entries are taken
    uint32_t at;                   // the place of `choices`
    std::vector<uint32_t> rounds;  // to go, at a repetition that has begun
    std::vector<Choice> choices;   // made at this place
    Done done;                     // when it began
  };

  Done Now() const { return {captures_.size(), open_.size(), hidden_.size()}; }
  void GoBack(const Done& done) {
    captures_.resize(done.captures);
    open_.resize(done.open);
    hidden_.resize(done.hidden);
  }

  // One node of the innermost activation.
  bool Step() {
    Frame& frame = stack_.back();
    if (frame.node == CfgProgram::kReturnNode) {
      open_calls_.erase(uint64_t{frame.slot} << 32 | frame.begin);
      stack_.pop_back();
      return true;
    }
    const CfgProgram::Node& node = program_.nodes[frame.node];
    if (frame.at != place_) frame.choices.clear();
    frame.at = place_;
    const uint32_t now =
        frame.careful == place_ ? back_.Time({frame.node, 0, frame.slot}, place_) : kNever;
    const auto may = [&](uint32_t to, uint32_t place) {
      const uint32_t time = back_.Time({to, 0, frame.slot}, place);
      return time != kNever && (place > place_ || time < now);
    };
    switch (node.op) {
      case Op::kSplit:
        return Choose(frame, now);
      case Op::kMark:
        Mark(node.index, node.count == 1);
        frame.node = node.next;
        return true;
      case Op::kTerminal:
      case Op::kTokens: {
        const uint32_t what = node.index | (node.op == Op::kTokens ? kToken : 0);
        uint32_t end = kNever;
        for (const uint32_t id : reached_.beginning[place_]) {
          const Lexeme& lexeme = reached_.lexemes[id];
          if (lexeme.what == what && (end == kNever || lexeme.end > end) &&
              may(node.next, lexeme.end)) {
            end = lexeme.end;
          }
        }
        if (end == kNever) return false;
        frame.node = node.next;
        place_ = end;
        return true;
      }
      case Op::kCall: {
        const uint32_t slot = LongestCall({frame.node, 0, frame.slot}, now, [&](uint32_t id) {
          return may(node.next, back_.slot(id).end);
        });
        if (slot == kNever) {
          if (!program_.routines[node.index].nullable || !may(node.next, place_)) return false;
          EmptyText(node.index);
          frame.node = node.next;
          return true;
        }
        frame.node = node.next;
        return Enter(slot);
      }
      case Op::kRepeat:
        return Repeat(frame, node, now);
      default:
        return false;
    }
  }

  // Takes the first branch of a split that fits. A round of a loop that came back here without text
  // takes back the last choice that has another branch.
  bool Choose(Frame& frame, uint32_t now) {
    const auto next_way = [&](uint32_t at, uint32_t option) {
      const CfgProgram::Node& node = program_.nodes[at];
      for (; option < node.count; ++option) {
        const uint32_t time =
            back_.Time({program_.splits[node.index + option], 0, frame.slot}, place_);
        if (time != kNever && time < now) break;
      }
      return option;
    };
    const auto take = [&](uint32_t at, uint32_t option) {
      frame.node = program_.splits[program_.nodes[at].index + option];
      return true;
    };
    if (frame.careful == place_ ||
        std::ranges::find(frame.choices, frame.node, &Choice::node) == frame.choices.end()) {
      const uint32_t option = next_way(frame.node, 0);
      if (option == program_.nodes[frame.node].count) return false;
      if (frame.careful != place_) frame.choices.push_back({frame.node, option, Now()});
      return take(frame.node, option);
    }
    const Choice first = frame.choices.front();
    for (int tries = 0; tries < kMaxTries && !frame.choices.empty(); ++tries) {
      Choice& last = frame.choices.back();
      last.option = next_way(last.node, last.option + 1);
      if (last.option < program_.nodes[last.node].count) {
        GoBack(last.done);
        return take(last.node, last.option);
      }
      frame.choices.pop_back();
    }
    GoBack(first.done);
    frame.node = first.node;
    frame.careful = place_;
    frame.choices.clear();
    return true;
  }

  // The longest activation that a call may begin here and that ends at a place that fits.
  template <typename Fits>
  uint32_t LongestCall(const Config& call, uint32_t now, const Fits& fits) const {
    uint32_t best = kNever;
    for (const uint32_t id : back_.Calls(call, place_)) {
      const BackwardPass::Slot& slot = back_.slot(id);
      if (best != kNever && slot.end <= back_.slot(best).end) continue;
      if (now != kNever &&
          back_.Time({program_.routines[slot.routine].start, 0, id}, place_) >= now) {
        continue;
      }
      if (fits(id)) best = id;
    }
    return best;
  }

  bool Enter(uint32_t slot) {
    if (!open_calls_.insert(uint64_t{slot} << 32 | place_).second) {
      // A rule that stands for itself: back to the first of them.
      size_t first = stack_.size();
      while (first > 0 && !(stack_[first - 1].slot == slot && stack_[first - 1].begin == place_))
        --first;
      if (first == 0) return false;
      for (size_t i = first; i < stack_.size(); ++i)
        open_calls_.erase(uint64_t{stack_[i].slot} << 32 | stack_[i].begin);
      stack_.resize(first);
      Frame& frame = stack_.back();
      if (frame.careful == place_) return false;
      frame.node = program_.routines[back_.slot(slot).routine].start;
      frame.careful = place_;
      frame.rounds.clear();
      frame.choices.clear();
      GoBack(frame.done);
      return true;
    }
    const uint32_t start = program_.routines[back_.slot(slot).routine].start;
    const bool careful = stack_.back().careful == place_;
    stack_.push_back({start, slot, place_, careful ? place_ : kNever, place_, {}, {}, Now()});
    return true;
  }

  // A counted repetition. Which number of rounds it will be is left open as long as several fit.
  bool Repeat(Frame& frame, const CfgProgram::Node& node, uint32_t now) {
    if (frame.rounds.empty()) {
      for (const uint32_t rounds : back_.Rounds(frame.node, frame.slot, place_)) {
        const uint32_t time = back_.Time({frame.node, rounds + 1, frame.slot}, place_);
        if (rounds >= node.min && time < now) frame.rounds.push_back(rounds);
      }
      if (frame.rounds.empty()) return false;
    }
    const uint32_t start = program_.routines[node.index].start;
    const auto after = [&](uint32_t id) {
      std::vector<uint32_t> rest;
      for (const uint32_t rounds : back_.Rounds(frame.node, frame.slot, back_.slot(id).end)) {
        const uint32_t before =
            node.max == GrammarIr::kUnbounded ? std::min(rounds + 1, node.min) : rounds + 1;
        if (std::ranges::find(frame.rounds, before) == frame.rounds.end()) continue;
        if (frame.careful == place_ &&
            back_.Time({start, 0, id}, place_) >=
                back_.Time({frame.node, before + 1, frame.slot}, place_)) {
          continue;
        }
        rest.push_back(rounds);
      }
      return rest;
    };
    uint32_t slot = kNever;
    for (const uint32_t rounds : frame.rounds) {
      const uint32_t longest = LongestCall({frame.node, rounds + 1, frame.slot}, kNever,
                                           [&](uint32_t id) { return !after(id).empty(); });
      if (longest != kNever && (slot == kNever || back_.slot(longest).end > back_.slot(slot).end))
        slot = longest;
    }
    if (slot == kNever) {
      frame.rounds.clear();
      frame.node = node.next;
      return back_.Time({node.next, 0, frame.slot}, place_) != kNever;
    }
    frame.rounds = after(slot);
    return Enter(slot);
  }

  // The preferred path through a routine without text: as Step(), with the distance from the
  // routine's end for the time of an entry.
  void EmptyText(uint32_t first_routine) {
    struct Empty {
      uint32_t node, routine;
      bool careful;
      std::vector<std::pair<uint32_t, Done>> seen;
      Done done;
    };
    std::vector<Empty> stack;
    const auto enter = [&](uint32_t routine) {
      const bool careful = !stack.empty() && stack.back().careful;
      const auto open = std::ranges::find(stack, routine, &Empty::routine);
      if (!careful && open != stack.end()) {
        GoBack(open->done);
        stack.erase(open + 1, stack.end());
        stack.back().node = program_.routines[routine].start;
        stack.back().careful = true;
        return;
      }
      stack.push_back({program_.routines[routine].start, routine, careful, {}, Now()});
    };
    enter(first_routine);
    while (!stack.empty()) {
      Empty& at = stack.back();
      const CfgProgram::Node& node = program_.nodes[at.node];
      switch (node.op) {
        case Op::kReturn:
          stack.pop_back();
          break;
        case Op::kSplit: {
          const auto known = std::ranges::find(at.seen, at.node, &std::pair<uint32_t, Done>::first);
          if (known == at.seen.end()) {
            at.seen.emplace_back(at.node, Now());
          } else if (!at.careful) {
            GoBack(known->second);
            at.careful = true;
          }
          const uint32_t limit = at.careful ? parse_.empty_rank_[at.node] : kNever;
          uint32_t option = 0;
          while (parse_.empty_rank_[program_.splits[node.index + option]] >= limit) ++option;
          at.node = program_.splits[node.index + option];
          break;
        }
        case Op::kMark:
          Mark(node.index, node.count == 1);
          at.node = node.next;
          break;
        case Op::kCall:
          at.node = node.next;
          enter(node.index);
          break;
        default:
          at.node = node.next;
      }
    }
  }

  void Mark(uint32_t rule, bool end) {
    if (!end) {
      open_.push_back(place_);
      return;
    }
    const uint32_t begin = open_.back();
    open_.pop_back();
    const GrammarIr::Attributes& attributes = parse_.ir_->rule(rule).attributes;
    uint32_t text_end = place_;
    if (attributes.marker && attributes.marker->ahead) {
      const uint32_t marker_end = MarkerAhead(*attributes.marker);
      if (marker_end != kNever && attributes.marker->capture)
        Add(*attributes.marker->capture, place_, marker_end);
    } else if (attributes.marker) {
      if (const uint32_t cut = Cut(*attributes.marker, begin); cut != kNever) {
        if (attributes.marker->capture) Add(*attributes.marker->capture, cut, place_);
        if (attributes.marker->hidden) hidden_.emplace_back(cut, place_);
        text_end = cut;
      }
    }
    if (attributes.capture) Add(*attributes.capture, begin, text_end);
  }

  // Where the shortest marker ends that begins here; kNever: there is none.
  uint32_t MarkerAhead(const GrammarIr::Marker& marker) const {
    const ReId regex = parse_.ir_->arena().Close(marker.marker);
    RegexMachine machine(parse_.ir_->shared_arena(), regex);
    Machine::Key key = machine.StartOf(0);
    for (uint32_t i = place_; key != Machine::kDead; ++i) {
      if (machine.Accepting(key)) return i;
      if (i == units_.size() || units_.whole[i]) break;
      key = machine.Step(key, static_cast<uint8_t>(units_.text[units_.offset[i]]));
    }
    return kNever;
  }

  // Where the marker begins in the text from `begin` to here; kNever: there is none.
  uint32_t Cut(const GrammarIr::Marker& marker, uint32_t begin) const {
    const ReId regexes[] = {parse_.ir_->arena().Close(marker.text),
                            parse_.ir_->arena().Close(marker.marker)};
    RegexMachine machine(parse_.ir_->shared_arena(), regexes);
    Machine::Key key = machine.StartOf(0);
    const auto step = [&](Machine::Key from, uint32_t unit) {
      return machine.Step(from, static_cast<uint8_t>(units_.text[units_.offset[unit]]));
    };
    for (uint32_t cut = begin; key != Machine::kDead; ++cut) {
      if (machine.Accepting(key)) {
        Machine::Key rest = machine.StartOf(1);
        for (uint32_t i = cut; i < place_ && rest != Machine::kDead; ++i) rest = step(rest, i);
        if (rest != Machine::kDead && machine.Accepting(rest)) return cut;
      }
      if (cut == place_) break;
      key = step(key, cut);
    }
    return kNever;
  }

  void Add(const std::string& name, uint32_t begin, uint32_t end) {
    Capture capture{name, units_.offset[begin], units_.offset[end], {}};
    size_t from = capture.begin;
    // The last ones may lie inside; they are in order and apart.
    auto inside = hidden_.end();
    while (inside != hidden_.begin() && std::prev(inside)->first >= begin) --inside;
    for (; inside != hidden_.end() && inside->second <= end; ++inside) {
      capture.text += units_.text.substr(from, units_.offset[inside->first] - from);
      from = units_.offset[inside->second];
    }
    capture.text += units_.text.substr(from, capture.end - from);
    captures_.push_back(std::move(capture));
  }

  const CaptureParse& parse_;
  const CfgProgram& program_;
  const Units& units_;
  const Reached& reached_;
  const BackwardPass& back_;
  uint32_t place_ = 0;
  std::vector<Frame> stack_;
  std::unordered_set<uint64_t> open_calls_;  // slot and begin of the activations on the stack
  std::vector<uint32_t> open_;               // where the rules begin that have not ended
  std::vector<std::pair<uint32_t, uint32_t>> hidden_;
  std::vector<Capture> captures_;
};

}  // namespace captures

using captures::BackwardPass;
using captures::DerivationWalk;
using captures::ForwardPass;
using captures::kNever;
using captures::kToken;
using captures::Reached;
using captures::Units;
using Op = CfgProgram::Op;

Result<std::unique_ptr<CaptureParse>> CaptureParse::Create(std::shared_ptr<GrammarIr> ir,
                                                           const Vocabulary& vocabulary) {
  auto program = CompileCfg(*ir, vocabulary, CfgUse::kCaptures);
  if (!program.ok()) return program.error();
  return std::unique_ptr<CaptureParse>(new CaptureParse(std::move(ir), std::move(*program)));
}

CaptureParse::CaptureParse(std::shared_ptr<GrammarIr> ir, CfgProgram program)
    : ir_(std::move(ir)), program_(std::move(program)) {
  FindPredecessors();
  FindEmptyWays();
}

void CaptureParse::FindPredecessors() {
  const size_t n = program_.nodes.size();
  before_.resize(n);
  before_return_.resize(program_.routines.size());
  std::vector<bool> seen(n);
  for (uint32_t routine = 0; routine < program_.routines.size(); ++routine) {
    std::vector<uint32_t> todo = {program_.routines[routine].start};
    while (!todo.empty()) {
      const uint32_t at = todo.back();
      todo.pop_back();
      if (at == CfgProgram::kReturnNode || seen[at]) continue;
      seen[at] = true;
      const CfgProgram::Node& node = program_.nodes[at];
      const auto lead = [&](uint32_t to) {
        (to == CfgProgram::kReturnNode ? before_return_[routine] : before_[to]).push_back(at);
        todo.push_back(to);
      };
      if (node.op == Op::kSplit) {
        for (uint32_t i = 0; i < node.count; ++i) lead(program_.splits[node.index + i]);
      } else {
        lead(node.next);
      }
    }
  }
}

// Rounds, each of which finds the nodes that are one step further from an end.
void CaptureParse::FindEmptyWays() {
  empty_rank_.assign(program_.nodes.size(), kNever);
  empty_rank_[CfgProgram::kReturnNode] = 0;
  for (uint32_t round = 1;; ++round) {
    std::vector<uint32_t> found;
    const auto has = [&](uint32_t node) { return empty_rank_[node] != kNever; };
    for (uint32_t at = 0; at < program_.nodes.size(); ++at) {
      const CfgProgram::Node& node = program_.nodes[at];
      if (has(at)) continue;
      bool now = false;
      switch (node.op) {
        case Op::kMark:
          now = has(node.next);
          break;
        case Op::kSplit:
          for (uint32_t i = 0; i < node.count; ++i) now |= has(program_.splits[node.index + i]);
          break;
        case Op::kCall:
          now = has(node.next) && has(program_.routines[node.index].start);
          break;
        case Op::kRepeat:
          now = node.min == 0 && has(node.next);
          break;
        default:
          break;
      }
      if (now) found.push_back(at);
    }
    if (found.empty()) return;
    for (const uint32_t at : found) empty_rank_[at] = round;
  }
}

Result<std::vector<Capture>> CaptureParse::Run(std::span<const OutputPiece> pieces,
                                               const Vocabulary& vocabulary) {
  Units units;
  units.offset.push_back(0);
  for (const OutputPiece& piece : pieces) {
    if (piece.token == kNoToken) {
      units.Add(piece.bytes, false);
      continue;
    }
    const std::string_view bytes = vocabulary.bytes(piece.token);
    const uint32_t begin = units.size();
    units.Add(bytes, vocabulary.is_special(piece.token) || bytes.empty());
    units.tokens.push_back({piece.token, begin, units.size()});
  }
  if (units.text.size() >= kToken) return Error{ErrorCode::kLimit, "the output is too long", ""};
  Reached reached;
  const Error ambiguous = {ErrorCode::kLimit, "the grammar is too ambiguous to find captures", ""};
  if (!ForwardPass(*this, units).Run(reached)) return ambiguous;
  if (!reached.accepts)
    return Error{ErrorCode::kInvalid, "the output does not fit the grammar", ""};
  BackwardPass back(*this, reached);
  if (!back.Run()) return ambiguous;
  return DerivationWalk(*this, units, reached, back).Run();
}

}  // namespace pawl
