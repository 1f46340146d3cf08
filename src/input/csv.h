// A row of a table of RFC 4180, line by line.
//
//   CsvRow row;
//   while (row.Add(NextLine()).ok() && row.open()) {
//   }
//   std::vector<std::string> fields = row.Take();
#ifndef PAWL_SRC_INPUT_CSV_H_
#define PAWL_SRC_INPUT_CSV_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/result.h"

namespace pawl {

class CsvRow {
 public:
  // A line without its end; a carriage return at its end is left out, but inside quotes. Errors:
  // kInvalid for what follows a closing quote.
  Status Add(std::string_view line);
  // Inside quotes: the row goes on in the next line.
  bool open() const { return quoted_; }
  size_t size() const { return size_; }  // bytes
  std::vector<std::string> Take();

 private:
  std::vector<std::string> fields_;
  bool quoted_ = false;
  size_t size_ = 0;
};

}  // namespace pawl

#endif  // PAWL_SRC_INPUT_CSV_H_
