// The formats in which `pawl extract` reads texts, by name or by the name of a file.
#ifndef PAWL_SRC_INPUT_INPUT_FORMAT_H_
#define PAWL_SRC_INPUT_INPUT_FORMAT_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace pawl {

// kCsv and kJsonl have many texts, the others one.
enum class InputFormat : uint8_t { kText, kMarkdown, kHtml, kPdf, kCsv, kJsonl };

// "text", "markdown", "html", "pdf", "csv" or "jsonl".
std::optional<InputFormat> InputFormatNamed(std::string_view name);
// By the ending of the name; kText where it says nothing.
InputFormat InputFormatOf(std::string_view file);
inline bool HasManyTexts(InputFormat format) {
  return format == InputFormat::kCsv || format == InputFormat::kJsonl;
}

}  // namespace pawl

#endif  // PAWL_SRC_INPUT_INPUT_FORMAT_H_
