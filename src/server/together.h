// Outputs that a request wants together: those of a search, of a sampler of pawl/sampling.h, or the
// probabilities of choices. Their options stand in the members "search", "sampler" and "classify".
#ifndef PAWL_SRC_SERVER_TOGETHER_H_
#define PAWL_SRC_SERVER_TOGETHER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pawl/generation.h"
#include "pawl/result.h"
#include "pawl/sampling.h"
#include "src/base/json_reader.h"
#include "src/decode/sampling/check_spec.h"

namespace pawl::server {

inline constexpr int kMostOutputs = 64;  // of a request, for each prompt

// At most one of them is there.
struct TogetherSpec {
  std::optional<SearchOptions> search;
  std::optional<SamplerOptions> sampler;
  std::optional<ClassifyOptions> classify;
  // Where an option that an error names stands in the request; a member of the request, or one of
  // "search" or "sampler".
  std::string PointerOf(const std::string& place) const;
  std::string pointer;               // to the member that asks for it
  std::vector<std::string> members;  // of the object "search" or "sampler"
  CheckSpecs checks;                 // of that object

  bool any() const { return search || sampler || classify; }
  // In place of the monitors of code.
  bool self_infills() const { return search && search->strategy == "self-infill"; }
};

// What a request says besides, which holds for these outputs too.
struct TogetherSetting {
  int& n;  // becomes that of a search or a sampler, where the request has none of its own
  int best_of = 1;
  int64_t most_rows = 0, most_nodes = 0;  // of a search
  bool extracts = false;                  // contrast is with the prompt that has no text
  bool commands = false;                  // checks may run commands and read files
  const GenerateOptions& options;
};

// An object whose members are all options: what none has read is an error.
void RefuseUnread(const JsonReader& in);
// The members that ask for outputs together, with "use_beam_search". Errors are those of `in`.
void ReadTogether(const JsonReader& in, const TogetherSetting& setting, TogetherSpec& spec);

// An output as the decode loop would have made it.
struct TogetherOutput {
  std::vector<TokenId> tokens;  // without the end token
  StopReason stop = StopReason::kEnd;
  std::string note;
};
struct TogetherResult {
  std::vector<TogetherOutput> outputs;
  std::string report;    // JSON without texts of outputs
  std::string why_none;  // no output was found; empty: there are some
};
TogetherResult ResultOf(const SearchResult& found, const std::string& strategy);
TogetherResult ResultOf(const SamplerResult& sampled);
// `best`: the tokens of the most probable choice.
TogetherResult ResultOf(const ClassifyResult& choices, std::vector<TokenId> best);

}  // namespace pawl::server

#endif  // PAWL_SRC_SERVER_TOGETHER_H_
