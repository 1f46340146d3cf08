// A stack of states is all the history there is: states are values that never go away while
// somebody has them, so that taking a step back is forgetting the last one, and a clone is a copy
// of the stack. When the grammar has started again to free memory, or because an exception left a
// question in the middle, the steps are taken again there.
//
// A batch and a tree of drafts are loops over the same question, "the mask of this position". The
// tree's positions are found parents first whatever the order of the nodes, by climbing from each
// node to the nearest one that is known.
#include "pawl/matcher.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>

#include "grammar/grammar_access.h"
#include "grammar/vocabulary_tables.h"
#include "src/base/thread_pool.h"

namespace pawl {
namespace {

bool GetBit(std::span<const uint32_t> row, TokenId token) {
  return (row[static_cast<size_t>(token) / 32] >> (token % 32) & 1) != 0;
}

void SetBit(std::span<uint32_t> row, TokenId token, bool value) {
  const uint32_t bit = 1u << (token & 31);
  uint32_t& word = row[static_cast<size_t>(token) >> 5];
  word = value ? word | bit : word & ~bit;
}

std::vector<TokenId> LongestTokens(const Vocabulary& vocabulary, std::string_view bytes) {
  std::vector<TokenId> tokens;
  while (!bytes.empty()) {
    const TokenId token = vocabulary.LongestPrefix(bytes);
    if (token == kNoToken) break;
    tokens.push_back(token);
    bytes.remove_prefix(vocabulary.bytes(token).size());
  }
  return tokens;
}

}  // namespace

Matcher::Matcher(Grammar grammar)
    : grammar_(grammar.unbound().empty() ? std::move(grammar) : GrammarAccess::Nothing(grammar)) {
  const auto ends = grammar_.vocabulary().end_tokens();
  end_tokens_.assign(ends.begin(), ends.end());
  history_.push_back({grammar_.Start()});
}

Result<Matcher> Matcher::Create(Grammar grammar, const MatcherOptions& options) {
  const int size = grammar.vocabulary().size();
  for (const TokenId token : options.end_tokens) {
    if (token < 0 || token >= size) {
      return Error{
          ErrorCode::kInvalid,
          "end token " + std::to_string(token) + " is outside 0.." + std::to_string(size - 1),
          "end_tokens"};
    }
  }
  if (!grammar.unbound().empty()) return GrammarAccess::UnboundError(grammar);
  Matcher matcher(std::move(grammar));
  matcher.terminate_without_end_token_ = options.terminate_without_end_token;
  if (options.terminate_without_end_token) {
    matcher.own_end_tokens_ = true;
    matcher.end_tokens_.clear();
  } else if (!options.end_tokens.empty()) {
    matcher.own_end_tokens_ = true;
    matcher.end_tokens_ = options.end_tokens;
    std::sort(matcher.end_tokens_.begin(), matcher.end_tokens_.end());
  }
  return matcher;
}

bool Matcher::IsEnd(TokenId token) const {
  return std::binary_search(end_tokens_.begin(), end_tokens_.end(), token);
}

std::optional<Matcher::Position> Matcher::After(const Position& position, TokenId token) const {
  if (position.ended) return std::nullopt;
  if (IsEnd(token)) {
    if (position.state.accepting())
      return Position{position.state, true, token, position.bytes_end};
    // Elsewhere it is what the grammar takes it for, which may name a special token but has no
    // other way to mean one.
    if (!grammar_.vocabulary().is_special(token)) return std::nullopt;
  }
  std::optional<State> next = position.state.Advance(token);
  if (!next) return std::nullopt;
  return Position{*std::move(next), false, token, position.bytes_end};
}

std::vector<Matcher::Position> Matcher::Retaken() const {
  std::vector<Position> renewed;
  renewed.reserve(history_.size() + 1);
  renewed.push_back({grammar_.Start()});
  for (size_t i = 1; i < history_.size();) {
    const Position& step = history_[i];
    const State& at = renewed.back().state;
    const size_t begin = history_[i - 1].bytes_end;
    std::optional<State> next =
        step.ended ? at
        : step.token == kNoToken
            ? at.Advance(std::string_view(bytes_).substr(begin, step.bytes_end - begin))
            : at.Advance(step.token);
    if (at.lost()) {  // meanwhile
      renewed.assign(1, {grammar_.Start()});
      i = 1;
      continue;
    }
    if (!next) {
      // Only where there is no machine to take them again in; see GrammarOwner.
      if (!state().lost()) return history_;
      next = at;
    }
    renewed.push_back({*std::move(next), step.ended, step.token, step.bytes_end});
    ++i;
  }
  GrammarAccess::Replayed(renewed.back().state);
  return renewed;
}

void Matcher::Rebuild() { history_ = Retaken(); }

// What was answered before the state was lost is right, so looking afterwards is enough.
template <typename Ask>
auto Matcher::Asked(const Ask& ask) const {
  auto answer = ask(history_.back());
  bool lost = state().lost();
  while (lost) {
    const std::vector<Position> steps = Retaken();
    answer = ask(steps.back());
    lost = steps.back().state.lost();
  }
  return answer;
}

bool Matcher::accepting() const {
  return Asked([](const Position& at) { return at.state.accepting(); });
}

std::optional<float> Matcher::temperature() const {
  return Asked([](const Position& at) { return at.state.temperature(); });
}

std::optional<std::string> Matcher::CompletionBytes() const {
  return Asked([](const Position& at) { return at.state.CompletionBytes(); });
}

std::optional<std::vector<TokenId>> Matcher::CompletionTokens() const {
  return Asked([](const Position& at) { return at.state.CompletionTokens(); });
}

size_t Matcher::MatchedPrefix(std::string_view bytes) const {
  return Asked([&](const Position& at) { return at.state.MatchedPrefix(bytes); });
}

bool Matcher::Accept(TokenId token) {
  for (;;) {
    if (state().stale()) Rebuild();
    std::optional<Position> next = After(history_.back(), token);
    if (state().lost()) continue;
    if (!next) return false;
    history_.push_back(*std::move(next));
    return true;
  }
}

bool Matcher::AcceptBytes(std::string_view bytes) {
  if (history_.back().ended) return false;
  for (;;) {
    if (state().stale()) Rebuild();
    std::optional<State> next = state().Advance(bytes);
    if (state().lost()) continue;
    if (!next) return false;
    history_.reserve(history_.size() + 1);
    bytes_ += bytes;
    history_.push_back({*std::move(next), false, kNoToken, bytes_.size()});
    return true;
  }
}

bool Matcher::Rollback(size_t steps) {
  if (steps >= history_.size()) return false;
  history_.erase(history_.end() - static_cast<std::ptrdiff_t>(steps), history_.end());
  bytes_.resize(history_.back().bytes_end);
  return true;
}

void Matcher::Reset() {
  history_.erase(history_.begin() + 1, history_.end());
  bytes_.clear();
  if (state().stale()) history_.back().state = grammar_.Start();
}

Result<std::vector<Capture>> Matcher::Captures() const {
  std::vector<OutputPiece> pieces;
  for (size_t i = 1; i < history_.size(); ++i) {
    const Position& step = history_[i];
    if (step.ended) break;
    pieces.push_back({.token = step.token});
    if (step.token != kNoToken) continue;
    const size_t begin = history_[i - 1].bytes_end;
    pieces.back().bytes = bytes_.substr(begin, step.bytes_end - begin);
  }
  return grammar_.FindCaptures(pieces);
}

bool Matcher::TerminatedAt(const Position& position) const {
  if (position.ended) return true;
  if (!terminate_without_end_token_ || !position.state.accepting()) return false;
  // Complete, and the mask has nothing but the vocabulary's end tokens, none of which goes on.
  if (GrammarAccess::NamesEndTokens(position.state)) {
    for (const TokenId token : grammar_.vocabulary().end_tokens()) {
      if (position.state.Advance(token)) return false;
    }
  }
  return static_cast<size_t>(position.state.mask()->count()) ==
         grammar_.vocabulary().end_tokens().size();
}

bool Matcher::terminated() const {
  return Asked([this](const Position& at) { return TerminatedAt(at); });
}

std::optional<bool> Matcher::FillKnownMaskOf(const Position& position,
                                             std::span<uint32_t> row) const {
  row = row.first(static_cast<size_t>(grammar_.vocabulary().mask_words()));
  if (position.ended) {
    std::ranges::fill(row, 0u);
    return false;
  }
  const int64_t count = position.state.CopyKnownMask(row);
  if (count < 0) return std::nullopt;
  return WithOwnEndTokens(position, row, count > 0);
}

bool Matcher::FillMaskOf(const Position& position, std::span<uint32_t> row) const {
  if (const std::optional<bool> filled = FillKnownMaskOf(position, row)) return *filled;
  return CopyMask(position, *position.state.mask(), row);
}

bool Matcher::CopyMask(const Position& position, const Mask& mask, std::span<uint32_t> row) const {
  row = row.first(mask.words().size());
  std::ranges::copy(mask.words(), row.begin());
  return WithOwnEndTokens(position, row, mask.count() > 0);
}

bool Matcher::WithOwnEndTokens(const Position& position, std::span<uint32_t> row, bool any) const {
  if (!own_end_tokens_) return any;
  // A vocabulary without end tokens cannot tell by its mask where the text may end.
  const auto theirs = grammar_.vocabulary().end_tokens();
  if (GrammarAccess::NamesEndTokens(position.state)) {
    // A bit of theirs may mean that the output ends, or that it goes on.
    for (const auto tokens : {theirs, std::span<const TokenId>(end_tokens_)}) {
      for (const TokenId token : tokens) SetBit(row, token, After(position, token).has_value());
    }
    return std::ranges::any_of(row, [](uint32_t word) { return word != 0; });
  }
  const bool accepting = theirs.empty() ? position.state.accepting() : GetBit(row, theirs.front());
  for (const TokenId token : theirs) SetBit(row, token, false);
  for (const TokenId token : end_tokens_) SetBit(row, token, accepting);
  return std::ranges::any_of(row, [](uint32_t word) { return word != 0; });
}

bool Matcher::FillMask(std::span<uint32_t> row) const {
  return Asked([&](const Position& at) { return FillMaskOf(at, row); });
}

size_t Matcher::ValidateTokens(std::span<const TokenId> tokens) const {
  return Asked([&](Position position) {
    size_t taken = 0;
    for (const TokenId token : tokens) {
      std::optional<Position> next = After(position, token);
      if (!next) break;
      position = *std::move(next);
      ++taken;
    }
    return taken;
  });
}

std::string Matcher::ForcedBytes(size_t limit) const {
  return Asked(
      [&](const Position& at) { return at.ended ? std::string() : at.state.forced(limit); });
}

std::vector<TokenId> Matcher::ForcedTokens(size_t limit, const Encoder& encode) const {
  const Vocabulary& vocabulary = grammar_.vocabulary();
  const std::string bytes = ForcedBytes(limit);
  if (bytes.empty()) return {};
  std::vector<TokenId> tokens;
  if (encode) {
    tokens = SpellForced(vocabulary, encode, bytes);
  } else {
    // Without a token for some byte, what stands before that byte is all there is to spell.
    size_t spelled = 0;
    for (const TokenId token : LongestTokens(vocabulary, bytes))
      spelled += vocabulary.bytes(token).size();
    tokens = SpellForced(
        vocabulary, [&](std::string_view text) { return LongestTokens(vocabulary, text); },
        std::string_view(bytes).substr(0, spelled));
  }
  // An end token of the caller's whose bytes fit as text is none here.
  tokens.resize(ValidateTokens(tokens));
  return tokens;
}

BatchFiller::BatchFiller(int threads) : pool_(std::make_unique<ThreadPool>(threads)) {}
BatchFiller::~BatchFiller() = default;
BatchFiller::BatchFiller(BatchFiller&&) noexcept = default;
BatchFiller& BatchFiller::operator=(BatchFiller&&) noexcept = default;
int BatchFiller::threads() const { return pool_->size(); }

namespace {

// Calls fn(i) for 0 ... n - 1. Every thread begins with a part of its own, the same one in each
// call, and then helps the others.
template <typename Fn>
void ForEach(ThreadPool& pool, size_t n, const Fn& fn) {
  struct alignas(64) Part {
    std::atomic<size_t> next;
    size_t end;
  };
  std::vector<Part> parts(static_cast<size_t>(pool.size()));
  for (size_t p = 0; p < parts.size(); ++p) {
    parts[p].next.store(n * p / parts.size(), std::memory_order_relaxed);
    parts[p].end = n * (p + 1) / parts.size();
  }
  constexpr size_t kGrain = 4;
  pool.ParallelFor(pool.size(), 1, [&](int64_t, int64_t, int thread) {
    for (size_t k = 0; k < parts.size(); ++k) {
      Part& part = parts[(static_cast<size_t>(thread) + k) % parts.size()];
      for (size_t begin;
           (begin = part.next.fetch_add(kGrain, std::memory_order_relaxed)) < part.end;) {
        for (size_t i = begin; i < std::min(begin + kGrain, part.end); ++i) fn(i);
      }
    }
  });
}

// Rows whose masks have to be made. Those of one state get one mask; states whose machine is the
// same one stand together.
struct Waiting {
  struct Row {
    GrammarAccess::Place place;
    size_t row;
    auto operator<=>(const Row&) const = default;
  };
  std::vector<Row> rows;
  std::vector<size_t> states;    // where each begins in `rows`, and the end
  std::vector<size_t> machines;  // where each begins in `states`

  void Group() {
    std::ranges::sort(rows);
    for (size_t i = 0; i < rows.size(); ++i) {
      if (i > 0 && rows[i].place == rows[i - 1].place) continue;
      if (i == 0 || rows[i].place.lock != rows[i - 1].place.lock) machines.push_back(states.size());
      states.push_back(i);
    }
    states.push_back(rows.size());
  }
};

}  // namespace

size_t BatchFiller::Fill(std::span<const Row> rows) const {
  std::atomic<size_t> empty{0};
  const auto count = [&](bool any) {
    if (!any) empty.fetch_add(1, std::memory_order_relaxed);
  };
  std::vector<uint8_t> unknown(rows.size(), 0);
  ForEach(*pool_, rows.size(), [&](size_t i) {
    const Matcher* matcher = rows[i].matcher;
    if (matcher == nullptr) return;
    const auto filled = matcher->FillKnownMaskOf(matcher->history_.back(), rows[i].words);
    const bool known = filled && !matcher->state().lost();
    unknown[i] = known ? 0 : 1;
    if (known) count(*filled);
  });
  Waiting waiting;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (unknown[i] != 0)
      waiting.rows.push_back({GrammarAccess::PlaceOf(rows[i].matcher->history_.back().state), i});
  }
  if (waiting.rows.empty()) return empty.load();
  waiting.Group();
  const auto& list = waiting.rows;
  const auto &states = waiting.states, &machines = waiting.machines;
  // A machine to a thread as long as there are some left, since it answers one thread at a time;
  // then threads with nothing to do help the others with what is not under its lock, unless that is
  // little. Some states at once, so that the machine does not move from one processor's cache to
  // the other's so often.
  constexpr size_t kMostAtOnce = 4;
  // In words of a mask: of smaller ones, what is not under the lock takes less time than the lock.
  constexpr size_t kWorthSharing = 1024;
  std::vector<std::atomic<size_t>> next(machines.size());
  for (size_t m = 0; m < machines.size(); ++m) next[m].store(machines[m]);
  const auto work = [&](size_t m, bool helping) {
    const size_t end = m + 1 < machines.size() ? machines[m + 1] : states.size() - 1;
    std::array<Machine::Key, kMostAtOnce> keys;
    std::array<std::shared_ptr<const Mask>, kMostAtOnce> masks;
    const auto place = [&](size_t s) -> const GrammarAccess::Place& {
      return list[states[s]].place;
    };
    bool gains = false;  // helping does
    int patience = 2;    // the first states of a grammar take the longest
    for (size_t s = next[m].load(std::memory_order_relaxed); s < end;) {
      const size_t share = helping && !gains ? 1 : (end - s) / (2 * static_cast<size_t>(threads()));
      const size_t most = std::min(s + std::clamp<size_t>(share, 1, kMostAtOnce), end);
      size_t last = s + 1;
      while (last < most && place(last).grammar == place(s).grammar) ++last;
      if (!next[m].compare_exchange_weak(s, last, std::memory_order_relaxed)) continue;
      const size_t n = last - s;
      for (size_t k = 0; k < n; ++k) keys[k] = place(s + k).key;
      const bool worth = GrammarAccess::MakeMasks(place(s).grammar, std::span(keys).first(n),
                                                  std::span(masks).first(n));
      for (size_t i = states[s], k = 0; i < states[last]; ++i) {
        if (i == states[s + k + 1]) ++k;
        const Matcher& matcher = *rows[list[i].row].matcher;
        const Row& row = rows[list[i].row];
        const bool any = matcher.CopyMask(matcher.history_.back(), *masks[k], row.words);
        count(matcher.state().lost() ? matcher.FillMask(row.words) : any);
      }
      gains |= worth;
      if (helping && !worth && --patience == 0) return;
      s = next[m].load(std::memory_order_relaxed);
    }
  };
  const auto own = static_cast<int64_t>(machines.size());
  const bool share =
      std::ranges::any_of(rows, [](const Row& row) { return row.words.size() >= kWorthSharing; });
  pool_->ParallelFor(own + (share ? threads() - 1 : 0), 1, [&](int64_t turn, int64_t, int) {
    if (turn < own) {
      work(static_cast<size_t>(turn), false);
    } else {
      for (size_t m = 0; m < machines.size(); ++m) work(m, true);
    }
  });
  return empty.load();
}

size_t BatchFiller::Fill(std::span<const Matcher* const> matchers, uint32_t* rows,
                         size_t stride) const {
  std::vector<Row> list(matchers.size());
  for (size_t i = 0; i < matchers.size(); ++i)
    list[i] = {matchers[i], {rows + i * stride, matchers[i] == nullptr ? 0 : stride}};
  return Fill(list);
}

namespace {

// The nodes such that each comes after its parent; fewer than there are when some are their own
// ancestors.
std::vector<int32_t> ParentsFirst(std::span<const int32_t> parents) {
  enum : uint8_t { kNew, kClimbed, kPlaced };
  std::vector<uint8_t> seen(parents.size(), kNew);
  std::vector<int32_t> order;
  std::vector<int32_t> path;
  for (size_t i = 0; i < parents.size(); ++i) {
    auto node = static_cast<int32_t>(i);
    while (node >= 0 && seen[static_cast<size_t>(node)] == kNew) {
      seen[static_cast<size_t>(node)] = kClimbed;
      path.push_back(node);
      node = parents[static_cast<size_t>(node)];
    }
    if (node >= 0 && seen[static_cast<size_t>(node)] == kClimbed) return order;
    for (; !path.empty(); path.pop_back()) {
      seen[static_cast<size_t>(path.back())] = kPlaced;
      order.push_back(path.back());
    }
  }
  return order;
}

}  // namespace

Result<size_t> FillTreeMasks(const Matcher& matcher, std::span<const TokenId> tokens,
                             std::span<const int32_t> parents, uint32_t* rows, size_t stride,
                             std::span<uint8_t> accepted) {
  const size_t n = tokens.size();
  if (parents.size() != n || (!accepted.empty() && accepted.size() != n))
    return Error{ErrorCode::kInvalid, "a draft tree needs as many parents as tokens", ""};
  for (size_t i = 0; i < n; ++i) {
    if (parents[i] < -1 || parents[i] >= static_cast<int64_t>(n)) {
      return Error{ErrorCode::kInvalid,
                   "parent " + std::to_string(parents[i]) + " is outside -1.." +
                       std::to_string(static_cast<int64_t>(n) - 1),
                   "node " + std::to_string(i)};
    }
  }
  const std::vector<int32_t> order = ParentsFirst(parents);
  if (order.size() != n) {
    return Error{ErrorCode::kInvalid, "a node of the draft tree is its own ancestor", ""};
  }
  const auto words = static_cast<size_t>(matcher.grammar().vocabulary().mask_words());
  return matcher.Asked([&](const Matcher::Position& root) {
    std::vector<std::optional<Matcher::Position>> positions(n);
    size_t fit = 0;
    for (const int32_t node : order) {
      const auto i = static_cast<size_t>(node);
      const std::optional<Matcher::Position> above =
          parents[i] < 0 ? root : positions[static_cast<size_t>(parents[i])];
      if (above) positions[i] = tokens[i] == kNoToken ? above : matcher.After(*above, tokens[i]);
      const std::span<uint32_t> row(rows + i * stride, words);
      if (positions[i]) {
        ++fit;
        matcher.FillMaskOf(*positions[i], row);
      } else {
        std::ranges::fill(row, 0u);
      }
      if (!accepted.empty()) accepted[i] = positions[i] ? 1 : 0;
    }
    return fit;
  });
}

Result<std::vector<int32_t>> DraftTreeParents(std::span<const int32_t> next_token,
                                              std::span<const int32_t> next_sibling) {
  const size_t n = next_token.size();
  if (next_sibling.size() != n)
    return Error{ErrorCode::kInvalid, "next_token and next_sibling differ in length", ""};
  std::vector<int32_t> parents(n, -1);
  std::vector<uint8_t> listed(n, 0);  // as somebody's first child or sibling
  for (size_t i = 0; i < n; ++i) {
    for (const int32_t other : {next_token[i], next_sibling[i]}) {
      if (other == -1) continue;
      if (other < 0 || static_cast<size_t>(other) >= n) {
        return Error{ErrorCode::kInvalid, "no such node: " + std::to_string(other),
                     "node " + std::to_string(i)};
      }
      if (listed[static_cast<size_t>(other)]++ != 0) {
        return Error{ErrorCode::kInvalid, "listed twice in the draft tree",
                     "node " + std::to_string(other)};
      }
    }
  }
  // Nothing is listed twice, so what no unlisted node leads to lies on a circle.
  std::vector<size_t> todo;
  for (size_t i = 0; i < n; ++i) {
    if (listed[i] == 0) todo.push_back(i);
  }
  std::vector<uint8_t> reached(n, 0);
  while (!todo.empty()) {
    const size_t at = todo.back();
    todo.pop_back();
    reached[at] = 1;
    for (const int32_t other : {next_token[at], next_sibling[at]}) {
      if (other != -1) todo.push_back(static_cast<size_t>(other));
    }
  }
  if (const size_t at = static_cast<size_t>(std::ranges::find(reached, 0) - reached.begin());
      at < n) {
    return Error{ErrorCode::kInvalid, "a child or sibling of itself in the draft tree",
                 "node " + std::to_string(at)};
  }
  for (size_t i = 0; i < n; ++i) {
    for (int32_t child = next_token[i]; child != -1;
         child = next_sibling[static_cast<size_t>(child)])
      parents[static_cast<size_t>(child)] = static_cast<int32_t>(i);
  }
  return parents;
}

}  // namespace pawl
