// One best-first heap over all requests of a call and all sources (OPT-Tree, arXiv 2406.17276, for
// one request; TETRIS, arXiv 2502.15197, across requests). The node that is most likely to be
// reached is popped, made, and its children are put onto the heap with its chance times theirs. So
// nodes come in falling order of chance, and the expected number of tokens of a call grows by each
// node's chance.
//
// How likely a proposal is, is counted, and once more for what all sources say together
// (chance_table.h): sources sort proposals into buckets (a forced token inside
// a run, a suffix of nine tokens with one continuation), and for each bucket it is known how often
// it was right where the truth came out. The truth comes out at every node that the output passes,
// for all proposals there, also those that found no place in the tree.
//
// When to stop. The call takes T(rows); without drafts it gives one token for each request. A token
// that the loop takes without the model counts as the row that it is otherwise. The
// number of nodes is the one that maximises expected tokens by time, over all numbers up to the
// limit, because T has steps. By T a call with drafts never takes more than one and a half times
// what it takes without. Where the best number is none for a request, nothing is asked for some
// calls, twice as many each time, as long as asking takes more than a hundredth of the calls' time.
//
// Whether to begin. For a small model the host's work for a node takes longer than a step. So there
// is an account of what drafts have saved and cost. A right draft saves its output's share of a
// call of one row each where the token had to be drawn, and a row where it is forced: forced tokens
// come as rows of the next call anyway. If the account is not above zero after sixteen trials, the
// engine rests for as many calls, makes four more, rests for twice as many, and so on. A trial is
// an output that has drafts in a call. Until drafts have paid, no more outputs are asked for than
// there are trials left, so a large batch does not spend more on them than a small one. Without a
// constraint guesses are right less often. There trials that were wrong may take 1/200 of the
// time of all calls, so a short text has one or two.
#include "src/decode/draft/drafter.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "src/decode/generation.h"

namespace pawl {
namespace {

constexpr float kPriorWeight = 4, kMostAsked = 4000;
// Below this chance a node is not worth the host's work, whatever a row costs.
constexpr float kLeastChance = 0.002f;
constexpr int kMostSleep = 64;
constexpr double kNewestAnswer = 1.0 / 32;
// Of the time of the model's calls, what asking in vain may take.
constexpr double kVain = 0.01;
// What is known of times and chances is never exact, so a tree must be worth more than no tree by
// this share.
constexpr double kMargin = 0.03;
// The most that a call with drafts may take, in times of the same call without.
constexpr double kMostSlower = 1.5;
// Trials are counted by outputs: a call in which eight outputs have drafts is eight trials.
constexpr int kTrials = 16, kTriedAgain = 4, kTriedEnough = 4;
// Of the time of all calls, what trials in text without a constraint may take.
constexpr double kFreeTextTrials = 0.005;
constexpr int kFreeTextNodes = 2;  // of one of these
// What a call says of the account of those before it.
constexpr double kKept = 1 - 1.0 / 256;
// In times of a call: a trial that was interrupted tells nothing more.
constexpr double kMostLost = 4;
// In times of what it takes on average: the host's work for a call that was interrupted.
constexpr double kMostUsual = 3;
// Of its average, the first values tell the least only: they may have been interrupted.
constexpr int64_t kFirst = 4;
// How often what comes behind a draft is foreseen, where it is.
constexpr double kLikely = 0.9;
// How many times of asking a tree that was worth much pays for later.
constexpr double kMostCredit = 2;

// Whether a call with a chain of likely tokens behind a node could have more tokens a second than
// `best`. `gain`: the tokens that are expected without it, in so many nodes.
template <typename Cost>
bool ChainPays(double chance, double gain, int nodes, int most_nodes, double best,
               const Cost& cost) {
  double behind = chance;
  for (int more = 1; more <= most_nodes - nodes; ++more) {
    behind *= kLikely;
    gain += behind;
    if (gain / cost(nodes + more) > best) return true;
  }
  return false;
}

// The same for that many nodes, all as likely as the next one.
template <typename Cost>
bool AnyPays(double value, double gain, int nodes, int most_nodes, double best, const Cost& cost) {
  for (int more = 1; more <= most_nodes - nodes; more *= 2) {
    if ((gain + more * value) / cost(nodes + more) > best) return true;
  }
  return false;
}

}  // namespace

int DraftTree::Child(int node, TokenId token) const {
  for (size_t i = static_cast<size_t>(node) + 1; i < nodes.size(); ++i) {
    if (nodes[i].parent == node && nodes[i].token == token) return static_cast<int>(i);
  }
  return -1;
}

void DraftTree::ChildrenOf(int node, std::vector<TokenId>& tokens) const {
  tokens.clear();
  for (size_t i = static_cast<size_t>(node) + 1; i < nodes.size(); ++i) {
    if (nodes[i].parent == node) tokens.push_back(nodes[i].token);
  }
}

int DraftTree::LikeliestChild(int node) const {
  int best = -1;
  for (size_t i = static_cast<size_t>(node) + 1; i < nodes.size(); ++i) {
    if (nodes[i].parent != node) continue;
    if (best < 0 || nodes[i].chance > nodes[static_cast<size_t>(best)].chance) {
      best = static_cast<int>(i);
    }
  }
  return best;
}

Drafter::Drafter(DraftSetting setting) : setting_(std::move(setting)) {}

Result<std::unique_ptr<Drafter>> Drafter::Make(DraftSetting setting,
                                               std::span<const size_t> sources,
                                               std::vector<Named> more) {
  if (setting.options.nodes < 1 || setting.options.nodes > kMostDraftNodes) {
    return Error{ErrorCode::kInvalid,
                 "must be from 1 to " + std::to_string(kMostDraftNodes) + " nodes, not " +
                     std::to_string(setting.options.nodes),
                 "draft"};
  }
  if (setting.options.memory < 1 || setting.options.memory > kMostDraftMemory) {
    return Error{ErrorCode::kInvalid,
                 "must be from 1 to " + std::to_string(kMostDraftMemory) + " MB, not " +
                     std::to_string(setting.options.memory),
                 "draft_memory"};
  }
  if (!(setting.options.lossy >= 0 && setting.options.lossy < 1)) {
    return Error{ErrorCode::kInvalid, "must be at least 0 and below 1", "draft_lossy"};
  }
  const Result<DraftRules> rules = ParseDraftRules(setting.options);
  if (!rules.ok()) return rules.error();
  setting.rules = *rules;
  std::unique_ptr<Drafter> drafter(new Drafter(std::move(setting)));
  const auto add = [&](std::string name, std::unique_ptr<DraftSource> source, int index,
                       size_t nth = 0) {
    drafter->stats_.sources.push_back({.name = name});
    drafter->entries_.push_back({.name = std::move(name), .source = std::move(source)});
    drafter->entries_.back().index = index;
    drafter->entries_.back().nth = nth;
  };
  for (const size_t index : sources) {
    // The sources refer to the setting in there.
    const DraftSetting& own = drafter->setting_;
    for (size_t nth = 0; nth < CountOfDraftSource(index, own.options); ++nth) {
      Result<std::unique_ptr<DraftSource>> source = MakeDraftSource(index, own, nth);
      if (!source.ok()) return source.error();
      add(NameOfDraftSource(index, own.options, nth), *std::move(source), static_cast<int>(index),
          nth);
    }
  }
  for (auto& [name, source] : more) add(std::move(name), std::move(source), -1);
  if (drafter->entries_.size() > kMostDraftSources) {
    return Error{ErrorCode::kInvalid, "has too many sources", "draft"};
  }
  return drafter;
}

bool Drafter::wants_fingerprint() const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [](const Entry& entry) { return entry.name == "history"; });
}

bool Drafter::learns_grammars() const {
  const DraftOptions& options = setting_.options;
  return (options.always || !options.history_file.empty() || paid_) && wants_fingerprint();
}

std::unique_ptr<RequestDrafts> Drafter::Begin(const DraftRequest& request) {
  auto drafted = std::make_unique<RequestDrafts>();
  DraftRequest full = request;
  if (full.grammar == 0 && wants_fingerprint()) {
    full.grammar = FingerprintOf(request.constraint.get());
  }
  for (Entry& entry : entries_) {
    drafted->followers_.push_back(entry.source->Follow(full));
    wants_logits_ |= drafted->followers_.back()->wants_logits();
    wants_all_logits_ |= drafted->followers_.back()->wants_all_logits();
    foresees_ |= drafted->followers_.back()->foresees();
    drafted->stats_.sources.push_back({.name = entry.name});
  }
  drafted->prompt_ = request.prompt.size();
  return drafted;
}

float Drafter::ChanceOf(size_t source, const DraftProposal& proposal) const {
  const Counter& counter =
      entries_[source].counters[std::min<size_t>(proposal.bucket, kDraftBuckets - 1)];
  const float prior = std::min(proposal.chance, 0.999f);
  return (counter.right + kPriorWeight * prior) / (counter.asked + kPriorWeight);
}

bool Drafter::IsEnd(TokenId token) const {
  return token < 0 || token >= setting_.vocabulary->size() || token >= setting_.vocabulary_size ||
         setting_.vocabulary->is_end(token);
}

void Drafter::Prepare(const DraftTask& task) {
  RequestDrafts& request = *task.request;
  // The prompt and the output come one after the other.
  while (request.seen_ < task.tokens.size()) {
    const size_t end = request.seen_ < task.prompt ? task.prompt : task.tokens.size();
    for (size_t i = 0; i < request.followers_.size(); ++i) {
      Timer timer(request.stats_.sources[i].seconds);
      request.followers_[i]->Append(task.tokens.subspan(request.seen_, end - request.seen_));
    }
    request.seen_ = end;
  }
  request.proposals_.clear();
  request.cases_.clear();
  request.tree.nodes.clear();
  DraftNode& root = request.tree.nodes.emplace_back();
  root.token = task.tokens.back();
  root.at = task.at;
  root.mask = task.mask;
  root.planned = std::min(task.most_nodes, planned_);
  for (size_t i = 0; i < request.followers_.size(); ++i) {
    root.cursors[i] = request.followers_[i]->Root();
  }
}

void Drafter::Expand(const DraftTask& task, int number, int index) {
  RequestDrafts& request = *task.request;
  DraftNode& node = request.tree.nodes[static_cast<size_t>(index)];
  path_.clear();
  for (int i = index; i > 0; i = request.tree.nodes[static_cast<size_t>(i)].parent) {
    path_.push_back(request.tree.nodes[static_cast<size_t>(i)].token);
  }
  std::reverse(path_.begin(), path_.end());
  DraftPlace place;
  place.tokens = task.tokens;
  place.prompt = task.prompt;
  place.path = path_;
  place.at = node.at.get();
  place.mask = node.mask.get();
  place.filtered = setting_.options.filter;
  place.paid = paid_ || free_;
  place.plain_seconds = plain_seconds_;
  // One call for a tree, and more where a draft is worth twice the time.
  place.may_call =
      !overlaps_ || index == 0 || (!free_ && double{node.chance} > 2 * rate_ * late_seconds_);
  if (task.target.model != nullptr) place.target = &task.target;
  node.first_proposal = static_cast<int>(request.proposals_.size());
  children_.clear();
  for (size_t s = 0; s < request.followers_.size(); ++s) {
    DraftSourceStats& stats = request.stats_.sources[s];
    proposed_.clear();
    {
      Timer timer(stats.seconds);
      request.followers_[s]->Propose(place, node.cursors[s], proposed_);
    }
    stats.drafted += std::exchange(place.refused, 0);
    for (const DraftProposal& proposal : proposed_) {
      if (IsEnd(proposal.token)) continue;
      ++stats.drafted;
      const bool allowed =
          node.legal && (node.mask == nullptr || node.mask->Allows(proposal.token));
      if (allowed) ++stats.kept;
      if (!allowed && setting_.options.filter) continue;
      request.proposals_.push_back({proposal, s});
      if (node.law == nullptr) Join(proposal, ChanceOf(s, proposal), s);
    }
    if (node.law != nullptr || place.law == nullptr) continue;
    // What others guess here is left: whether a draw has a node must not depend on what it is.
    node.law = std::exchange(place.law, nullptr);
    if (setting_.rules.replaces()) node.law_source = static_cast<int>(s);
    children_.clear();
    float least = 1;
    for (const DraftProposal& proposal : proposed_) {
      least = std::min(least, ChanceOf(s, proposal));
      children_.push_back({proposal.token, least, 0});
    }
  }
  node.proposals = static_cast<int>(request.proposals_.size()) - node.first_proposal;
  Push(task, number, index);
}

void Drafter::Join(const DraftProposal& proposal, float chance, size_t source) {
  const auto known = std::find_if(children_.begin(), children_.end(), [&](const Child& child) {
    return child.token == proposal.token;
  });
  if (known == children_.end()) {
    children_.push_back(
        {proposal.token, chance, proposal.worth, uint32_t{1} << source, proposal.given});
    return;
  }
  // Two that agree are right more often than each.
  const float high = std::max(known->chance, chance), low = std::min(known->chance, chance);
  known->chance = 1 - (1 - high) * (1 - 0.5f * low);
  known->sources |= uint32_t{1} << source;
  known->given |= proposal.given;
  known->worth = std::max(known->worth, proposal.worth);
}

// The children of the node, to the heap.
void Drafter::Push(const DraftTask& task, int number, int index) {
  const DraftNode& node = task.request->tree.nodes[static_cast<size_t>(index)];
  if (node.law_source >= 0) {
    if (!children_.empty()) PushDraws(task, number, index, children_[0].chance);
    return;
  }
  if (node.law == nullptr) {
    std::stable_sort(children_.begin(), children_.end(),
                     [](const Child& a, const Child& b) { return a.chance > b.chance; });
    const auto most = static_cast<size_t>(setting_.rules.most_children(node.depth));
    if (children_.size() > most) children_.resize(most);
    Correct(*task.request, index);
  }
  float sum = 0;
  for (const Child& child : children_) sum += child.chance;
  const float scale = sum > 1 ? 1 / sum : 1;
  for (size_t i = 0; i < children_.size(); ++i) {
    const float reached = node.chance * children_[i].chance * scale;
    const float value = std::max(reached, children_[i].worth);
    if (value < least_chance_) continue;
    heap_.push_back({value, reached, number, index, children_[i].token,
                     node.law != nullptr ? static_cast<int>(i) : -1, 1, children_[i].given});
    std::push_heap(heap_.begin(), heap_.end());
  }
}

// By what came where the sources said the same.
void Drafter::Correct(RequestDrafts& request, int index) {
  DraftNode& node = request.tree.nodes[static_cast<size_t>(index)];
  node.first_case = static_cast<int>(request.cases_.size());
  node.cases = static_cast<int>(children_.size());
  for (size_t i = 0; i < children_.size(); ++i) {
    Child& child = children_[i];
    const uint32_t which = ChanceTable::CaseOf(child.sources, i, children_.size(), child.chance);
    request.cases_.push_back({child.token, which});
    child.chance = chances_.Of(which, child.chance);
  }
}

// How many draws a place gets must not depend on what they are, nor on what stands behind them. So
// they are one candidate, with the share of each in what they are worth together.
void Drafter::PushDraws(const DraftTask& task, int number, int index, float first) {
  const DraftNode& node = task.request->tree.nodes[static_cast<size_t>(index)];
  const bool planned = setting_.rules.delay < 0;
  const int wanted = planned ? draws_.At(node.planned).draws : setting_.rules.draws(node.depth);
  const int draws = std::clamp(wanted, 1, static_cast<int>(node.law->drawn.size()));
  const float taken = draws == 1 ? first : static_cast<float>(draws_.Taken(draws));
  const float value = node.chance * taken / static_cast<float>(draws);
  if (value < least_chance_) return;
  heap_.push_back({value, node.chance * first, number, index, node.law->drawn[0], 0, draws});
  std::push_heap(heap_.begin(), heap_.end());
}

bool Drafter::GrowCandidate(const DraftTask& task, const Candidate& candidate, int most) {
  DraftTree& tree = task.request->tree;
  const auto parent = static_cast<size_t>(candidate.parent);
  const int draws = std::min(candidate.draws, most);
  DrawPlan::Choice plan;
  if (tree.nodes[parent].law_source >= 0) {
    plan = draws_.At(tree.nodes[parent].planned);
    if (plan.draws != draws) plan = {.draws = draws};
  }
  for (int i = 0; i < draws; ++i) {
    Candidate one = candidate;
    if (draws > 1) {
      one.token = tree.nodes[parent].law->drawn[static_cast<size_t>(candidate.draw + i)];
      one.chance = tree.nodes[parent].chance * static_cast<float>(draws_.TakenAt(draws, i));
      one.value = one.chance;
    }
    // A token that is drawn again counts as a node, so that no draw is kept for what it is.
    const bool drawn = candidate.draw >= 0;
    const bool grows = !drawn || tree.Child(candidate.parent, one.token) < 0;
    if (grows && !Grow(task, one, plan.behind[static_cast<size_t>(i) % plan.behind.size()])) {
      return i > 0;
    }
    if (drawn) ++tree.nodes[parent].kept;
    order_.push_back({candidate.task, candidate.parent, grows, drawn, one.value, one.given});
  }
  return true;
}

bool Drafter::Grow(const DraftTask& task, const Candidate& candidate, int planned) {
  RequestDrafts& request = *task.request;
  const DraftNode& parent = request.tree.nodes[static_cast<size_t>(candidate.parent)];
  DraftNode node;
  node.token = candidate.token;
  node.parent = candidate.parent;
  node.depth = parent.depth + 1;
  node.planned = planned;
  node.chance = candidate.chance;
  node.legal = parent.legal;
  if (parent.at != nullptr) {
    node.at = parent.at->Next(candidate.token);
    if (node.at == nullptr) {
      if (setting_.options.filter) return false;
      node.legal = false;
    } else {
      node.mask = node.at->mask();
    }
  }
  for (size_t i = 0; i < request.followers_.size(); ++i) {
    node.cursors[i] = request.followers_[i]->Next(parent.cursors[i], candidate.token);
  }
  request.tree.nodes.push_back(std::move(node));
  return true;
}

void Drafter::Draft(std::span<const DraftTask> tasks, const DraftLimits& limits) {
  double seconds = 0, asking = 0, reading = 0;
  int asked = 0;
  free_ = limits.curve == nullptr || setting_.options.always;
  least_chance_ = std::max(kLeastChance, limits.least_chance);
  overlaps_ = limits.overlaps;
  plain_seconds_ = limits.curve == nullptr ? 0 : limits.curve->Seconds(1, limits.context);
  planned_ = (free_ ? limits.most_nodes : MostNodes(limits)) /
             static_cast<int>(std::max<size_t>(1, tasks.size()));
  {
    Timer timer(seconds);
    {
      Timer timer_of_asking(asking);
      asked = Ask(tasks, reading);
    }
    if (asked > 0) {
      Spend(reading);  // takes long, and once
      charged_ = asked * Average((asking - reading) / asked, asks_, ask_seconds_);
      GrowAll(tasks, limits, charged_ / asked);
    }
  }
  if (asked == 0) return;
  if (!free_) {
    int rows = limits.rows, drafting = 0;
    for (const DraftTask& task : tasks) {
      rows += task.request->tree.drafts();
      if (task.request->tree.drafts() > 0) ++drafting;
    }
    const double plain = limits.curve->Seconds(limits.rows, limits.context);
    row_seconds_ = rows > limits.rows ? (limits.curve->Seconds(rows, limits.context) - plain) /
                                            (rows - limits.rows)
                                      : 0;
    // Forced rows run with drafts and without, so the call that a right draft saves has none.
    const auto outputs = static_cast<int>(tasks.size());
    token_seconds_ =
        limits.curve->Seconds(std::min(outputs, limits.rows), limits.context) / outputs;
    const double drafted = limits.curve->Seconds(rows, limits.context, rows - limits.rows);
    Charge(charged_ + drafted - plain, plain, drafting);
  }
  stats_.seconds += seconds;
  for (const DraftTask& task : tasks) {
    task.request->stats_.seconds += seconds / static_cast<double>(tasks.size());
  }
}

double Drafter::Average(double value, int64_t& times, double& mean) {
  if (++times <= kFirst) {
    mean = times == 1 ? value : std::min(mean, value);
    return mean;
  }
  const double usual = std::min(value, kMostUsual * mean);
  mean += (usual - mean) * std::max(kNewestAnswer, 1.0 / static_cast<double>(times - kFirst + 1));
  return usual;
}

void Drafter::Spend(double seconds) {
  saved_ -= plain_seconds_ > 0 ? std::min(seconds, kMostLost * plain_seconds_) : seconds;
}

void Drafter::SpendOnCall(double seconds) { saved_ -= Average(seconds, learned_, learn_seconds_); }

void Drafter::Charge(double cost, double plain, int drafting) {
  // Of the calls before; their tokens have come.
  trials_ += std::max(1, drafting);
  if (trials_ > kTriedEnough && saved_ > 0) paid_ = true;
  if (trials_ > kTrials) {
    if (saved_ > 0) {
      rest_ = 0;
      trials_ = kTrials;
    } else {
      rest_ = std::max<int64_t>(2 * rest_, kTrials);
      rest_until_ = calls_ + rest_ + 1;
      trials_ = kTrials - kTriedAgain;
      saved_ = 0;
    }
  }
  saved_ = saved_ * kKept - std::min(cost, kMostLost * plain);
}

// The roots of those that do not sleep, and what may come after them; how many these are.
int Drafter::Ask(std::span<const DraftTask> tasks, double& reading) {
  heap_.clear();
  int asked = 0;
  const bool rests = !free_ && this->rests();
  // In a large batch a trial costs no more than in a small one.
  const int most = free_ || (saved_ > 0 && trials_ >= kTrials) ? std::numeric_limits<int>::max()
                                                               : std::max(1, kTrials - trials_);
  for (size_t i = 0; i < tasks.size(); ++i) {
    RequestDrafts& request = *tasks[i].request;
    request.tree.nodes.clear();
    if (rests || asked >= most) continue;
    if (!free_ && request.sleep_ > 0) {
      --request.sleep_;
      continue;
    }
    if (tasks[i].most_nodes <= 0 || tasks[i].most_depth <= 0) continue;
    const double may_lose = kFreeTextTrials * static_cast<double>(calls_) * plain_seconds_;
    if (!free_ && tasks[i].free_text && saved_ < -may_lose) continue;
    double preparing = 0;
    {
      const bool reads = request.seen_ < tasks[i].prompt;
      Timer timer(reads ? reading : preparing);
      Prepare(tasks[i]);
    }
    Expand(tasks[i], static_cast<int>(i), 0);
    ++asked;
  }
  return asked;
}

int Drafter::MostNodes(const DraftLimits& limits) const {
  const LatencyModel& curve = *limits.curve;
  const double most = kMostSlower * curve.Seconds(limits.rows, limits.context);
  int nodes = std::min(limits.most_nodes, curve.Reach(limits.rows) - limits.rows);
  while (nodes > 0 && curve.Seconds(limits.rows + nodes, limits.context, nodes) > most) --nodes;
  return nodes;
}

void Drafter::GrowAll(std::span<const DraftTask> tasks, const DraftLimits& limits, double asking) {
  const bool weighs = !free_;
  const auto cost = [&](int n) {
    return limits.curve->Seconds(limits.rows + n, limits.context, n) + node_seconds_ * n;
  };
  const auto alone = static_cast<double>(tasks.size());
  const int most_nodes = weighs ? MostNodes(limits) : limits.most_nodes;
  // A token that needs no call is a row of the next one otherwise: what that is in tokens.
  double given_share = 1;
  if (weighs) {
    const double plain = limits.curve->Seconds(limits.rows, limits.context);
    const double more = limits.curve->Seconds(limits.rows + 1, limits.context) - plain;
    given_share = std::clamp(more * alone / plain, 0.0, 1.0);
  }
  double gain = alone, seconds = 0;
  double best = weighs ? gain / cost(0) : 0, best_gain = gain;
  int nodes = 0, chosen = 0;
  size_t kept = 0;  // of order_
  rate_ = best;
  order_.clear();
  {
    Timer timer(seconds);
    while (!heap_.empty() && nodes < most_nodes) {
      std::pop_heap(heap_.begin(), heap_.end());
      const Candidate candidate = heap_.back();
      heap_.pop_back();
      const DraftTask& task = tasks[static_cast<size_t>(candidate.task)];
      DraftTree& tree = task.request->tree;
      const DraftNode& parent = tree.nodes[static_cast<size_t>(candidate.parent)];
      const int depth = parent.depth + 1;
      const bool drawn = candidate.draw >= 0;
      const bool tries = weighs && task.free_text && (saved_ <= 0 || trials_ < kTrials);
      const auto left =
          (tries ? std::min(task.most_nodes, kFreeTextNodes) : task.most_nodes) -
          (setting_.rules.replaces()
               ? static_cast<int>(std::ranges::count(order_, candidate.task, &Grown::task))
               : tree.drafts());
      if (left <= 0 || depth > task.most_depth) continue;
      if (drawn && candidate.draw != parent.kept) continue;
      if (weighs && !AnyPays(double{candidate.value}, gain, nodes, most_nodes, best, cost)) break;
      const size_t before = tree.nodes.size();
      const int most = std::min(left, most_nodes - nodes);
      if (!GrowCandidate(task, candidate, most)) continue;
      for (; nodes < std::ssize(order_); ++nodes) {
        const Grown& grown = order_[static_cast<size_t>(nodes)];
        gain += double{grown.value} * (grown.given ? given_share : 1);
      }
      if (!weighs || gain / cost(nodes) > best) {
        if (weighs) rate_ = best = gain / cost(nodes);
        best_gain = gain;
        chosen = nodes;
        kept = order_.size();
      }
      if (nodes >= most_nodes || tree.drafts() >= task.most_nodes || depth >= task.most_depth) {
        continue;
      }
      // Sources are asked where what they say may pay.
      if (weighs && candidate.value <= candidate.chance && !drawn &&
          !ChainPays(double{candidate.chance}, gain, nodes, most_nodes, best, cost)) {
        continue;
      }
      const size_t after = tree.nodes.size();
      for (size_t i = before; i < after; ++i) Expand(task, candidate.task, static_cast<int>(i));
    }
  }
  if (nodes > 0) charged_ += nodes * Average(seconds / nodes, grown_, node_seconds_);
  if (weighs && best_gain / cost(chosen) < (1 + kMargin) * alone / cost(0)) {
    best_gain = alone;
    chosen = 0;
    kept = 0;
  }
  for (; order_.size() > kept; order_.pop_back()) {
    const Grown& grown = order_.back();
    DraftTree& tree = tasks[static_cast<size_t>(grown.task)].request->tree;
    if (grown.drawn) --tree.nodes[static_cast<size_t>(grown.parent)].kept;
    if (grown.node) tree.nodes.pop_back();
  }
  // What a node is worth to its output: the calls that its tokens save, without its rows.
  const double token = weighs ? cost(0) / alone : 0;
  const double row = weighs && chosen > 0 ? (cost(chosen) - cost(0)) / chosen : 0;
  for (size_t i = 0; i < tasks.size(); ++i) {
    RequestDrafts& request = *tasks[i].request;
    if (request.tree.nodes.empty()) continue;
    if (request.tree.drafts() > 0 || !weighs) {
      ++request.stats_.calls;
      request.stats_.rows += request.tree.drafts();
      for (size_t n = 1; n < request.tree.nodes.size(); ++n) {
        request.stats_.expected += double{request.tree.nodes[n].chance};
      }
    }
    if (!weighs) continue;
    double worth = 0;
    for (const Grown& grown : order_) {
      if (!std::cmp_equal(grown.task, i)) continue;
      worth += double{grown.value} * (grown.given ? given_share : 1) * token - row;
    }
    Judge(request, worth - asking, asking, cost(0) / alone);
  }
}

void Drafter::Judge(RequestDrafts& request, double worth, double asking, double plain) const {
  request.credit_ = std::min(request.credit_ + worth, kMostCredit * asking);
  if (request.credit_ >= 0) {
    request.backoff_ = 0;
    return;
  }
  const double vain = ask_seconds_ / (kVain * plain);
  request.backoff_ = std::clamp(2 * request.backoff_, 1, kMostSleep);
  request.backoff_ = std::min(request.backoff_, static_cast<int>(std::min(vain, 1e6)));
  request.sleep_ = request.backoff_;
  request.credit_ = 0;
}

void Drafter::Verified(RequestDrafts& request, int index, TokenId came, bool drawn) {
  const DraftNode& node = request.tree.nodes[static_cast<size_t>(index)];
  const bool followed = request.tree.Child(index, came) >= 0;
  if (followed) ++request.stats_.accepted;
  if (followed) saved_ += drawn ? token_seconds_ : row_seconds_;
  if (node.law_source >= 0) draws_.Count(node.kept, followed);
  for (int i = 0; i < node.cases; ++i) {
    const auto& [token, which] = request.cases_[static_cast<size_t>(node.first_case + i)];
    chances_.Count(which, token == came);
  }
  int draws = 0;
  size_t right = entries_.size();  // the source whose proposal was right last
  for (int i = 0; i < node.proposals; ++i) {
    const auto& [proposal, source] =
        request.proposals_[static_cast<size_t>(node.first_proposal + i)];
    Counter& counter =
        entries_[source].counters[std::min<size_t>(proposal.bucket, kDraftBuckets - 1)];
    // Independent draws are counted together, and one alone where it was alone.
    const bool one_of_draws = std::cmp_equal(source, node.law_source);
    const bool counts = !one_of_draws || (node.kept == 1 && draws++ == 0);
    if (counts) ++counter.asked;
    // Of draws that are equal the second one adds nothing.
    if (proposal.token == came && right != source) {
      right = source;
      if (counts) ++counter.right;
      if (followed) ++request.stats_.sources[source].accepted;
    }
    if (counter.asked > kMostAsked) {
      counter.asked /= 2;
      counter.right /= 2;
    }
  }
  for (size_t i = 0; i < request.followers_.size(); ++i) {
    request.followers_[i]->Learn(node.cursors[i], came);
  }
}

void Drafter::SeeLogits(RequestDrafts& request, int index, TokenId token,
                        std::span<const float> logits, bool visited) {
  const DraftNode* node = index < static_cast<int>(request.tree.nodes.size())
                              ? &request.tree.nodes[static_cast<size_t>(index)]
                              : nullptr;
  if (node == nullptr) return;
  for (size_t i = 0; i < request.followers_.size(); ++i) {
    const DraftSession& follower = *request.followers_[i];
    if (visited ? !follower.wants_logits() : !follower.wants_all_logits()) continue;
    Timer timer(request.stats_.sources[i].seconds);
    request.followers_[i]->SeeLogits(
        {node->cursors[i], token, logits, node->mask.get(), node->at.get(), visited});
  }
}

void Drafter::Finish(RequestDrafts& request, std::span<const TokenId> output) {
  double seconds = 0;
  {
    Timer timer(seconds);
    for (size_t i = 0; i < request.followers_.size(); ++i) {
      request.followers_[i]->Finish(output);
      const DraftModelCalls calls = request.followers_[i]->calls();
      request.stats_.sources[i].model_calls = calls.all;
      request.stats_.sources[i].late_calls = calls.late;
    }
  }
  Spend(seconds);
  stats_.calls += request.stats_.calls;
  stats_.rows += request.stats_.rows;
  stats_.accepted += request.stats_.accepted;
  stats_.expected += request.stats_.expected;
  stats_.lossy += request.stats_.lossy;
  for (size_t i = 0; i < stats_.sources.size(); ++i) {
    stats_.sources[i].drafted += request.stats_.sources[i].drafted;
    stats_.sources[i].kept += request.stats_.sources[i].kept;
    stats_.sources[i].accepted += request.stats_.sources[i].accepted;
    stats_.sources[i].model_calls += request.stats_.sources[i].model_calls;
    stats_.sources[i].late_calls += request.stats_.sources[i].late_calls;
    stats_.sources[i].seconds += request.stats_.sources[i].seconds;
  }
}

Status Drafter::Save() {
  for (Entry& entry : entries_) {
    if (Status status = entry.source->Save(); !status.ok()) return status;
  }
  return {};
}

Status Drafter::Forget() {
  for (Entry& entry : entries_) {
    if (entry.index < 0) continue;
    Result<std::unique_ptr<DraftSource>> source =
        MakeDraftSource(static_cast<size_t>(entry.index), setting_, entry.nth);
    if (!source.ok()) return source.error();
    entry.source = *std::move(source);
  }
  return {};
}

int64_t Drafter::bytes() const {
  int64_t bytes = 0;
  for (const Entry& entry : entries_) bytes += entry.source->bytes();
  return bytes;
}

}  // namespace pawl
