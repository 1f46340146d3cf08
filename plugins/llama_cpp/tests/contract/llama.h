/* The part of llama.cpp's interface that the plugin uses, written down from its public header of
 * October 2026 (0c1e570) so that the plugin's tests run where llama.cpp is not. It declares and
 * defines nothing else. sampler_test.cc gives the functions bodies. With the real llama.h in the
 * include path instead (scripts/plugin_tests.sh) the same plugin runs in llama.cpp itself. */
#ifndef PAWL_CONTRACT_LLAMA_H_
#define PAWL_CONTRACT_LLAMA_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ggml-backend.h"
#include "ggml.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t llama_token;
struct llama_vocab;

enum llama_token_attr {
  LLAMA_TOKEN_ATTR_UNKNOWN = 1,
  LLAMA_TOKEN_ATTR_UNUSED = 2,
  LLAMA_TOKEN_ATTR_NORMAL = 4,
  LLAMA_TOKEN_ATTR_CONTROL = 8
};

typedef struct llama_token_data {
  llama_token id;
  float logit;
  float p;
} llama_token_data;

typedef struct llama_token_data_array {
  llama_token_data* data;
  size_t size;
  int64_t selected;
  bool sorted;
} llama_token_data_array;

typedef void* llama_sampler_context_t;

struct llama_sampler_data {
  struct ggml_tensor* logits;
  struct ggml_tensor* probs;
  struct ggml_tensor* sampled;
  struct ggml_tensor* candidates;
};

struct llama_sampler;
struct llama_sampler_i {
  const char* (*name)(const struct llama_sampler*);
  void (*accept)(struct llama_sampler*, llama_token);
  void (*apply)(struct llama_sampler*, llama_token_data_array*);
  void (*reset)(struct llama_sampler*);
  struct llama_sampler* (*clone)(const struct llama_sampler*);
  void (*free)(struct llama_sampler*);
  bool (*backend_init)(struct llama_sampler*, ggml_backend_buffer_type_t, uint32_t outputs);
  void (*backend_accept)(struct llama_sampler*, struct ggml_context*, struct ggml_cgraph*,
                         struct ggml_tensor* selected);
  void (*backend_apply)(struct llama_sampler*, struct ggml_context*, struct ggml_cgraph*,
                        struct llama_sampler_data*);
  void (*backend_set_input)(struct llama_sampler*);
  void (*backend_reset)(struct llama_sampler*);
  void (*copy_state)(const struct llama_sampler* from, struct llama_sampler* to);
};

struct llama_sampler {
  struct llama_sampler_i* iface;
  llama_sampler_context_t ctx;
};

struct llama_sampler* llama_sampler_init(struct llama_sampler_i* iface, llama_sampler_context_t);
void llama_sampler_free(struct llama_sampler*);
int32_t llama_vocab_n_tokens(const struct llama_vocab*);
enum llama_token_attr llama_vocab_get_attr(const struct llama_vocab*, llama_token);
bool llama_vocab_is_eog(const struct llama_vocab*, llama_token);
int32_t llama_token_to_piece(const struct llama_vocab*, llama_token, char* bytes, int32_t length,
                             int32_t skip_spaces, bool special);

#ifdef __cplusplus
}
#endif
#endif /* PAWL_CONTRACT_LLAMA_H_ */
