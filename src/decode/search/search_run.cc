// The rule of the budget is that of the decode loop (generation.cc): a token may follow only if the
// shortest completion that was found behind it fits what is left. So each open hypothesis can be
// completed, and all outputs are complete. Candidates are asked in the order of their scores, and
// only those that would be kept. Behind many refused candidates the budget is nearly spent: then
// the first token of the shortest completion is the only candidate.
//
// Under a constraint the end token is a token of the output with a probability, so it is asked for
// where it alone may follow. Without one an output is cut at the budget, as other libraries do.
//
// Forced text. Its rows run in the call that asks for the law behind it. The hypotheses of its
// tokens are made one by one, as those of other tokens, with the probabilities of that call: so
// hypotheses of one step have the same length, and the outputs are those of asking for each token.
#include "src/decode/search/search_run.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "src/base/stop_scope.h"
#include "src/decode/check_input.h"
#include "src/decode/forced_text.h"

namespace pawl {
namespace {

constexpr size_t kNoSlot = static_cast<size_t>(-1);
constexpr size_t kMostForced = 256;  // tokens of a forced run
constexpr int kMostAnswers = 512;    // logits that are in memory at a time, but for one hypothesis

uint64_t HashedByte(uint64_t hash, uint64_t byte) {
  hash = (hash ^ byte) * 0x100000001b3u;
  return hash ^ (hash >> 29);
}

// Jensen-Shannon, in bits, among the tokens of the mask.
double DivergenceOf(std::span<const float> a, std::span<const float> b, const Mask* mask,
                    int known) {
  const Result<StepLaw> p = MakeStepLaw(a, 1, mask, known), q = MakeStepLaw(b, 1, mask, known);
  if (!p.ok() || !q.ok()) return 0;
  double sum_p = 0, sum_q = 0;
  for (const Candidate& c : p->allowed) sum_p += std::exp(c.log_mass);
  for (const Candidate& c : q->allowed) sum_q += std::exp(c.log_mass);
  double divergence = 0;
  const auto add = [&](double x, double y) {
    if (x > 0) divergence += x * std::log2(2 * x / (x + y)) / 2;
    if (y > 0) divergence += y * std::log2(2 * y / (x + y)) / 2;
  };
  for (const Candidate& c : p->allowed) {
    add(std::exp(c.log_mass) / sum_p, std::exp(q->LogProbability(b, c.token)) / sum_q);
  }
  return std::clamp(divergence, 0.0, 1.0);
}

}  // namespace

SearchRun::SearchRun(const SearchSetting& setting)
    : s_(setting),
      branches_(setting.host, setting.model, setting.prompt, setting.capacity, setting.states) {
  std::vector<uint32_t> words(static_cast<size_t>(s_.task.vocabulary->mask_words()), 0);
  const auto add = [&](TokenId token) {
    if (token < 0 || token >= s_.task.known() || std::ranges::find(ends_, token) != ends_.end()) {
      return;
    }
    words[static_cast<size_t>(token) / 32] |= 1u << token % 32;
    ends_.push_back(token);
  };
  for (const TokenId token : s_.task.vocabulary->end_tokens()) add(token);
  if (s_.task.constraint == nullptr) {
    for (const TokenId token : s_.task.model->end_tokens) add(token);
  }
  add(s_.also_ends);
  ends_mask_ = std::make_shared<Mask>(0, std::move(words));
  const KvMemory memory = s_.host != nullptr ? s_.host->memory() : s_.model.kv_memory();
  // What a branch needs at its longest, besides the prompt.
  const int64_t pages = s_.task.max_tokens / memory.page_positions + 2;
  int64_t room = memory.pages - s_.capacity / memory.page_positions - 1;
  if (s_.contrast) {
    others_.emplace(s_.host, s_.model, *s_.contrast, s_.contrast_capacity);
    room = (room - s_.contrast_capacity / memory.page_positions - 1) / 2;
  }
  most_slots_ = static_cast<size_t>(
      std::clamp<int64_t>(room / pages, 1, std::max(1, options().max_branches)));
}

double SearchRun::Argument(std::string_view name, double otherwise) const {
  for (const auto& [given, value] : options().arguments) {
    if (given == name) return value;
  }
  return otherwise;
}

Status SearchRun::Start() {
  judges_outputs_ =
      options().critic != nullptr || std::ranges::any_of(s_.task.checks, [](const auto& check) {
        return check->granularity() == CheckGranularity::kComplete;
      });
  Hypothesis root;
  root.at = ForLoop(s_.task.constraint, *s_.task.vocabulary);
  if (closes()) {
    if (Status status = CheckCompletion(root.at.get(), s_.task.max_tokens); !status.ok()) {
      return status;
    }
  }
  if (Status status = branches_.Start(); !status.ok()) return status;
  if (others_) {
    if (Status status = others_->Start(); !status.ok()) return status;
  }
  prompt_rows_ = branches_.rows() + (others_ ? others_->rows() : 0);
  arena_.push_back(std::move(root));
  return {};
}

std::vector<TokenId> SearchRun::TokensOf(Hypo h) const {
  std::vector<TokenId> tokens(static_cast<size_t>(at(h).length));
  for (auto out = tokens.rbegin(); out != tokens.rend(); ++out, h = at(h).parent) {
    *out = at(h).token;
  }
  return tokens;
}

std::string SearchRun::TextOf(Hypo h) const {
  std::string text;
  for (const TokenId token : TokensOf(h)) text += BytesOf(token);
  return text;
}

bool SearchRun::Complete(Hypo h) const {
  return at(h).ended || (!closes() && at(h).length >= s_.task.max_tokens);
}

bool SearchRun::IsEndAt(const LoopConstraint* place, TokenId token) const {
  if (std::ranges::find(ends_, token) == ends_.end()) return false;
  return place == nullptr || place->accepting();
}

std::vector<TokenId> SearchRun::Spell(std::string_view text) const {
  std::vector<TokenId> tokens;
  if (s_.encode) tokens = SpellForced(*s_.task.vocabulary, s_.encode, text);
  // SpellForced leaves out tokens that text behind them could change.
  std::string spelled;
  for (const TokenId token : tokens) spelled += BytesOf(token);
  const std::vector<TokenId> rest =
      s_.task.vocabulary->FewestTokens(text.substr(std::min(text.size(), spelled.size())));
  tokens.insert(tokens.end(), rest.begin(), rest.end());
  return tokens;
}

// ---- Laws ----

// Behind `h` and these tokens, where the constraint is `place`.
Result<SearchLaw> SearchRun::LawAt(Hypo h, const LoopConstraint* place,
                                   std::span<const TokenId> behind, RowLogits logits) {
  const int length = at(h).length + static_cast<int>(behind.size());
  std::shared_ptr<const Mask> mask = s_.task.unconstrained;
  if (place != nullptr) {
    mask = closes() && length >= s_.task.max_tokens ? ends_mask_ : place->mask();
  }
  if (s_.also_ends != kNoToken && place != nullptr && place->accepting()) {
    std::vector<uint32_t> words(mask->words().begin(), mask->words().end());
    words[static_cast<size_t>(s_.also_ends) / 32] |= 1u << s_.also_ends % 32;
    mask = std::make_shared<Mask>(0, std::move(words));
  }
  Result<StepLaw> law = MakeStepLaw(Preferred(Contrasted(logits, mask.get()), place, *mask), 1,
                                    mask.get(), s_.task.known());
  if (!law.ok()) return law.error();
  BanRepeats(h, behind, law->allowed);
  return SearchLaw{std::move(law->allowed), law->log_normaliser};
}

// CAD (arXiv 2305.14739), and AdaCAD (arXiv 2409.07394) for the factor by itself. Where both rows
// are equal the result is, too, to the bit.
std::span<const float> SearchRun::Contrasted(RowLogits logits, const Mask* mask) {
  if (logits.other.empty()) return logits.own;
  const double factor = options().contrast_auto
                            ? DivergenceOf(logits.own, logits.other, mask, s_.task.known())
                            : options().contrast;
  contrasted_.assign(logits.own.begin(), logits.own.end());
  for (size_t i = 0; i < contrasted_.size() && factor != 0; ++i) {
    if (!std::isfinite(logits.own[i]) || !std::isfinite(logits.other[i])) continue;
    contrasted_[i] +=
        static_cast<float>(factor * (double{logits.own[i]} - double{logits.other[i]}));
  }
  return contrasted_;
}

std::span<const float> SearchRun::Preferred(std::span<const float> logits,
                                            const LoopConstraint* place, const Mask& mask) {
  if (place == nullptr || !place->prefers()) return logits;
  const LoopConstraint::Preference preference = place->preference();
  if (preference.mask == nullptr) return logits;
  std::vector<float> preferred(logits.begin(), logits.end());
  for (const TokenId token : mask.Tokens()) {
    if (!preference.mask->Allows(token) && !s_.task.vocabulary->is_end(token))
      preferred[static_cast<size_t>(token)] -= preference.nats;
  }
  contrasted_ = std::move(preferred);
  return contrasted_;
}

// What the constraint leaves no choice about stays.
void SearchRun::BanRepeats(Hypo h, std::span<const TokenId> behind,
                           std::vector<Candidate>& law) const {
  const auto size = static_cast<size_t>(options().no_repeat_ngram_size);
  if (size == 0 || law.size() < 2) return;
  std::vector<TokenId> tokens = s_.prompt;
  for (const TokenId token : TokensOf(h)) tokens.push_back(token);
  tokens.insert(tokens.end(), behind.begin(), behind.end());
  if (tokens.size() < size) return;
  const auto last = tokens.end() - static_cast<ptrdiff_t>(size - 1);
  std::unordered_set<TokenId> banned;
  for (auto at = tokens.begin(); at + static_cast<ptrdiff_t>(size) <= tokens.end(); ++at) {
    if (std::equal(last, tokens.end(), at)) banned.insert(at[static_cast<ptrdiff_t>(size) - 1]);
  }
  std::vector<Candidate> left;
  for (const Candidate& c : law) {
    if (!banned.contains(c.token)) left.push_back(c);
  }
  if (!left.empty()) law = std::move(left);
}

std::vector<TokenId> SearchRun::ForcedBehind(const Hypothesis& h) const {
  std::vector<TokenId> forced;
  if (!options().skip_forced || h.at == nullptr || !h.at->exact()) return forced;
  std::shared_ptr<const LoopConstraint> place = h.at;
  ForcedText text(*s_.task.vocabulary, s_.encode);
  const auto left = static_cast<size_t>(std::max(0, s_.task.max_tokens - h.length));
  while (forced.size() < std::min(kMostForced, left)) {
    const TokenId token =
        text.Next(*place->mask(), [&] { return place->forced(LoopConstraint::kForcedLimit); });
    // Where only the end may follow, its law is asked for.
    if (token == kNoToken || s_.task.vocabulary->is_end(token)) break;
    std::shared_ptr<const LoopConstraint> next = place->Next(token);
    if (next == nullptr) break;
    place = std::move(next);
    forced.push_back(token);
  }
  if (!forced.empty() && place->CompletionLength(static_cast<int>(left - forced.size())) < 0) {
    forced.clear();
  }
  return forced;
}

// As much of a draft as the constraint allows. It ends where text is forced, which asking token by
// token would put there.
std::vector<TokenId> SearchRun::DraftBehind(Hypo h, std::span<const TokenId> draft) const {
  std::vector<TokenId> taken;
  Hypothesis next;
  next.at = at(h).at;
  next.length = at(h).length;
  for (const TokenId token : draft) {
    ++next.length;
    if (next.length > s_.task.max_tokens - (closes() ? 0 : 1)) break;
    if (std::ranges::find(ends_, token) != ends_.end()) break;
    if (next.at != nullptr) {
      if (!next.at->mask()->Allows(token)) break;
      next.at = next.at->Next(token);
      if (next.at == nullptr || !ForcedBehind(next).empty()) break;
    }
    taken.push_back(token);
  }
  return taken;
}

size_t SearchRun::SlotOf(Hypo h) const {
  for (; h != kNoHypo; h = at(h).parent) {
    const auto found = slot_of_.find(h);
    if (found != slot_of_.end()) return found->second;
  }
  return kNoSlot;
}

// A new one, or that which was used longest ago.
Result<size_t> SearchRun::FreeSlot() {
  size_t oldest = kNoSlot;
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].used == now_) continue;
    if (oldest == kNoSlot || slots_[i].used < slots_[oldest].used) oldest = i;
  }
  const bool unused = oldest != kNoSlot && slots_[oldest].branch < 0;
  if (oldest == kNoSlot || (!unused && slots_.size() < most_slots_ && keeps_)) {
    slots_.emplace_back();
    oldest = slots_.size() - 1;
  }
  Slot& slot = slots_[oldest];
  if (slot.owner != kNoHypo) slot_of_.erase(slot.owner);
  slot.owner = kNoHypo;
  if (slot.branch < 0) {
    const Result<int> made = branches_.New();
    if (!made.ok()) return made.error();
    slot.branch = *made;
  }
  if (others_ && slot.other < 0) {
    const Result<int> made = others_->New();
    if (!made.ok()) return made.error();
    slot.other = *made;
  }
  return oldest;
}

// A branch for each, that of the hypothesis it comes from where that is free.
Status SearchRun::Place(std::span<Asked> asked, std::vector<int>& branches,
                        std::vector<int>& others) {
  std::vector<size_t> slot_for(asked.size(), kNoSlot);
  for (size_t i = 0; i < asked.size(); ++i) {
    const size_t slot = SlotOf(asked[i].h);
    if (slot == kNoSlot || slots_[slot].used == now_) continue;
    slots_[slot].used = now_;
    slot_for[i] = slot;
  }
  for (size_t i = 0; i < asked.size(); ++i) {
    if (slot_for[i] == kNoSlot) {
      const Result<size_t> slot = FreeSlot();
      if (!slot.ok()) return slot.error();
      slot_for[i] = *slot;
      slots_[*slot].used = now_;
    }
    Slot& slot = slots_[slot_for[i]];
    if (slot.owner != kNoHypo) slot_of_.erase(slot.owner);
    slot.owner = asked[i].h;
    slot_of_[slot.owner] = slot_for[i];
    std::vector<TokenId> tokens = TokensOf(asked[i].h);
    tokens.insert(tokens.end(), asked[i].forced.begin(), asked[i].forced.end());
    tokens.insert(tokens.end(), asked[i].draft.begin(), asked[i].draft.end());
    branches_.Seek(slot.branch, tokens);
    branches.push_back(slot.branch);
    if (!others_) continue;
    others_->Seek(slot.other, tokens);
    others.push_back(slot.other);
  }
  return {};
}

Result<std::vector<RankedTokens>> SearchRun::Laws(std::span<const Hypo> of,
                                                  const LawOptions& options) {
  StopScope::Check();
  std::vector<RankedTokens> laws(of.size());
  if (options.ahead != nullptr) options.ahead->assign(of.size(), {});
  const LawSink sink = {laws, options.ahead,
                        std::max(kLeastKept, options.most_items / std::max<size_t>(1, of.size())),
                        &options.seen};
  std::vector<Asked> asked;
  ++now_;
  const int64_t times = others_ ? 2 : 1;
  int64_t rows = 0, drafted = 0;
  for (size_t i = 0; i < of.size(); ++i) {
    const Hypothesis& h = at(of[i]);
    if (h.run == nullptr) {
      Asked& one = asked.emplace_back(Asked{of[i], ForcedBehind(h), i});
      if (!options.drafts.empty() && one.forced.empty()) {
        one.draft = DraftBehind(of[i], options.drafts[i]);
      }
      rows += times * (static_cast<int64_t>(one.forced.size()) + (one.h == kRoot ? 0 : 1));
      drafted += static_cast<int64_t>(one.draft.size());
    } else if (h.run_at < h.run->tokens.size()) {
      const SearchLaw next = {{{h.run->tokens[h.run_at], h.run->log_masses[h.run_at]}}, 0};
      laws[i] = Kept(i, RankedTokens(next), sink);
    } else {
      laws[i] = Kept(i, h.run->law, sink);
    }
  }
  // At least so many run.
  if (rows > rows_left()) {
    limit_ = "rows";
    return std::vector<RankedTokens>();
  }
  for (Asked& one : asked) {
    if (rows + drafted > rows_left()) one.draft.clear();
  }
  // Branches of hypotheses in the middle of a forced run stay.
  const uint64_t begun = now_;
  for (const Hypo h : of) {
    const size_t slot = at(h).run != nullptr ? SlotOf(h) : kNoSlot;
    if (slot != kNoSlot) slots_[slot].used = now_;
  }
  for (size_t done = 0; done < asked.size(); ++now_) {
    size_t kept = 0;
    for (const Slot& slot : slots_) kept += slot.used == now_ ? 1 : 0;
    const size_t count = std::min(asked.size() - done,
                                  std::max<size_t>(1, most_slots_ - std::min(most_slots_, kept)));
    if (Status status = Ask(std::span(asked).subspan(done, count), sink); !status.ok()) {
      return status.error();
    }
    if (limited()) return std::vector<RankedTokens>();
    done += count;
  }
  if (!keeps_) {
    for (Slot& slot : slots_) {
      if (slot.used >= begun || slot.branch < 0) continue;
      branches_.Free(std::exchange(slot.branch, -1));
      if (others_) others_->Free(std::exchange(slot.other, -1));
      slot_of_.erase(std::exchange(slot.owner, kNoHypo));
    }
  }
  return laws;
}

Result<RankedTokens> SearchRun::WholeLaw(Hypo h) {
  std::vector<RankedTokens> laws(1);
  // Behind a forced run its law is asked for, and not the run again.
  Asked one[] = {{h, {}, 0}};
  ++now_;
  if (rows_left() == 0 && h != kRoot) limit_ = "rows";
  if (limited()) return RankedTokens();
  if (Status status = Ask(one, {laws}); !status.ok()) return status.error();
  return std::move(laws[0]);
}

Result<std::vector<RankedTokens>> SearchRun::MixedLaws(std::span<const Hypo> of,
                                                       std::span<const double> weights) {
  StopScope::Check();
  std::vector<RankedTokens> laws;
  if (of[0] == kRoot) {
    const Result<int> made = branches_.New();
    if (!made.ok()) return made.error();
    mixed_branch_ = *made;
  } else {
    if (rows_left() == 0) {
      limit_ = "rows";
      return laws;
    }
    if (of.size() == 1) {
      branches_.Append(mixed_branch_, at(of[0]).token);
    } else {
      std::vector<TokenWeight> mix;
      for (size_t i = 0; i < of.size(); ++i) {
        mix.push_back({at(of[i]).token, static_cast<float>(weights[i])});
      }
      branches_.AppendMix(mixed_branch_, std::move(mix));
    }
    branches_.LimitRows(rows_left());
    if (Status status = branches_.Run({&mixed_branch_, 1}); !status.ok()) return status.error();
    if (branches_.over_limit()) {
      limit_ = "rows";
      return laws;
    }
  }
  const RowLogits logits = of[0] == kRoot ? PromptLogits() : RowLogits{branches_.logits(0), {}};
  for (const Hypo h : of) {
    Result<SearchLaw> law = LawAt(h, at(h).at.get(), {}, logits);
    if (!law.ok()) return law.error();
    laws.emplace_back(*law);
  }
  return laws;
}

Status SearchRun::Ask(std::span<Asked> asked, const LawSink& sink) {
  std::vector<Asked> run;
  for (Asked& one : asked) {
    // The prompt's logits are there.
    if (one.h != kRoot || !one.forced.empty() || !one.draft.empty()) {
      run.push_back(std::move(one));
      continue;
    }
    Result<SearchLaw> law = LawAt(kRoot, at(kRoot).at.get(), {}, PromptLogits());
    if (!law.ok()) return law.error();
    sink.laws[one.place] = Kept(one.place, RankedTokens(*law), sink);
  }
  if (run.empty()) return {};
  std::vector<int> branches, others;
  if (Status status = Place(run, branches, others); !status.ok()) return status;
  for (size_t begin = 0; begin < run.size();) {
    size_t end = begin;
    for (int answers = 0; end < run.size(); ++end) {
      answers += run[end].answers();
      if (end > begin && answers > kMostAnswers) break;
    }
    const std::span<const Asked> some = std::span(run).subspan(begin, end - begin);
    const Status ran =
        RunRows(some, std::span(branches).subspan(begin, some.size()),
                others_ ? std::span(others).subspan(begin, some.size()) : std::span<int>());
    if (!ran.ok() || limited()) return ran;
    size_t answer = 0;
    for (const Asked& one : some) {
      if (Status status = TakeLaws(one, answer, sink); !status.ok()) return status;
    }
    begin = end;
  }
  return {};
}

// Their logits; nothing where a limit ends it.
Status SearchRun::RunRows(std::span<const Asked> run, std::span<const int> branches,
                          std::span<const int> others) {
  std::vector<int> answers;
  for (const Asked& one : run) answers.push_back(one.answers());
  branches_.LimitRows(rows_left());
  if (Status status = branches_.RunTails(branches, answers); !status.ok()) return status;
  bool over = branches_.over_limit();
  if (others_ && !over) {
    others_->LimitRows(rows_left());
    if (Status status = others_->RunTails(others, answers); !status.ok()) return status;
    over = others_->over_limit();
  }
  if (over) limit_ = "rows";
  return {};
}

RankedTokens SearchRun::Kept(size_t place, RankedTokens law, const LawSink& sink) const {
  if (sink.seen != nullptr && *sink.seen) (*sink.seen)(place, law);
  law.Trim(sink.keep);
  return law;
}

// The law of a hypothesis, of which `answer` is the first one, and those of the text forced behind
// it, or of the draft.
Status SearchRun::TakeLaws(const Asked& one, size_t& answer, const LawSink& sink) {
  const auto next = [&] {
    if (s_.states) {
      const std::span<const float> states = branches_.states(answer);
      states_[one.h].assign(states.begin(), states.end());
    }
    const RowLogits logits = {branches_.logits(answer),
                              others_ ? others_->logits(answer) : std::span<const float>()};
    ++answer;
    return logits;
  };
  RowLogits logits = one.h == kRoot ? PromptLogits() : next();
  std::shared_ptr<const LoopConstraint> place = at(one.h).at;
  const auto run = std::make_shared<ForcedRun>();
  for (const TokenId token : one.forced) {
    const std::span<const float> row = Contrasted(logits, nullptr);
    const Result<StepLaw> law = MakeStepLaw(row, 1, nullptr, 0);
    if (!law.ok()) return law.error();
    run->tokens.push_back(token);
    run->log_masses.push_back(law->LogProbability(row, token));
    place = place->Next(token);
    logits = next();
  }
  Result<SearchLaw> law = LawAt(one.h, place.get(), one.forced, logits);
  if (!law.ok()) return law.error();
  if (one.forced.empty()) {
    sink.laws[one.place] = Kept(one.place, RankedTokens(*law), sink);
    for (size_t i = 0; i < one.draft.size(); ++i) {
      if (place != nullptr) place = place->Next(one.draft[i]);
      law = LawAt(one.h, place.get(), std::span(one.draft).first(i + 1), next());
      if (!law.ok()) return law.error();
      (*sink.ahead)[one.place].tokens.push_back(one.draft[i]);
      (*sink.ahead)[one.place].laws.emplace_back(*law);
    }
    return {};
  }
  run->law = RankedTokens(*law);
  run->law.Trim(sink.keep);
  const SearchLaw first = {{{run->tokens[0], run->log_masses[0]}}, 0};
  sink.laws[one.place] = Kept(one.place, RankedTokens(first), sink);
  arena_[static_cast<size_t>(one.h)].run = run;
  return {};
}

// ---- Hypotheses ----

bool SearchRun::LeavesRoom(Hypo parent, TokenId token, const LoopConstraint& next, int length) {
  Hypothesis& from = arena_[static_cast<size_t>(parent)];
  if (from.closing_token != kNoToken && token != from.closing_token) return false;
  if (!closes() || next.CompletionLength(s_.task.max_tokens - length) >= 0) return true;
  if (++from.refused == Hypothesis::kMostRefused) {
    const auto closing = from.at->Completion(s_.task.max_tokens - from.length);
    if (closing && !closing->empty()) from.closing_token = closing->front();
  }
  return false;
}

Result<bool> SearchRun::ChecksAllow(Hypo parent, TokenId token, bool end) const {
  if (s_.task.checks.empty()) return true;
  StopScope::Check();  // a check may start a program
  int64_t asked = 0;
  const std::string text = TextOf(parent);
  const std::vector<TokenId> tokens = TokensOf(parent);
  if (end) return MayEnd(s_.task.checks, text, tokens, asked);
  return MayGoOn(s_.task.checks, text, tokens, token, BytesOf(token), asked);
}

Result<bool> SearchRun::Accepts(Hypo h) const {
  StopScope::Check();
  int64_t asked = 0;
  std::vector<TokenId> tokens = TokensOf(h);
  if (at(h).ended) tokens.pop_back();
  return MayEnd(s_.task.checks, TextOf(h), tokens, asked);
}

// What is cut at the budget is an output, too. The critic's score; nullopt: it is refused.
Result<std::optional<double>> SearchRun::Judge(Hypo made) {
  const bool ended = at(made).ended;
  if (judges_ends_ && !ended && !s_.task.checks.empty() && Complete(made)) {
    const Result<bool> accepted = Accepts(made);
    if (!accepted.ok()) return accepted.error();
    if (!*accepted) return std::optional<double>();
  }
  if (options().critic == nullptr) return std::optional(0.0);
  StopScope::Check();
  std::vector<TokenId> tokens = TokensOf(made);
  if (ended) tokens.pop_back();
  const Result<double> score = options().critic->Score(
      {.text = TextOf(made), .tokens = tokens, .ended = ended || Complete(made)});
  if (!score.ok()) return score.error();
  return *score == kNoMass ? std::nullopt : std::optional(*score);
}

Result<Hypo> SearchRun::Child(Hypo parent, const RankedTokens::Item& item) {
  if (nodes() >= options().max_nodes) limit_ = "nodes";
  if (limited()) return kNoHypo;
  Hypothesis child;
  bool complete = false;
  {
    const Hypothesis& from = at(parent);
    child.parent = parent;
    child.token = item.token;
    child.length = from.length + 1;
    child.log_probability = from.log_probability + item.log_mass;
    child.ended = IsEnd(parent, item.token);
    child.text_hash = from.text_hash;
    child.text_size = from.text_size;
    complete =
        judges_outputs_ && (child.ended || (!closes() && child.length >= s_.task.max_tokens));
    if (complete && from.refused_outputs >= Hypothesis::kMostRefusedOutputs) return kNoHypo;
    if (from.run != nullptr && from.run_at < from.run->tokens.size()) {
      child.run = from.run;
      child.run_at = from.run_at + 1;
    }
  }
  const auto refuse = [&] {
    if (complete) ++arena_[static_cast<size_t>(parent)].refused_outputs;
    return kNoHypo;
  };
  if (!child.ended && at(parent).at != nullptr) {
    child.at = at(parent).at->Next(item.token);
    if (child.at == nullptr) return kNoHypo;
    if (!LeavesRoom(parent, item.token, *child.at, child.length)) return kNoHypo;
  }
  if (judges_ends_ || !child.ended) {
    const Result<bool> allowed = ChecksAllow(parent, item.token, child.ended);
    if (!allowed.ok()) return allowed.error();
    if (!*allowed) return child.ended ? refuse() : kNoHypo;
  }
  // Special tokens have no bytes, and are part of what an output says.
  const std::string_view bytes = BytesOf(item.token);
  for (const char byte : bytes) {
    child.text_hash = HashedByte(child.text_hash, static_cast<unsigned char>(byte));
  }
  if (bytes.empty() && !child.ended) {
    child.text_hash = HashedByte(child.text_hash, 256 + static_cast<uint64_t>(item.token));
  }
  child.text_size += static_cast<uint32_t>(bytes.size());
  arena_.push_back(std::move(child));
  const auto made = static_cast<Hypo>(arena_.size() - 1);
  const Result<std::optional<double>> score = Judge(made);
  if (!score.ok()) return score.error();
  if (!score->has_value()) return refuse();
  arena_.back().critic = **score;
  return made;
}

void SearchRun::Drop(Hypo h) {
  Hypothesis& dropped = arena_[static_cast<size_t>(h)];
  dropped.at = nullptr;
  dropped.run = nullptr;
}

bool SearchRun::IsNew(Hypo h, Seen& seen) const {
  if (!options().merge_spellings) return true;
  const Hypothesis& one = at(h);
  const uint64_t key = one.at != nullptr ? one.at->key() : 1;
  if (key == 0) return true;
  const uint64_t hash = MixedKeys(one.text_hash, key) + (one.ended ? 1 : 0);
  const auto [begin, end] = seen.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    const Hypothesis& other = at(it->second);
    if (other.text_size == one.text_size && other.text_hash == one.text_hash &&
        TextOf(it->second) == TextOf(h)) {
      return false;
    }
  }
  seen.emplace(hash, h);
  return true;
}

// ---- Outputs ----

void SearchRun::Offer(Hypo h, double score) {
  if (std::ranges::find(found_, h, &Found::h) != found_.end()) return;
  if (options().merge_spellings) {
    for (size_t i = 0; i < found_.size(); ++i) {
      const Hypothesis& other = at(found_[i].h);
      if (other.text_hash != at(h).text_hash || TextOf(found_[i].h) != TextOf(h)) continue;
      if (found_[i].score >= score) return;
      found_.erase(found_.begin() + static_cast<ptrdiff_t>(i));
      break;
    }
  }
  const auto after = std::ranges::find_if(found_, [&](const Found& f) { return f.score < score; });
  found_.insert(after, {h, score});
  if (found_.size() > most_) found_.pop_back();
}

SearchOutput SearchRun::OutputOf(Hypo h, double score) const {
  SearchOutput out;
  out.tokens = TokensOf(h);
  out.text = TextOf(h);
  out.log_probability = at(h).log_probability;
  out.score = score;
  out.ended = at(h).ended;
  return out;
}

Result<SearchOutput> SearchRun::Closed(Hypo h, std::span<const TokenId> with) const {
  SearchOutput out = OutputOf(h, ScoreOf(h));
  out.closed = true;
  std::shared_ptr<const LoopConstraint> place = at(h).at;
  const auto add = [&](std::span<const TokenId> tokens) {
    // The model was not asked about them.
    if (!tokens.empty()) out.log_probability = std::numeric_limits<double>::quiet_NaN();
    for (const TokenId token : tokens) {
      out.tokens.push_back(token);
      out.text += BytesOf(token);
    }
  };
  add(with);
  for (const TokenId token : with) place = place == nullptr ? nullptr : place->Next(token);
  if (!closes()) return out;
  const int left = s_.task.max_tokens - at(h).length - static_cast<int>(with.size());
  const auto closing = place == nullptr ? std::nullopt : place->Completion(left);
  if (!closing) {
    return Error{ErrorCode::kInternal, "the completion no longer fits the budget", ""};
  }
  add(*closing);
  return out;
}

Result<SearchResult> SearchRun::Finish(std::span<const Hypo> open) {
  SearchResult result;
  for (const Found& f : found_) {
    if (result.outputs.size() == static_cast<size_t>(options().n)) break;
    result.outputs.push_back(OutputOf(f.h, f.score));
  }
  if (result.outputs.empty() && limited() && s_.task.checks.empty()) {
    Hypo best = kNoHypo;
    for (const Hypo h : open) {
      if (s_.task.constraint != nullptr && at(h).at == nullptr) continue;
      if (best == kNoHypo || at(h).log_probability > at(best).log_probability) best = h;
    }
    if (best != kNoHypo) {
      Result<SearchOutput> closed = Closed(best);
      if (!closed.ok()) return closed.error();
      result.outputs.push_back(*std::move(closed));
    }
  }
  for (Hypo h = kRoot; options().keep_graph && h < static_cast<Hypo>(nodes()); ++h) {
    result.graph.nodes.push_back(NodeOf(h));
    if (h != kRoot) result.graph.edges.push_back({at(h).parent, h, EdgeText(h)});
  }
  result.at_limit = limit_;
  result.model_calls = branches_.calls() + (others_ ? others_->calls() : 0);
  result.model_rows = branches_.rows() + (others_ ? others_->rows() : 0);
  result.nodes = nodes();
  return result;
}

}  // namespace pawl
