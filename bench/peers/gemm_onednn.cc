// Products with bf16 weights next to oneDNN's, on one thread, for the shapes of layers of small
// models. Not part of the build, as oneDNN is not needed for anything else (Debian: libdnnl-dev):
//
//   g++ -O2 -std=c++20 -I. -Iinclude bench/peers/gemm_onednn.cc -o gemm_onednn
//       build/kernels/libpawl_kernels.a build/src/base/libpawl_base.a -ldnnl   (one line)
//   OMP_NUM_THREADS=1 ./gemm_onednn [amx-bf16|avx512-bf16]
//
// Pawl multiplies float inputs (of 16 bits at least; with those two rounded to bf16) with weights
// as they lie in a file; oneDNN gets bf16 inputs and weights packed in the order it likes best.
// Both give floats. The best of twelve rounds counts.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <oneapi/dnnl/dnnl.hpp>

#include "kernels/cpu/kernels.h"
#include "src/base/pages.h"

namespace {

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Shape {
  int64_t outputs, inputs;
};
constexpr Shape kShapes[] = {{576, 576},  {1536, 576}, {576, 1536},  {896, 896},
                             {4864, 896}, {896, 4864}, {8192, 2048}, {2048, 8192}};

void Compare(const pawl::KernelSet& kernels, int64_t rows, const Shape& shape) {
  const int64_t n = shape.outputs, k = shape.inputs;
  pawl::HugeArena arena;
  const auto floats = [&](int64_t size) {
    return reinterpret_cast<float*>(arena.Allocate(size * 4));
  };
  auto* w = reinterpret_cast<uint16_t*>(arena.Allocate(n * k * 2));
  float* x = floats(rows * k);
  float* packed = floats(pawl::PackedFloats(rows, k));
  float* y = floats(rows * n);
  // Bits of numbers around 0.01, alike for both.
  for (int64_t i = 0; i < n * k; ++i) w[i] = static_cast<uint16_t>(0x3c00 + i % 127);
  std::fill_n(x, rows * k, 0.1f);
  std::fill_n(y, rows * n, 0.0f);

  pawl::MatMulArgs args;
  args.w = {w, pawl::WeightType::kBf16, n, k};
  args.x = packed;
  args.rows = static_cast<int>(rows);
  args.y = y;
  args.y_stride = n;

  using dnnl::memory;
  dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const auto bf16 = memory::data_type::bf16;
  const memory::desc a({rows, k}, bf16, memory::format_tag::ab);
  const memory::desc b({k, n}, bf16, memory::format_tag::any);
  const memory::desc c({rows, n}, memory::data_type::f32, memory::format_tag::ab);
  const dnnl::matmul::primitive_desc description(dnnl::matmul::desc(a, b, c), engine);
  const dnnl::matmul product(description);
  memory ma(a, engine), mb(description.weights_desc(), engine), mc(c, engine);
  for (memory* m : {&ma, &mb}) {
    auto* data = static_cast<uint16_t*>(m->get_data_handle());
    std::fill_n(data, m->get_desc().get_size() / 2, uint16_t{0x3c00});
  }
  double pack = 1e9, ours = 1e9, theirs = 1e9;
  for (int round = 0; round < 12; ++round) {
    double start = Now();
    kernels.pack(args.w.type, x, k, args.rows, k, packed);
    pack = std::min(pack, Now() - start);
    start = Now();
    kernels.matmul(args, 0, n);
    ours = std::min(ours, Now() - start);
    start = Now();
    product.execute(stream, {{DNNL_ARG_SRC, ma}, {DNNL_ARG_WEIGHTS, mb}, {DNNL_ARG_DST, mc}});
    stream.wait();
    theirs = std::min(theirs, Now() - start);
  }
  const double flops = 2.0 * static_cast<double>(rows * n * k) / 1e9;
  std::printf("%5ld %7ld %7ld %12.0f %12.0f %8.2f %10.2f\n", static_cast<long>(rows),
              static_cast<long>(n), static_cast<long>(k), flops / ours, flops / theirs,
              theirs / ours, theirs / (ours + pack));
}

}  // namespace

int main(int argc, char** argv) {
  const auto asked = [&](const char* name) { return argc > 1 && std::strcmp(argv[1], name) == 0; };
  const pawl::KernelSet* found =
      pawl::FindKernels(asked("amx-bf16")      ? pawl::KernelVariant::kAmxBf16
                        : asked("avx512-bf16") ? pawl::KernelVariant::kAvx512Bf16
                                               : pawl::KernelVariant::kAuto);
  if (found == nullptr) {
    std::fprintf(stderr, "this processor has no %s\n", argv[1]);
    return 1;
  }
  const pawl::KernelSet& kernels = *found;
  std::printf("kernels: %s; GFLOP/s\n%5s %7s %7s %12s %12s %8s %10s\n", kernels.name, "rows",
              "outputs", "inputs", "pawl", "oneDNN", "ratio", "with pack");
  for (const int64_t rows : {int64_t{1}, int64_t{8}, int64_t{128}}) {
    for (const Shape& shape : kShapes) Compare(kernels, rows, shape);
  }
}
