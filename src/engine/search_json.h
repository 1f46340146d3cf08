// Options of searches, samplers and diffusion models as JSON: what HTTP, C and Python hand over.
// The names are those of the command's options, with underscores.
#ifndef PAWL_SRC_ENGINE_SEARCH_JSON_H_
#define PAWL_SRC_ENGINE_SEARCH_JSON_H_

#include <string>
#include <string_view>

#include "pawl/generation.h"
#include "pawl/result.h"
#include "pawl/sampling.h"
#include "src/base/json_reader.h"
#include "src/decode/sampling/check_spec.h"

namespace pawl {

// What is wrong is an error of `in`. Members that are not known are left unread.
void ReadSearchOptions(const JsonReader& in, SearchOptions& options);
// "checks", "critic" and "check_timeout" of a search or a sampler.
void ReadCheckSpecs(const JsonReader& in, CheckSpecs& specs);
void ReadSamplerOptions(const JsonReader& in, SamplerOptions& options);
// contrast, a number or "auto".
void ReadContrast(const JsonReader& in, SearchOptions& options);
// The search that is greedy decoding, or with a temperature plain drawing.
SearchOptions GreedyOrDrawn(const SamplingParams& sampling);
// The members stand in `in` itself; "samplers" is a list of names, or a text.
void ReadSamplerStages(const JsonReader& in, SamplerStages& stages);
void ReadDiffusionOptions(const JsonReader& in, DiffusionOptions& options);
void ReadClassifyOptions(const JsonReader& in, ClassifyOptions& options);
// The member of ReadSearchOptions that an error of a search has as place; "": it is none of them.
std::string SearchMemberOf(const std::string& place);

// Of a text. Errors: kInvalid with the JSON Pointer as place, also for members that are not known.
// `checks` nullptr: they are not taken.
Result<SearchOptions> ParseSearchOptions(std::string_view text, CheckSpecs* checks = nullptr);
Result<SamplerStages> ParseSamplerStages(std::string_view text);
Result<ClassifyOptions> ParseClassifyOptions(std::string_view text);
Result<DiffusionOptions> ParseDiffusionOptions(std::string_view text);

}  // namespace pawl

#endif  // PAWL_SRC_ENGINE_SEARCH_JSON_H_
