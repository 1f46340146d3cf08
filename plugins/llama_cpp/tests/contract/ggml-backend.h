/* See llama.h next to this file. */
#ifndef PAWL_CONTRACT_GGML_BACKEND_H_
#define PAWL_CONTRACT_GGML_BACKEND_H_

#include "ggml.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ggml_backend_buffer_type* ggml_backend_buffer_type_t;
typedef struct ggml_backend_device* ggml_backend_dev_t;

ggml_backend_dev_t ggml_backend_buft_get_device(ggml_backend_buffer_type_t);
bool ggml_backend_dev_supports_op(ggml_backend_dev_t, const struct ggml_tensor*);
void ggml_backend_tensor_set(struct ggml_tensor*, const void* data, size_t offset, size_t size);

#ifdef __cplusplus
}
#endif
#endif /* PAWL_CONTRACT_GGML_BACKEND_H_ */
