// Sums of the lanes of one Vec and of four, once Fold has left four lanes of each: the same order
// of additions for all x86 variants, whose bits agree. As kernels_inl.h, for one .cc file.
namespace pawl {
namespace {

inline float Sum(const Vec& v) {
  const __m128 four = Fold(v);
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}
inline void Sum4(const Vec& a, const Vec& b, const Vec& c, const Vec& d, float* out) {
  __m128 r0 = Fold(a), r1 = Fold(b), r2 = Fold(c), r3 = Fold(d);
  _MM_TRANSPOSE4_PS(r0, r1, r2, r3);
  _mm_storeu_ps(out, _mm_add_ps(_mm_add_ps(r0, r2), _mm_add_ps(r1, r3)));
}

}  // namespace
}  // namespace pawl
