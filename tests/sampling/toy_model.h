// A toy model whose next token has a given law, and what samplers need next to it.
#ifndef PAWL_TESTS_SAMPLING_TOY_MODEL_H_
#define PAWL_TESTS_SAMPLING_TOY_MODEL_H_

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "pawl/compiler.h"
#include "src/decode/sampling/aligned.h"
#include "tests/support/toy_model.h"
#include "tests/support/vocabularies.h"

namespace pawl {

// Tokens: "0", "1", "00", "\n", the end, and one for prompts that a vocabulary does not have.
enum : TokenId { kZero, kOne, kTwoZeros, kNewLine, kTheEnd, kPrompt, kToyTokens };

inline std::shared_ptr<const Vocabulary> ToyVocabulary() {
  return VocabularyOf({"0", "1", "00", "\n"});
}

// The probabilities of all tokens behind an output.
using ToyLaw = std::function<std::vector<double>(std::span<const TokenId> output)>;

// A toy model that has this law behind a prompt of `prompt` tokens.
class LawModel : public ToyModel {
 public:
  LawModel(const ToyLaw& law, int prompt)
      : ToyModel({.vocabulary_size = kToyTokens, .context_length = 200, .pages = 2000, .kept = 500},
                 [law, prompt](const Place& place, std::span<float> out) {
                   EXPECT_GE(static_cast<int>(place.tokens.size()), prompt);
                   const std::vector<double> p =
                       law(place.tokens.subspan(static_cast<size_t>(prompt)));
                   for (size_t t = 0; t < out.size(); ++t) {
                     out[t] = t < p.size() && p[t] > 0 ? static_cast<float>(std::log(p[t]) + 3)
                                                       : -std::numeric_limits<float>::infinity();
                   }
                 }) {}
};

// Five fair bits, and the end.
inline std::vector<double> FairBits(std::span<const TokenId> output) {
  std::vector<double> law(kToyTokens);
  if (output.size() < 5) {
    law[kZero] = law[kOne] = 0.5;
  } else {
    law[kTheEnd] = 1;
  }
  return law;
}
inline constexpr char kSeventeen[] = "00000|1[01]{4}";
inline constexpr double kSeventeenMass = 0.53125;

// All tokens, the prompt's too, may follow everywhere, each prefix with probabilities of its own.
inline std::vector<double> HashedLaw(std::span<const TokenId> output) {
  uint64_t hash = 99;
  for (const TokenId t : output) hash = (hash ^ static_cast<uint64_t>(t + 1)) * 0x9e3779b97f4a7c15u;
  std::vector<double> law(kToyTokens);
  double sum = 0;
  for (size_t t = 0; t < kToyTokens; ++t) {
    law[t] = std::exp(2 * static_cast<double>(UniformAt(hash, 1, t)));
    sum += law[t];
  }
  for (double& p : law) p /= sum;
  return law;
}

// A run of a sampler on a toy.
struct Toy {
  explicit Toy(ToyLaw law, int prompt_size = 37)
      : model(std::move(law), prompt_size),
        prompt(static_cast<size_t>(prompt_size), kPrompt),
        vocabulary(ToyVocabulary()) {}

  Grammar Compile(const std::string& regex) const {
    return *Compiler(vocabulary).CompileRegex(regex);
  }
  void Constrain(const std::string& regex) { constraint = MakeConstraint(Compile(regex)); }

  SamplingTask Task(const SamplerOptions& options) const {
    SamplingTask task;
    task.model = &model.info();
    task.vocabulary = vocabulary.get();
    task.constraint = constraint;
    task.checks = options.checks;
    task.temperature = options.temperature;
    task.max_tokens = options.max_tokens;
    task.estimator = options.estimator;
    if (options.max_rejects > 0) task.limits.max_rejects = options.max_rejects;
    task.limits.accepts = options.accepts;
    task.ExcludeControlTokens();
    return task;
  }

  Result<SamplerResult> Run(const SamplerOptions& options, PrefixTrie* trie = nullptr,
                            int threads = 1) {
    ThreadPool pool(threads);
    const SamplerSetting setting{model,
                                 prompt,
                                 Task(options),
                                 options,
                                 pool,
                                 nullptr,
                                 static_cast<int>(prompt.size()) + options.max_tokens};
    switch (options.sampler) {
      case SamplerKind::kGcd:
      case SamplerKind::kAwrs:
      case SamplerKind::kSmc:
        return SampleWithParticles(setting);
      case SamplerKind::kFvo:
        return SampleWithLookahead(setting);
      default:
        return SampleAligned(setting, trie);
    }
  }

  // Nothing holds a page any more, and the books are in order.
  void ExpectNoPages() const {
    EXPECT_EQ(model.sequences.pool().in_use(), 0);
    EXPECT_EQ(model.sequences.Check(), "");
  }

  LawModel model;
  std::vector<TokenId> prompt;
  std::shared_ptr<const Vocabulary> vocabulary;
  std::shared_ptr<const Constraint> constraint;
};

// P(y) of all valid outputs of at most `most` tokens, by trying them all.
inline std::map<std::vector<TokenId>, double> Enumerate(const ToyLaw& law, const Grammar* grammar,
                                                        int most, double temperature = 1) {
  std::map<std::vector<TokenId>, double> found;
  const auto vocabulary = ToyVocabulary();
  struct Prefix {
    std::vector<TokenId> tokens;
    double p;
    std::optional<State> state;
  };
  std::vector<Prefix> stack = {{{}, 1, {}}};
  if (grammar != nullptr) stack[0].state = grammar->Start();
  while (!stack.empty()) {
    const Prefix x = stack.back();
    stack.pop_back();
    std::vector<double> next = law(x.tokens);
    double sum = 0;
    for (double& p : next) sum += p = p > 0 ? std::pow(p, 1 / temperature) : 0;
    for (TokenId t = 0; t <= kTheEnd; ++t) {
      const double p = x.p * next[static_cast<size_t>(t)] / sum;
      if (p == 0) continue;
      Prefix y = x;
      y.tokens.push_back(t);
      y.p = p;
      if (t == kTheEnd) {
        if (grammar == nullptr || x.state->accepting()) found[y.tokens] = p;
        continue;
      }
      if (static_cast<int>(x.tokens.size()) == most) continue;
      if (grammar != nullptr) {
        y.state = x.state->Advance(t);
        if (!y.state.has_value()) continue;
      }
      stack.push_back(std::move(y));
    }
  }
  return found;
}

}  // namespace pawl

#endif  // PAWL_TESTS_SAMPLING_TOY_MODEL_H_
