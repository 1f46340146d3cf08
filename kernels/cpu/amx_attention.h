// Attention on tiles; see amx_attention.cc.
#ifndef PAWL_KERNELS_CPU_AMX_ATTENTION_H_
#define PAWL_KERNELS_CPU_AMX_ATTENTION_H_

#include "kernels/cpu/kernels.h"

namespace pawl::amx {

// As KernelSet::attention. Queries, keys, what softmax makes of their products, and values are
// rounded to bf16. REQUIRES: RequestAmx() is true.
void Attention(const AttentionArgs& args);

}  // namespace pawl::amx

#endif  // PAWL_KERNELS_CPU_AMX_ATTENTION_H_
