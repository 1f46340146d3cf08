// Integer products with SDOT.
#include "kernels/cpu/integers_neon_dot_inl.h"

namespace pawl {
namespace {
constexpr bool kRowPairs = false;
}  // namespace
}  // namespace pawl

#include "kernels/cpu/integers_inl.h"

namespace pawl {
const IntegerKernels kNeonDotIntegers = {Pack, MatMul};
}  // namespace pawl
