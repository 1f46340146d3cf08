// LatencyModel: how long a call of the model takes by its number of rows, on this machine.
//
//   pawl::LatencyModel curve(model.info());
//   curve.Learn(1, 300, seconds);           // what a call took; known() from here on
//   curve.Seconds(5, 300)                   // 5 rows with 300 tokens before each
//   curve.Seconds(5, 300, 4)                // four of them drafts
#ifndef PAWL_SRC_DECODE_DRAFT_LATENCY_MODEL_H_
#define PAWL_SRC_DECODE_DRAFT_LATENCY_MODEL_H_

#include <algorithm>
#include <array>
#include <cstdint>

#include "src/model/model.h"

namespace pawl {

// A plain value; one thread at a time.
class LatencyModel {
 public:
  static constexpr int kPoints = 8;  // 1, 2, 4, ..., 128 rows

  LatencyModel() = default;  // as of a large model
  explicit LatencyModel(const ModelInfo& info);
  // A call has told how long one takes.
  bool known() const { return known_; }
  // `drafts`: how many of the rows are drafts.
  double Seconds(int rows, int context, int drafts = 0) const;
  // Calls with few rows; others tell nothing of drafts.
  void Learn(int rows, int context, double seconds, int drafts = 0);
  // The rows up to which a call may go that has `rows` in any case: twice those that were seen.
  int Reach(int rows) const { return 2 * std::max(rows, most_rows_); }
  // Seconds of 1, 2, 4, ... rows.
  std::array<double, kPoints> points() const { return points_; }

 private:
  // Points that no call was near follow the others.
  void FollowShape(size_t low, size_t high);
  // `off`: seconds more than expected of a call near these points. Where calls without drafts have
  // told what rows take, the rest is what drafts take on top: learned, true.
  bool LearnDrafts(size_t low, size_t high, int drafts, double off);

  bool known_ = false;
  double share_ = 0.06;  // of the first row's time, what one more takes until it is measured
  int most_rows_ = 0;    // of the calls that it has learned from
  bool slow_ = false;    // the last call took far longer than expected
  std::array<double, kPoints> points_ = {};
  std::array<float, kPoints> calls_ = {};        // that each has learned from
  std::array<float, kPoints> plain_calls_ = {};  // the same, without drafts
  double per_context_ = 0;                       // seconds of one row for one token that it sees
  double per_draft_ = 0;                         // seconds of a draft more than of another row
  int64_t draft_calls_ = 0;                      // that per_draft_ has learned from
};

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_DRAFT_LATENCY_MODEL_H_
