/* pawl_llama.h: a sampler of llama.cpp that leaves only the tokens that fit a constraint.
 *
 *   pawl_error* error = NULL;
 *   struct llama_sampler* constraint = pawl_llama_sampler_from_text(
 *       llama_model_get_vocab(model), "json_schema", schema, strlen(schema), &error);
 *   if (!constraint) { puts(pawl_error_message(error)); ... }
 *   struct llama_sampler* chain = llama_sampler_chain_init(llama_sampler_chain_default_params());
 *   llama_sampler_chain_add(chain, constraint);                       // first: before top-k
 *   llama_sampler_chain_add(chain, llama_sampler_init_temp(0.8f));
 *   llama_sampler_chain_add(chain, llama_sampler_init_dist(7));
 *   while (...) token = llama_sampler_sample(chain, context, -1);     // accepts the token too
 *
 * Put it before samplers that cut candidates (top-k, top-p, min-p): behind them it may find that
 * all that are left are refused. It then offers one token that fits, and counts that
 * (pawl_llama_sampler_rescues).
 *
 * Graph. Added to a chain that a context samples with (llama_set_sampler, or
 * llama_context_params.samplers) the mask is an input tensor of the graph, added to the logits, and
 * what follows it in the chain runs on the device as well.
 *
 * Threads: a sampler belongs to one thread at a time. Clones share only what is immutable.
 */
#ifndef PAWL_LLAMA_H_
#define PAWL_LLAMA_H_

#include "llama.h"
#include "pawl/pawl.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The tokens of a model as Pawl's vocabulary: their bytes by llama_token_to_piece, control tokens
 * as special ones, every end-of-generation token as one that ends the output. */
PAWL_API pawl_status pawl_llama_vocabulary(const struct llama_vocab* vocab,
                                           pawl_vocabulary** vocabulary, pawl_error** error);

/* A sampler that begins where the matcher stands, which is copied; free the matcher when you like.
 * The vocabulary is that of the matcher's grammar. NULL when an argument is, or memory is used up.
 * llama_sampler_free frees it, or the chain that it was added to. */
PAWL_API struct llama_sampler* pawl_llama_sampler_init(const pawl_vocabulary* vocabulary,
                                                       const pawl_matcher* matcher);

/* The same from the text of a constraint, of a kind of pawl_compile: "json_schema", "regex",
 * "choice", "gbnf", "lark", "structural_tag", ... NULL with an error, or with none when memory is
 * used up. For many requests over one model make a vocabulary and a compiler once and use the
 * function above. */
PAWL_API struct llama_sampler* pawl_llama_sampler_from_text(const struct llama_vocab* vocab,
                                                            const char* kind, const char* text,
                                                            size_t length, pawl_error** error);

/* 1 when the output has ended: an end token was accepted. 0 also for samplers of others. */
PAWL_API int pawl_llama_sampler_ended(const struct llama_sampler* sampler);
/* The first token that was accepted though it does not fit, or -1. From then on the sampler allows
 * nothing but the end. */
PAWL_API int32_t pawl_llama_sampler_refused(const struct llama_sampler* sampler);
/* How many times every candidate was refused, because samplers before this one had cut those that
 * fit. */
PAWL_API int64_t pawl_llama_sampler_rescues(const struct llama_sampler* sampler);

/* Takes back the last accepted tokens, as after a refused draft. 0 when there were fewer; then
 * nothing changed. */
PAWL_API int pawl_llama_sampler_rollback(struct llama_sampler* sampler, size_t tokens);
/* How many of the tokens, from the first, would be accepted; nothing changes. */
PAWL_API size_t pawl_llama_sampler_validate(const struct llama_sampler* sampler,
                                            const llama_token* tokens, size_t count);

/* Sampling in the graph with more than one output for a sequence (n_outputs_max_per_seq > 1): row i
 * of the next llama_decode gets the mask that holds after the first i of these tokens. Call it once
 * before the sampler is attached (count 0 will do), which tells that you will; without that the
 * sampler declines such contexts, and samples on the CPU. Rows beyond the draft, or behind a token
 * of it that does not fit, may only end. 0 when memory is used up. */
PAWL_API int pawl_llama_sampler_set_draft(struct llama_sampler* sampler, const llama_token* tokens,
                                          size_t count);

#ifdef __cplusplus
}
#endif
#endif /* PAWL_LLAMA_H_ */
