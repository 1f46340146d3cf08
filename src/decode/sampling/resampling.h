// Resampling: which particles go on, and how often, in proportion to their weights.
#ifndef PAWL_SRC_DECODE_SAMPLING_RESAMPLING_H_
#define PAWL_SRC_DECODE_SAMPLING_RESAMPLING_H_

#include <span>
#include <vector>

#include "pawl/sampling.h"
#include "src/decode/sampling/noise.h"

namespace pawl {

// exp of these logarithms, scaled to a sum of 1; all 0 where all are kNoMass.
std::vector<double> Normalised(std::span<const double> log_weights);
// 1 / sum of squares of normalised weights: between 1 and their number; 0 where all are 0.
double EffectiveSize(std::span<const double> log_weights);

// For each of `count` places the particle that takes it, in ascending order: each particle i
// count * w_i times in expectation. Weights of sum 1; one of weight 0 is never taken.
std::vector<int> Resample(std::span<const double> weights, int count, Resampling method,
                          const Noise& noise);
// The same particles in an order in which as many as can be keep their place.
// REQUIRES: as many as there are particles.
std::vector<int> KeepPlaces(std::span<const int> ancestors);

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_SAMPLING_RESAMPLING_H_
