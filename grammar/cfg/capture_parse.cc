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
// 3. Forwards again, with a stack of activations: at each choice the preferred way of those that
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

#include "grammar/regex/regex_machine.h"

namespace pawl {
namespace {

using Op = CfgProgram::Op;

constexpr uint32_t kNever = UINT32_MAX;
constexpr uint32_t kToken = 1u << 31;        // in a lexeme's `what`: a token set
constexpr size_t kMaxEntries = size_t{6} << 20;
constexpr size_t kEntriesPerUnit = 64;
constexpr int kMaxTries = 256;  // ways out of rounds without text, at one place

uint64_t Mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
  return hash ^ (hash >> 29);
}

// A point of the program within an activation. `count` is for repetitions only: forwards the rounds
// done, backwards 0 for the way in, else one more than the rounds to go.
struct Config {
  uint32_t node, count, slot;
  friend bool operator==(const Config&, const Config&) = default;
};

struct Spot {
  uint32_t place;
  Config config;
  friend bool operator==(const Spot&, const Spot&) = default;
};

struct Hash {
  size_t operator()(const Config& c) const {
    return Mix(Mix(c.node, c.count), c.slot);
  }
  size_t operator()(const Spot& s) const { return Mix((*this)(s.config), s.place); }
};

// The text as units: bytes, or special tokens as a whole.
struct Units {
  struct Token {
    TokenId id;
    uint32_t begin, end;  // units
  };
  std::string text;
  std::vector<uint32_t> offset;  // of each unit in the text, and of the end
  std::vector<bool> whole;       // by unit: a special token
  std::vector<Token> tokens;     // in order

  uint32_t size() const { return static_cast<uint32_t>(offset.size()) - 1; }
  void Add(std::string_view bytes, bool as_one) {
    for (size_t i = 0; i < (as_one ? 1 : bytes.size()); ++i) {
      offset.back() = static_cast<uint32_t>(text.size());
      whole.push_back(as_one);
      text += as_one ? bytes : bytes.substr(i, 1);
      offset.push_back(static_cast<uint32_t>(text.size()));
    }
  }
};

struct Lexeme {
  uint32_t what;  // terminal, or kToken | token set
  uint32_t begin, end;
};

}  // namespace

// What the first pass finds.
struct Reached {
  std::vector<std::vector<uint32_t>> nodes;  // by place, sorted
  std::vector<Lexeme> lexemes;
  std::vector<std::vector<uint32_t>> ending, beginning;  // lexemes by place
  bool accepts = false;

  bool Has(uint32_t place, uint32_t node) const {
    return std::binary_search(nodes[place].begin(), nodes[place].end(), node);
  }
};

class ForwardPass {
 public:
  ForwardPass(const CaptureParse& parse, const Units& units)
      : program_(parse.program_), units_(units) {}

  // false: too ambiguous.
  bool Run(Reached& out) {
    const uint32_t n = units_.size();
    out.nodes.resize(n + 1);
    out.ending.resize(n + 1);
    out.beginning.resize(n + 1);
    incoming_.resize(n + 1);
    slots_.push_back({{{CfgProgram::kAcceptNode, 0, kNever}}, {}});
    incoming_[0].push_back({program_.routines[program_.root].start, 0, 0});
    std::vector<Open> open, next;
    size_t token = 0;  // the first that does not end before this place
    uint32_t token_begin = kNever;
    for (uint32_t place = 0;; ++place) {
      if (!Close(place, out)) return false;
      if (place == n) break;
      while (token < units_.tokens.size() && units_.tokens[token].end <= place) ++token;
      const bool in_token =
          token < units_.tokens.size() && units_.tokens[token].begin <= place;
      if (in_token && units_.tokens[token].begin == place) {
        token_begin = place;
        at_token_ = tokens_here_;
      }
      next.clear();
      if (!units_.whole[place]) {
        const auto byte = static_cast<uint8_t>(units_.text[units_.offset[place]]);
        const auto step = [&](Open lexeme) {
          const CfgProgram::Terminal& terminal = program_.terminals[lexeme.what];
          Machine& machine = *program_.machines[terminal.source];
          const bool accepting = machine.Accepting(lexeme.key);
          if (accepting) End(lexeme.what, lexeme.begin, place + 1, *lexeme.then, out);
          const bool lazy = terminal.lazy || lexeme.ends;
          if (!accepting || (!lazy && !machine.Ends(lexeme.key))) next.push_back(lexeme);
        };
        for (Open lexeme : open) {
          const CfgProgram::Terminal& terminal = program_.terminals[lexeme.what];
          lexeme.key = program_.machines[terminal.source]->Step(lexeme.key, byte);
          if (lexeme.key != Machine::kDead) step(lexeme);
        }
        for (const auto& [what, then] : terminals_here_) {
          const CfgProgram::Terminal& terminal = program_.terminals[what];
          if (terminal.first[byte] == Machine::kDead) continue;
          step({what, place, terminal.max_tokens, terminal.first[byte], then, false});
        }
      }
      if (in_token && units_.tokens[token].end == place + 1) {
        for (const auto& [what, then] : at_token_) {
          if (program_.token_sets[what].Has(units_.tokens[token].id))
            End(what | kToken, token_begin, place + 1, *then, out);
        }
        std::erase_if(next, [this](Open& lexeme) {
          if (lexeme.tokens == 0 || --lexeme.tokens > 0) return false;
          const CfgProgram::Terminal& terminal = program_.terminals[lexeme.what];
          Machine& machine = *program_.machines[terminal.source];
          lexeme.ends = terminal.relaxed && !machine.Accepting(lexeme.key);
          return !lexeme.ends;
        });
      }
      std::swap(open, next);
      work_ += open.size();
      if (work_ > 64 * (kMaxEntries + kEntriesPerUnit * n)) return false;
    }
    return true;
  }

 private:
  using Then = std::shared_ptr<std::vector<Config>>;
  struct Slot {
    std::vector<Config> after;
    std::vector<uint32_t> same;  // whose entries are entries of this one
  };
  struct Open {
    uint32_t what, begin, tokens;
    Machine::Key key;
    Then then;
    bool ends = false;  // where it first may, though it is not lazy
  };

  void End(uint32_t what, uint32_t begin, uint32_t end, const std::vector<Config>& then,
           Reached& out) {
    const auto id = static_cast<uint32_t>(out.lexemes.size());
    out.lexemes.push_back({what, begin, end});
    out.ending[end].push_back(id);
    out.beginning[begin].push_back(id);
    incoming_[end].insert(incoming_[end].end(), then.begin(), then.end());
  }

  // Everything that may be reached at a place without text.
  bool Close(uint32_t place, Reached& out) {
    seen_.clear();
    slot_of_.clear();
    terminals_here_.clear();
    tokens_here_.clear();
    first_slot_ = static_cast<uint32_t>(slots_.size());
    work_list_.clear();
    for (const Config& config : incoming_[place]) Push(config);
    incoming_[place] = {};
    while (!work_list_.empty()) {
      const Config config = work_list_.back();
      work_list_.pop_back();
      Visit(config, out);
    }
    if (place == units_.size()) out.accepts = seen_.contains({CfgProgram::kAcceptNode, 0, kNever});
    for (uint32_t slot = first_slot_; slot < slots_.size(); ++slot) Flatten(slot);
    for (uint32_t slot = first_slot_; slot < slots_.size(); ++slot) slots_[slot].same.clear();
    std::vector<uint32_t>& nodes = out.nodes[place];
    for (const Config& config : seen_) {
      if (config.count == 0) nodes.push_back(config.node);
    }
    std::sort(nodes.begin(), nodes.end());
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    nodes.shrink_to_fit();
    work_ += seen_.size() * 16;
    return true;
  }

  void Push(const Config& config) {
    if (seen_.insert(config).second) work_list_.push_back(config);
  }

  void Call(uint32_t routine, const Config& after) {
    const auto [known, fresh] = slot_of_.emplace(routine, static_cast<uint32_t>(slots_.size()));
    if (fresh) slots_.emplace_back();
    Slot& slot = slots_[known->second];
    if (after.node == CfgProgram::kReturnNode) {
      slot.same.push_back(after.slot);
    } else {
      slot.after.push_back(after);
    }
    Push({program_.routines[routine].start, 0, known->second});
  }

  void Visit(const Config& config, Reached& out) {
    const CfgProgram::Node& node = program_.nodes[config.node];
    switch (node.op) {
      case Op::kReturn:
        // Of a routine that began here: its callers know that it may be empty.
        if (config.slot >= first_slot_) break;
        for (size_t i = 0; i < slots_[config.slot].after.size(); ++i)
          Push(slots_[config.slot].after[i]);
        break;
      case Op::kAccept:
        break;
      case Op::kTerminal:
        Begin(terminals_here_, config, node);
        break;
      case Op::kTokens:
        Begin(tokens_here_, config, node);
        break;
      case Op::kMark:
        Push({node.next, 0, config.slot});
        break;
      case Op::kCall:
        Call(node.index, {node.next, 0, config.slot});
        if (program_.routines[node.index].nullable) Push({node.next, 0, config.slot});
        break;
      case Op::kSplit:
        for (uint32_t i = 0; i < node.count; ++i)
          Push({program_.splits[node.index + i], 0, config.slot});
        break;
      case Op::kRepeat:
        if (config.count < node.max) {
          const uint32_t rounds = node.max == GrammarIr::kUnbounded
                                      ? std::min(config.count + 1, node.min)
                                      : config.count + 1;
          if (rounds == node.max) {
            Call(node.index, {node.next, 0, config.slot});
          } else {
            Call(node.index, {config.node, rounds, config.slot});
          }
        }
        if (config.count >= node.min) Push({node.next, 0, config.slot});
        break;
    }
  }

  void Begin(std::vector<std::pair<uint32_t, Then>>& list, const Config& config,
             const CfgProgram::Node& node) {
    auto known = std::ranges::find(list, node.index, &std::pair<uint32_t, Then>::first);
    if (known == list.end()) {
      list.emplace_back(node.index, std::make_shared<std::vector<Config>>());
      known = list.end() - 1;
    }
    known->second->push_back({node.next, 0, config.slot});
  }

  // Those of earlier places are flat.
  void Flatten(uint32_t id) {
    Slot& slot = slots_[id];
    std::vector<uint32_t> same = slot.same;
    std::unordered_set<uint32_t> seen(same.begin(), same.end());
    std::unordered_set<Config, Hash> entries(slot.after.begin(), slot.after.end());
    for (size_t i = 0; i < same.size(); ++i) {
      const Slot& other = slots_[same[i]];
      entries.insert(other.after.begin(), other.after.end());
      for (const uint32_t more : other.same) {
        if (seen.insert(more).second) same.push_back(more);
      }
    }
    slot.after.assign(entries.begin(), entries.end());
    work_ += slot.after.size();
  }

  const CfgProgram& program_;
  const Units& units_;
  std::vector<std::vector<Config>> incoming_;  // by place
  std::vector<Slot> slots_;                    // the first is the root's
  uint32_t first_slot_ = 0;                    // of this place
  std::unordered_map<uint32_t, uint32_t> slot_of_;
  std::unordered_set<Config, Hash> seen_;
  std::vector<Config> work_list_;
  std::vector<std::pair<uint32_t, Then>> terminals_here_, tokens_here_, at_token_;
  uint64_t work_ = 0;
};

class BackwardPass {
 public:
  struct Slot {
    uint32_t routine, end;
    std::vector<Config> callers;
  };

  BackwardPass(const CaptureParse& parse, const Reached& reached)
      : parse_(parse), program_(parse.program_), reached_(reached) {}

  // false: too ambiguous.
  bool Run() {
    const auto n = static_cast<uint32_t>(reached_.nodes.size() - 1);
    incoming_.resize(n + 1);
    slots_.push_back({program_.root, n, {}});
    Add({CfgProgram::kReturnNode, 0, 0}, n);
    for (uint32_t place = n + 1; place-- > 0;) {
      slot_of_.clear();
      std::vector<Config>& here = incoming_[place];
      for (size_t i = 0; i < here.size(); ++i) Visit(Config(here[i]), place);
      here = {};
      if (found_.size() > kMaxEntries + kEntriesPerUnit * n) return false;
    }
    return true;
  }

  // When it was found; kNever: not at all.
  uint32_t Time(const Config& config, uint32_t place) const {
    const auto known = found_.find({place, config});
    return known == found_.end() ? kNever : known->second;
  }
  // The activations that a call may begin at a place: the config of the call, or of a repetition
  // with the rounds to go, the one that begins included.
  std::span<const uint32_t> Calls(const Config& config, uint32_t place) const {
    const auto known = calls_.find({place, config});
    return known == calls_.end() ? std::span<const uint32_t>() : known->second;
  }
  const Slot& slot(uint32_t id) const { return slots_[id]; }
  // How many rounds may be to go at a repetition.
  std::vector<uint32_t> Rounds(uint32_t node, uint32_t slot, uint32_t place) const {
    const auto known = rounds_.find({place, {node, 0, slot}});
    return known == rounds_.end() ? std::vector<uint32_t>() : known->second;
  }

 private:
  // false: no text leads there.
  bool Add(const Config& config, uint32_t place) {
    if (config.count == 0 && config.node != CfgProgram::kReturnNode &&
        !reached_.Has(place, config.node)) {
      return false;
    }
    if (!found_.emplace(Spot{place, config}, static_cast<uint32_t>(found_.size())).second)
      return true;
    incoming_[place].push_back(config);
    if (config.count > 0) rounds_[{place, {config.node, 0, config.slot}}].push_back(config.count - 1);
    return true;
  }

  void Call(uint32_t routine, const Config& caller, uint32_t place) {
    const auto [known, fresh] = slot_of_.emplace(routine, static_cast<uint32_t>(slots_.size()));
    const uint32_t id = known->second;
    if (fresh) slots_.push_back({routine, place, {}});
    slots_[id].callers.push_back(caller);
    if (fresh) Add({CfgProgram::kReturnNode, 0, id}, place);
  }

  void Visit(const Config& config, uint32_t place) {
    const uint32_t routine = slots_[config.slot].routine;
    if (config.count > 0) {  // a repetition with count - 1 rounds to go
      const CfgProgram::Node& node = program_.nodes[config.node];
      const uint32_t to_go = config.count - 1;
      if (to_go >= node.min) Add({config.node, 0, config.slot}, place);
      if (to_go < node.max) {
        const bool endless = node.max == GrammarIr::kUnbounded;
        const uint32_t more = endless ? std::min(to_go + 1, node.min) : to_go + 1;
        Call(node.index, {config.node, more + 1, config.slot}, place);
      }
      return;
    }
    const bool at_end = config.node == CfgProgram::kReturnNode;
    if (!at_end && config.node == program_.routines[routine].start &&
        place < slots_[config.slot].end) {
      for (size_t i = 0; i < slots_[config.slot].callers.size(); ++i) {
        const Config caller = slots_[config.slot].callers[i];
        if (Add(caller, place)) calls_[{place, caller}].push_back(config.slot);
      }
    }
    for (const uint32_t from :
         at_end ? parse_.before_return_[routine] : parse_.before_[config.node]) {
      const CfgProgram::Node& node = program_.nodes[from];
      const Config there = {from, 0, config.slot};
      switch (node.op) {
        case Op::kTerminal:
        case Op::kTokens: {
          const uint32_t what = node.index | (node.op == Op::kTokens ? kToken : 0);
          for (const uint32_t lexeme : reached_.ending[place]) {
            if (reached_.lexemes[lexeme].what == what) Add(there, reached_.lexemes[lexeme].begin);
          }
          break;
        }
        case Op::kCall:
          Call(node.index, there, place);
          if (program_.routines[node.index].nullable) Add(there, place);
          break;
        case Op::kRepeat:
          Add({from, 1, config.slot}, place);
          break;
        default:
          Add(there, place);
      }
    }
  }

  const CaptureParse& parse_;
  const CfgProgram& program_;
  const Reached& reached_;
  std::vector<std::vector<Config>> incoming_;  // by place
  std::vector<Slot> slots_;
  std::unordered_map<uint32_t, uint32_t> slot_of_;  // of this place, by routine
  std::unordered_map<Spot, uint32_t, Hash> found_;
  std::unordered_map<Spot, std::vector<uint32_t>, Hash> rounds_, calls_;
};

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
    uint32_t careful;  // the place at which only earlier entries are taken
    uint32_t at;       // the place of `choices`
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
        const uint32_t slot = LongestCall(
            {frame.node, 0, frame.slot}, now, [&](uint32_t id) { return may(node.next, back_.slot(id).end); });
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

  // Takes the first way of a split that fits. A round of a loop that came back here without text
  // takes back the last choice that has another way.
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
      for (const uint32_t rounds :
           back_.Rounds(frame.node, frame.slot, back_.slot(id).end)) {
        const uint32_t before = node.max == GrammarIr::kUnbounded
                                    ? std::min(rounds + 1, node.min)
                                    : rounds + 1;
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
      const uint32_t longest =
          LongestCall({frame.node, rounds + 1, frame.slot}, kNever,
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

  // The preferred way through a routine without text: as Step(), with the distance from the
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
          const auto known =
              std::ranges::find(at.seen, at.node, &std::pair<uint32_t, Done>::first);
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
  if (!reached.accepts) return Error{ErrorCode::kInvalid, "the output does not fit the grammar", ""};
  BackwardPass back(*this, reached);
  if (!back.Run()) return ambiguous;
  return DerivationWalk(*this, units, reached, back).Run();
}

}  // namespace pawl
