// The library's product as three loops, for tests of what stands around it.
#include <utility>

#include "kernels/cuda/device_language.h"
#include "kernels/cuda/prefill.h"

namespace pawl::emulated {
namespace {

int refused = 0;

class Loops final : public Library {
 public:
  // A workspace as the real one has, which nobody looks at.
  explicit Loops(DeviceMemory workspace) : workspace_(std::move(workspace)) {}

  Status Run(const LibraryProduct& p, Stream stream) override {
    if (p.outputs == refused) return Error{ErrorCode::kUnsupported, "refused", "emulated library"};
    return Submit(stream, [p]() -> Status {
      for (int r = 0; r < p.rows; ++r) {
        for (int o = 0; o < p.outputs; ++o) {
          const uint16_t* w = p.w + o * p.w_stride;
          const uint16_t* x = p.x + r * p.x_stride;
          float sum = 0.0f;
          for (int k = 0; k < p.columns; ++k) sum += Bf16ToFloat(w[k]) * Bf16ToFloat(x[k]);
          float& y = p.y[r * p.y_stride + o];
          y = p.add ? y + sum : sum;
        }
      }
      return {};
    });
  }

 private:
  DeviceMemory workspace_;
};

}  // namespace

void RefuseProducts(int outputs) { refused = outputs; }

Result<std::unique_ptr<Library>> OpenLibrary() {
  Result<DeviceMemory> workspace = DeviceMemory::Make(kLibraryWorkspace);
  if (!workspace.ok()) return workspace.error();
  return std::unique_ptr<Library>(std::make_unique<Loops>(*std::move(workspace)));
}

}  // namespace pawl::emulated
