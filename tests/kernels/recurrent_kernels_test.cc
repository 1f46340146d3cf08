// Steps of a state, the short convolution and sigmoid gates against loops in double precision, for
// every variant; variants and forms agree to the bit.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/kernels/kernels_test_util.h"

namespace pawl {
namespace {

struct StateCase {
  int keys, values;
  bool delta;
};

constexpr StateCase kStateCases[] = {{1, 1, true},    {8, 16, true},   {16, 24, false},
                                     {24, 100, true}, {16, 64, false}, {128, 128, true},
                                     {64, 80, false}, {5, 33, true}};

TEST(RecurrentKernelsTest, AStateStepIsTheRecurrence) {
  Random random(11);
  for (const auto& [keys, values, delta] : kStateCases) {
    const auto k_count = static_cast<size_t>(keys), v_count = static_cast<size_t>(values);
    const std::vector<float> from = Normal(random, k_count * v_count);
    const std::vector<float> k = Normal(random, k_count, 0.5f), q = Normal(random, k_count);
    const std::vector<float> v = Normal(random, v_count);
    const float decay = 0.83f, beta = 0.4f;
    std::vector<double> state(from.begin(), from.end()), answer(v_count);
    for (size_t c = 0; c < v_count; ++c) {
      double known = 0;
      for (size_t i = 0; i < k_count; ++i) {
        state[i * v_count + c] *= decay;
        known += state[i * v_count + c] * k[i];
      }
      const double d = (v[c] - (delta ? known : 0.0)) * beta;
      for (size_t i = 0; i < k_count; ++i) {
        state[i * v_count + c] += k[i] * d;
        answer[c] += state[i * v_count + c] * q[i];
      }
    }
    std::vector<float> first;
    for (const KernelSet* kernels : Variants()) {
      Output to(k_count * v_count), out(v_count);
      StateStepArgs args = {.from = from.data(),
                            .to = to.data(),
                            .k = k.data(),
                            .q = q.data(),
                            .v = v.data(),
                            .out = out.data(),
                            .keys = keys,
                            .values = values,
                            .decay = decay,
                            .beta = beta,
                            .delta = delta};
      kernels->state_step(args);
      EXPECT_TRUE(to.GuardsIntact() && out.GuardsIntact());
      EXPECT_LT(RelativeError(to.values(), state), 5e-7) << kernels->name << " " << keys;
      EXPECT_LT(RelativeError(out.values(), answer), 2e-6) << kernels->name << " " << keys;
      std::vector<float> all = to.values();
      for (const float value : out.values()) all.push_back(value);
      if (first.empty()) first = all;
      EXPECT_EQ(all, first) << kernels->name;
      // In place, without an answer, and the answer alone.
      std::vector<float> place = from, alone(v_count);
      args.from = args.to = place.data();
      args.out = nullptr;
      kernels->state_step(args);
      EXPECT_EQ(place, to.values()) << kernels->name;
      args.from = from.data();
      args.to = nullptr;
      args.out = alone.data();
      kernels->state_step(args);
      EXPECT_EQ(alone, out.values()) << kernels->name;
    }
  }
}

TEST(RecurrentKernelsTest, AConvolutionSeesItsTaps) {
  Random random(12);
  for (const size_t channels : {1, 16, 37, 200}) {
    for (const int taps : {1, 3, 4}) {
      for (const bool silu : {false, true}) {
        const auto count = static_cast<size_t>(taps);
        const std::vector<float> inputs = Normal(random, count * channels);
        const std::vector<float> weights = Normal(random, count * channels);
        const std::vector<float> bias = Normal(random, channels);
        std::vector<const float*> rows;
        for (size_t t = 0; t < count; ++t) rows.push_back(inputs.data() + t * channels);
        for (const bool with_bias : {false, true}) {
          std::vector<double> expected(channels);
          for (size_t c = 0; c < channels; ++c) {
            double sum = with_bias ? bias[c] : 0.0;
            for (size_t t = 0; t < count; ++t) {
              sum += double{weights[t * channels + c]} * rows[t][c];
            }
            expected[c] = silu ? sum / (1 + std::exp(-sum)) : sum;
          }
          std::vector<float> first;
          for (const KernelSet* kernels : Variants()) {
            Output y(channels);
            kernels->convolution({.inputs = rows.data(),
                                  .weights = weights.data(),
                                  .bias = with_bias ? bias.data() : nullptr,
                                  .y = y.data(),
                                  .taps = taps,
                                  .channels = static_cast<int64_t>(channels),
                                  .silu = silu});
            EXPECT_TRUE(y.GuardsIntact());
            EXPECT_LT(RelativeError(y.values(), expected), 1e-6) << kernels->name;
            if (first.empty()) first = y.values();
            EXPECT_EQ(y.values(), first) << kernels->name;
          }
        }
      }
    }
  }
}

TEST(RecurrentKernelsTest, SigmoidMul) {
  Random random(13);
  for (const size_t n : {1, 16, 100}) {
    std::vector<float> gate = Normal(random, n, 4.0f);
    gate[0] = -200.0f;
    const std::vector<float> up = Normal(random, n);
    std::vector<double> expected(n);
    for (size_t i = 0; i < n; ++i) expected[i] = up[i] / (1 + std::exp(-double{gate[i]}));
    std::vector<float> first;
    for (const KernelSet* kernels : Variants()) {
      Output y(n);
      kernels->sigmoid_mul(gate.data(), up.data(), static_cast<int64_t>(n), y.data());
      EXPECT_TRUE(y.GuardsIntact());
      for (size_t i = 0; i < n; ++i) EXPECT_NEAR(y[i], expected[i], 1e-6) << kernels->name;
      if (first.empty()) first = y.values();
      EXPECT_EQ(y.values(), first) << kernels->name;
    }
  }
}

}  // namespace
}  // namespace pawl
