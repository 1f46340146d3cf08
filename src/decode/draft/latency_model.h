// LatencyModel: how long a call of the model takes by its number of rows, on this machine.
//
//   pawl::LatencyModel curve;
//   curve.Measure(model);                   // one call each of 1, 2, 4, ..., 32 rows
//   curve.Seconds(5, 300)                   // 5 rows with 300 tokens before each
//   curve.Learn(5, 300, seconds);           // what a call took
#ifndef PAWL_SRC_DECODE_DRAFT_LATENCY_MODEL_H_
#define PAWL_SRC_DECODE_DRAFT_LATENCY_MODEL_H_

#include <array>
#include <cstdint>

#include "pawl/result.h"
#include "src/model/model.h"

namespace pawl {

// A plain value; one thread at a time.
class LatencyModel {
 public:
  static constexpr int kPoints = 8;  // 1, 2, 4, ..., 128 rows

  // Errors of the model. Takes seven calls at most; nothing is left behind.
  Status Measure(Model& model);
  bool known() const { return known_; }
  double Seconds(int rows, int context) const;
  // Calls with few rows; others tell nothing of drafts.
  void Learn(int rows, int context, double seconds);
  // Seconds of 1, 2, 4, ... rows.
  std::array<double, kPoints> points() const { return points_; }

 private:
  bool known_ = false;
  std::array<double, kPoints> points_ = {};
  std::array<float, kPoints> calls_ = {};  // that each has learned from
  double per_context_ = 0;                 // seconds of one row for one token that it sees
};

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_DRAFT_LATENCY_MODEL_H_
