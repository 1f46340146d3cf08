// The two passes over a text that capture_parse.cc describes. Internal to it.
#ifndef PAWL_GRAMMAR_CFG_CAPTURE_PASSES_H_
#define PAWL_GRAMMAR_CFG_CAPTURE_PASSES_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "grammar/cfg/capture_parse.h"
#include "grammar/cfg/program.h"
#include "grammar/hash_index.h"
#include "src/base/sorted.h"

namespace pawl::captures {

using Op = CfgProgram::Op;

inline constexpr uint32_t kNever = UINT32_MAX;
inline constexpr uint32_t kToken = 1u << 31;  // in a lexeme's `what`: a token set
inline constexpr size_t kMaxEntries = size_t{6} << 20;
inline constexpr size_t kEntriesPerUnit = 64;

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
  size_t operator()(const Config& c) const { return HashMix(HashMix(c.node, c.count), c.slot); }
  size_t operator()(const Spot& s) const { return HashMix((*this)(s.config), s.place); }
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
      const bool in_token = token < units_.tokens.size() && units_.tokens[token].begin <= place;
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
      Visit(config);
    }
    if (place == units_.size()) out.accepts = seen_.contains({CfgProgram::kAcceptNode, 0, kNever});
    for (uint32_t slot = first_slot_; slot < slots_.size(); ++slot) Flatten(slot);
    for (uint32_t slot = first_slot_; slot < slots_.size(); ++slot) slots_[slot].same.clear();
    std::vector<uint32_t>& nodes = out.nodes[place];
    for (const Config& config : seen_) {
      if (config.count == 0) nodes.push_back(config.node);
    }
    SortUnique(nodes);
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

  void Visit(const Config& config) {
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
    if (config.count > 0)
      rounds_[{place, {config.node, 0, config.slot}}].push_back(config.count - 1);
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

}  // namespace pawl::captures

#endif  // PAWL_GRAMMAR_CFG_CAPTURE_PASSES_H_
