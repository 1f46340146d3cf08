// Samplers for C. The options are those of pawl/sampling.h, field by field; functions of the caller
// become checks and critics.
#include "pawl/engine.h"

#include <cmath>
#include <numeric>

#include "src/capi/engine_handles.h"
#include "src/decode/sampling/check_spec.h"
#include "src/decode/sampling/names.h"

struct pawl_samples {
  std::vector<pawl::WeightedOutput> outputs;
  std::vector<std::string> reports;
  double effective_size = 0;
  bool timed_out = false;
};

namespace pawl::capi {
namespace {

pawl_check_question Question(const CheckQuestion& question) {
  pawl_check_question out{};
  out.struct_size = sizeof out;
  out.text = question.text.data();
  out.text_length = question.text.size();
  out.tokens = question.tokens.data();
  out.token_count = question.tokens.size();
  out.ended = question.ended ? 1 : 0;
  return out;
}

class ScoreFunction : public Critic {
 public:
  ScoreFunction(pawl_score score, void* context) : score_(score), context_(context) {}
  Result<double> Score(const CheckQuestion& question) const override {
    const pawl_check_question asked = Question(question);
    const double score = score_(context_, &asked);
    if (std::isnan(score)) return Error{ErrorCode::kInvalid, "a score is not a number", "critic"};
    return score;
  }

 private:
  pawl_score score_;
  void* context_;
};

pawl_status ReadPrograms(double timeout, int32_t processes, CheckSpecOptions& out,
                         pawl_error** error) {
  if (!(timeout >= 0.001 && timeout <= 86400)) {
    return BadArgument(error, "timeout", "must be from 0.001 to 86400 seconds");
  }
  if (processes < 1 || processes > 1024) {
    return BadArgument(error, "processes", "must be from 1 to 1024");
  }
  out.time_limit = std::chrono::milliseconds(static_cast<int64_t>(timeout * 1000));
  out.processes = processes;
  return PAWL_OK;
}

pawl_sampler_options SamplerDefaults() {
  const SamplerOptions defaults;
  pawl_sampler_options out{};
  out.sampler = static_cast<int32_t>(defaults.sampler);
  out.fidelity = PAWL_FIDELITY_NONE;
  out.n = defaults.n;
  out.particles = defaults.particles;
  out.temperature = defaults.temperature;
  out.seed = defaults.seed;
  out.max_tokens = defaults.max_tokens;
  out.estimator = static_cast<int32_t>(defaults.estimator);
  out.max_rejects = defaults.max_rejects;
  out.accepts = defaults.accepts;
  out.resampling = static_cast<int32_t>(defaults.resampling);
  out.ess_threshold = defaults.ess_threshold;
  out.attempts = defaults.attempts;
  out.lookahead = defaults.lookahead;
  out.batch = defaults.batch;
  out.seconds = defaults.seconds;
  return out;
}

// A view of an output, as far as the caller's version of the struct goes.
void View(const WeightedOutput& output, const std::string& report, pawl_sample* sample) {
  pawl_sample out{};
  out.text = output.text.data();
  out.text_length = output.text.size();
  out.tokens = output.tokens.data();
  out.token_count = output.tokens.size();
  out.log_weight = output.log_weight;
  out.log_probability = output.log_probability;
  out.valid = output.report.valid ? 1 : 0;
  out.report = report.data();
  out.report_length = report.size();
  InitStruct(sample, sample->struct_size, out);
}

pawl_status ReadOptions(const pawl_sampler_options* options, SamplerOptions& out,
                        pawl_engine** proposal, pawl_error** error) {
  pawl_sampler_options given = SamplerDefaults();
  if (const pawl_status bad = ReadStruct(options, given, error)) return bad;
  if (const pawl_status bad = Choose(given.sampler, "sampler", out.sampler, error)) return bad;
  if (given.fidelity != PAWL_FIDELITY_NONE) {
    Fidelity fidelity{};
    if (const pawl_status bad = Choose(given.fidelity, "fidelity", fidelity, error)) return bad;
    out.fidelity = fidelity;
  }
  if (const pawl_status bad = Choose(given.estimator, "estimator", out.estimator, error)) {
    return bad;
  }
  if (const pawl_status bad = Choose(given.resampling, "resampling", out.resampling, error)) {
    return bad;
  }
  out.n = given.n;
  out.particles = given.particles;
  out.temperature = given.temperature;
  out.seed = given.seed;
  out.max_tokens = given.max_tokens;
  out.max_rejects = given.max_rejects;
  out.accepts = given.accepts;
  out.ess_threshold = given.ess_threshold;
  out.attempts = given.attempts;
  out.lookahead = given.lookahead;
  out.batch = given.batch;
  out.seconds = given.seconds;
  if (!IsText(given.checks, given.check_count)) return Null(error, "checks");
  for (size_t i = 0; i < given.check_count; ++i) {
    if (given.checks[i] == nullptr) return Null(error, "checks[" + std::to_string(i) + "]");
    out.checks.push_back(given.checks[i]->check);
  }
  if (given.critic != nullptr) out.critic = given.critic->critic;
  *proposal = given.proposal;
  if (given.on_sample != nullptr) {
    out.on_output = [tell = given.on_sample, context = given.on_sample_context,
                     fidelity = out.fidelity](const WeightedOutput& output) {
      const std::string report = ReportJson(output.report, fidelity);
      pawl_sample sample{};
      sample.struct_size = sizeof sample;
      View(output, report, &sample);
      return tell(context, &sample) != 0;
    };
  }
  return PAWL_OK;
}

}  // namespace
}  // namespace pawl::capi

using namespace pawl;        // NOLINT: this file is the C face of that namespace
using namespace pawl::capi;  // NOLINT

extern "C" {

void pawl_sample_init(pawl_sample* sample, size_t struct_size) {
  InitStruct(sample, struct_size, {});
}
void pawl_sampler_options_init(pawl_sampler_options* options, size_t struct_size) {
  InitStruct(options, struct_size, SamplerDefaults());
}

pawl_status pawl_check_create(pawl_judge judge, void* context, int32_t granularity,
                              pawl_check** check, pawl_error** error) {
  return Guard(error, [&]() -> pawl_status {
    if (judge == nullptr) return Null(error, "judge");
    if (check == nullptr) return Null(error, "check");
    CheckGranularity when{};
    if (const pawl_status bad = Choose(granularity, "granularity", when, error)) return bad;
    *check = new pawl_check{
        MakeCheck(when, [judge, context](const CheckQuestion& question) -> Result<Verdict> {
          const pawl_check_question asked = Question(question);
          const int32_t verdict = judge(context, &asked);
          if (verdict < PAWL_DEAD || verdict > PAWL_UNKNOWN) {
            return Error{ErrorCode::kInvalid, "answered " + std::to_string(verdict), "check"};
          }
          return static_cast<Verdict>(verdict);
        })};
    return PAWL_OK;
  });
}

pawl_status pawl_check_from_grammar(const pawl_grammar* grammar, int32_t granularity,
                                    pawl_check** check, pawl_error** error) {
  return Guard(error, [&]() -> pawl_status {
    if (grammar == nullptr) return Null(error, "grammar");
    if (check == nullptr) return Null(error, "check");
    CheckGranularity when{};
    if (const pawl_status bad = Choose(granularity, "granularity", when, error)) return bad;
    *check = new pawl_check{MakeGrammarCheck(grammar->grammar, when)};
    return PAWL_OK;
  });
}

pawl_status pawl_check_from_spec(const pawl_vocabulary* vocabulary, const char* spec, size_t length,
                                 double timeout, int32_t processes, pawl_check** check,
                                 pawl_error** error) {
  return Guard(error, [&]() -> pawl_status {
    if (vocabulary == nullptr) return Null(error, "vocabulary");
    if (!IsText(spec, length)) return Null(error, "spec");
    if (check == nullptr) return Null(error, "check");
    CheckSpecOptions programs;
    if (const pawl_status bad = ReadPrograms(timeout, processes, programs, error)) return bad;
    auto made =
        MakeCheckOf(std::string(Text(spec, length)), vocabulary->data->vocabulary, programs);
    if (!made.ok()) return Fail(error, made.error());
    *check = new pawl_check{*std::move(made)};
    return PAWL_OK;
  });
}
void pawl_check_free(pawl_check* check) { delete check; }

pawl_status pawl_critic_create(pawl_score score, void* context, pawl_critic** critic,
                               pawl_error** error) {
  return Guard(error, [&]() -> pawl_status {
    if (score == nullptr) return Null(error, "score");
    if (critic == nullptr) return Null(error, "critic");
    *critic = new pawl_critic{std::make_shared<ScoreFunction>(score, context)};
    return PAWL_OK;
  });
}

pawl_status pawl_critic_from_command(const char* command, size_t length, double timeout,
                                     int32_t processes, pawl_critic** critic, pawl_error** error) {
  return Guard(error, [&]() -> pawl_status {
    if (command == nullptr || length == 0) return Null(error, "command");
    if (critic == nullptr) return Null(error, "critic");
    CheckSpecOptions programs;
    if (const pawl_status bad = ReadPrograms(timeout, processes, programs, error)) return bad;
    auto made = MakeCriticOf(std::string(Text(command, length)), programs);
    if (!made.ok()) return Fail(error, made.error());
    *critic = new pawl_critic{*std::move(made)};
    return PAWL_OK;
  });
}
void pawl_critic_free(pawl_critic* critic) { delete critic; }

pawl_status pawl_engine_sample(pawl_engine* engine, const pawl_prompt* prompt,
                               const pawl_grammar* grammar, const pawl_sampler_options* options,
                               pawl_samples** samples, pawl_error** error) {
  return Guard(error, [&]() -> pawl_status {
    if (engine == nullptr) return Null(error, "engine");
    if (samples == nullptr) return Null(error, "samples");
    EngineRequest request;
    if (const pawl_status bad = ReadPrompt(prompt, request, error)) return bad;
    if (grammar != nullptr) request.grammar = grammar->grammar;
    SamplerOptions sampling;
    pawl_engine* proposal = nullptr;
    if (const pawl_status bad = ReadOptions(options, sampling, &proposal, error)) return bad;
    const std::optional<Fidelity> fidelity = sampling.fidelity;
    Result<SamplerResult> result = engine->engine->Sample(
        request, std::move(sampling), proposal == nullptr ? nullptr : proposal->engine);
    if (!result.ok()) return Fail(error, result.error());
    auto made = std::make_unique<pawl_samples>();
    made->outputs = std::move(result->outputs);
    for (const WeightedOutput& output : made->outputs) {
      made->reports.push_back(ReportJson(output.report, fidelity));
    }
    made->effective_size = result->effective_size;
    made->timed_out = result->timed_out;
    *samples = made.release();
    return PAWL_OK;
  });
}

size_t pawl_samples_count(const pawl_samples* samples) {
  return samples == nullptr ? 0 : samples->outputs.size();
}

double pawl_samples_effective_size(const pawl_samples* samples, int32_t* timed_out) {
  if (timed_out != nullptr) *timed_out = samples != nullptr && samples->timed_out ? 1 : 0;
  return samples == nullptr ? 0 : samples->effective_size;
}

pawl_status pawl_samples_get(const pawl_samples* samples, size_t index, pawl_sample* sample) {
  if (samples == nullptr || sample == nullptr || sample->struct_size < sizeof(size_t) ||
      index >= samples->outputs.size()) {
    return PAWL_BAD_ARGUMENT;
  }
  View(samples->outputs[index], samples->reports[index], sample);
  return PAWL_OK;
}
void pawl_samples_free(pawl_samples* samples) { delete samples; }

pawl_status pawl_engine_score(pawl_engine* engine, const pawl_prompt* prompt, const int32_t* tokens,
                              size_t count, double temperature, double* sum, double* each,
                              pawl_error** error) {
  return Guard(error, [&]() -> pawl_status {
    if (engine == nullptr) return Null(error, "engine");
    if (!IsText(tokens, count)) return Null(error, "tokens");
    if (sum == nullptr) return Null(error, "sum");
    EngineRequest request;
    if (const pawl_status bad = ReadPrompt(prompt, request, error)) return bad;
    const Result<std::vector<double>> scores =
        engine->engine->Score(request, std::span(tokens, count), temperature);
    if (!scores.ok()) return Fail(error, scores.error());
    *sum = std::accumulate(scores->begin(), scores->end(), 0.0);
    if (each != nullptr) std::copy(scores->begin(), scores->end(), each);
    return PAWL_OK;
  });
}

}  // extern "C"
