/* See llama.h next to this file. */
#ifndef PAWL_CONTRACT_GGML_H_
#define PAWL_CONTRACT_GGML_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ggml_tensor;
struct ggml_context;
struct ggml_cgraph;

enum ggml_type { GGML_TYPE_F32 = 0, GGML_TYPE_I32 = 26 };
struct ggml_init_params {
  size_t mem_size;
  void* mem_buffer;
  bool no_alloc;
};

struct ggml_context* ggml_init(struct ggml_init_params);
void ggml_free(struct ggml_context*);
size_t ggml_tensor_overhead(void);
int64_t ggml_nelements(const struct ggml_tensor*);
void ggml_set_input(struct ggml_tensor*);
struct ggml_tensor* ggml_new_tensor_1d(struct ggml_context*, enum ggml_type, int64_t);
struct ggml_tensor* ggml_new_tensor_2d(struct ggml_context*, enum ggml_type, int64_t, int64_t);
struct ggml_tensor* ggml_reshape_1d(struct ggml_context*, struct ggml_tensor*, int64_t);
struct ggml_tensor* ggml_add(struct ggml_context*, struct ggml_tensor*, struct ggml_tensor*);
struct ggml_tensor* ggml_get_rows(struct ggml_context*, struct ggml_tensor*, struct ggml_tensor*);
struct ggml_tensor* ggml_get_first_tensor(const struct ggml_context*);
struct ggml_tensor* ggml_get_next_tensor(const struct ggml_context*, struct ggml_tensor*);

#ifdef __cplusplus
}
#endif
#endif /* PAWL_CONTRACT_GGML_H_ */
