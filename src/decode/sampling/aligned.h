// Aligned decoding: outputs one after another that learn from each other by an PrefixTrie, in the
// modes of SamplerKind: kGcd, kAsap, kRs, kArs, kCars. And kFvo, which
// looks one token ahead and learns nothing.
#ifndef PAWL_SRC_DECODE_SAMPLING_ALIGNED_H_
#define PAWL_SRC_DECODE_SAMPLING_ALIGNED_H_

#include <cstdint>
#include <optional>

#include "pawl/result.h"
#include "pawl/sampling.h"
#include "src/decode/sampling/branches.h"
#include "src/decode/sampling/particles.h"
#include "src/decode/sampling/prefix_trie.h"

namespace pawl {

// Where SamplerOptions::attempts is 0, kRs, kArs and kCars end an output after so many attempts, or
// after the attempt with which it has cost so many rows.
inline constexpr int kDefaultExactAttempts = 10000;
inline constexpr int64_t kDefaultExactRows = 16384;

// One output begun: valid, or where it failed with a log_weight of kZeroWeight.
class TrieSampler {
 public:
  // `branches` have started. `trie` is of the same task; kGcd and kRs leave it as it is.
  TrieSampler(const SamplingTask& task, Branches& branches, PrefixTrie& trie)
      : task_(task), branches_(branches), trie_(trie) {}
  ~TrieSampler();
  TrieSampler(const TrieSampler&) = delete;
  TrieSampler& operator=(const TrieSampler&) = delete;

  // The same seed and trie give the same output. The weight is that of the rules of
  // pawl/sampling.h. Errors: those of the model and the checks.
  Result<WeightedOutput> Try(SamplerKind mode, uint64_t seed);

 private:
  struct Attempt;
  struct Choice;
  Result<StepLaw> LawAt(const OutputSoFar& output, const Allowed& allowed);
  Result<Choice> Choose(Attempt& attempt, SamplerKind mode, const Noise& noise);
  Result<Choice> ChooseNew(Attempt& attempt, SamplerKind mode, const Noise& noise);
  Result<Choice> ChooseVisited(Attempt& attempt, SamplerKind mode, const Noise& noise);
  Result<Choice> ChooseUntried(Attempt& attempt, SamplerKind mode, const Noise& noise);
  Result<Choice> Checked(Attempt& attempt, Choice choice);

  const SamplingTask& task_;
  Branches& branches_;
  PrefixTrie& trie_;
  int branch_ = -1;
};

// All of options.n. `trie` nullptr: one for this run alone.
Result<SamplerResult> SampleAligned(const SamplerSetting& setting, PrefixTrie* trie,
                                    std::optional<Fidelity> fidelity = std::nullopt);

Result<SamplerResult> SampleWithLookahead(const SamplerSetting& setting);

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_SAMPLING_ALIGNED_H_
