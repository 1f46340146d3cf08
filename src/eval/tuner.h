// A tuner: finds good values of a few knobs in a few trials (TPE, Bergstra et al. 2011).
//
//   Tuner tuner({{.name = "beams", .least = 1, .most = 16, .whole = true}}, seed);
//   for (int i = 0; i < 50; ++i) {
//     const std::vector<double> values = tuner.Next();
//     tuner.Tell(values, ScoreOf(values));
//   }
//   Use(tuner.trials()[tuner.best()]);
//
// Next is a function of the knobs, the seed and the trials that were told: so a run that was ended
// goes on as if nothing had happened.
#ifndef PAWL_SRC_EVAL_TUNER_H_
#define PAWL_SRC_EVAL_TUNER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace pawl::eval {

struct Knob {
  std::string name;
  std::vector<std::string> choices = {};  // not empty: values are their numbers
  double least = 0, most = 1;
  bool whole = false;  // whole numbers only
  bool log = false;    // by factors; `least` is above 0
};

struct Trial {
  std::vector<double> values;  // by knob
  double score = 0;            // the larger the better
  bool whole = true;           // false: ended early, and never the best one
};

class Tuner {
 public:
  Tuner(std::vector<Knob> knobs, uint64_t seed) : knobs_(std::move(knobs)), seed_(seed) {}

  std::vector<double> Next() const;
  // Values that nothing was learned from.
  std::vector<double> Random(uint64_t number) const;
  void Tell(std::vector<double> values, double score, bool whole = true) {
    trials_.push_back({std::move(values), score, whole});
  }
  const std::vector<Trial>& trials() const { return trials_; }
  // The first one of those with the highest score. REQUIRES: there is a whole one.
  size_t best() const;
  const std::vector<Knob>& knobs() const { return knobs_; }

 private:
  double Propose(size_t knob, uint64_t number, const std::vector<size_t>& good,
                 const std::vector<size_t>& bad) const;

  const std::vector<Knob> knobs_;
  const uint64_t seed_;
  std::vector<Trial> trials_;
};

}  // namespace pawl::eval

#endif  // PAWL_SRC_EVAL_TUNER_H_
