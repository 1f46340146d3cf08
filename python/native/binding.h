// What the parts of the Python module pawl._pawl share. The module is thin: it turns Python's
// values into those of include/pawl/*.h and back, and errors into pawl.PawlError. What is
// convenient rather than necessary (schemas from types, tokenizers of other libraries) is Python,
// in python/pawl.
//
// The global interpreter lock is released while a grammar is compiled and while masks are computed,
// and taken again around every call back into Python.
#ifndef PAWL_PYTHON_NATIVE_BINDING_H_
#define PAWL_PYTHON_NATIVE_BINDING_H_

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pawl/constraint.h"
#include "pawl/result.h"
#include "pawl/vocabulary.h"

namespace pawl::python {

namespace nb = nanobind;

// Raises pawl.PawlError. REQUIRES: the interpreter lock is held.
[[noreturn]] void Raise(const Error& error);
[[noreturn]] void RaiseInvalid(std::string message);

template <typename T>
T Take(Result<T> result) {
  if (!result.ok()) Raise(result.error());
  return *std::move(result);
}

// str (as UTF-8) or bytes. Raises TypeError for anything else.
std::string TextOf(nb::handle value, const char* what);
nb::bytes BytesOf(std::string_view text);

// Rows of a mask in memory that belongs to numpy, torch or any other library that speaks DLPack or
// the buffer protocol: int32 or uint32, on the CPU, writable, one or two dimensions, each row in
// one piece.
class MaskRows {
 public:
  explicit MaskRows(nb::handle array);

  size_t rows() const { return rows_; }
  size_t words() const { return words_; }
  size_t stride() const { return stride_; }
  uint32_t* data() const { return data_; }
  // Raises when there is no such row, or when it is too short for the vocabulary.
  std::span<uint32_t> Row(int64_t row, const Vocabulary& vocabulary) const;

 private:
  nb::ndarray<> array_;  // keeps the memory
  uint32_t* data_;
  size_t rows_, words_, stride_;
};

// Clears what a row has beyond the vocabulary's words: ids that no token has are never allowed.
void ClearTail(std::span<uint32_t> row, const Vocabulary& vocabulary);

// A constraint that is written in Python; nullptr for None.
std::shared_ptr<const Constraint> ConstraintOf(nb::object object,
                                               std::shared_ptr<const Vocabulary> vocabulary);

void BindVocabulary(nb::module_& module);
void BindCompiler(nb::module_& module);
void BindConstraint(nb::module_& module);
void BindMatcher(nb::module_& module);
void BindEngine(nb::module_& module);
void BindSampling(nb::module_& module);
void BindStores(nb::module_& module);

}  // namespace pawl::python

#endif  // PAWL_PYTHON_NATIVE_BINDING_H_
