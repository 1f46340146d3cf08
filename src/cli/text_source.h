// Many texts out of one input: lines of JSON, or the rows of a table.
//
//   Result<std::unique_ptr<TextSource>> source = TextSource::Open("mails.csv", InputFormat::kCsv);
//   while (...) { Result<std::optional<TextEntry>> entry = (*source)->Next(); ... }
#ifndef PAWL_SRC_CLI_TEXT_SOURCE_H_
#define PAWL_SRC_CLI_TEXT_SOURCE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pawl/result.h"
#include "src/base/json.h"
#include "src/cli/command.h"
#include "src/input/input_format.h"

namespace pawl::cli {

struct TextEntry {
  std::string text;
  std::vector<json::Member> more;  // what else stands in its line or row
  Status status;                   // what is wrong with the line
  int64_t end = 0;                 // bytes of the input up to the end of the line
};

class TextSource {
 public:
  // `format`: kJsonl or kCsv. Errors: kIo.
  static Result<std::unique_ptr<TextSource>> Open(const std::string& path, InputFormat format);
  virtual ~TextSource() = default;
  // nullopt after the last one. Errors: kIo; kLimit; of a table without a column "text" kInvalid.
  virtual Result<std::optional<TextEntry>> Next() = 0;
  // Whether Next has an answer without waiting for more input. Errors: kIo.
  virtual Result<bool> Ready() = 0;
  // Of the input; nullopt: not known.
  std::optional<int64_t> bytes() const { return bytes_; }

 private:
  std::optional<int64_t> bytes_;
};

}  // namespace pawl::cli

#endif  // PAWL_SRC_CLI_TEXT_SOURCE_H_
