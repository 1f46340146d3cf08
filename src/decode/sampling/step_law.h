// StepLaw: the law of the next token as a model has it, and the part of it that a mask leaves;
// GumbelOrder: that part in the order of sampling without replacement.
//
//   Result<StepLaw> law = MakeStepLaw(logits, 1.0, mask.get(), known);
//   GumbelOrder order(law->allowed, Noise(seed, step));
//   const int item = *order.Next();                    // drawn as softmax, over what is allowed
//   law->allowed[item].token, law->log_allowed         // the mass that the mask left, its
//   logarithm
#ifndef PAWL_SRC_DECODE_SAMPLING_STEP_LAW_H_
#define PAWL_SRC_DECODE_SAMPLING_STEP_LAW_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "pawl/grammar.h"
#include "pawl/result.h"
#include "pawl/vocabulary.h"
#include "src/decode/sampling/noise.h"

namespace pawl {

inline constexpr double kNoMass = -std::numeric_limits<double>::infinity();  // log 0

struct Candidate {
  TokenId token;
  double log_mass;  // finite
};

// log(sum of exp), of masses in any order; kNoMass for none.
double LogSum(std::span<const Candidate> candidates);
double LogSum(std::span<const double> logs);
double LogAdd(double a, double b);

struct StepLaw {
  std::vector<Candidate> allowed;  // ascending by token; log-probabilities under the whole model
  double log_allowed = kNoMass;    // of all of them together
  // log-probability of token t: logits[t] / temperature - log_normaliser.
  double log_normaliser = 0;
  double temperature = 1;
  double LogProbability(std::span<const float> logits, TokenId token) const {
    return static_cast<double>(logits[static_cast<size_t>(token)]) / temperature - log_normaliser;
  }
};

// `mask` nullptr: everything is allowed. Tokens from `known` on are none of the vocabulary's: they
// have probability, and are never allowed. Errors: kInternal where a logit is NaN or +infinity or
// all are -infinity.
Result<StepLaw> MakeStepLaw(std::span<const float> logits, double temperature, const Mask* mask,
                            int known);

// A source of src/decode/sampling/rejection.h but for the check. Masses are logarithms. The
// candidates must outlive it. One pass over them finds the next few of the order; the whole order
// is sorted when those are used up.
class GumbelOrder {
 public:
  using Mass = double;
  GumbelOrder(std::span<const Candidate> candidates, double log_total, const Noise& noise,
              int head = 16);

  std::optional<int> Next();
  void Restart();
  void Reject(int item);
  double MassOf(int item) const { return candidates_[static_cast<size_t>(item)].log_mass; }
  double Total() const { return log_total_; }
  double Remaining() const;
  static double Scale(double mass, int64_t numerator, int64_t denominator);
  static double Zero() { return kNoMass; }
  int64_t Phantoms(int64_t most);

  int passes() const { return passes_; }

 private:
  struct Keyed {
    double key;
    int item;
  };
  void Fill();

  std::span<const Candidate> candidates_;
  double log_total_;
  Noise noise_;
  int head_;
  uint64_t round_ = 0;
  bool whole_ = false;         // filled_ has all that there are
  std::vector<Keyed> filled_;  // the next ones, the very next last
  bool seen_any_ = false;
  Keyed last_ = {0, -1};
  std::vector<bool> rejected_;  // by item; empty where none was
  size_t rejects_ = 0;
  double rejected_share_ = 0;  // of the total
  int passes_ = 0;
};

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_SAMPLING_STEP_LAW_H_
