// DraftVerifier: the drafts of a batch. It decides which outputs get some, adds the rows that
// verify them, and takes the tokens that they were right about.
//
//   DraftVerifier verifier(model, {.drafter = drafter, .max_rows = 256});
//   auto drafts = verifier.New(run);                    // nullptr: this output gets none
//   verifier.Prepare(*drafts);                          // on any thread, with the run's first look
//   verifier.Begin(*drafts);
//   ... for each call of the model:
//   verifier.BeginCall(pages, others, prompts_wait, draws);
//   verifier.Offer(drafts.get(), run, sequence, length, rows);  // each output that has rows in the
//   call verifier.Grow();                                    // trees behind them
//   verifier.AddRows(*drafts, where, rows);             // behind the rows of the output
//   ... the model runs, and where it draws tokens itself:
//   verifier.Ask(*drafts, nth, request);
//   verifier.GoOn(began);                               // on a device: while it computes
//   ... then, while the root's answer is there:
//   Result<bool> wants = verifier.Take(*drafts, answers, look);
//   length = verifier.Settle(*drafts, answers, sequence, length, ended);
//   ... at the end of the output:
//   verifier.End(*drafts, failed);
//
// All draft state is here: of a batch in DraftVerifier, of an output in OutputDrafts. The outputs
// are the same with drafts and without them (verifier.cc tells why).
//
// Thread safety: one thread at a time. Exceptions: Prepare, Ask and Take may be called for
// different outputs at the same time, Ask also for different rows of one output.
#ifndef PAWL_SRC_DECODE_DRAFT_VERIFIER_H_
#define PAWL_SRC_DECODE_DRAFT_VERIFIER_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "pawl/result.h"
#include "pawl/vocabulary.h"
#include "src/decode/draft/drafter.h"
#include "src/decode/draft/latency_model.h"
#include "src/decode/draft/verify/tree_rule.h"
#include "src/decode/generation.h"
#include "src/decode/work.h"
#include "src/model/model.h"

namespace pawl {

// The drafts of one output. Lives no longer than the verifier and the output.
class OutputDrafts {
 public:
  OutputDrafts(OutputBuilder& run, const Drafter& drafter);
  OutputDrafts(const OutputDrafts&) = delete;
  OutputDrafts& operator=(const OutputDrafts&) = delete;

 private:
  friend class DraftVerifier;
  struct NodeRow {
    int row = 0;        // which of its sequence
    uint64_t path = 0;  // as ancestors
    int32_t output = -1;
    std::vector<SeenToken> seen;   // what the request of a backend that draws refers to
    std::optional<Error> failure;  // no request could be made
  };

  struct Visit {
    int node = 0;
    TokenId came = kNoToken;
    bool drawn = true;  // false: forced
  };

  // Also a root alone: the sources learn what came there.
  bool has_tree() const { return drafted_ != nullptr && !drafted_->tree.nodes.empty(); }

  // The lossy rule: a draft that is probable enough takes the place of the sampled token.
  Result<TokenId> Probable(Sampler& sampler, std::span<const float> logits, const Mask* mask,
                           const TokenHistory& history, TokenId sampled);
  // A rule of rejection: what it takes, at the node where the output stands.
  Result<TokenId> ByRule(const TokenHistory& history);
  // For TreeRule: the law of the model behind a node.
  Result<bool> LawOf(int node, std::vector<TokenMass>& law) const;

  OutputBuilder& run_;
  const float lossy_;  // 0: off
  const bool rejects_;
  TreeRule tree_rule_;
  const TokenRule rule_;
  CallAnswers answers_;                     // of the last call, for ByRule
  uint64_t fingerprint_ = 0;                // of the constraint
  std::unique_ptr<RequestDrafts> drafted_;  // nullptr: not begun, or given up
  bool finds_grammar_ = false;
  // In a call drafts stand behind the pending rows of the output: the likeliest chain as plain
  // rows, so that nothing is moved when it comes, then the rest as a tree.
  std::vector<int> nodes_;          // by row of a draft
  int plain_rows_ = 0;              // of its sequence in the last call, pending ones included
  std::vector<NodeRow> node_rows_;  // by node
  std::vector<TokenId> children_;   // of the node where the next token is taken, for Probable
  bool took_ = false;               // what follows is of the last call
  // Take has left the tree at reached_ because of a look. The token there is tokens()[waits_at_],
  // and the tree has a node for it.
  bool waits_ = false;
  size_t waits_at_ = 0;
  int reached_ = 0;  // the node from which the output goes on
  // Nodes that the output came by.
  std::vector<Visit> visited_;
};

class DraftVerifier {
 public:
  struct Setting {
    std::shared_ptr<Drafter> drafter;
    int max_rows = 256;  // of a call
    bool draws = false;  // the model draws the tokens
    // Whether a constraint may be asked what is not known yet.
    bool may_wait = true;
  };
  struct Counts {
    int64_t rows = 0;          // of drafts
    int64_t accepted = 0;      // drafts that came
    int64_t failed_calls = 0;  // with drafts, made again without
  };

  DraftVerifier(Model& model, Setting setting)
      : model_(model), setting_(std::move(setting)), curve_(model.info()) {}

  // Rules that look at logits, so a model must not draw under them.
  static bool NeedsLogits(const Drafter* drafter) {
    return drafter != nullptr && (drafter->options().lossy > 0 || drafter->rules().rejects());
  }

  // nullptr: the output wants none, or can have none.
  std::unique_ptr<OutputDrafts> New(OutputBuilder& run) const;
  // Whether Prepare asks the constraint, which may take a while.
  static bool asks_first(const OutputDrafts& drafts) { return drafts.finds_grammar_; }
  static void Prepare(OutputDrafts& drafts);
  void Begin(OutputDrafts& drafts);

  // `pages`: that the rows which run in any case leave. `others`: rows of the call that are of no
  // output. `prompts_wait`: for rows that they do not get in this call.
  // `draws`: the model draws in the call, so GoOn may follow.
  void BeginCall(int64_t pages, int others, bool prompts_wait, bool draws);
  // `drafts` nullptr: an output without. `length`: of its sequence, `rows`: of the call.
  void Offer(OutputDrafts* drafts, const OutputBuilder& run, SequenceId sequence, int length,
             int rows);
  // Whether any tree has drafts. After an exception of BeginCall to Grow: GiveUp for each output.
  bool Grow();
  // No tree for the call that comes; no drafts for this output from here on.
  static void Drop(OutputDrafts& drafts);
  static void GiveUp(OutputDrafts& drafts);
  void CountFailedCall() { ++counts_.failed_calls; }

  // Where drafts are added: behind `pending` rows of the output, the last one of which has the
  // answer `root_output`. Answers of drafts have the numbers from `next_output` on, one each.
  struct Where {
    SequenceId sequence = -1;
    int length = 0, pending = 0;
    int32_t root_output = -1, next_output = 0;
    bool draws = false;  // the model draws in this call
  };
  // Returns how many rows were added.
  int AddRows(OutputDrafts& drafts, const Where& where, std::vector<Row>& rows);
  // How the model is to draw the token behind the nth of these rows. Errors come from Take.
  static void Ask(OutputDrafts& drafts, int nth, SampleRequest& wanted);
  // The call has been under way on a device since `began`: draft models go on behind the trees for
  // as long as it leaves them time. An exception means nothing to the call.
  using Clock = std::chrono::steady_clock;
  void GoOn(Clock::time_point began);
  // The device has answered.
  void Answered();
  // There are answers to take.
  static bool HasTree(const OutputDrafts& drafts) { return drafts.has_tree(); }
  // The next tokens of an output whose last token and drafts have run. `look`: OutputBuilder::Look.
  Result<bool> Take(OutputDrafts& drafts, const CallAnswers& answers,
                    const std::function<Result<bool>()>& look) const;
  // Take has left a look to do, and goes on in the tree when it is done. REQUIRES for TakeOn: it
  // is, and the answers are the same.
  static bool Waits(const OutputDrafts& drafts) { return drafts.waits_; }
  Result<bool> TakeOn(OutputDrafts& drafts, const CallAnswers& answers,
                      const std::function<Result<bool>()>& look) const;
  // What is in the model's memory of what was drafted, and what the sources learn. Returns the
  // length of the sequence. `ended`: the sequence goes.
  int Settle(OutputDrafts& drafts, const CallAnswers& answers, SequenceId sequence, int length,
             bool ended);
  // What the call took. `rows`: of the call.
  void Learn(int rows, double seconds);
  bool rests() const { return setting_.drafter->rests(); }
  // The output has ended, by an error where `failed`.
  void End(OutputDrafts& drafts, bool failed);

  const Counts& counts() const { return counts_; }

 private:
  // What has come since `before` in the tree. False: the output has left it.
  static bool Walk(OutputDrafts& drafts, size_t before);
  Result<bool> TakeFrom(OutputDrafts& drafts, const CallAnswers& answers,
                        const std::function<Result<bool>()>& look) const;
  Model& model_;
  const Setting setting_;
  LatencyModel curve_;
  bool prompts_wait_ = false;
  // Of the call: trees that may grow, pages that are left, rows and tokens of the outputs.
  std::vector<DraftTask> tasks_;
  int64_t pages_ = 0;
  int rows_ = 0, outputs_ = 0;
  int drafted_rows_ = 0;  // of drafts
  int64_t context_ = 0;   // of the tasks
  // -1: a prompt is read, or rows of others run; -2: one was read in the call before.
  int64_t context_of_all_ = 0;
  bool overlaps_ = false;                   // draft models go on while the call runs
  bool grown_ = false;                      // the trees of the tasks are those of the call
  std::optional<Clock::time_point> began_;  // of what a device does while it needs nothing
  double window_ = 0;                       // how long that lasts, in seconds; 0: not known
  Counts counts_;
};

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_DRAFT_VERIFIER_H_
