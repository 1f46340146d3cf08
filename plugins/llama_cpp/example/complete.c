/* complete MODEL.gguf KIND CONSTRAINT PROMPT [graph]: writes one completion that fits the
 * constraint. "graph": the chain samples in the graph, as far as the device can. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pawl_llama.h"

enum { kMaxTokens = 512, kContext = 2048 };

static void Quiet(enum ggml_log_level level, const char* text, void* data) {
  (void)level, (void)text, (void)data;
}

int main(int argc, char** argv) {
  if (argc < 5) return fprintf(stderr, "complete MODEL KIND CONSTRAINT PROMPT [graph]\n"), 2;
  const int in_graph = argc > 5 && strcmp(argv[5], "graph") == 0;
  llama_log_set(Quiet, NULL);
  llama_backend_init();
  struct llama_model* model = llama_model_load_from_file(argv[1], llama_model_default_params());
  if (!model) return fprintf(stderr, "%s: cannot be read\n", argv[1]), 1;
  const struct llama_vocab* vocab = llama_model_get_vocab(model);

  pawl_error* error = NULL;
  struct llama_sampler* constraint =
      pawl_llama_sampler_from_text(vocab, argv[2], argv[3], strlen(argv[3]), &error);
  if (!constraint) {
    fprintf(stderr, "%s: %s\n", pawl_error_place(error), pawl_error_message(error));
    return 1;
  }
  struct llama_sampler* chain = llama_sampler_chain_init(llama_sampler_chain_default_params());
  llama_sampler_chain_add(chain, constraint);
  llama_sampler_chain_add(chain, llama_sampler_init_temp(1.5f));
  llama_sampler_chain_add(chain, llama_sampler_init_dist(7));

  struct llama_context_params params = llama_context_default_params();
  params.n_ctx = kContext;
  struct llama_context* context = llama_init_from_model(model, params);
  if (!context) return fprintf(stderr, "no context\n"), 1;
  if (in_graph && !llama_set_sampler(context, 0, chain)) {
    return fprintf(stderr, "the chain cannot sample in the graph\n"), 1;
  }

  llama_token tokens[kContext];
  int count = llama_tokenize(vocab, argv[4], (int)strlen(argv[4]), tokens, kContext, true, false);
  if (count <= 0) return fprintf(stderr, "the prompt has no tokens or too many\n"), 1;
  struct llama_batch batch = llama_batch_get_one(tokens, count);
  for (int i = 0; i < kMaxTokens && llama_decode(context, batch) == 0; ++i) {
    llama_token token = llama_sampler_sample(chain, context, -1);
    if (llama_vocab_is_eog(vocab, token)) break;
    char piece[512];
    const int size = llama_token_to_piece(vocab, token, piece, sizeof piece, 0, true);
    if (size > 0) fwrite(piece, 1, (size_t)size, stdout);
    batch = llama_batch_get_one(&token, 1);
  }
  putchar('\n');
  fprintf(stderr, "ended: %d, refused: %d, rescues: %lld\n", pawl_llama_sampler_ended(constraint),
          (int)pawl_llama_sampler_refused(constraint),
          (long long)pawl_llama_sampler_rescues(constraint));
  const int ok = pawl_llama_sampler_ended(constraint) && pawl_llama_sampler_refused(constraint) < 0;
  llama_free(context);
  llama_sampler_free(chain);
  llama_model_free(model);
  llama_backend_free();
  return ok ? 0 : 3;
}
