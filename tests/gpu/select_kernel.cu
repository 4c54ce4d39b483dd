// SPDX-License-Identifier: Apache-2.0
// Says which of the images in its fatbin is running: the capability x 10, plus
// 1000 for code of exactly this chip.
extern "C" __global__ void which_image(unsigned* out) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  *out = 1000 + __CUDA_ARCH__ / 10;
#else
  *out = __CUDA_ARCH__ / 10;
#endif
}
