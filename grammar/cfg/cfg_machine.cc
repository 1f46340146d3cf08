// Each byte is one pass over the threads: those that can take it go on, those whose lexeme ends
// here hand their continuation over, and what the continuations allow begins. Threads are sorted
// before a state is interned, so states that were reached by different paths are one. Counts of
// tokens (a rule's `max_tokens`) belong to a thread, so states under such a rule differ by them.
#include "grammar/cfg/cfg_machine.h"

#include <algorithm>
#include <set>

#include "grammar/cfg/capture_parse.h"
#include "grammar/cfg/cfg_masks.h"
#include "src/base/stop_scope.h"

namespace pawl {

// A text is one string with a list of the places where a token stands in it, so a place is a number
// and all questions are a look at the string or a binary search.

uint32_t ClosingTexts::Add(const std::optional<std::vector<OutputPiece>>& pieces,
                           std::string note) {
  Text text{.bytes = {}, .tokens = {}, .ends = pieces.has_value(), .note = std::move(note)};
  for (const OutputPiece& piece : pieces.value_or(std::vector<OutputPiece>())) {
    if (piece.token == kNoToken) {
      text.bytes += piece.bytes;
    } else {
      text.tokens.emplace_back(static_cast<uint32_t>(text.bytes.size()), piece.token);
      text.bytes += '\0';
    }
  }
  bytes_ += sizeof(Text) + text.MemoryBytes();
  texts_.push_back(std::move(text));
  return static_cast<uint32_t>(texts_.size() - 1);
}

std::vector<std::pair<uint32_t, TokenId>>::const_iterator ClosingTexts::TokenFrom(Place at) const {
  const auto& tokens = texts_[at.text].tokens;
  return std::lower_bound(tokens.begin(), tokens.end(), std::pair(at.taken, INT32_MIN));
}

bool ClosingTexts::Takes(Place at, uint8_t byte) const {
  const std::string& bytes = texts_[at.text].bytes;
  return at.taken < bytes.size() && static_cast<uint8_t>(bytes[at.taken]) == byte &&
         TokenAt(at) == kNoToken;
}

TokenId ClosingTexts::TokenAt(Place at) const {
  const auto next = TokenFrom(at);
  return next != texts_[at.text].tokens.end() && next->first == at.taken ? next->second : kNoToken;
}

std::string_view ClosingTexts::BytesAt(Place at) const {
  const Text& text = texts_[at.text];
  const auto next = TokenFrom(at);
  const size_t end = next == text.tokens.end() ? text.bytes.size() : next->first;
  return std::string_view(text.bytes).substr(at.taken, end - at.taken);
}

bool ClosingTexts::Ends(Place at) const {
  return texts_[at.text].ends && at.taken == texts_[at.text].bytes.size();
}

std::optional<std::vector<OutputPiece>> ClosingTexts::Rest(Place at) const {
  if (!texts_[at.text].ends) return std::nullopt;
  std::vector<OutputPiece> pieces;
  while (!Ends(at)) {
    if (const TokenId token = TokenAt(at); token != kNoToken) {
      pieces.push_back({.token = token});
      ++at.taken;
    } else {
      const std::string_view bytes = BytesAt(at);
      pieces.push_back({.bytes = std::string(bytes)});
      at.taken += static_cast<uint32_t>(bytes.size());
    }
  }
  return pieces;
}

namespace {

constexpr size_t kMaxCompletion = size_t{1} << 16;  // bytes

using Op = CfgProgram::Op;

}  // namespace

Result<std::shared_ptr<CfgMachine>> CfgMachine::Create(GrammarIr& ir, const Vocabulary& vocabulary,
                                                       const CfgLimits& limits) {
  auto program = CompileCfg(ir, vocabulary);
  if (!program.ok()) return program.error();
  return std::shared_ptr<CfgMachine>(new CfgMachine(ir, std::move(*program), limits));
}

CfgMachine::CfgMachine(GrammarIr ir, CfgProgram program, const CfgLimits& limits)
    : ir_(std::make_shared<GrammarIr>(std::move(ir))),
      program_(std::move(program)),
      limits_(limits) {
  for (GrammarIr::RuleId rule = 0; rule < ir_->rule_count(); ++rule) {
    const GrammarIr::Attributes& attributes = ir_->rule(rule).attributes;
    has_captures_ |= attributes.capture || (attributes.marker && attributes.marker->capture);
  }
  continuations_ = std::make_unique<Continuations>(program_, limits_);
  states_.push_back({Continuations::kNone, 0, 0});
  start_ = StateOf(continuations_->Start());
}

CfgMachine::~CfgMachine() = default;

CfgMachine::Thread CfgMachine::ThreadOf(const Continuations::Expansion::Begin& begin) const {
  const CfgProgram::Terminal& terminal = program_.terminals[begin.what];
  return {
      terminal.source * 2 + (terminal.lazy ? 1 : 0),
      terminal.max_tokens == 0 ? kNoLimit : terminal.max_tokens | (terminal.relaxed ? kRelaxed : 0),
      terminal.start, begin.then};
}

bool CfgMachine::OutlivesToken(StateId state) const {
  if (!program_.counts_tokens || states_[state].fresh != Continuations::kNone) return true;
  return std::ranges::any_of(threads(state),
                             [](const Thread& thread) { return thread.tokens > 1; });
}

CfgMachine::StateId CfgMachine::StateOf(ContId then) {
  if (state_of_.size() <= then)
    state_of_.resize(std::max<size_t>(then + 1, 2 * state_of_.size()), kDeadState);
  if (state_of_[then] == kDeadState) {
    std::vector<Thread> none;
    state_of_[then] = Intern(then, none);
  }
  return state_of_[then];
}

CfgMachine::StateId CfgMachine::Intern(ContId fresh, std::vector<Thread>& threads) {
  if (threads.size() > 1) {
    // Lexemes at the same point of the same machine are one, with either continuation.
    std::sort(threads.begin(), threads.end());
    size_t kept = 0;
    for (size_t i = 0; i < threads.size();) {
      Thread united = threads[i];
      thens_.clear();
      for (; i < threads.size() && threads[i].source == united.source &&
             threads[i].tokens == united.tokens && threads[i].key == united.key;
           ++i)
        thens_.push_back(threads[i].then);
      united.then = continuations_->UnionOf(thens_);
      threads[kept++] = united;
    }
    threads.resize(kept);
  }
  if (threads.empty() && fresh == Continuations::kNone) return kDeadState;
  uint64_t hash = HashMix(threads.size(), fresh);
  for (const Thread& thread : threads) {
    hash = HashMix(hash, thread.key);
    hash = HashMix(hash, uint64_t{thread.then} << 32 | thread.source);
    hash = HashMix(hash, thread.tokens);
  }
  const StateId known = index_.Find(hash, [&](StateId id) {
    return states_[id].fresh == fresh && std::ranges::equal(this->threads(id), threads);
  });
  if (known != HashIndex::kNone) return known;
  states_.push_back(
      {fresh, static_cast<uint32_t>(threads_.size()), static_cast<uint32_t>(threads.size())});
  threads_.insert(threads_.end(), threads.begin(), threads.end());
  steps_made_ += 1 + threads.size();
  states_.back().crowded =
      continuations_->Crowded(fresh) || std::ranges::any_of(threads, [&](const Thread& thread) {
        return continuations_->Crowded(thread.then);
      });
  const auto id = static_cast<StateId>(states_.size() - 1);
  index_.Insert(hash, id);
  return id;
}

size_t CfgMachine::MemoryBytes() const {
  size_t sum = HeapBytes(*ir_, program_, continuations_, states_, threads_, index_, state_of_,
                         made_, steps_, masks_, captures_, closing_, closing_of_);
  for (const auto& machine : program_.machines) sum += machine->MemoryBytes();
  return sum;
}

size_t CfgMachine::GrowthHint() const {
  size_t sum = states_.size() * 48 + threads_.size() * sizeof(Thread) + steps_.size() * 48 +
               closing_of_.size() * 32 + closing_.bytes() + continuations_->GrowthHint();
  if (masks_ != nullptr) sum += masks_->bytes();
  for (const auto& machine : program_.machines) sum += machine->GrowthHint();
  return sum;
}

CfgMachine::StateId CfgMachine::StepState(StateId state, uint8_t byte) {
  const uint64_t key = uint64_t{state} << 8 | byte;
  if (const StateId* known = steps_.Find(key)) return *known;
  const StateId next = MakeStep(state, byte);
  steps_.Insert(key, next);
  return next;
}

CfgMachine::StateId CfgMachine::MakeStep(StateId state, uint8_t byte) {
  StopScope::Step();
  std::vector<Thread>& next = made_;
  next.clear();
  ended_.clear();
  const auto add = [&](Thread thread) {
    Machine& machine = machine_of(thread);
    const bool accepting = machine.Accepting(thread.key);
    if (accepting) ended_.push_back(thread.then);
    if (!accepting || ((thread.source & 1) == 0 && !machine.Ends(thread.key)))
      next.push_back(thread);
  };
  StopScope::Steps(1 + states_[state].count);
  for (uint32_t i = 0; i < states_[state].count; ++i) {
    Thread thread = threads_[states_[state].begin + i];
    thread.key = machine_of(thread).Step(thread.key, byte);
    if (thread.key != kDead) add(thread);
  }
  if (states_[state].fresh != Continuations::kNone) {
    const Continuations::Expansion& expansion = continuations_->Expand(states_[state].fresh);
    if (expansion.first_bytes[byte]) {
      StopScope::Steps(expansion.terminals.size());
      for (const auto& begin : expansion.terminals) {
        Thread thread = ThreadOf(begin);
        thread.key = program_.terminals[begin.what].first[byte];
        if (thread.key != kDead) add(thread);
      }
    }
  }
  return Intern(continuations_->UnionOf(ended_), next);
}

bool CfgMachine::Accepting(Key state) {
  if (IsClosing(state)) return closing_.Ends(PlaceOf(state));
  const ContId fresh = states_[FrameOf(state)].fresh;
  return fresh != Continuations::kNone && continuations_->Expand(fresh).accepts;
}

// Tokens taken as a whole, and the number of tokens that a lexeme has had.
Machine::Key CfgMachine::StepToken(Key state, TokenId token, Key by_bytes) {
  if (IsClosing(state)) return closing_.TokenAt(PlaceOf(state)) == token ? state + 1 : by_bytes;
  const StateId from = FrameOf(state);
  ContId fresh = Continuations::kNone;
  if (states_[from].fresh != Continuations::kNone) {
    for (const auto& begin : continuations_->Expand(states_[from].fresh).tokens) {
      if (program_.token_sets[begin.what].Has(token))
        fresh = continuations_->Union(fresh, begin.then);
    }
  }
  if (by_bytes == kDead) return fresh == Continuations::kNone ? kDead : MakeKey(StateOf(fresh), 1);
  const StateId to = FrameOf(by_bytes);
  const std::span<const Thread> reached = threads(to);
  const bool counts =
      program_.counts_tokens &&
      std::ranges::any_of(reached, [](const Thread& thread) { return thread.tokens != kNoLimit; });
  if (fresh == Continuations::kNone && !counts) return by_bytes;
  std::vector<Thread> next(reached.begin(), reached.end());
  for (size_t i = next.size(); i-- > 0;) {
    Thread& thread = next[i];
    if (thread.tokens == kNoLimit || (--thread.tokens & ~kRelaxed) != 0) continue;
    if (thread.tokens == kRelaxed && !machine_of(thread).Accepting(thread.key)) {
      thread.source |= 1;  // ends where it first may
      thread.tokens = kNoLimit;
    } else {
      next.erase(next.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  const StateId id = Intern(continuations_->Union(fresh, states_[to].fresh), next);
  return id == kDeadState ? kDead : MakeKey(id, 1);
}

void CfgMachine::FillTokens(Key state, uint32_t* words) {
  if (IsClosing(state)) {
    const TokenId token = closing_.TokenAt(PlaceOf(state));
    if (token != kNoToken) words[token >> 5] |= 1u << (token & 31);
    return;
  }
  const ContId fresh = states_[FrameOf(state)].fresh;
  if (fresh == Continuations::kNone) return;
  for (const auto& begin : continuations_->Expand(fresh).tokens) {
    for (const auto& [first, last] : program_.token_sets[begin.what].ranges) {
      for (TokenId id = first; id <= last; ++id) words[id >> 5] |= 1u << (id & 31);
    }
  }
}

bool CfgMachine::TakesTokens(Key state) {
  if (IsClosing(state)) return closing_.TokenAt(PlaceOf(state)) != kNoToken;
  const ContId fresh = states_[FrameOf(state)].fresh;
  return fresh != Continuations::kNone && !continuations_->Expand(fresh).tokens.empty();
}

Machine::Key CfgMachine::AtToken(Key state, const Vocabulary& vocabulary) {
  if (IsClosing(state) || !states_[FrameOf(state)].crowded) return state;
  const StateId id = FrameOf(state);
  const uint32_t* known = closing_of_.Find(id);
  if (known == nullptr) {
    uint32_t closing = 0;
    if (!MasksOf(vocabulary).WithinLimit(id)) {
      closing =
          1 + closing_.Add(Completion(state),
                           CrowdedRule(id) + " can be read in too many ways here (more than " +
                               std::to_string(limits_.mask_steps) +
                               " steps for one mask), so the output was closed in the "
                               "shortest form");
    }
    closing_of_.Insert(id, closing);
    known = closing_of_.Find(id);
  }
  return *known == 0 ? state : MakeKey(*known - 1, 2);
}

std::string CfgMachine::LimitNote(Key state) const {
  if (IsClosing(state)) return closing_.note(FrameOf(state));
  if (!states_[FrameOf(state)].crowded) return {};
  const uint32_t* const known = closing_of_.Find(FrameOf(state));
  return known == nullptr || *known == 0 ? "" : closing_.note(*known - 1);
}

// Among the continuations that the state leads to, the one with the most entries.
std::string CfgMachine::CrowdedRule(StateId state) const {
  constexpr size_t kMostLookedAt = 2000;
  std::vector<ContId> todo = {states_[state].fresh};
  for (const Thread& thread : threads(state)) todo.push_back(thread.then);
  std::set<ContId> seen(todo.begin(), todo.end());
  ContId fullest = Continuations::kNone;
  for (size_t i = 0; i < todo.size() && i < kMostLookedAt; ++i) {
    const auto entries = continuations_->entries(todo[i]);
    if (entries.size() > continuations_->entries(fullest).size()) fullest = todo[i];
    for (const Continuations::Entry& entry : entries) {
      if (seen.size() < kMostLookedAt && seen.insert(entry.then).second) todo.push_back(entry.then);
    }
  }
  const GrammarIr::RuleId rule = program_.rules[continuations_->CrowdedNode(fullest)];
  return rule == GrammarIr::kNoRule ? "the grammar" : "rule \"" + ir_->rule(rule).name + "\"";
}

uint64_t CfgMachine::work() const {
  return continuations_->work() + steps_made_ + (masks_ == nullptr ? 0 : masks_->work());
}

MachineMasks* CfgMachine::Masks(const Vocabulary& vocabulary) { return &MasksOf(vocabulary); }

void CfgMachine::PrepareMasks(const Vocabulary& vocabulary, uint64_t steps) {
  if (steps > 0) MasksOf(vocabulary).Prepare(steps);
}

CfgMasks& CfgMachine::MasksOf(const Vocabulary& vocabulary) {
  if (masks_ == nullptr) masks_ = std::make_unique<CfgMasks>(*this, vocabulary);
  return *masks_;
}

std::optional<std::string> CfgMachine::CompletionBytes(Key state) {
  auto parts = Completion(state);
  if (!parts || parts->size() > 1) return std::nullopt;
  if (parts->empty()) return "";
  if (parts->front().token != kNoToken) return std::nullopt;
  return std::move(parts->front().bytes);
}

std::optional<std::vector<OutputPiece>> CfgMachine::Completion(Key state) {
  if (IsClosing(state)) return closing_.Rest(PlaceOf(state));
  if (Accepting(state)) return std::vector<OutputPiece>();
  const StateData at = states_[FrameOf(state)];
  // What remains of the lexeme, and then what its continuation needs at least.
  std::string best;
  ContId then = at.fresh;
  CfgProgram::Cost length = continuations_->Shortest(at.fresh);
  for (uint32_t i = 0; i < at.count; ++i) {
    const Thread thread = threads_[at.begin + i];
    const CfgProgram::Cost after = continuations_->Shortest(thread.then);
    if (after >= length) continue;
    const std::optional<std::string> rest = machine_of(thread).CompletionBytes(thread.key);
    if (!rest || rest->size() * CfgProgram::kByteCost + after >= length) continue;
    length = rest->size() * CfgProgram::kByteCost + after;
    best = *rest;
    then = thread.then;
  }
  if (length >= CfgProgram::kInfinite) return std::nullopt;
  return Complete(then, std::move(best));
}

Result<std::vector<Capture>> CfgMachine::FindCaptures(std::span<const OutputPiece> pieces,
                                                      const Vocabulary& vocabulary) {
  if (!has_captures_) return std::vector<Capture>();
  if (captures_ == nullptr) {
    auto parse = CaptureParse::Create(ir_, vocabulary);
    if (!parse.ok()) return parse.error();
    captures_ = std::move(*parse);
  }
  return captures_->Run(pieces, vocabulary);
}

// The highest that a rule around this point asks for, of each path outwards the first that asks.
float CfgMachine::TemperatureOf(ContId then) const {
  float highest = -1;
  std::vector<ContId> todo = {then};
  for (size_t i = 0; i < todo.size(); ++i) {
    for (const Continuations::Entry& entry : continuations_->entries(todo[i])) {
      StopScope::Step();
      const float here = program_.temperatures[entry.node];
      if (here >= 0) {
        highest = std::max(highest, here);
      } else if (std::ranges::find(todo, entry.then) == todo.end()) {
        todo.push_back(entry.then);
      }
    }
  }
  return highest;
}

std::optional<float> CfgMachine::Temperature(Key state) {
  if (program_.temperatures.empty() || IsClosing(state)) return std::nullopt;
  float highest = -1;
  for (const Thread& thread : threads(FrameOf(state)))
    highest = std::max(highest, TemperatureOf(thread.then));
  const ContId fresh = states_[FrameOf(state)].fresh;
  if (fresh != Continuations::kNone) {
    const Continuations::Expansion expansion = continuations_->Expand(fresh);
    for (const auto* begins : {&expansion.terminals, &expansion.tokens}) {
      for (const auto& begin : *begins) highest = std::max(highest, TemperatureOf(begin.then));
    }
  }
  return highest < 0 ? std::nullopt : std::optional(highest);
}

// Follows the shortest path from a continuation to the end.
std::optional<std::vector<OutputPiece>> CfgMachine::Complete(ContId then, std::string text) {
  std::vector<OutputPiece> parts;
  const auto end_bytes = [&] {
    if (!text.empty()) parts.push_back({.bytes = std::move(text)});
    text.clear();
  };
  size_t length = 0;  // of the parts that are done; a token counts as a byte
  while (length + text.size() <= kMaxCompletion) {
    if (then == Continuations::kNone) return std::nullopt;
    const Continuations::Entry best = continuations_->Best(then);
    if (continuations_->Shortest(best) >= CfgProgram::kInfinite) return std::nullopt;
    // Within a routine and those that it calls: a stack of nodes to go on with.
    struct Frame {
      uint32_t node, count;
    };
    std::vector<Frame> stack = {{best.node, best.count}};
    while (!stack.empty() && length + text.size() <= kMaxCompletion) {
      StopScope::Step();
      const auto [index, count] = stack.back();
      stack.pop_back();
      const CfgProgram::Node& node = program_.nodes[index];
      switch (node.op) {
        case Op::kAccept:
          end_bytes();
          return parts;
        case Op::kReturn:
          break;
        case Op::kTokens: {
          const TokenId token = program_.token_sets[node.index].any;
          if (token == kNoToken) return std::nullopt;
          length += text.size() + 1;
          end_bytes();
          parts.push_back({.token = token});
          stack.push_back({node.next, 0});
          break;
        }
        case Op::kMark:
          stack.push_back({node.next, 0});
          break;
        case Op::kTerminal: {
          const CfgProgram::Terminal& terminal = program_.terminals[node.index];
          Machine& machine = *program_.machines[terminal.source];
          // At least one byte: the empty text has a path of its own.
          std::optional<std::string> word;
          if (!machine.Accepting(terminal.start)) {
            word = machine.CompletionBytes(terminal.start);
          } else {
            // Many bytes lead to few states; each is asked once.
            std::set<Key> asked = {kDead};
            for (int byte = 0; byte < 256; ++byte) {
              if (!asked.insert(terminal.first[byte]).second) continue;
              auto rest = machine.CompletionBytes(terminal.first[byte]);
              if (!rest || (word && word->size() <= rest->size() + 1)) continue;
              word = std::string(1, static_cast<char>(byte)) + *rest;
            }
          }
          if (!word) return std::nullopt;
          text += *word;
          stack.push_back({node.next, 0});
          break;
        }
        case Op::kCall:
          stack.push_back({node.next, 0});
          stack.push_back({program_.routines[node.index].start, 0});
          break;
        case Op::kSplit: {
          uint32_t chosen = program_.splits[node.index];
          for (uint32_t i = 1; i < node.count; ++i) {
            const uint32_t option = program_.splits[node.index + i];
            if (program_.nodes[option].shortest < program_.nodes[chosen].shortest) chosen = option;
          }
          stack.push_back({chosen, 0});
          break;
        }
        case Op::kRepeat:
          if (count < node.min) {
            stack.push_back({index, count + 1});
            stack.push_back({program_.routines[node.index].start, 0});
          } else {
            stack.push_back({node.next, 0});
          }
          break;
      }
    }
    then = best.then;
  }
  return std::nullopt;
}

}  // namespace pawl
