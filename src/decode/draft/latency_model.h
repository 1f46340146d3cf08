// LatencyModel: how long a call of the model takes by its number of rows, on this machine.
//
//   pawl::LatencyModel curve(model.info());
//   curve.Learn(1, 300, seconds);           // what a call took; known() from here on
//   curve.Seconds(5, 300)                   // 5 rows with 300 tokens before each
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
  double Seconds(int rows, int context) const;
  // Calls with few rows; others tell nothing of drafts.
  void Learn(int rows, int context, double seconds);
  // The rows up to which a call may go that has `rows` in any case: twice those that were seen.
  int Reach(int rows) const { return 2 * std::max(rows, most_rows_); }
  // Seconds of 1, 2, 4, ... rows.
  std::array<double, kPoints> points() const { return points_; }

 private:
  // Points that no call was near follow the others.
  void FollowShape(size_t low, size_t high);

  bool known_ = false;
  double share_ = 0.06;  // of the first row's time, what one more takes until it is measured
  int most_rows_ = 0;    // of the calls that it has learned from
  std::array<double, kPoints> points_ = {};
  std::array<float, kPoints> calls_ = {};  // that each has learned from
  double per_context_ = 0;                 // seconds of one row for one token that it sees
};

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_DRAFT_LATENCY_MODEL_H_
