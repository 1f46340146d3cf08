// PAWL_EXPORT marks what a shared library of Pawl's C++ API shows; everything else is hidden.
#ifndef PAWL_EXPORT_H_
#define PAWL_EXPORT_H_

#if defined(__GNUC__) || defined(__clang__)
#define PAWL_EXPORT __attribute__((visibility("default")))
#else
#define PAWL_EXPORT
#endif

#endif  // PAWL_EXPORT_H_
