// Numbers and dates that a text has, in all spellings of the table in docs/extraction.md.
//
//   NumbersIn(U"for $1,240");                  // 1.24 and 1240, both at 5 to 10
//   DatesIn(U"on 5 March 2024", "date");       // 2024-03-05 at 3 to 15
#ifndef PAWL_SCHEMAS_READ_SOURCE_VALUES_H_
#define PAWL_SCHEMAS_READ_SOURCE_VALUES_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/result.h"
#include "schemas/number/decimal.h"

namespace pawl::schema {

// A value, and the places of text() where it is written.
template <typename Value>
struct SourceValue {
  Value value;
  size_t begin = 0, end = 0;
  friend bool operator==(const SourceValue&, const SourceValue&) = default;
};

// An optional sign, digits grouped in threes by `, . ' _` or a space or not at all, and decimals
// behind a point or comma. Where a mark may be either, both values come.
PAWL_EXPORT std::vector<SourceValue<Decimal>> NumbersIn(std::u32string_view text);

// `format`: "date", "time" or "date-time". Where day and month may be either, both dates come.
PAWL_EXPORT std::vector<SourceValue<std::string>> DatesIn(std::u32string_view text,
                                                          std::string_view format);

}  // namespace pawl::schema

#endif  // PAWL_SCHEMAS_READ_SOURCE_VALUES_H_
