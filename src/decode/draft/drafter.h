// Drafter: guesses what several outputs go on with, as trees, for one call of the model.
//
//   auto drafter = *pawl::Drafter::Make(setting, sources);
//   auto request = drafter->Begin({.prompt = prompt, .constraint = constraint, ...});
//   pawl::DraftTask task = {.request = request.get(), .tokens = tokens, .at = at, .mask = mask,
//   ...}; drafter->Draft({&task, 1}, limits);                // request->tree
//   ... the model runs the tree's nodes; the token after each visited node is told:
//   drafter->Verified(*request, node, token);
//
// A node has its token, its parent, the state after the token and that state's mask. States are
// values, so nothing is rolled back when a guess was wrong: the node is forgotten.
#ifndef PAWL_SRC_DECODE_DRAFT_DRAFTER_H_
#define PAWL_SRC_DECODE_DRAFT_DRAFTER_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "pawl/generation.h"
#include "src/decode/draft/chance_table.h"
#include "src/decode/draft/latency_model.h"
#include "src/decode/draft/source.h"
#include "src/decode/draft/verify/draw_plan.h"

namespace pawl {

inline constexpr size_t kMostDraftSources = 16;
inline constexpr int kMostDraftMemory = 1 << 20;  // MB
inline constexpr int kMostDraftNodes = 63;        // with the root a tree of kMaxTreeRows

struct DraftNode {
  TokenId token = kNoToken;
  int parent = -1;  // node 0 is the root: the last token that there is
  int depth = 0;
  std::shared_ptr<const LoopConstraint> at;  // after the token; nullptr without constraint
  std::shared_ptr<const Mask> mask;          // of `at`
  bool legal = true;                         // false: the constraint refuses it (unfiltered drafts)
  float chance = 1;                          // that the output comes by here
  std::array<DraftCursor, kMostDraftSources> cursors = {};
  int first_proposal = 0, proposals = 0;  // of RequestDrafts::proposals_
  int first_case = 0, cases = 0;          // of RequestDrafts::cases_
  // What its children were drawn from, under a rule of rejection, and how many of the draws are in
  // the tree.
  std::shared_ptr<const DraftLaw> law;
  int kept = 0;
  // Under "spectr": the source of the law, -1 for none, and the nodes that are planned behind.
  int law_source = -1, planned = 0;
};

struct DraftTree {
  std::vector<DraftNode> nodes;
  int drafts() const { return std::max(0, static_cast<int>(nodes.size()) - 1); }
  // The child with that token, -1 without one.
  int Child(int node, TokenId token) const;
  // The tokens of a node's children.
  void ChildrenOf(int node, std::vector<TokenId>& tokens) const;
  // The child that is most likely, -1 without one.
  int LikeliestChild(int node) const;
};

// What the drafter knows of one request. Made by Begin; goes before the drafter.
class RequestDrafts {
 public:
  DraftTree tree;
  const DraftStats& stats() const { return stats_; }
  // A draft came that would not have come without the lossy rule.
  void CountLossy() { ++stats_.lossy; }

 private:
  friend class Drafter;
  struct Made {
    DraftProposal proposal;
    size_t source;
  };
  std::vector<std::unique_ptr<DraftSession>> followers_;
  std::vector<Made> proposals_;
  std::vector<std::pair<TokenId, uint32_t>> cases_;  // of ChanceTable
  size_t seen_ = 0;                                  // tokens that followers know
  size_t prompt_ = 0;
  int sleep_ = 0, backoff_ = 0;  // calls without drafts to come; how many the last time
  // Seconds by which the trees asked for lately were worth more than asking.
  double credit_ = 0;
  DraftStats stats_;
};

struct DraftTask {
  RequestDrafts* request = nullptr;
  std::span<const TokenId> tokens;  // prompt and output; the root is the last of them
  size_t prompt = 0;
  std::shared_ptr<const LoopConstraint> at;  // after them
  std::shared_ptr<const Mask> mask;
  int most_nodes = 0;
  int most_depth = 0;
  DraftTarget target = {};
  bool free_text = false;  // without a constraint: guesses are right less often
};

struct DraftLimits {
  int most_nodes = kMostDraftNodes;     // of all trees
  int rows = 1;                         // that run in any case
  int context = 0;                      // tokens that they see, on average
  const LatencyModel* curve = nullptr;  // nullptr: rows cost nothing
  float least_chance = 0;               // of a node
  bool overlaps = false;                // GoOn follows
};

// One thread at a time.
class Drafter {
 public:
  // `sources`: of ParseDraftSources; `more`: others behind them, with their names.
  using Named = std::pair<std::string, std::unique_ptr<DraftSource>>;
  static Result<std::unique_ptr<Drafter>> Make(DraftSetting setting,
                                               std::span<const size_t> sources,
                                               std::vector<Named> more = {});

  std::unique_ptr<RequestDrafts> Begin(const DraftRequest& request);
  // Begin looks at DraftRequest::grammar, and finds it where it is 0.
  bool wants_fingerprint() const;
  // Fingerprints cost time at the beginning of an output, so they wait until drafts have paid. From
  // any thread.
  bool learns_grammars() const;
  // Told of each call of the model, with drafts or without.
  void CountCall() { ++calls_; }
  // Drafts have not paid for as long as they were tried, so nothing is asked for some calls.
  bool rests() const { return calls_ < rest_until_; }
  // Grows the tree of each request; the trees of before are gone.
  void Draft(std::span<const DraftTask> tasks, const DraftLimits& limits);
  // While a device verifies the trees that Draft grew: draft models go on behind the likeliest
  // leaves. `has_time` is asked before each call, with the seconds that it is expected to take.
  void GoOn(std::span<const DraftTask> tasks, const std::function<bool(double)>& has_time);
  // Of a call that GoOn makes, on average; 0: not known.
  double call_seconds() const { return late_seconds_; }
  bool foresees() const { return foresees_; }
  // At this node of the last tree the output went on with that token. `drawn`: a call without
  // drafts would have had to draw it; false: it is forced, so it would have been a row of such a
  // call.
  void Verified(RequestDrafts& request, int node, TokenId came, bool drawn = true);
  // Time that drafts took on top: to begin an output and to learn from a whole one.
  void Spend(double seconds);
  // The same, to learn from the answers of a call.
  void SpendOnCall(double seconds);
  bool wants_logits() const { return wants_logits_; }
  bool wants_all_logits() const { return wants_all_logits_; }
  // Where wants_logits: the logits there. `visited`: the output came by.
  void SeeLogits(RequestDrafts& request, int node, TokenId token, std::span<const float> logits,
                 bool visited = true);
  void Finish(RequestDrafts& request, std::span<const TokenId> output);
  // Histories to their file. Errors: kIo.
  Status Save();
  // What the sources of the registry learned is gone; how often they are right stays known. No
  // request may be there. Errors: those of Make.
  Status Forget();

  const DraftOptions& options() const { return setting_.options; }
  const DraftRules& rules() const { return setting_.rules; }
  const DraftStats& stats() const { return stats_; }
  int64_t bytes() const;  // shared memory of the sources
  // Seconds of one more node, on average.
  double node_seconds() const { return node_seconds_; }

 private:
  struct Counter {
    float right = 0, asked = 0;
  };
  struct Entry {
    std::string name;
    std::unique_ptr<DraftSource> source;
    int index = -1;  // in the registry
    size_t nth = 0;  // of several of this index
    std::array<Counter, kDraftBuckets> counters = {};
  };
  struct Child {
    TokenId token;
    float chance, worth;
    uint32_t sources = 0;  // bits
    bool given = false;    // as DraftProposal
  };
  struct Candidate {
    float value;  // in tokens, of this call or of later ones
    float chance;
    int task, parent;
    TokenId token;
    int draw;       // of the parent's law; -1: none
    int draws = 1;  // that come together, from this one on
    bool given = false;
    bool operator<(const Candidate& other) const {
      if (value != other.value) return value < other.value;
      if (task != other.task) return task > other.task;
      return parent != other.parent ? parent > other.parent : draw > other.draw;
    }
  };
  struct Grown {
    int task, parent;
    bool node;  // false: a draw whose node was there
    bool drawn;
    float value;
    bool given;
  };

  // Behind a leaf, while the device verifies.
  struct Ahead {
    float chance;  // that the output comes to it
    const DraftTask* task;
    size_t source;
    int nth;  // of the leaves
    int depth;
    std::vector<TokenId> path;
    std::shared_ptr<const LoopConstraint> at;
    std::shared_ptr<const Mask> mask;
    int steps = 0;
  };

  explicit Drafter(DraftSetting setting);
  // `reading`: gains the seconds that new prompts took.
  int Ask(std::span<const DraftTask> tasks, double& reading);
  // `asking`: the seconds that Ask took for an output.
  void GrowAll(std::span<const DraftTask> tasks, const DraftLimits& limits, double asking);
  // The newest counts at least for a share, an interrupted one for no more than others. Returns
  // what is to be charged for it.
  static double Average(double value, int64_t& times, double& mean);
  // What a call has cost more than without drafts, in seconds; `plain`: what it takes without;
  // `drafting`: the outputs that had drafts in it.
  void Charge(double cost, double plain, int drafting);
  void Prepare(const DraftTask& task);
  // Asks the sources what comes after a node, and puts it onto the heap.
  void Expand(const DraftTask& task, int number, int node);
  void Join(const DraftProposal& proposal, float chance, size_t source);
  // The chances of the node's children: what was counted for such drafts.
  void Correct(RequestDrafts& request, int node);
  void Push(const DraftTask& task, int number, int node);
  // Independent draws, which come together: `first` is how often one alone is taken.
  void PushDraws(const DraftTask& task, int number, int node, float first);
  // What the candidate stands for, up to `most` nodes. False: nothing.
  bool GrowCandidate(const DraftTask& task, const Candidate& candidate, int most);
  // Makes the node; false when the constraint refuses the token.
  bool Grow(const DraftTask& task, const Candidate& candidate, int planned);
  // Whether an output is asked for again, by what its tree was worth in seconds, asking included.
  void Judge(RequestDrafts& request, double worth, double asking, double plain) const;
  // The most nodes for which a call takes no more than is allowed.
  int MostNodes(const DraftLimits& limits) const;
  float ChanceOf(size_t source, const DraftProposal& proposal) const;
  void BeginAhead(const DraftTask& task);
  // One call, or the tokens that a grammar dictates. False: there is nothing more to do there.
  bool GoOnAt(Ahead& ahead);
  // The token comes next there.
  bool Lengthen(Ahead& ahead, TokenId token) const;
  bool IsEnd(TokenId token) const;

  DraftSetting setting_;
  std::vector<Entry> entries_;
  std::vector<Candidate> heap_;
  std::vector<DraftProposal> proposed_;
  std::vector<TokenId> path_;
  std::vector<Child> children_;
  DrawPlan draws_;
  ChanceTable chances_;
  float least_chance_ = 0;
  int planned_ = 0;  // nodes of a tree
  bool wants_logits_ = false, wants_all_logits_ = false;
  std::vector<Grown> order_;
  // Of a node on average, of asking what comes after a root, and of learning from a call.
  double node_seconds_ = 0, ask_seconds_ = 0, learn_seconds_ = 0;
  int64_t grown_ = 0, asks_ = 0, learned_ = 0;
  double charged_ = 0;  // of the host for the call that comes
  // Of calls that were asked for: how many lately, and what they have saved, in seconds. A call
  // counts less with each that follows.
  int trials_ = 0;
  double saved_ = 0, token_seconds_ = 0, row_seconds_ = 0;
  int64_t calls_ = 0, rest_until_ = 0, rest_ = 0;
  std::atomic<bool> paid_{false};
  bool free_ = false;  // drafts of this call need not pay
  bool overlaps_ = false, foresees_ = false;
  double rate_ = 0;  // tokens by second that the trees are worth so far
  double late_seconds_ = 0;
  double plain_seconds_ = 0;  // of a call without drafts; 0: not known
  int64_t late_calls_ = 0;
  std::vector<Ahead> ahead_;
  DraftStats stats_;
};

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_DRAFT_DRAFTER_H_
