// Work: what takes part in the calls of a model that a batch makes. An output is one
// (output_work.h), the branches of a sampler are one (sampling/branch_work.h), and so are the
// scores of given tokens (score_work.h).
//
// BatchEngine (batch.h) decides which works run in a call. A work knows what it wants to run, and
// what follows from the answers:
//
//   Result<bool> goes_on = work.Start(may_wait);     // once, when its turn has come
//   ... while work.asks(): goes_on = work.Look(...), on any thread
//   goes_on = work.Begin(); status = work.Open();    // once, when it gets a place
//   ... for each call of the model:
//   status = work.Prepare();
//   work.Ask(sink, std::min(work.pending(), most));  // its rows; none: it waits
//   work.Ran(answers, seconds, failed);
//   if (work.answered()) goes_on = work.Take(answers, later);
//   goes_on = work.Emit();                           // calls back
//   ... when it has ended, or was cancelled:
//   work.End(failed); work.Evict(); work.Finish(error); work.Done();
//
// Evict may come at any time between calls: the work frees what it holds of the model's
// memory, and computes it again later.
//
// Thread safety: one thread at a time. While another thread is in Look, the thread of the engine
// may call Evict, pages and lane. Take may be called for different works at the same time.
#ifndef PAWL_SRC_DECODE_WORK_H_
#define PAWL_SRC_DECODE_WORK_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "pawl/result.h"
#include "pawl/vocabulary.h"
#include "src/decode/constraint.h"
#include "src/model/model.h"

namespace pawl {

class OutputWork;
class Work;

// Pages that so many positions of a KV cache take.
inline int64_t Pages(int64_t positions, int page) { return (positions + page - 1) / page; }

// The rows of one call, and who wants the answers.
struct RowSink {
  struct LogitsRequest {
    Work* work = nullptr;
    int tag = 0;  // what it means is the work's
  };
  bool draws = false;   // the model draws the tokens
  bool states = false;  // a work wants the states of its rows
  std::vector<Row> rows;
  std::vector<LogitsRequest> asking;  // by output

  // The number of an answer, for Row::output.
  int32_t Want(Work& work, int tag) {
    asking.push_back({&work, tag});
    return static_cast<int32_t>(asking.size()) - 1;
  }
};

// What a call of the model has answered.
struct CallAnswers {
  std::span<const float> logits = {};    // [output][width]; or, where the model draws,
  std::span<const TokenId> tokens = {};  // by output
  size_t width = 0;
  // Where a work wants them: what the head reads of each row of the call, [row][hidden].
  std::span<const float> states = {};
  size_t hidden = 0;
  std::span<const Row> rows = {};

  bool drawn() const { return !tokens.empty(); }
  std::span<const float> Logits(int32_t output) const {
    return logits.subspan(static_cast<size_t>(output) * width, width);
  }
  // Of the row with this output.
  std::span<const float> States(int32_t output) const {
    const auto row = std::ranges::find(rows, output, &Row::output);
    return states.subspan(static_cast<size_t>(row - rows.begin()) * hidden, hidden);
  }
};

class Work {
 public:
  virtual ~Work() = default;

  // ---- What the host has to find out. These return whether the work goes on; false: it has ended.

  // `may_wait`: there is no other thread for looks, so asks() has to be false after Start and Take.
  virtual Result<bool> Start(bool may_wait) = 0;
  virtual Result<bool> Begin() { return true; }
  // There is a look to do before the work has rows.
  virtual bool asks() const = 0;
  // `known_only`: as far as nothing is waited for; asks() may stay true.
  virtual Result<bool> Look(bool known_only) = 0;
  // After a Look of another thread, on the thread of the engine.
  virtual void Looked() {}
  // Looks of one lane wait for each other. nullptr: they wait for none.
  virtual const void* lane() const { return nullptr; }

  // ---- Rows

  // What it needs of the model before its first row, also after Evict.
  virtual Status Open() = 0;
  // Before its rows are planned.
  virtual Status Prepare() { return {}; }
  // Prompts, and what has to be computed again: takes what others have computed.
  virtual Status Reuse() { return {}; }
  // Rows that it has to run before it goes on.
  virtual int pending() const = 0;
  // It waits for few rows behind an answer, rather than for a prompt.
  virtual bool writes() const = 0;
  // The most of its rows in a call of `max_rows`.
  virtual int most_rows(int max_rows) const { return max_rows; }
  // Answers have to be logits, also where the model draws.
  virtual bool needs_logits() const { return false; }
  // Pages that it wants for what it has and so many tokens more, beyond those that it holds.
  // `looking`: another thread looks.
  virtual int64_t pages(int headroom, bool looking) const = 0;
  // Pages that its next rows take.
  virtual int64_t PagesOf(int rows) const = 0;
  // Appends its rows, at most so many; drafts come on top.
  virtual void Ask(RowSink& sink, int most) = 0;
  // The call has been made. `seconds`: of its rows. `failed`: they have no answers.
  virtual void Ran(const CallAnswers& answers, double seconds, bool failed) = 0;
  virtual bool answered() const = 0;
  // `later`: its look may wait until the next call is under way.
  virtual Result<bool> Take(const CallAnswers& answers, bool later) = 0;
  // After Take, one work after the other.
  virtual void Settle(const CallAnswers& /*answers*/, bool /*ended*/) {}
  // After Ask, where the whole call failed: as before it.
  virtual void Forget() = 0;
  virtual void Evict() = 0;

  // ---- The end

  // Calls back about what is sure; false: the callback stops it. Not while another thread looks.
  virtual Result<bool> Emit() { return true; }
  virtual void Cancel() = 0;
  // After Cancel: what is left to do takes long, so it is done in a Look, if there are threads.
  virtual bool ends_in_look() const { return false; }
  // It has ended, by an error where `failed`.
  virtual void End(bool /*failed*/) {}
  // Makes the result: the error, or what there is. Does not throw.
  virtual void Finish(std::optional<Error> error, int preemptions) = 0;
  // Constraints that may take a while to be freed.
  virtual std::vector<std::shared_ptr<const Constraint>> TakeConstraints() { return {}; }
  // Hands the result to its callback.
  virtual void Done() = 0;

  virtual OutputWork* output() { return nullptr; }

  // Set to end a look (base/stop_scope.h). By any thread.
  std::atomic<bool> stop{false};
};

// Runs a work by itself, in calls of at most so many rows. Errors: the work's and the model's.
Status RunAlone(Model& model, Work& work, int max_rows);

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_WORK_H_
