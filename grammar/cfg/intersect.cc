// The construction of Bar-Hillel, Perles and Shamir (1961) over the nodes of a CfgProgram. A fact
// (node, p, q) says: some text leads from the node to the end of its routine and the automaton from
// p to q. Facts are found from the root's start on, for those pairs (node, p) that are asked for: a
// pair that depends on another subscribes to it and hears of each of its facts (tabling). Then each
// fact that a text of both languages needs becomes a rule, whose alternatives are the ways in which
// it can be so; alternatives without facts are not written, so nothing needs trimming.
//
// Lexemes are listed (explicit_automaton.h) and run together with the automaton. A lexeme that
// leads to one state of it only, whatever its text, stays the regex that it was, which is the rule
// rather than the exception: punctuation holds no part of a word.
#include "grammar/cfg/intersect.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "grammar/cfg/grammar_ir.h"
#include "grammar/cfg/program.h"
#include "src/base/sorted.h"
#include "src/base/stop_scope.h"
#include "src/base/utf8.h"

namespace pawl {
namespace {

using ExprId = GrammarIr::ExprId;
using RuleId = GrammarIr::RuleId;
using Op = CfgProgram::Op;

// One terminal, run together with the automaton from each of its states that is asked for.
class TerminalProduct {
 public:
  TerminalProduct(const CfgProgram::Terminal& terminal, Machine& machine,
                  const ExplicitAutomaton& with, uint32_t* states_left)
      : with_(with), states_left_(states_left) {
    const auto listed = ExplicitAutomaton::Explore(machine, terminal.start);
    if (!listed.ok()) {
      failed_ = true;
      return;
    }
    lexeme_ = *listed;
    if (!terminal.lazy) return;
    std::vector<ExplicitAutomaton::State> cut;
    for (uint32_t i = 0; i < lexeme_->size(); ++i) {
      cut.push_back({lexeme_->state(i).edges, {}, lexeme_->state(i).accepting});
      if (cut.back().accepting) cut.back().edges.clear();
    }
    lexeme_ = std::make_shared<const ExplicitAutomaton>(std::move(cut));
  }

  bool failed() const { return failed_; }

  // The states of the automaton after a text of at least one byte.
  const std::vector<uint32_t>& Ends(uint32_t from) {
    const auto [known, inserted] = ends_.emplace(from, std::vector<uint32_t>());
    if (!inserted || failed_) return known->second;
    std::vector<uint32_t> queue = {Place(0, from)};
    std::vector<bool> seen(places_.size());
    std::vector<uint32_t>& ends = known->second;
    bool whole = true;  // the automaton follows wherever the lexeme goes
    for (size_t i = 0; i < queue.size(); ++i) {
      const uint32_t at = queue[i];
      whole = Grow(at) && whole;
      if (failed_) return ends;
      seen.resize(places_.size());
      for (const ExplicitAutomaton::Edge& edge : edges_[at]) {
        if (lexeme_->state(places_[edge.to].first).accepting)
          ends.push_back(places_[edge.to].second);
        if (seen[edge.to]) continue;
        seen[edge.to] = true;
        queue.push_back(edge.to);
      }
      SortUnique(ends);
    }
    work_ += queue.size();
    // The empty text leads nowhere else.
    free_[from] = whole && ends.size() == 1 && (ends[0] == from || !lexeme_->state(0).accepting);
    return ends;
  }

  // Every text of the lexeme leads to the same state from there.
  bool Free(uint32_t from) const { return free_.at(from); }
  uint64_t TakeWork() { return std::exchange(work_, 0); }

  // The texts that lead from one state to another. REQUIRES: all that is needed was asked for.
  std::shared_ptr<Machine> Between(uint32_t from, uint32_t to, uint64_t* cells_left) {
    if (automaton_ == nullptr) {
      std::vector<ExplicitAutomaton::State> states(places_.size());
      for (uint32_t i = 0; i < places_.size(); ++i) states[i].edges = edges_[i];
      automaton_ = std::make_shared<const ExplicitAutomaton>(std::move(states));
    }
    std::shared_ptr<const AutomatonTarget>& target = targets_[to];
    if (target == nullptr) {
      if (*cells_left < places_.size()) return nullptr;
      *cells_left -= places_.size();
      std::vector<bool> accepting(places_.size());
      for (uint32_t i = 0; i < places_.size(); ++i)
        accepting[i] = places_[i].second == to && lexeme_->state(places_[i].first).accepting;
      target = std::make_shared<AutomatonTarget>(*automaton_, std::move(accepting));
    }
    return std::make_shared<AutomatonView>(automaton_, Place(0, from), target);
  }

 private:
  uint32_t Place(uint32_t lexeme, uint32_t state) {
    const auto [known, inserted] =
        index_.emplace(uint64_t{lexeme} << 32 | state, static_cast<uint32_t>(places_.size()));
    if (inserted) {
      places_.emplace_back(lexeme, state);
      edges_.emplace_back();
      grown_.push_back(0);
      if (*states_left_ == 0) {
        failed_ = true;
      } else {
        --*states_left_;
      }
    }
    return known->second;
  }

  // The edges from a place; whether the automaton followed everywhere.
  bool Grow(uint32_t at) {
    if (grown_[at] != 0) return grown_[at] == 1;
    const auto [lexeme, state] = places_[at];
    std::vector<ExplicitAutomaton::Edge> edges;
    bool whole = true;
    const auto& other = with_.state(state).edges;
    for (const ExplicitAutomaton::Edge& edge : lexeme_->state(lexeme).edges) {
      int next = edge.first;  // the first byte that was not followed yet
      for (const ExplicitAutomaton::Edge& follow : other) {
        const int first = std::max(edge.first, follow.first);
        const int last = std::min(edge.last, follow.last);
        if (first > last) continue;
        whole = whole && first == next;
        next = last + 1;
        edges.push_back(
            {static_cast<uint8_t>(first), static_cast<uint8_t>(last), Place(edge.to, follow.to)});
      }
      whole = whole && next == edge.last + 1;
    }
    edges_[at] = std::move(edges);
    grown_[at] = whole ? 1 : 2;
    return whole;
  }

  const ExplicitAutomaton& with_;
  uint32_t* states_left_;
  bool failed_ = false;
  std::shared_ptr<const ExplicitAutomaton> lexeme_;
  std::vector<std::pair<uint32_t, uint32_t>> places_;  // states of both
  std::vector<std::vector<ExplicitAutomaton::Edge>> edges_;
  std::vector<uint8_t> grown_;
  std::unordered_map<uint64_t, uint32_t> index_;
  std::map<uint32_t, std::vector<uint32_t>> ends_;
  std::map<uint32_t, bool> free_;
  std::shared_ptr<const ExplicitAutomaton> automaton_;
  std::map<uint32_t, std::shared_ptr<const AutomatonTarget>> targets_;
  uint64_t work_ = 0;
};

class Product {
 public:
  Product(GrammarIr& ir, const CfgProgram& program, const ExplicitAutomaton& with,
          const Vocabulary& vocabulary, const IntersectLimits& limits)
      : ir_(ir),
        program_(program),
        with_(with),
        vocabulary_(vocabulary),
        limits_(limits),
        states_left_(limits.max_terminal_states),
        cells_left_(limits.max_target_cells),
        rules_(ir, "part_") {
    terminals_.resize(program.terminals.size());
    token_ends_.resize(program.token_sets.size());
    for (uint32_t i = 0; i < program.nodes.size(); ++i) places_.push_back({i, 0});
  }

  Status Run() {
    const uint32_t start = program_.routines[program_.root].start;
    const uint32_t root = Ask(start, 0);
    while (!open_.empty() || !news_.empty()) {
      StopScope::Step();
      if (work_ > limits_.max_work) return Limit();
      if (!failure_.ok()) return failure_;
      if (!open_.empty()) {
        const uint32_t item = open_.back();
        open_.pop_back();
        Begin(item);
      } else {
        const auto [item, end] = news_.back();
        news_.pop_back();
        Tell(item, end);
      }
    }
    if (!failure_.ok()) return failure_;
    std::vector<ExprId> ways;
    const std::vector<uint32_t> ends = items_[root].ends;
    for (const uint32_t end : ends) {
      if (with_.state(end).accepting) ways.push_back(Written(start, 0, end));
    }
    if (ways.empty())
      return Error{ErrorCode::kUnsatisfiable, "no text of the grammar fits both", ""};
    if (Status status = Write(); !status.ok()) return status;
    const RuleId rule = ir_.AddRule("both");
    ir_.Define(rule, ir_.Choice(ways));
    ir_.SetRoot(rule);
    return {};
  }

 private:
  // A node, of a kRepeat one with the rounds that are done.
  struct Place {
    uint32_t node, count;
  };
  // Who hears of the facts of an item: `item` has the same end; or, when `next` is a place, has the
  // ends of that place from there on.
  struct Subscriber {
    uint32_t item;
    uint32_t next;
  };
  struct Item {
    uint32_t place, from;
    std::vector<uint32_t> ends;  // sorted
    std::vector<uint32_t> told;  // those that the subscribers have heard of
    std::vector<Subscriber> subscribers;
  };
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr int kMostSplits = 4;

  static Error Limit() {
    return {ErrorCode::kLimit, "the grammar and the automaton are too large together", ""};
  }

  uint32_t PlaceOf(uint32_t node, uint32_t count) {
    if (count == 0) return node;
    const auto [known, inserted] =
        place_index_.emplace(uint64_t{node} << 32 | count, static_cast<uint32_t>(places_.size()));
    if (inserted) places_.push_back({node, count});
    return known->second;
  }

  uint32_t Ask(uint32_t place, uint32_t from) {
    const auto [known, inserted] =
        item_index_.emplace(uint64_t{place} << 32 | from, static_cast<uint32_t>(items_.size()));
    if (inserted) {
      items_.push_back({place, from, {}, {}, {}});
      open_.push_back(known->second);
    }
    return known->second;
  }

  void Add(uint32_t item, uint32_t end) {
    ++work_;
    std::vector<uint32_t>& ends = items_[item].ends;
    const auto at = std::lower_bound(ends.begin(), ends.end(), end);
    if (at != ends.end() && *at == end) return;
    ends.insert(at, end);
    news_.emplace_back(item, end);
  }

  void Subscribe(uint32_t to, Subscriber subscriber) {
    ++work_;
    items_[to].subscribers.push_back(subscriber);
    const std::vector<uint32_t> told = items_[to].told;
    for (const uint32_t end : told) Hear(subscriber, end);
  }

  void Hear(const Subscriber& subscriber, uint32_t end) {
    if (subscriber.next == kNone) {
      Add(subscriber.item, end);
    } else {
      Subscribe(Ask(subscriber.next, end), {subscriber.item, kNone});
    }
  }

  void Tell(uint32_t item, uint32_t end) {
    // Everyone hears of it once: who comes meanwhile finds it told.
    items_[item].told.push_back(end);
    const size_t count = items_[item].subscribers.size();
    for (size_t i = 0; i < count; ++i) Hear(Subscriber(items_[item].subscribers[i]), end);
  }

  // After a round of the repetition at the place.
  uint32_t AfterRound(const Place& place) {
    const CfgProgram::Node& node = program_.nodes[place.node];
    const uint32_t rounds =
        node.max == GrammarIr::kUnbounded ? std::min(place.count + 1, node.min) : place.count + 1;
    return PlaceOf(place.node, rounds);
  }

  void Begin(uint32_t item) {
    const auto [index, from] = std::pair(items_[item].place, items_[item].from);
    const Place place = places_[index];
    const CfgProgram::Node& node = program_.nodes[place.node];
    switch (node.op) {
      case Op::kReturn:
      case Op::kAccept:
        Add(item, from);
        break;
      case Op::kTerminal: {
        const std::vector<uint32_t> ends = TerminalEnds(node.index, from);
        for (const uint32_t end : ends) Subscribe(Ask(node.next, end), {item, kNone});
        break;
      }
      case Op::kTokens:
        for (const auto& [end, ranges] : TokenEnds(node.index, from))
          Subscribe(Ask(node.next, end), {item, kNone});
        break;
      case Op::kCall:
        Subscribe(Ask(program_.routines[node.index].start, from), {item, node.next});
        break;
      case Op::kSplit:
        for (uint32_t i = 0; i < node.count; ++i)
          Subscribe(Ask(program_.splits[node.index + i], from), {item, kNone});
        break;
      case Op::kMark:
        Subscribe(Ask(node.next, from), {item, kNone});
        break;
      case Op::kRepeat:
        if (place.count < node.max)
          Subscribe(Ask(program_.routines[node.index].start, from), {item, AfterRound(place)});
        if (place.count >= node.min) Subscribe(Ask(node.next, from), {item, kNone});
        break;
    }
  }

  std::vector<uint32_t> TerminalEnds(uint32_t index, uint32_t from) {
    std::unique_ptr<TerminalProduct>& product = terminals_[index];
    if (product == nullptr) {
      const CfgProgram::Terminal& terminal = program_.terminals[index];
      product = std::make_unique<TerminalProduct>(terminal, *program_.machines[terminal.source],
                                                  with_, &states_left_);
    }
    std::vector<uint32_t> ends = product->Ends(from);
    work_ += product->TakeWork();
    if (product->failed() && failure_.ok()) {
      failure_ = program_.terminals[index].source == 0
                     ? Error{ErrorCode::kLimit,
                             "the grammar's lexemes and the automaton are too large together", ""}
                     : Error{ErrorCode::kUnsupported,
                             "a JSON Schema or free text has too many states to be listed "
                             "(recursion, or keys that the schema does not name)",
                             ""};
    }
    return ends;
  }

  using Ranges = std::vector<std::pair<TokenId, TokenId>>;
  const std::map<uint32_t, Ranges>& TokenEnds(uint32_t set, uint32_t from) {
    const auto [known, inserted] = token_ends_[set].emplace(from, std::map<uint32_t, Ranges>());
    if (!inserted) return known->second;
    for (TokenId id = 0; id < vocabulary_.size(); ++id) {
      if (!program_.token_sets[set].Has(id)) continue;
      uint32_t end = from;
      if (!vocabulary_.is_special(id)) {
        for (const char byte : vocabulary_.bytes(id)) {
          if (end != ExplicitAutomaton::kNone) end = with_.Step(end, static_cast<uint8_t>(byte));
        }
      }
      if (end == ExplicitAutomaton::kNone) continue;
      Ranges& ranges = known->second[end];
      if (!ranges.empty() && ranges.back().second + 1 == id) {
        ranges.back().second = id;
      } else {
        ranges.emplace_back(id, id);
      }
    }
    work_ += static_cast<uint64_t>(vocabulary_.size());
    return known->second;
  }

  bool Holds(uint32_t place, uint32_t from, uint32_t end) const {
    const auto item = item_index_.find(uint64_t{place} << 32 | from);
    if (item == item_index_.end()) return false;
    const std::vector<uint32_t>& ends = items_[item->second].ends;
    return std::binary_search(ends.begin(), ends.end(), end);
  }

  // The expression of a fact. Splits in splits are written out in place up to a depth: a rule is
  // dearer than a choice.
  ExprId Written(uint32_t place, uint32_t from, uint32_t end, int depth = 0) {
    if (place == CfgProgram::kReturnNode) return GrammarIr::kEmpty;
    const CfgProgram::Node& node = program_.nodes[places_[place].node];
    if (node.op == Op::kSplit && depth < kMostSplits) {
      std::vector<ExprId> ways;
      for (uint32_t k = 0; k < node.count; ++k) {
        const uint32_t option = program_.splits[node.index + k];
        if (Holds(option, from, end)) ways.push_back(Written(option, from, end, depth + 1));
      }
      work_ += ways.size();
      return ir_.Choice(ways);
    }
    return rules_.Call({place, from, end});
  }

  Status Write() {
    for (size_t i = 0; i < rules_.size(); ++i) {
      const auto [index, from, end] = rules_.key(i);
      const Place place = places_[index];
      const CfgProgram::Node& node = program_.nodes[place.node];
      std::vector<ExprId> ways;
      const auto call = [&, from = from, end = end](uint32_t next) {
        const uint32_t start = program_.routines[node.index].start;
        const std::vector<uint32_t> between =
            items_[item_index_.at(uint64_t{start} << 32 | from)].ends;
        for (const uint32_t middle : between) {
          if (Holds(next, middle, end))
            ways.push_back(
                ir_.Sequence({Written(start, from, middle), Written(next, middle, end)}));
        }
      };
      switch (node.op) {
        case Op::kReturn:
        case Op::kAccept:
          break;
        case Op::kTerminal:
          for (const uint32_t middle : TerminalEnds(node.index, from)) {
            if (!Holds(node.next, middle, end)) continue;
            const std::optional<ExprId> lexeme = Lexeme(node.index, from, middle);
            if (!lexeme) return Limit();
            ways.push_back(ir_.Sequence({*lexeme, Written(node.next, middle, end)}));
          }
          break;
        case Op::kTokens:
          for (const auto& [middle, ranges] : TokenEnds(node.index, from)) {
            if (Holds(node.next, middle, end))
              ways.push_back(
                  ir_.Sequence({ir_.Tokens({.ranges = ranges}), Written(node.next, middle, end)}));
          }
          break;
        case Op::kCall:
          call(node.next);
          break;
        case Op::kSplit:
          for (uint32_t k = 0; k < node.count; ++k) {
            const uint32_t option = program_.splits[node.index + k];
            if (Holds(option, from, end)) ways.push_back(Written(option, from, end));
          }
          break;
        case Op::kMark:
          if (Holds(node.next, from, end)) ways.push_back(Written(node.next, from, end));
          break;
        case Op::kRepeat:
          if (place.count < node.max) call(AfterRound(place));
          if (place.count >= node.min && Holds(node.next, from, end))
            ways.push_back(Written(node.next, from, end));
          break;
      }
      work_ += ways.size() + 1;
      if (work_ > limits_.max_work) return Limit();
      rules_.Define(i, ir_.Choice(ways));
    }
    return {};
  }

  std::optional<ExprId> Lexeme(uint32_t index, uint32_t from, uint32_t end) {
    const auto known = lexemes_.find(std::tuple(index, from, end));
    if (known != lexemes_.end()) return known->second;
    const CfgProgram::Terminal& terminal = program_.terminals[index];
    TerminalProduct& product = *terminals_[index];
    ExprId made = GrammarIr::kNever;
    if (product.Free(from)) {
      const std::shared_ptr<Machine>& machine = program_.machines[terminal.source];
      made = terminal.source == 0
                 ? ir_.Regex(static_cast<RegexMachine&>(*machine).TermOf(terminal.start),
                             terminal.lazy)
                 : ir_.Terminal({machine, ""});
    } else {
      auto machine = product.Between(from, end, &cells_left_);
      if (machine == nullptr) return std::nullopt;
      made = ir_.Terminal({std::move(machine), ""});
    }
    if (terminal.max_tokens > 0) {
      const RuleId rule = ir_.AddRule("limited_" + std::to_string(lexemes_.size()));
      ir_.Define(rule, made);
      ir_.SetAttributes(rule, {.max_tokens = terminal.max_tokens, .relaxed = terminal.relaxed});
      made = ir_.Call(rule);
    }
    lexemes_.emplace(std::tuple(index, from, end), made);
    return made;
  }

  GrammarIr& ir_;
  const CfgProgram& program_;
  const ExplicitAutomaton& with_;
  const Vocabulary& vocabulary_;
  const IntersectLimits& limits_;
  uint32_t states_left_;
  uint64_t cells_left_;
  uint64_t work_ = 0;
  Status failure_;
  std::vector<Place> places_;
  std::unordered_map<uint64_t, uint32_t> place_index_;  // by node << 32 | count
  std::vector<Item> items_;
  std::unordered_map<uint64_t, uint32_t> item_index_;  // by place << 32 | from
  std::vector<uint32_t> open_;
  std::vector<std::pair<uint32_t, uint32_t>> news_;
  std::vector<std::unique_ptr<TerminalProduct>> terminals_;
  std::vector<std::map<uint32_t, std::map<uint32_t, Ranges>>> token_ends_;
  using Fact = std::tuple<uint32_t, uint32_t, uint32_t>;
  OpenRules<Fact> rules_;
  std::map<Fact, ExprId> lexemes_;
};

}  // namespace

Result<GrammarIr> Intersect(GrammarIr ir, const ExplicitAutomaton& with,
                            const Vocabulary& vocabulary, const IntersectLimits& limits) {
  auto program = CompileCfg(ir, vocabulary);
  if (!program.ok()) return program.error();
  Product product(ir, *program, with, vocabulary, limits);
  if (Status status = product.Run(); !status.ok()) return status.error();
  return ir;
}

Result<std::shared_ptr<const ExplicitAutomaton>> OccurrenceAutomaton(
    std::span<const std::string> words, uint32_t max_states) {
  constexpr size_t kMostWords = 12;
  if (words.size() > kMostWords)
    return Error{ErrorCode::kLimit, "more than " + std::to_string(kMostWords) + " words", ""};
  // The trie of the words with failure links (Aho and Corasick 1975).
  struct Node {
    std::map<uint8_t, uint32_t> next;
    uint32_t fail = 0;
    uint32_t below = 0;  // words that begin so
    uint32_t ends = 0;   // words with which what was read may end
  };
  std::vector<Node> trie(1);
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string place = "word " + std::to_string(i + 1);
    if (words[i].empty()) return Error{ErrorCode::kInvalid, "is empty", place};
    if (const size_t bad = FindInvalidUtf8(words[i]); bad != std::string::npos)
      return Error{ErrorCode::kInvalid, "is not UTF-8", place + ", byte " + std::to_string(bad)};
    if (words[i].size() > max_states) return Error{ErrorCode::kLimit, "is too long", place};
    uint32_t at = 0;
    trie[0].below |= 1u << i;
    for (const char c : words[i]) {
      const auto byte = static_cast<uint8_t>(c);
      if (!trie[at].next.contains(byte)) {
        trie[at].next[byte] = static_cast<uint32_t>(trie.size());
        trie.emplace_back();
      }
      at = trie[at].next[byte];
      trie[at].below |= 1u << i;
    }
    trie[at].ends |= 1u << i;
  }
  const auto step = [&](uint32_t node, uint8_t byte) {
    while (true) {
      if (const auto child = trie[node].next.find(byte); child != trie[node].next.end())
        return child->second;
      if (node == 0) return 0u;
      node = trie[node].fail;
    }
  };
  std::vector<uint32_t> order = {0};
  for (size_t i = 0; i < order.size(); ++i) {
    for (const auto& [byte, child] : trie[order[i]].next) {
      if (order[i] != 0) trie[child].fail = step(trie[order[i]].fail, byte);
      trie[child].ends |= trie[trie[child].fail].ends;
      order.push_back(child);
    }
  }
  // States: words seen, and the node, cut to what may still be the beginning of another word.
  const uint32_t all = (1u << words.size()) - 1;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> index;
  std::vector<std::pair<uint32_t, uint32_t>> list;
  const auto state_of = [&](uint32_t seen, uint32_t node) {
    while (node != 0 && (trie[node].below & ~seen) == 0) node = trie[node].fail;
    const auto [known, inserted] =
        index.emplace(std::pair(seen, node), static_cast<uint32_t>(list.size()));
    if (inserted) list.emplace_back(seen, node);
    return known->second;
  };
  state_of(0, 0);
  std::vector<ExplicitAutomaton::State> states;
  for (size_t i = 0; i < list.size(); ++i) {
    if (list.size() > max_states) {
      return Error{ErrorCode::kLimit,
                   "the words make more than " + std::to_string(max_states) + " states", ""};
    }
    const auto [seen, node] = list[i];
    ExplicitAutomaton::State state;
    state.accepting = seen == all;
    for (int byte = 0; byte < 256; ++byte) {
      const uint32_t next = step(node, static_cast<uint8_t>(byte));
      const uint32_t to = state_of(seen | trie[next].ends, next);
      if (!state.edges.empty() && state.edges.back().to == to) {
        state.edges.back().last = static_cast<uint8_t>(byte);
      } else {
        state.edges.push_back({static_cast<uint8_t>(byte), static_cast<uint8_t>(byte), to});
      }
    }
    states.push_back(std::move(state));
  }
  return std::make_shared<const ExplicitAutomaton>(std::move(states));
}

}  // namespace pawl
