// Searches for C. Options and answers are JSON, as HTTP has them, so that they stay the same where
// a strategy gets another argument.
#include <string>
#include <utility>

#include "src/base/file.h"
#include "src/capi/engine_handles.h"
#include "src/engine/search_json.h"

struct pawl_answer {
  std::string json;
};

using namespace pawl;        // NOLINT: this file is the C face of that namespace
using namespace pawl::capi;  // NOLINT

extern "C" {

const char* pawl_answer_json(const pawl_answer* answer, size_t* length) {
  if (length != nullptr) *length = answer == nullptr ? 0 : answer->json.size();
  return answer == nullptr ? "" : answer->json.c_str();
}
void pawl_answer_free(pawl_answer* answer) { delete answer; }

pawl_status pawl_engine_search(pawl_engine* engine, const pawl_prompt* prompt,
                               const pawl_grammar* grammar, const char* options, size_t length,
                               const pawl_check* const* checks, size_t check_count,
                               const pawl_critic* critic, pawl_answer** answer,
                               pawl_error** error) {
  return Guard(error, [&]() -> pawl_status {
    if (engine == nullptr) return Null(error, "engine");
    if (answer == nullptr) return Null(error, "answer");
    if (!IsText(options, length)) return Null(error, "options");
    if (!IsText(checks, check_count)) return Null(error, "checks");
    EngineRequest request;
    if (const pawl_status bad = ReadPrompt(prompt, request, error)) return bad;
    if (grammar != nullptr) request.grammar = grammar->grammar;
    CheckSpecs specs;
    Result<SearchOptions> read = ParseSearchOptions(Text(options, length), &specs);
    if (!read.ok()) return Fail(error, InFile("options", read.error()));
    const LoadedModel& model = engine->engine->model();
    if (Status added =
            AddChecks(specs, model.vocabulary(), InfoOf(model).threads, read->checks, read->critic);
        !added.ok()) {
      const Error& wrong = added.error();
      return Fail(error, InFile("options", {wrong.code, wrong.message, "#/" + wrong.place}));
    }
    if (critic != nullptr && read->critic != nullptr) {
      return Fail(
          error, {ErrorCode::kInvalid, "is given next to one as an argument", "options: #/critic"});
    }
    for (size_t i = 0; i < check_count; ++i) {
      if (checks[i] == nullptr) return Null(error, "checks[" + std::to_string(i) + "]");
      read->checks.push_back(checks[i]->check);
    }
    if (critic != nullptr) read->critic = critic->critic;
    const Result<SearchResult> result = engine->engine->Search(request, *std::move(read));
    if (!result.ok()) {
      Error failed = result.error();
      const std::string member = SearchMemberOf(failed.place);
      if (!member.empty()) failed = InFile("options", {failed.code, failed.message, "#/" + member});
      return Fail(error, failed);
    }
    *answer = new pawl_answer{SearchJson(*result)};
    return PAWL_OK;
  });
}

pawl_status pawl_engine_classify(pawl_engine* engine, const pawl_prompt* prompt,
                                 const char* options, size_t length, pawl_answer** answer,
                                 pawl_error** error) {
  return Guard(error, [&]() -> pawl_status {
    if (engine == nullptr) return Null(error, "engine");
    if (answer == nullptr) return Null(error, "answer");
    if (!IsText(options, length)) return Null(error, "options");
    EngineRequest request;
    if (const pawl_status bad = ReadPrompt(prompt, request, error)) return bad;
    Result<ClassifyOptions> read = ParseClassifyOptions(Text(options, length));
    if (!read.ok()) return Fail(error, InFile("options", read.error()));
    const Result<ClassifyResult> result = engine->engine->Classify(request, *std::move(read));
    if (!result.ok()) return Fail(error, result.error());
    *answer = new pawl_answer{ClassifyJson(*result)};
    return PAWL_OK;
  });
}

}  // extern "C"
