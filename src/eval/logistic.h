// Logistic regression with one variable: P(yes) = 1 / (1 + exp(-(intercept + slope * x))).
//
//   const LogisticFit fit = FitLogistic(points);
//   if (fit.slope > 0) Use(-fit.intercept / fit.slope);      // where P(yes) is 1/2
#ifndef PAWL_SRC_EVAL_LOGISTIC_H_
#define PAWL_SRC_EVAL_LOGISTIC_H_

#include <span>
#include <utility>

namespace pawl::eval {

struct LogisticFit {
  double intercept = 0, slope = 0;
};

// The most likely one, by Newton's method. A tiny penalty of the slope keeps it finite where x
// tells all. All points of one kind: a slope of 0.
LogisticFit FitLogistic(std::span<const std::pair<double, bool>> points);

}  // namespace pawl::eval

#endif  // PAWL_SRC_EVAL_LOGISTIC_H_
