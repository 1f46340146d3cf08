// Which of its two forms this code takes. The sources of the CUDA backend are compiled twice: by
// nvcc and the host compiler for devices (namespace pawl::cuda), and by the host compiler alone,
// with PAWL_CUDA_EMULATED, for tests without a device (namespace pawl::emulated, host_emulation.h).
// Both can be linked into one program.
#ifndef PAWL_KERNELS_CUDA_BACKEND_H_
#define PAWL_KERNELS_CUDA_BACKEND_H_

#if defined(PAWL_CUDA_EMULATED)
#define PAWL_GPU emulated
#else
#define PAWL_GPU cuda
#endif

#endif  // PAWL_KERNELS_CUDA_BACKEND_H_
