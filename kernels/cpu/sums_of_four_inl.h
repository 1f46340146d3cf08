// Sums of eight and of sixteen Vecs as sums of four, for processors that gain nothing from more at
// a time. As kernels_inl.h, for one .cc file.
namespace pawl {
namespace {

inline void Sum8(const Vec* v, float* out) {
  for (int i = 0; i < 8; i += 4) Sum4(v[i], v[i + 1], v[i + 2], v[i + 3], out + i);
}
inline void Sum16(const Vec* v, float* out) {
  Sum8(v, out);
  Sum8(v + 8, out + 8);
}

}  // namespace
}  // namespace pawl
