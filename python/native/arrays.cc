// Masks in the memory of other libraries, without a copy: what must hold for that is checked here,
// once, with a message that says what to change.
#include <algorithm>

#include "python/native/binding.h"

namespace pawl::python {

MaskRows::MaskRows(nb::handle array) {
  if (!nb::try_cast(array, array_)) {
    throw nb::type_error(
        "the mask must be a writable array, e.g. from pawl.allocate_mask, or a torch tensor");
  }
  if (array_.device_type() != nb::device::cpu::value) {
    throw nb::type_error("the mask must be in the memory of the CPU");
  }
  if (array_.dtype() != nb::dtype<int32_t>() && array_.dtype() != nb::dtype<uint32_t>()) {
    throw nb::type_error("the mask must have the type int32 or uint32");
  }
  if (array_.ndim() != 1 && array_.ndim() != 2) {
    RaiseInvalid("the mask must have one dimension or two, not " + std::to_string(array_.ndim()));
  }
  const size_t last = array_.ndim() - 1;
  rows_ = last == 0 ? 1 : array_.shape(0);
  words_ = array_.shape(last);
  if (words_ > 1 && array_.stride(last) != 1) {
    RaiseInvalid("each row of the mask must be contiguous");
  }
  const int64_t stride = last == 0 || rows_ < 2 ? static_cast<int64_t>(words_) : array_.stride(0);
  if (stride < static_cast<int64_t>(words_)) RaiseInvalid("the rows of the mask overlap");
  stride_ = static_cast<size_t>(stride);
  data_ = static_cast<uint32_t*>(array_.data());
}

std::span<uint32_t> MaskRows::Row(int64_t row, const Vocabulary& vocabulary) const {
  const auto count = static_cast<int64_t>(rows_);
  if (row < -count || row >= count) {
    throw nb::index_error(
        ("row " + std::to_string(row) + " of a mask that has " + std::to_string(count)).c_str());
  }
  if (words_ < static_cast<size_t>(vocabulary.mask_words())) {
    RaiseInvalid("a row of the mask has " + std::to_string(words_) + " words; the vocabulary of " +
                 std::to_string(vocabulary.size()) + " tokens needs " +
                 std::to_string(vocabulary.mask_words()));
  }
  return {data_ + static_cast<size_t>(row < 0 ? row + count : row) * stride_, words_};
}

void ClearTail(std::span<uint32_t> row, const Vocabulary& vocabulary) {
  const auto used = static_cast<size_t>(vocabulary.mask_words());
  if (row.size() > used) std::fill(row.begin() + static_cast<std::ptrdiff_t>(used), row.end(), 0u);
}

}  // namespace pawl::python
