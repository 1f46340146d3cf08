// Stages next to llama.cpp on the same 1,000 rows (scripts/make_stage_goldens.py).
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "src/decode/sampler_stages.h"
#include "tests/source_dir.h"

namespace pawl {
namespace {

uint32_t MixedNumber(uint32_t row, uint32_t index, uint32_t salt) {
  uint32_t h = row * 2654435761u + index * 40503u + salt * 97u + 1u;
  for (int i = 0; i < 2; ++i) {
    h ^= h >> 16;
    h *= 0x45D9F3Bu;
  }
  return h ^ h >> 16;
}

SamplerCandidates RowOf(uint32_t row) {
  SamplerCandidates out;
  for (uint32_t token = 0; token < 32; ++token) {
    int sum = -6000;
    for (uint32_t salt = 0; salt < 3; ++salt) {
      sum += static_cast<int>(MixedNumber(row, token, salt) % 4000);
    }
    out.push_back({static_cast<float>(sum) / 1000.0f, static_cast<TokenId>(token)});
  }
  return out;
}

uint32_t BitsOf(const SamplerCandidates& candidates) {
  uint32_t bits = 0;
  for (const SamplerCandidate& c : candidates) bits |= 1u << c.token;
  return bits;
}

TEST(StageGoldensTest, KeepWhatLlamaCppKeeps) {
  std::ifstream file(SourceDir() + "/tests/data/stages.txt");
  ASSERT_TRUE(file.good());
  int rows = 0, typical = 0, sigma = 0, xtc = 0, dry = 0, penalised = 0;
  for (std::string line; std::getline(file, line); ++rows) {
    std::istringstream words(line);
    uint32_t bits[3] = {};
    for (uint32_t& one : bits) words >> std::hex >> one;
    const auto row = static_cast<uint32_t>(rows);
    SamplerCandidates got = RowOf(row);
    KeepTypical(got, 0.2f + 0.1f * static_cast<float>(row % 7), 1);
    typical += BitsOf(got) != bits[0] ? 1 : 0;
    got = RowOf(row);
    KeepTopNSigma(got, 0.5f + 0.5f * static_cast<float>(row % 5));
    sigma += BitsOf(got) != bits[1] ? 1 : 0;
    got = RowOf(row);
    KeepXtc(got, 1, 0.02f + 0.05f * static_cast<float>(row % 4), 1, 0);
    xtc += BitsOf(got) != bits[2] ? 1 : 0;
    std::vector<double> penalties(32, 0);
    for (std::string word; words >> word;) {
      const size_t colon = word.find(':');
      penalties.at(std::stoul(word.substr(0, colon))) = std::stod(word.substr(colon + 1)) / 1000;
      ++penalised;
    }
    SamplerStages stages;
    stages.dry_multiplier = 0.8f;
    stages.dry_base = 1.75f;
    stages.dry_allowed_length = static_cast<int>(row % 4);
    stages.dry_penalty_last_n = row % 2 == 0 ? 40 : 17;
    std::vector<TokenId> history;
    for (uint32_t i = 0; i < 40; ++i) {
      history.push_back(static_cast<TokenId>(MixedNumber(row, i, 7) % 3));
    }
    const SamplerCandidates before = RowOf(row);
    got = before;
    PenaliseRepetition(got, stages, {}, history, {}, nullptr);
    bool same = true;
    for (size_t t = 0; t < got.size(); ++t) {
      const double lost = double{before[t].score} - double{got[t].score};
      same = same && std::abs(lost - penalties[t]) <= 1e-3 * std::max(1.0, penalties[t]);
    }
    dry += same ? 0 : 1;
  }
  EXPECT_EQ(rows, 1000);
  EXPECT_GE(penalised, 1000);
  // Tokens next to the limit may differ.
  EXPECT_LE(typical, 5);
  EXPECT_LE(sigma, 5);
  EXPECT_LE(xtc, 5);
  EXPECT_LE(dry, 5);
}

}  // namespace
}  // namespace pawl
