// Rotary position embeddings: how fast each pair of a head's elements turns with the position.
#ifndef PAWL_SRC_MODEL_ROPE_H_
#define PAWL_SRC_MODEL_ROPE_H_

#include <vector>

namespace pawl {

enum class RopeType { kDefault, kLinear, kDynamic, kLlama3, kYarn };

struct RopeConfig {
  RopeType type = RopeType::kDefault;
  double theta = 10000.0;
  double factor = 1.0;                                   // all but kDefault
  double low_freq_factor = 1.0, high_freq_factor = 4.0;  // kLlama3
  double original_context = 8192;                        // kDynamic, kLlama3, kYarn
  double beta_fast = 32.0, beta_slow = 1.0;              // kYarn
  bool truncate = true;                                  // kYarn: whole dimensions as bounds
  double attention_factor = 1.0;                         // cosines and sines are multiplied by it
  // When not empty: frequency i is divided by divisors[i], the way GGUF files state kLlama3.
  std::vector<float> divisors;

  bool operator==(const RopeConfig&) const = default;
};

// The factor that YaRN multiplies cosines and sines with unless a file says otherwise.
double YarnAttentionFactor(double factor);

// The head_dim / 2 angular frequencies, in radians per position, rounded to float as the reference
// implementation has them. They depend on the position for kDynamic alone, beyond original_context.
// Written to `frequencies`, whose memory is used again.
void RopeFrequencies(const RopeConfig& rope, int head_dim, int position,
                     std::vector<float>& frequencies);

// The rotations of one position after the other, as backends keep them in tables.
class RopeRows {
 public:
  RopeRows(const RopeConfig& rope, int head_dim);
  // head_dim / 2 cosines, then as many sines, of the next position, from 0 on. The angle is rounded
  // to float before the cosine is taken, as in the reference implementation, whose trained models
  // have never seen the exact one.
  void Next(float* row);

 private:
  RopeConfig rope_;
  int head_dim_;
  int position_ = 0;
  std::vector<float> frequencies_;
};

}  // namespace pawl

#endif  // PAWL_SRC_MODEL_ROPE_H_
