// Tokens drawn in the head against the sampler on the logits of the product.
#include <algorithm>
#include <memory>
#include <optional>

#include "kernels/cuda/kernels.h"
#include "pawl/cuda_kernels.h"
#include "pawl/grammar.h"
#include "src/decode/sampler.h"
#include "tests/cuda/weights_util.h"

namespace pawl::PAWL_GPU {
namespace {

struct HeadCase {
  DeviceWeight type;
  int vocabulary, columns, rows;
  double allowed;  // of the tokens, by each mask
  float soft_cap;
  bool listed;
};
const HeadCase kHeadCases[] = {
    {DeviceWeight::kBf16, 300, 96, 1, 0.5, 0.0f, false},
    {DeviceWeight::kBf16, 700, 64, 8, 0.002, 0.0f, false},
    {DeviceWeight::kBf16, 700, 64, 7, 0.002, 0.0f, true},
    {DeviceWeight::kBf16, 130, 288, 13, 1.0, 20.0f, false},
    {DeviceWeight::kF16, 70, 64, 20, 0.3, 0.0f, false},
    {DeviceWeight::kF32, 129, 40, 9, 0.2, 0.0f, true},
    {DeviceWeight::kFp8, 200, 64, 2, 0.1, 30.0f, false},
    {DeviceWeight::kI8, 257, 96, 16, 0.5, 0.0f, false},
    {DeviceWeight::kI4, 257, 128, 3, 0.5, 0.0f, false},
    {DeviceWeight::kI4, 500, 64, 33, 0.01, 0.0f, true},
    {DeviceWeight::kBf16, 100, 32, 64, 0.4, 0.0f, false},
};

class HeadTest : public GpuTest {};

// What a launch is given, in device memory.
struct Given {
  Given(Random& random, const HeadCase& c)
      : w(MakeWeights(random, c.type, c.vocabulary, c.columns)), device_w(w.packed) {
    x_stride = (c.columns + 3) / 4 * 4;
    // Rows of x in another order, one of them unused.
    x = Normal(random, static_cast<size_t>(x_stride * (c.rows + 1)), 0.2f);
    std::vector<float> norms = Normal(random, static_cast<size_t>(c.columns));
    norms.resize(static_cast<size_t>((c.columns + 31) / 32 * 32));
    norm.emplace(norms);
    for (int r = 0; r < c.rows; ++r) x_rows.push_back(c.rows - r);
    words = (c.vocabulary + 31) / 32;
    std::bernoulli_distribution bit(c.allowed);
    masks.resize(static_cast<size_t>(words) * 5);
    for (int m = 0; m < 5; ++m) {
      for (int t = 0; t < c.vocabulary && m != 4; ++t) {  // the last one allows nothing
        if (t == 7 * m || bit(random))
          masks[static_cast<size_t>(m * words + t / 32)] |= 1u << t % 32;
      }
    }
    for (size_t r = 0; r < static_cast<size_t>(c.rows); ++r) {
      const bool masked = c.listed || random() % 4 != 0;
      rows.masks[r] = r % 11 == 10 ? kNoTokenWanted
                      : masked     ? static_cast<int32_t>(random() % (r > 2 ? 5 : 4))
                                   : kEveryToken;
      rows.limits[r] = r % 3 == 2 ? c.vocabulary - 40 : c.vocabulary;
      rows.temperatures[r] = r % 3 == 0 ? 0.0f : r % 3 == 1 ? 0.7f : 3.0f;
      rows.seeds[r] = uint64_t{random()} << 32 | random();
      rows.positions[r] = random();
    }
    for (int t = 0; t < c.vocabulary; ++t) {
      bool any = false;
      for (int r = 0; r < c.rows; ++r) any = any || Allows(r, t);
      if (any) list.push_back(t);
    }
    rows.list_count = static_cast<int32_t>(list.size());
  }
  bool Allows(int r, int t) const {
    const auto n = static_cast<size_t>(r);
    if (rows.masks[n] == kNoTokenWanted || t >= rows.limits[n]) return false;
    return rows.masks[n] < 0 ||
           (masks[static_cast<size_t>(rows.masks[n] * words + t / 32)] >> t % 32 & 1) != 0;
  }

  Weights w;
  Uploaded device_w;
  int x_stride = 0, words = 0;
  std::vector<float> x;
  std::optional<OnDevice<float>> norm;
  std::vector<int32_t> x_rows, list;
  std::vector<uint32_t> masks;
  HeadRows rows = {};
};

TEST_F(HeadTest, TokensAreTheSamplers) {
  Random random(1);
  for (const HeadCase& c : kHeadCases) {
    const std::string label = std::to_string(static_cast<int>(c.type)) + " " +
                              std::to_string(c.vocabulary) + " tokens, " + std::to_string(c.rows) +
                              " rows";
    const Given given(random, c);
    const auto count = static_cast<size_t>(c.rows), vocabulary = static_cast<size_t>(c.vocabulary);
    const OnDevice<float> x(given.x);
    const OnDevice<int32_t> x_rows(given.x_rows), list(given.list);
    const OnDevice<uint32_t> masks(given.masks);
    const OnDevice<HeadRows> rows(std::vector<HeadRows>{given.rows});
    const OnDevice<HeadState> state(std::vector<HeadState>{HeadState{}});
    const OnDevice<HeadAnswers> answers(size_t{1});
    MatMul product;
    product.parts[0].w = given.device_w.matrix;
    product.x = x.data();
    product.x_stride = given.x_stride;
    product.x_rows = x_rows.data();
    product.rows = c.rows;
    product.norm = given.norm->data();
    product.epsilon = 1e-5f;
    product.soft_cap = c.soft_cap;
    HeadSample args;
    args.product = product;
    args.masks = masks.data();
    args.masks_stride = given.words;
    args.rows = rows.data();
    args.list = c.listed ? list.data() : nullptr;
    args.most_listed = static_cast<int>(given.list.size()) + 70;
    args.state = state.data();
    args.answers = answers.data();
    // Launches follow each other: each finds the zeros that the one before has left.
    const std::vector<int32_t> got = InAnyOrder<int32_t>([&] {
      PAWL_EXPECT_OK(RunHeadSample(args, nullptr));
      const HeadAnswers found = answers.values()[0];
      return std::vector<int32_t>(found.tokens, found.tokens + count);
    });

    const OnDevice<float> y(count * vocabulary);
    product.parts[0].y = y.data();
    product.parts[0].y_stride = c.vocabulary;
    PAWL_EXPECT_OK(RunMatMul(product, nullptr));
    const std::vector<float> logits = y.values();
    for (int r = 0; r < c.rows; ++r) {
      const auto n = static_cast<size_t>(r);
      std::vector<uint32_t> bits(static_cast<size_t>(given.words));
      for (int t = 0; t < c.vocabulary; ++t) {
        if (given.Allows(r, t)) bits[static_cast<size_t>(t / 32)] |= 1u << t % 32;
      }
      const Mask mask(0, std::move(bits));
      Sampler sampler({.temperature = given.rows.temperatures[n], .seed = given.rows.seeds[n]});
      const Result<TokenId> expected =
          sampler.Sample(std::span(logits).subspan(n * vocabulary, vocabulary), &mask,
                         given.rows.positions[n], {});
      EXPECT_EQ(got[n], expected.ok() ? *expected : kNothingAllowed) << label << ", row " << r;
    }
  }
}

// A row's logits that are not finite are its own error, and only where its mask lets them in.
TEST_F(HeadTest, BrokenLogits) {
  const int vocabulary = 100, columns = 32;
  std::vector<float> w(static_cast<size_t>(vocabulary * columns), 0.5f);
  w[static_cast<size_t>(70 * columns)] = kNan;
  const OnDevice<float> device_w(w), x(std::vector<float>(64, 1.0f));
  const OnDevice<uint32_t> masks(std::vector<uint32_t>{0xf0, 0, 0, 0});
  HeadRows given = {};
  given.masks[0] = kEveryToken;
  given.masks[1] = 0;
  given.limits[0] = given.limits[1] = vocabulary;
  const OnDevice<HeadRows> rows(std::vector<HeadRows>{given});
  const OnDevice<HeadState> state(std::vector<HeadState>{HeadState{}});
  const OnDevice<HeadAnswers> answers(size_t{1});
  HeadSample args;
  DeviceMatrix& matrix = args.product.parts[0].w;
  matrix.data = device_w.data();
  matrix.type = DeviceWeight::kF32;
  matrix.rows = vocabulary;
  matrix.columns = columns;
  args.product.x = x.data();
  args.product.x_stride = columns;
  args.product.rows = 2;
  args.masks = masks.data();
  args.masks_stride = 4;
  args.rows = rows.data();
  args.state = state.data();
  args.answers = answers.data();
  PAWL_EXPECT_OK(RunHeadSample(args, nullptr));
  EXPECT_EQ(answers.values()[0].tokens[0], kBrokenLogits);
  EXPECT_EQ(answers.values()[0].tokens[1], 4);  // all are equal
}

}  // namespace
}  // namespace pawl::PAWL_GPU
