// From the syntax tree to terms.
//
// What stands ahead of an assertion is easy: RegexArena has Look. What stands behind it is not in
// the term, so it is carried in the translation. Every assertion about the past asks whether the
// text so far is in some regular language: the empty text for ^, Sigma* \w for \b, Sigma* B for
// (?<=B). Their derivatives, side by side, make a small deterministic automaton, the history, with
// states h. A node then is not one term but a matrix: for each state before it and each state after
// it the texts in between. Products are products of matrices, alternatives sums, an assertion about
// the past is the identity on the states where it holds and nothing elsewhere (a lookbehind whose
// body looks ahead leaves a condition on what follows, regex_derive.cc); a star is Kleene's
// algorithm on the matrix (J. H. Conway, "Regular Algebra and Finite Machines", 1971). Only the
// rows that are reached are computed. A pattern without such assertions has one state and the
// matrices are single terms.
//
// Counted repetition of a matrix has no closed form that keeps its counter. It is kept where all
// paths through the body settle in one state, or where the body does not ask about the past: then
// the states are imposed from outside, r{m,n} & (texts that lead from h to h'). Else it is unrolled
// when it is short.
#include "grammar/regex/ecma_parser.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "grammar/regex/ecma_ast.h"
#include "src/base/sorted.h"

namespace pawl {
namespace {

using Kind = EcmaNode::Kind;
using HistoryState = uint32_t;
// The texts of a node from one state of the history, by the state after them; sorted, no kNothing.
using Row = std::vector<std::pair<HistoryState, ReId>>;
constexpr ReId kEpsilon = RegexArena::kEpsilon;
constexpr ReId kNothing = RegexArena::kNothing;
constexpr ReId kAnything = RegexArena::kAnything;

constexpr size_t kMaxHistoryStates = 64;
constexpr size_t kMaxHistoryClasses = 256;
// States through which one loop may run, and iterations that may be unrolled.
constexpr size_t kMaxLoopStates = 12;
constexpr uint32_t kMaxUnrolled = 64;
// Up to here unrolling is preferred to a conjunction.
constexpr uint32_t kShortLoop = 4;

class Translator {
 public:
  Translator(RegexArena& arena, const EcmaTree& tree, const RegexSyntaxOptions& options,
             const RegexArena::WorkBudget& budget)
      : arena_(arena), tree_(tree), options_(options), budget_(budget) {}

  // What follows what a pattern takes: the end of the text, anything, or, for the body of a
  // lookbehind, what is not known yet (the term stays open).
  enum class Follows { kNone, kText, kUnknown };

  // The texts that node `root` takes whole, with anything before it where `prefix` says so.
  Result<ReId> Whole(uint32_t root, bool prefix, Follows follows) {
    word_ = arena_.Set(EcmaWord(options_.unicode_classes));
    if (!GatherFacts(root)) return *error_;
    if (!BuildHistory()) return *error_;
    std::vector<ReId> parts;
    Row before{{0, kEpsilon}};
    if (prefix) {
      const auto row = AnythingFrom(0);
      if (!row) return *error_;
      before = *row;
    }
    for (const auto& [state, text] : before) {
      const auto row = From(root, state);
      if (!row) return *error_;
      for (const auto& [end, inner] : *row) {
        const ReId closed =
            follows == Follows::kUnknown
                ? inner
                : arena_.Close(inner, follows == Follows::kText ? kAnything : kEpsilon);
        parts.push_back(arena_.Concat(text, closed));
      }
    }
    const ReId id = arena_.Or(parts);
    if (arena_.overflow()) {
      return Error{ErrorCode::kLimit, "the pattern needs more memory than the limit allows", ""};
    }
    if (budget_.exhausted()) {
      return Error{ErrorCode::kLimit, "the pattern needs more work than the limit allows", ""};
    }
    return id;
  }

 private:
  std::nullopt_t Fail(ErrorCode code, std::string message, uint32_t node) {
    if (!error_) {
      error_ = Error{code, std::move(message), "byte " + std::to_string(tree_.nodes[node].place)};
    }
    return std::nullopt;
  }

  bool GatherFacts(uint32_t root);
  bool BuildHistory();
  // The assertion of `fact` that stands first in the pattern, and the fact that tells the most
  // texts apart among the states found so far: what messages name.
  uint32_t NodeOf(size_t fact) const;
  size_t LargestFact() const;
  bool Holds(HistoryState state, uint32_t node) const {
    return arena_.Nullable(history_[state][fact_of_.at(node)]);
  }
  bool AsksPast(uint32_t node);
  HistoryState After(HistoryState state, size_t cls) const { return steps_[state][cls]; }

  std::optional<Row> From(uint32_t node, HistoryState state);
  std::optional<Row> Compute(uint32_t node, HistoryState state);
  Row SetFrom(const CodepointSet& set, HistoryState state);
  std::optional<Row> ConcatFrom(uint32_t node, HistoryState state);
  std::optional<Row> RepeatFrom(uint32_t node, HistoryState state);
  std::optional<Row> AnythingFrom(HistoryState state);
  std::optional<Row> LookFrom(uint32_t node, HistoryState state);

  // Rows of one loop body, by state; the states reached from `state` are closed under it.
  using Matrix = std::map<HistoryState, Row>;
  std::optional<Row> Star(const Matrix& body, HistoryState state);
  ReId Counted(ReId text, uint32_t least, uint32_t most);
  std::optional<Matrix> BodyFrom(uint32_t id, HistoryState state);
  // The rows of `state` and of the states that rows lead to; nullopt where there is no row.
  template <typename RowOf>
  std::optional<Matrix> Reached(HistoryState state, const RowOf& row_of) {
    Matrix reached;
    std::vector<HistoryState> pending{state};
    while (!pending.empty()) {
      const HistoryState at = pending.back();
      pending.pop_back();
      if (reached.contains(at)) continue;
      std::optional<Row> row = row_of(at);
      if (!row) return std::nullopt;
      for (const auto& [end, text] : *row) pending.push_back(end);
      reached.emplace(at, *std::move(row));
    }
    return reached;
  }
  // nullopt: it is not of that sort.
  std::optional<Row> RepeatSettling(const EcmaNode& node, const Matrix& body, HistoryState state);
  std::optional<Row> RepeatReturning(const EcmaNode& node, const Matrix& body, HistoryState state);
  std::optional<Row> Unrolled(uint32_t id, const Matrix& body, HistoryState state);
  // row * matrix of rows
  Row Product(const Row& row, const Matrix& next);
  Row Collect(std::map<HistoryState, std::vector<ReId>>& parts);
  Row Ahead(ReId look, HistoryState state) { return look == kNothing ? Row{} : Row{{state, look}}; }

  RegexArena& arena_;
  const EcmaTree& tree_;
  const RegexSyntaxOptions& options_;
  const RegexArena::WorkBudget& budget_;
  bool last_character_decides_ = true;  // the step of the history depends on its class alone
  ReId word_ = kNothing;
  std::vector<ReId> facts_;                         // languages of the text so far
  std::unordered_map<uint32_t, uint32_t> fact_of_;  // assertion node -> index in facts_
  std::vector<CodepointSet> classes_;               // characters that no fact tells apart
  std::vector<std::vector<ReId>> history_;          // state -> derivative of each fact
  std::vector<std::vector<HistoryState>> steps_;    // state, class -> state
  std::unordered_map<uint64_t, Row> known_;         // (node, state), products and loops only
  std::unordered_map<HistoryState, Row> anything_;
  std::unordered_map<uint32_t, bool> asks_past_;
  std::optional<Error> error_;
};

// Finds the assertions about the past below `root`, not looking into lookbehinds, which have their
// own.
bool Translator::GatherFacts(uint32_t root) {
  std::map<ReId, uint32_t> index;
  const auto fact = [&](uint32_t node, ReId language) {
    const auto [entry, added] = index.try_emplace(language, static_cast<uint32_t>(facts_.size()));
    if (added) facts_.push_back(language);
    fact_of_[node] = entry->second;
  };
  std::vector<uint32_t> pending{root};
  while (!pending.empty()) {
    const uint32_t id = pending.back();
    pending.pop_back();
    const EcmaNode& node = tree_.nodes[id];
    switch (node.kind) {
      case Kind::kConcat:
      case Kind::kAlternation:
        for (const uint32_t child : tree_.children(node)) pending.push_back(child);
        break;
      case Kind::kRepeat:
        pending.push_back(node.a);
        break;
      case Kind::kTextStart:
        fact(id, kEpsilon);
        break;
      case Kind::kLineStart:
        fact(id, arena_.Optional(arena_.Concat(kAnything, arena_.Set(EcmaLineTerminator()))));
        break;
      case Kind::kWordBoundary:
        fact(id, arena_.Concat(kAnything, word_));
        break;
      case Kind::kLook: {
        if (!node.behind) {
          pending.push_back(node.a);
          break;
        }
        Translator inner(arena_, tree_, options_, budget_);
        const Result<ReId> body = inner.Whole(node.a, /*prefix=*/true, Follows::kUnknown);
        if (!body.ok()) {
          error_ = body.error();
          return false;
        }
        fact(id, *body);
        break;
      }
      default:
        break;
    }
  }
  return true;
}

uint32_t Translator::NodeOf(size_t fact) const {
  uint32_t first = tree_.root;
  bool found = false;
  for (const auto& [node, index] : fact_of_) {
    if (index != fact || (found && tree_.nodes[node].place >= tree_.nodes[first].place)) continue;
    first = node;
    found = true;
  }
  return first;
}

size_t Translator::LargestFact() const {
  size_t largest = 0, most = 0;
  for (size_t fact = 0; fact < facts_.size(); ++fact) {
    std::set<ReId> texts;
    for (const std::vector<ReId>& state : history_) texts.insert(state[fact]);
    if (texts.size() > most) {
      largest = fact;
      most = texts.size();
    }
  }
  return largest;
}

bool Translator::BuildHistory() {
  history_.push_back(facts_);
  if (facts_.empty()) {
    classes_.push_back(CodepointSet::All());
    steps_.push_back({0});
    return true;
  }
  classes_.push_back(CodepointSet::All());
  for (size_t fact = 0; fact < facts_.size(); ++fact) {
    for (const CodepointSet* set : arena_.Sets(facts_[fact])) {
      std::vector<CodepointSet> refined;
      for (const CodepointSet& cls : classes_) {
        CodepointSet in = cls.Intersect(*set);
        CodepointSet out = cls.Intersect(set->Complement());
        if (!in.empty()) refined.push_back(std::move(in));
        if (!out.empty()) refined.push_back(std::move(out));
      }
      classes_ = std::move(refined);
      if (classes_.size() > kMaxHistoryClasses) {
        Fail(ErrorCode::kUnsupported, "the lookbehinds tell too many characters apart",
             NodeOf(fact));
        return false;
      }
    }
  }
  std::map<std::vector<ReId>, HistoryState> number{{history_[0], 0}};
  for (size_t state = 0; state < history_.size(); ++state) {
    std::vector<HistoryState> row;
    for (const CodepointSet& cls : classes_) {
      std::vector<ReId> next = history_[state];
      for (ReId& fact : next) {
        const char32_t c = cls.ranges()[0].lo;
        fact = arena_.IsOpen(fact) ? arena_.DeriveOpen(fact, c) : arena_.Derive(fact, c);
        if (arena_.derive_failed()) {
          Fail(ErrorCode::kLimit, "the lookbehinds need more work than the limit allows",
               NodeOf(&fact - next.data()));
          return false;
        }
      }
      const auto [entry, added] =
          number.try_emplace(next, static_cast<HistoryState>(history_.size()));
      if (added) history_.push_back(next);
      row.push_back(entry->second);
    }
    last_character_decides_ = last_character_decides_ && (state == 0 || row == steps_[0]);
    steps_.push_back(std::move(row));
    if (history_.size() > kMaxHistoryStates) {
      Fail(ErrorCode::kUnsupported, "the lookbehinds need too much memory of the past",
           NodeOf(LargestFact()));
      return false;
    }
  }
  return true;
}

// Whether an assertion about the past stands anywhere in the node.
bool Translator::AsksPast(uint32_t id) {
  if (facts_.empty()) return false;
  const EcmaNode& node = tree_.nodes[id];
  switch (node.kind) {
    case Kind::kTextStart:
    case Kind::kLineStart:
    case Kind::kWordBoundary:
      return true;
    case Kind::kLook:
      if (node.behind) return true;
      [[fallthrough]];
    case Kind::kRepeat:
      return AsksPast(node.a);
    case Kind::kConcat:
    case Kind::kAlternation: {
      if (const auto known = asks_past_.find(id); known != asks_past_.end()) return known->second;
      bool asks = false;
      for (const uint32_t child : tree_.children(node)) asks = asks || AsksPast(child);
      return asks_past_[id] = asks;
    }
    default:
      return false;
  }
}

Row Translator::Collect(std::map<HistoryState, std::vector<ReId>>& parts) {
  Row row;
  for (auto& [state, alternatives] : parts) {
    const ReId text = arena_.Or(alternatives);
    if (text != kNothing) row.emplace_back(state, text);
  }
  return row;
}

Row Translator::Product(const Row& row, const Matrix& next) {
  if (row.size() == 1) {
    const auto rows = next.find(row[0].first);
    Row out;
    if (rows == next.end()) return out;
    for (const auto& [state, text] : rows->second) {
      out.emplace_back(state, arena_.Concat(row[0].second, text));
    }
    return out;
  }
  std::map<HistoryState, std::vector<ReId>> parts;
  for (const auto& [middle, left] : row) {
    const auto rows = next.find(middle);
    if (rows == next.end()) continue;
    for (const auto& [state, right] : rows->second) {
      parts[state].push_back(arena_.Concat(left, right));
    }
  }
  return Collect(parts);
}

std::optional<Row> Translator::From(uint32_t node, HistoryState state) {
  const Kind kind = tree_.nodes[node].kind;
  const bool remembered = kind == Kind::kConcat || kind == Kind::kAlternation ||
                          kind == Kind::kRepeat || kind == Kind::kLook;
  if (!remembered) return Compute(node, state);
  const uint64_t key = uint64_t{node} << 32 | state;
  if (const auto known = known_.find(key); known != known_.end()) return known->second;
  auto row = Compute(node, state);
  if (arena_.overflow()) {
    return Fail(ErrorCode::kLimit, "the pattern needs more memory than the limit allows", node);
  }
  if (budget_.exhausted()) {
    return Fail(ErrorCode::kLimit, "the pattern needs more work than the limit allows", node);
  }
  if (row) known_.emplace(key, *row);
  return row;
}

std::optional<Row> Translator::Compute(uint32_t id, HistoryState state) {
  const EcmaNode& node = tree_.nodes[id];
  switch (node.kind) {
    case Kind::kEmpty:
      return Row{{state, kEpsilon}};
    case Kind::kChar: {
      HistoryState next = 0;
      if (!facts_.empty()) {
        size_t cls = 0;
        while (!classes_[cls].Contains(node.a)) ++cls;
        next = After(state, cls);
      }
      const ReId text = arena_.Char(node.a);
      return text == kNothing ? Row{} : Row{{next, text}};
    }
    case Kind::kSet:
      return SetFrom(tree_.sets[node.a], state);
    case Kind::kConcat:
      return ConcatFrom(id, state);
    case Kind::kAlternation: {
      std::map<HistoryState, std::vector<ReId>> parts;
      for (const uint32_t child : tree_.children(node)) {
        const auto row = From(child, state);
        if (!row) return std::nullopt;
        for (const auto& [end, text] : *row) parts[end].push_back(text);
      }
      return Collect(parts);
    }
    case Kind::kRepeat:
      return RepeatFrom(id, state);
    case Kind::kLook:
      return LookFrom(id, state);
    case Kind::kTextStart:
    case Kind::kLineStart:
      return Holds(state, id) ? Row{{state, kEpsilon}} : Row{};
    case Kind::kTextEnd:
      return Ahead(arena_.Look(kEpsilon), state);
    case Kind::kLineEnd: {
      const ReId line = arena_.Concat(arena_.Set(EcmaLineTerminator()), kAnything);
      return Ahead(arena_.Look(arena_.Optional(line)), state);
    }
    case Kind::kWordBoundary: {
      const ReId word_next = arena_.Concat(word_, kAnything);
      const bool must_be_word = Holds(state, id) == node.negative;
      return Ahead(arena_.Look(must_be_word ? word_next : arena_.Not(word_next)), state);
    }
    case Kind::kCapture:  // ResolveReferences took them out
    case Kind::kReference:
      break;
  }
  return std::nullopt;
}

Row Translator::SetFrom(const CodepointSet& set, HistoryState state) {
  if (facts_.empty()) {
    const ReId text = arena_.Set(set);
    return text == kNothing ? Row{} : Row{{0, text}};
  }
  std::map<HistoryState, std::vector<ReId>> parts;
  for (size_t cls = 0; cls < classes_.size(); ++cls) {
    parts[After(state, cls)].push_back(arena_.Set(classes_[cls].Intersect(set)));
  }
  return Collect(parts);
}

std::optional<Row> Translator::ConcatFrom(uint32_t id, HistoryState state) {
  // Forward: which states are reached before each factor; backward: the product, built from the
  // right so that long texts cost linear time.
  const auto children = tree_.children(tree_.nodes[id]);
  if (facts_.empty()) {  // one state: a row is a text
    std::vector<ReId> texts;
    texts.reserve(children.size());
    for (const uint32_t child : children) {
      const auto row = From(child, state);
      if (!row || row->empty()) return row;
      texts.push_back(row->front().second);
    }
    ReId product = kEpsilon;
    for (size_t i = texts.size(); i-- > 0;) product = arena_.Concat(texts[i], product);
    return product == kNothing ? Row{} : Row{{state, product}};
  }
  std::vector<Matrix> rows(children.size());
  std::vector<HistoryState> reached{state};
  for (size_t i = 0; i < children.size(); ++i) {
    std::vector<HistoryState> next;
    for (const HistoryState at : reached) {
      auto row = From(children[i], at);
      if (!row) return std::nullopt;
      for (const auto& [end, text] : *row) next.push_back(end);
      rows[i].emplace(at, std::move(*row));
    }
    SortUnique(next);
    reached = std::move(next);
  }
  Matrix product;
  for (const HistoryState end : reached) product.emplace(end, Row{{end, kEpsilon}});
  for (size_t i = children.size(); i-- > 0;) {
    Matrix longer;
    for (const auto& [at, row] : rows[i]) longer.emplace(at, Product(row, product));
    product = std::move(longer);
  }
  return product[state];
}

std::optional<Row> Translator::LookFrom(uint32_t id, HistoryState state) {
  const EcmaNode& node = tree_.nodes[id];
  if (node.behind) {
    const ReId rest = arena_.RestAfter(history_[state][fact_of_.at(id)]);
    return Ahead(arena_.Look(node.negative ? arena_.Not(rest) : rest), state);
  }
  const auto body = From(node.a, state);
  if (!body) return std::nullopt;
  std::vector<ReId> parts;
  for (const auto& [end, text] : *body) parts.push_back(arena_.Close(text, kAnything));
  const ReId rest = arena_.Or(parts);
  return Ahead(arena_.Look(node.negative ? arena_.Not(rest) : rest), state);
}

std::optional<Row> Translator::AnythingFrom(HistoryState state) {
  if (facts_.empty()) return Row{{0, kAnything}};
  if (const auto known = anything_.find(state); known != anything_.end()) return known->second;
  const auto body = Reached(
      state, [&](HistoryState at) { return std::optional(SetFrom(CodepointSet::All(), at)); });
  const auto row = Star(*body, state);
  if (!row)
    return Fail(ErrorCode::kUnsupported, "the lookbehinds need too much memory of the past",
                NodeOf(LargestFact()));
  anything_.emplace(state, *row);
  return row;
}

// X_s = I_s | sum over t of body[s][t] X_t, solved for X_state by elimination with Arden's rule.
std::optional<Row> Translator::Star(const Matrix& body, HistoryState state) {
  if (body.size() > kMaxLoopStates) return std::nullopt;
  std::vector<HistoryState> states{state};
  for (const auto& [at, row] : body) {
    if (at != state) states.push_back(at);
  }
  const size_t n = states.size();
  std::vector<std::vector<ReId>> a(n, std::vector<ReId>(n, kNothing));
  std::vector<std::vector<ReId>> out(n, std::vector<ReId>(n, kNothing));
  for (size_t i = 0; i < n; ++i) {
    out[i][i] = kEpsilon;
    for (const auto& [end, text] : body.at(states[i])) {
      const auto j = std::find(states.begin(), states.end(), end) - states.begin();
      a[i][static_cast<size_t>(j)] = text;
    }
  }
  for (size_t k = n; k-- > 0;) {
    const ReId star = arena_.Star(a[k][k]);
    a[k][k] = kNothing;
    for (ReId& text : a[k]) text = arena_.Concat(star, text);
    for (ReId& text : out[k]) text = arena_.Concat(star, text);
    for (size_t i = 0; i < k; ++i) {
      const ReId via = a[i][k];
      if (via == kNothing) continue;
      a[i][k] = kNothing;
      for (size_t j = 0; j < k; ++j) a[i][j] = arena_.Or(a[i][j], arena_.Concat(via, a[k][j]));
      for (size_t j = 0; j < n; ++j)
        out[i][j] = arena_.Or(out[i][j], arena_.Concat(via, out[k][j]));
    }
  }
  std::map<HistoryState, std::vector<ReId>> parts;
  for (size_t j = 0; j < n; ++j) parts[states[j]].push_back(out[0][j]);
  return Collect(parts);
}

ReId Translator::Counted(ReId text, uint32_t least, uint32_t most) {
  return arena_.Repeat(text, least,
                       most == kEcmaInfinite ? std::nullopt : std::optional<uint32_t>(most));
}

namespace {

// A count of iterations after one of them.
uint32_t Fewer(uint32_t count) { return count == 0 || count == kEcmaInfinite ? count : count - 1; }

}  // namespace

// Where the body leads from `state`, and from there, and so on.
std::optional<Translator::Matrix> Translator::BodyFrom(uint32_t id, HistoryState state) {
  const EcmaNode& node = tree_.nodes[id];
  auto body = Reached(state, [&](HistoryState at) { return From(node.a, at); });
  if (!body || body->at(state).empty()) return body;
  // A body that can be empty only under a condition (it looks ahead) is tried again at each
  // iteration before a character is read; that goes as deep as the counter.
  for (const auto& [at, row] : *body) {
    for (const auto& [end, text] : row) {
      if (arena_.IsOpen(text) && arena_.MinLength(text) == 0 && node.min > kMaxUnrolled) {
        return Fail(ErrorCode::kUnsupported,
                    "what looks ahead (a lookahead or a word boundary) and can stand alone, "
                    "repeated more than " +
                        std::to_string(kMaxUnrolled) + " times",
                    id);
      }
    }
  }
  return body;
}

// From `state` the first character leads to a state that the body keeps.
std::optional<Row> Translator::RepeatSettling(const EcmaNode& node, const Matrix& body,
                                              HistoryState state) {
  const Row& first = body.at(state);
  bool empty_allowed = node.min == 0;
  uint32_t least = Fewer(node.min);
  for (const auto& [end, text] : first) {
    if (end == state) {
      if (text != kEpsilon) return std::nullopt;
      empty_allowed = true;  // iterations may be empty, so there need not be min others
      least = 0;
    } else {
      const Row& then = body.at(end);
      if (!then.empty() && (then.size() != 1 || then[0].first != end)) return std::nullopt;
    }
  }
  std::map<HistoryState, std::vector<ReId>> parts;
  if (empty_allowed) parts[state].push_back(kEpsilon);
  for (const auto& [end, text] : first) {
    if (end == state) continue;
    const Row& then = body.at(end);
    const ReId again = then.empty() ? (least == 0 ? kEpsilon : kNothing)
                                    : Counted(then[0].second, least, Fewer(node.max));
    parts[end].push_back(arena_.Concat(text, again));
  }
  return Collect(parts);
}

// The body either comes back to `state` or leads where it cannot go on.
std::optional<Row> Translator::RepeatReturning(const EcmaNode& node, const Matrix& body,
                                               HistoryState state) {
  const Row& first = body.at(state);
  ReId again = kNothing;
  for (const auto& [end, text] : first) {
    if (end == state) {
      again = text;
    } else if (!body.at(end).empty()) {
      return std::nullopt;
    }
  }
  std::map<HistoryState, std::vector<ReId>> parts;
  parts[state].push_back(Counted(again, node.min, node.max));
  const ReId before = Counted(again, Fewer(node.min), Fewer(node.max));
  for (const auto& [end, text] : first) {
    if (end != state) parts[end].push_back(arena_.Concat(before, text));
  }
  return Collect(parts);
}

std::optional<Row> Translator::RepeatFrom(uint32_t id, HistoryState state) {
  const EcmaNode& node = tree_.nodes[id];
  const uint32_t min = node.min, max = node.max;
  if (max == 0) return Row{{state, kEpsilon}};
  const std::optional<Matrix> found = BodyFrom(id, state);
  if (!found) return std::nullopt;
  const Matrix& body = *found;
  const Row& first = body.at(state);
  if (first.empty()) return min == 0 ? Row{{state, kEpsilon}} : Row{};
  // One state throughout.
  if (body.size() == 1) {
    const ReId text = Counted(first[0].second, min, max);
    return text == kNothing ? Row{} : Row{{state, text}};
  }
  if (auto row = RepeatSettling(node, body, state)) return row;
  if (auto row = RepeatReturning(node, body, state)) return row;
  std::vector<ReId> texts;
  for (const auto& [end, text] : first) texts.push_back(text);
  // Where the last character alone decides the state (anchors, word boundaries, lookbehind by one
  // character), the last iteration decides it: r{m,n} = r{m-1,n-1} r.
  const bool asks_past = AsksPast(node.a);
  if (!asks_past && last_character_decides_ &&
      std::ranges::all_of(texts, [&](ReId text) { return arena_.MinLength(text) > 0; })) {
    const ReId before = Counted(arena_.Or(texts), Fewer(min), Fewer(max));
    std::map<HistoryState, std::vector<ReId>> parts;
    if (min == 0) parts[state].push_back(kEpsilon);
    for (const auto& [end, text] : first) parts[end].push_back(arena_.Concat(before, text));
    return Collect(parts);
  }
  // Short loops and stars: matrix powers.
  const uint32_t powers = max == kEcmaInfinite ? min : max;
  if (powers <= kShortLoop) return Unrolled(id, body, state);
  // A body that does not ask about the past is the same in all states; they are imposed on it.
  if (const ReId all = asks_past ? kNothing : arena_.Or(texts); !asks_past && !arena_.IsOpen(all)) {
    const ReId repeated = Counted(all, min, max);
    const auto anything = AnythingFrom(state);
    if (!anything) return std::nullopt;
    Row row;
    for (const auto& [end, text] : *anything) {
      const ReId both = arena_.And(repeated, text);
      if (both != kNothing) row.emplace_back(end, both);
    }
    return row;
  }
  if (powers <= kMaxUnrolled) return Unrolled(id, body, state);
  return Fail(ErrorCode::kUnsupported, "an assertion in a repetition with these counts", id);
}

// M^min M*, or M^min (1 | M)^(max-min).
std::optional<Row> Translator::Unrolled(uint32_t id, const Matrix& body, HistoryState state) {
  const uint32_t min = tree_.nodes[id].min;
  const uint32_t max = tree_.nodes[id].max;
  const bool infinite = max == kEcmaInfinite;
  Matrix rest;
  for (const auto& [at, row] : body) {
    if (!infinite) {
      rest.emplace(at, Row{{at, kEpsilon}});
      continue;
    }
    const auto star = Star(body, at);
    if (!star) {
      return Fail(ErrorCode::kUnsupported, "a loop through too many states of the past", id);
    }
    rest.emplace(at, *star);
  }
  for (uint32_t i = infinite ? min : max; i-- > 0;) {
    Matrix longer;
    for (const auto& [at, row] : body) {
      Row product = Product(row, rest);
      if (!infinite && i >= min) {
        std::map<HistoryState, std::vector<ReId>> parts;
        parts[at].push_back(kEpsilon);
        for (const auto& [end, text] : product) parts[end].push_back(text);
        product = Collect(parts);
      }
      longer.emplace(at, std::move(product));
    }
    rest = std::move(longer);
    if (arena_.overflow() || budget_.exhausted()) break;  // From() reports it
  }
  return rest.at(state);
}

}  // namespace

Result<ReId> ParseEcma(RegexArena& arena, std::string_view pattern,
                       const RegexSyntaxOptions& options) {
  const Result<EcmaTree> tree = ParseEcmaSyntax(pattern, options);
  if (!tree.ok()) return tree.error();
  const RegexArena::WorkBudget budget(
      arena, options.max_work + options.max_work_per_byte * pattern.size());
  Translator translator(arena, *tree, options, budget);
  using Follows = Translator::Follows;
  return translator.Whole(tree->root, options.search,
                          options.search ? Follows::kText : Follows::kNone);
}

}  // namespace pawl
