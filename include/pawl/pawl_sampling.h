/* Checks, samplers and searches for C: a part of pawl/pawl.h, which has the rules of all functions
 * and an example of a sampler.
 *
 *     pawl_check* check = NULL;
 *     pawl_check_create(is_prime, NULL, PAWL_CHECK_COMPLETE, &check, &error);
 *     options.checks = (const pawl_check* const*)&check;
 *     options.check_count = 1;
 *     pawl_engine_sample(engine, &prompt, grammar, &options, &samples, &error);
 *
 * Errors and threads: as of pawl/pawl.h. */
#ifndef PAWL_PAWL_SAMPLING_H_
#define PAWL_PAWL_SAMPLING_H_

#include "pawl/pawl.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Checks: constraints that are too slow or too complex for a mask ------------------------- */

/* A check. Immutable. */
typedef struct pawl_check pawl_check;

enum { PAWL_DEAD = 0, PAWL_LIVE = 1, PAWL_ACCEPT = 2, PAWL_UNKNOWN = 3 };
enum { PAWL_CHECK_BYTE = 0, PAWL_CHECK_TOKEN = 1, PAWL_CHECK_LINE = 2, PAWL_CHECK_COMPLETE = 3 };

typedef struct pawl_check_question {
  size_t struct_size;
  const char* text; /* the output so far, in bytes */
  size_t text_length;
  const int32_t* tokens; /* the tokens of the text, without the end token */
  size_t token_count;
  int32_t ended; /* 1: the output ends here */
} pawl_check_question;

/* Returns PAWL_DEAD, PAWL_LIVE, PAWL_ACCEPT or PAWL_UNKNOWN. Another number ends the run with an
 * error. Several threads call the function at the same time. The same question must always have the
 * same answer. */
typedef int32_t (*pawl_judge)(void* context, const pawl_check_question* question);
/* A function as a check. granularity: PAWL_CHECK_BYTE and so on. Threads: any. */
PAWL_API pawl_status pawl_check_create(pawl_judge judge, void* context, int32_t granularity,
                                       pawl_check** check, pawl_error** error);
/* A grammar as a check. Threads: any. */
PAWL_API pawl_status pawl_check_from_grammar(const pawl_grammar* grammar, int32_t granularity,
                                             pawl_check** check, pawl_error** error);
/* A check as text, in the form of `pawl generate --check`: KIND:VALUE or KIND@GRANULARITY:VALUE.
 * Kinds are regex, schema, grammar and program. A program has `timeout` seconds for an answer, and
 * at most `processes` processes. Threads: any. */
PAWL_API pawl_status pawl_check_from_spec(const pawl_vocabulary* vocabulary, const char* spec,
                                          size_t length, double timeout, int32_t processes,
                                          pawl_check** check, pawl_error** error);
PAWL_API void pawl_check_free(pawl_check* check);

/* A weight for outputs and their prefixes. Immutable. */
typedef struct pawl_critic pawl_critic;
/* Returns a natural logarithm; -INFINITY for outputs that must not occur. NaN ends the run with an
 * error. Several threads call the function at the same time. */
typedef double (*pawl_score)(void* context, const pawl_check_question* question);
/* Threads: any. */
PAWL_API pawl_status pawl_critic_create(pawl_score score, void* context, pawl_critic** critic,
                                        pawl_error** error);
/* A command for the shell as a critic, in the form of `pawl generate --critic`. Threads: any. */
PAWL_API pawl_status pawl_critic_from_command(const char* command, size_t length, double timeout,
                                              int32_t processes, pawl_critic** critic,
                                              pawl_error** error);
PAWL_API void pawl_critic_free(pawl_critic* critic);

/* ---- Samplers -------------------------------------------------------------------------------- */

enum { PAWL_SAMPLER_GCD = 0, PAWL_SAMPLER_FVO = 1, PAWL_SAMPLER_AWRS = 2, PAWL_SAMPLER_SMC = 3 };
enum { PAWL_SAMPLER_ASAP = 4, PAWL_SAMPLER_RS = 5, PAWL_SAMPLER_ARS = 6, PAWL_SAMPLER_CARS = 7 };
enum { PAWL_FIDELITY_NONE = -1, PAWL_FIDELITY_FAST = 0, PAWL_FIDELITY_ALIGNED = 1 };
enum { PAWL_FIDELITY_EXACT = 2 };
enum { PAWL_ESTIMATOR_TWO_LOOP = 0, PAWL_ESTIMATOR_RECURSIVE = 1, PAWL_ESTIMATOR_GEOMETRIC = 2 };
enum { PAWL_RESAMPLING_STRATIFIED = 0, PAWL_RESAMPLING_SYSTEMATIC = 1 };
enum { PAWL_RESAMPLING_MULTINOMIAL = 2, PAWL_RESAMPLING_RESIDUAL = 3 };

/* One output. Its pointers are valid as long as the samples live. */
typedef struct pawl_sample {
  size_t struct_size;
  const char* text; /* bytes */
  size_t text_length;
  const int32_t* tokens; /* with the end token */
  size_t token_count;
  double log_weight; /* -1e300 for a weight of 0 */
  double log_probability;
  int32_t valid;
  const char* report; /* JSON: "report" of docs/sampling.md */
  size_t report_length;
} pawl_sample;
PAWL_API void pawl_sample_init(pawl_sample* sample, size_t struct_size);

/* Called with an output. Returning 0 ends the run. `sample` lives until the function returns. */
typedef int (*pawl_on_sample)(void* context, const pawl_sample* sample);

typedef struct pawl_sampler_options {
  size_t struct_size;
  int32_t sampler;
  int32_t fidelity; /* if not PAWL_FIDELITY_NONE, selects the sampler */
  int32_t n;
  int32_t particles;
  double temperature;
  uint64_t seed;
  int32_t max_tokens;
  const pawl_check* const* checks;
  size_t check_count;
  int32_t estimator;
  int32_t max_rejects;
  int32_t accepts;
  int32_t resampling;
  double ess_threshold;
  const pawl_critic* critic; /* NULL: none */
  int32_t attempts;
  int32_t lookahead;
  int32_t batch;
  pawl_engine* proposal; /* NULL: none; one that runs outputs is an error, and new ones wait */
  /* Called for each output, in order, on the thread of the call. NULL: no call. */
  pawl_on_sample on_sample;
  void* on_sample_context;
} pawl_sampler_options;
PAWL_API void pawl_sampler_options_init(pawl_sampler_options* options, size_t struct_size);

typedef struct pawl_samples pawl_samples;
/* Samples outputs. grammar: NULL for none, otherwise one for the engine's vocabulary. options: NULL
 * for the defaults. Threads: any; samplers share the calls of the model with outputs. */
PAWL_API pawl_status pawl_engine_sample(pawl_engine* engine, const pawl_prompt* prompt,
                                        const pawl_grammar* grammar,
                                        const pawl_sampler_options* options, pawl_samples** samples,
                                        pawl_error** error);
/* The number of outputs; 0 for NULL. Threads: any. */
PAWL_API size_t pawl_samples_count(const pawl_samples* samples);
/* Output `index`. PAWL_BAD_ARGUMENT if there is no such output. Threads: any. */
PAWL_API pawl_status pawl_samples_get(const pawl_samples* samples, size_t index,
                                      pawl_sample* sample);
PAWL_API void pawl_samples_free(pawl_samples* samples);

/* Computes the model's log-probability (base e) of the tokens after the prompt, at this temperature
 * and without a mask. The result is *sum. If `each` is not NULL, each[i] is the log-probability of
 * token i after the tokens before it. Threads: any. */
PAWL_API pawl_status pawl_engine_score(pawl_engine* engine, const pawl_prompt* prompt,
                                       const int32_t* tokens, size_t count, double temperature,
                                       double* sum, double* each, pawl_error** error);

/* ---- Searches -------------------------------------------------------------------------------- */

/* An answer as JSON in UTF-8: docs/search.md. Its text lives as long as the answer. */
typedef struct pawl_answer pawl_answer;
PAWL_API const char* pawl_answer_json(const pawl_answer* answer, size_t* length);
PAWL_API void pawl_answer_free(pawl_answer* answer);
/* Looks for outputs of high probability. options: a JSON object with the names of docs/search.md;
 * NULL for the defaults. grammar, checks, critic: NULL for none. Threads: any. */
PAWL_API pawl_status pawl_engine_search(pawl_engine* engine, const pawl_prompt* prompt,
                                        const pawl_grammar* grammar, const char* options,
                                        size_t length, const pawl_check* const* checks,
                                        size_t check_count, const pawl_critic* critic,
                                        pawl_answer** answer, pawl_error** error);
/* The probabilities of "choices", a member of the options. Threads: any. */
PAWL_API pawl_status pawl_engine_classify(pawl_engine* engine, const pawl_prompt* prompt,
                                          const char* options, size_t length, pawl_answer** answer,
                                          pawl_error** error);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* PAWL_PAWL_SAMPLING_H_ */
