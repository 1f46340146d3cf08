// Douc, Cappe, Moulines, "Comparison of resampling schemes for particle filtering" (2005) has the
// four of them. Multinomial draws each place on its own. Stratified draws one point in each of
// `count` equal intervals; systematic uses one point for all, so that a particle gets its expected
// number rounded down or up. Residual gives the whole parts for certain and draws the rest.
#include "src/decode/sampling/resampling.h"

#include <algorithm>
#include <cmath>

#include "src/decode/sampling/step_law.h"

namespace pawl {
namespace {

// Points in [0, 1), ascending, to the particles on whose part of the unit interval they fall.
std::vector<int> AtPoints(std::span<const double> weights, std::span<const double> points) {
  std::vector<int> chosen;
  size_t i = 0;
  size_t last = 0;
  for (size_t k = 0; k < weights.size(); ++k) {
    if (weights[k] > 0) last = k;
  }
  double reached = weights[0];
  for (const double point : points) {
    while (i < last && (point >= reached || !(weights[i] > 0))) reached += weights[++i];
    chosen.push_back(static_cast<int>(i));
  }
  return chosen;
}

std::vector<double> SortedUniforms(size_t count, const Noise& noise) {
  std::vector<double> points;
  for (size_t k = 0; k < count; ++k) points.push_back(noise.Uniform(0, k));
  std::sort(points.begin(), points.end());
  return points;
}

std::vector<int> Residual(std::span<const double> weights, int count, const Noise& noise) {
  std::vector<int> chosen;
  std::vector<double> rest;
  double sum = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    const double expected = weights[i] * count;
    // A product that should be whole may be just below.
    const double whole = std::floor(expected + 1e-9);
    chosen.insert(chosen.end(), static_cast<size_t>(whole), static_cast<int>(i));
    rest.push_back(std::max(0.0, expected - whole));
    sum += rest.back();
  }
  const auto size = static_cast<size_t>(count);
  if (chosen.size() < size && sum > 0) {
    for (double& r : rest) r /= sum;
    const std::vector<int> drawn = AtPoints(rest, SortedUniforms(size - chosen.size(), noise));
    chosen.insert(chosen.end(), drawn.begin(), drawn.end());
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

}  // namespace

std::vector<double> Normalised(std::span<const double> log_weights) {
  const double total = LogSum(log_weights);
  std::vector<double> weights(log_weights.size(), 0);
  if (total == kNoMass) return weights;
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = std::exp(log_weights[i] - total);
  return weights;
}

double EffectiveSize(std::span<const double> log_weights) {
  double squares = 0;
  for (const double w : Normalised(log_weights)) squares += w * w;
  return squares > 0 ? 1 / squares : 0;
}

std::vector<int> Resample(std::span<const double> weights, int count, Resampling method,
                          const Noise& noise) {
  const auto size = static_cast<size_t>(count);
  std::vector<double> points;
  switch (method) {
    case Resampling::kResidual:
      return Residual(weights, count, noise);
    case Resampling::kMultinomial:
      points = SortedUniforms(size, noise);
      break;
    case Resampling::kStratified:
    case Resampling::kSystematic:
      for (size_t k = 0; k < size; ++k) {
        const double u = noise.Uniform(0, method == Resampling::kSystematic ? 0 : k);
        points.push_back((static_cast<double>(k) + u) / count);
      }
      break;
  }
  return AtPoints(weights, points);
}

std::vector<int> KeepPlaces(std::span<const int> ancestors) {
  std::vector<int> places(ancestors.size(), -1);
  std::vector<int> others;
  for (const int a : ancestors) {
    int& place = places[static_cast<size_t>(a)];
    if (place < 0) {
      place = a;
    } else {
      others.push_back(a);
    }
  }
  size_t next = 0;
  for (int& place : places) {
    if (place < 0) place = others[next++];
  }
  return places;
}

}  // namespace pawl
