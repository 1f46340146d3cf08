// Penalties, filters and the draw on a device against the sampler.
#include <algorithm>
#include <cmath>
#include <map>

#include "kernels/cuda/kernels.h"
#include "pawl/cuda_kernels.h"
#include "pawl/grammar.h"
#include "src/decode/sampler.h"
#include "tests/cuda/cuda_test_util.h"

namespace pawl::PAWL_GPU {
namespace {

class ProcessTest : public GpuTest {};

struct Asked {
  SamplingParams params;
  std::vector<TokenId> prompt, output;
  uint64_t position = 0;
  int mask = kEveryToken;
};

void Compare(Random& random, int vocabulary, std::vector<float> logits,
             const std::vector<Asked>& asked, double allowed) {
  const int words = (vocabulary + 31) / 32, stride = vocabulary + 3;
  std::vector<uint32_t> masks(static_cast<size_t>(words) * 3);
  std::bernoulli_distribution bit(allowed);
  for (int m = 0; m < 2; ++m) {  // the last one allows nothing
    for (int t = 0; t < vocabulary; ++t) {
      if (t == 3 || bit(random)) masks[static_cast<size_t>(m * words + t / 32)] |= 1u << t % 32;
    }
  }
  HeadRows rows = {};
  std::vector<ProcessRow> process;
  std::vector<int32_t> seen = {0};  // never empty
  seen.clear();
  for (size_t i = 0; i < asked.size(); ++i) {
    const SamplingParams& p = asked[i].params;
    rows.masks[i] = asked[i].mask;
    rows.limits[i] = vocabulary;
    rows.temperatures[i] = p.temperature;
    rows.seeds[i] = p.seed;
    rows.positions[i] = asked[i].position;
    ProcessRow row;
    row.penalties = {p.repetition_penalty, p.presence_penalty, p.frequency_penalty};
    row.top_k = p.top_k;
    row.top_p = p.top_p;
    if (p.min_p > 0) row.least = std::log(p.min_p);
    std::map<TokenId, int32_t> counts;
    for (const TokenId t : asked[i].prompt) counts[t];
    for (const TokenId t : asked[i].output) ++counts[t];
    row.seen_begin = static_cast<int32_t>(seen.size() / 2);
    row.seen_count = static_cast<int32_t>(counts.size());
    for (const auto& [token, count] : counts) seen.insert(seen.end(), {token, count});
    process.push_back(row);
  }
  seen.resize(seen.size() + 2);
  std::vector<float> strided(static_cast<size_t>(stride) * asked.size(), kNan);
  for (size_t i = 0; i < asked.size(); ++i) {
    std::copy_n(logits.begin() + static_cast<long>(i) * vocabulary, vocabulary,
                strided.begin() + static_cast<long>(i) * stride);
  }
  const OnDevice<uint32_t> device_masks(masks);
  const OnDevice<HeadRows> device_rows(std::vector<HeadRows>{rows});
  const OnDevice<ProcessRow> device_process(process);
  const OnDevice<int32_t> device_seen(seen);
  const OnDevice<HeadAnswers> answers(size_t{1});
  ProcessLogits args;
  args.logits_stride = stride;
  args.count = static_cast<int>(asked.size());
  args.masks = device_masks.data();
  args.masks_stride = words;
  args.rows = device_rows.data();
  args.process = device_process.data();
  args.seen = device_seen.data();
  args.answers = answers.data();
  const std::vector<int32_t> got = InAnyOrder<int32_t>([&] {
    const OnDevice<float> device_logits(strided);
    args.logits = device_logits.data();
    PAWL_EXPECT_OK(RunProcessLogits(args, nullptr));
    const HeadAnswers found = answers.values()[0];
    return std::vector<int32_t>(found.tokens, found.tokens + asked.size());
  });
  for (size_t i = 0; i < asked.size(); ++i) {
    std::vector<uint32_t> bits(static_cast<size_t>(words), ~0u);
    if (asked[i].mask >= 0) {
      std::copy_n(masks.begin() + asked[i].mask * words, words, bits.begin());
    } else if (asked[i].mask == kNoTokenWanted) {
      bits.assign(bits.size(), 0);
    }
    const Mask mask(0, std::move(bits));
    Sampler sampler(asked[i].params);
    const Result<TokenId> expected =
        sampler.Sample(std::span(logits).subspan(i * static_cast<size_t>(vocabulary),
                                                 static_cast<size_t>(vocabulary)),
                       &mask, asked[i].position, {asked[i].prompt, asked[i].output});
    const int32_t wanted = expected.ok()                                   ? *expected
                           : expected.error().code == ErrorCode::kInternal ? kBrokenLogits
                                                                           : kNothingAllowed;
    EXPECT_EQ(got[i], wanted) << vocabulary << " tokens, row " << i << ", T "
                              << asked[i].params.temperature << ", top_k " << asked[i].params.top_k
                              << ", top_p " << asked[i].params.top_p << ", min_p "
                              << asked[i].params.min_p;
  }
}

Asked AnyAsked(Random& random, int vocabulary) {
  const auto chance = [&](int one_in) { return random() % static_cast<unsigned>(one_in) == 0; };
  const auto uniform = [&](double low, double high) {
    return static_cast<float>(std::uniform_real_distribution<double>(low, high)(random));
  };
  Asked asked;
  SamplingParams& p = asked.params;
  p.temperature = chance(5) ? 0.0f : chance(2) ? uniform(0.1, 1) : uniform(1, 4);
  if (chance(2)) p.top_k = 1 + static_cast<int>(random() % 40);
  if (chance(2)) p.top_p = uniform(0.05, 1);
  if (chance(3)) p.min_p = uniform(0.001, 0.5);
  if (chance(3)) p.repetition_penalty = uniform(0.5, 2);
  if (chance(3)) p.presence_penalty = uniform(-2, 2);
  if (chance(3)) p.frequency_penalty = uniform(-1, 1);
  p.seed = uint64_t{random()} << 32 | random();
  asked.position = random();
  for (int i = 0; i < 10; ++i) {
    asked.prompt.push_back(static_cast<TokenId>(random() % static_cast<unsigned>(vocabulary)));
    asked.output.push_back(static_cast<TokenId>(random() % static_cast<unsigned>(vocabulary)));
  }
  asked.mask = chance(3) ? kEveryToken : static_cast<int>(random() % 2);
  return asked;
}

TEST_F(ProcessTest, TokensAreTheSamplers) {
  Random random(1);
  for (const int vocabulary : {5, 33, 500, 3001}) {
    for (int round = 0; round < 3; ++round) {
      std::vector<Asked> asked;
      for (int i = 0; i < 12; ++i) asked.push_back(AnyAsked(random, vocabulary));
      asked[3].mask = 2;
      asked[7].mask = kNoTokenWanted;
      std::vector<float> logits = Normal(random, static_cast<size_t>(12 * vocabulary), 3.0f);
      if (round == 1) {
        for (float& l : logits) l = std::round(l);  // ties
      }
      Compare(random, vocabulary, std::move(logits), asked, round == 2 ? 0.02 : 0.7);
    }
  }
}

// Rows that are cut over blocks. Ties on both sides of a cut, and logits that differ in their last
// bits alone.
TEST_F(ProcessTest, RowsOfSeveralBlocks) {
  Random random(3);
  for (const int vocabulary : {5000, 20011}) {
    for (const float size : {3.0f, 0.01f, 1000.0f}) {
      if (vocabulary > 5000 && size > 1) continue;
      std::vector<Asked> asked;
      for (int i = 0; i < 4; ++i) asked.push_back(AnyAsked(random, vocabulary));
      asked[0].params.temperature = 1.5f;
      asked[0].params.top_p = size > 1 ? 0.9999999f : 1e-6f;
      asked[1].params.top_k = 3000;
      asked[1].params.temperature = 2.0f;
      asked[2].params.top_p = 0.98f;
      asked[2].params.top_k = 0;
      asked[2].params.temperature = 0.7f;
      asked[3].params = {.temperature = 1.0f, .top_k = 40, .top_p = 0.9f, .seed = random()};
      std::vector<float> logits = Normal(random, static_cast<size_t>(4 * vocabulary), size);
      const auto row = [&](int i) { return logits.begin() + i * vocabulary; };
      std::transform(row(0), row(1), row(0), [&](float l) { return std::round(l / size); });
      std::transform(row(3), logits.end(), row(3),
                     [&](float l) { return size > 1 ? l : 7.0f + std::round(l * 100) * 1e-6f; });
      Compare(random, vocabulary, std::move(logits), asked, 0.6);
    }
  }
}

TEST_F(ProcessTest, EndlessAndBrokenLogits) {
  Random random(2);
  const int vocabulary = 100;
  const float infinity = std::numeric_limits<float>::infinity();
  std::vector<Asked> asked(6);
  std::vector<float> logits = Normal(random, 6 * vocabulary);
  for (Asked& a : asked) {
    a = AnyAsked(random, vocabulary);
    a.mask = kEveryToken;
    a.params.temperature = 0.9f;
    a.params.repetition_penalty = 1.3f;
    a.params.frequency_penalty = 0.4f;
  }
  logits[50] = kNan;                                                               // row 0
  logits[vocabulary + 3] = infinity;                                               // row 1
  for (size_t t = 0; t < vocabulary; ++t) logits[2 * vocabulary + t] = -infinity;  // row 2
  for (size_t t = 0; t < vocabulary; t += 2) logits[3 * vocabulary + t] = -infinity;
  for (const TokenId t : asked[3].output) {
    logits[3 * vocabulary + static_cast<size_t>(t)] = -infinity;
  }
  for (size_t t = 0; t < vocabulary; ++t) logits[4 * vocabulary + t] = 1e30f;
  asked[4].params.temperature = 1e-30f;
  asked[5].params.temperature = 1e37f;
  Compare(random, vocabulary, logits, asked, 1.0);

  // The same where blocks have to tell each other.
  const int more = 4500;
  std::vector<float> long_rows(3 * more, -infinity);
  long_rows[4400] = kNan;
  long_rows[2 * more + 4499] = -2.0f;
  asked.resize(3);
  for (Asked& a : asked) a.params = {.temperature = 1.0f, .top_k = 5, .top_p = 0.9f};
  Compare(random, more, long_rows, asked, 1.0);
}

}  // namespace
}  // namespace pawl::PAWL_GPU
