// Endings are compared without regard to case.
#include "src/input/input_format.h"

#include <algorithm>
#include <string>
#include <utility>

namespace pawl {

std::optional<InputFormat> InputFormatNamed(std::string_view name) {
  constexpr std::pair<std::string_view, InputFormat> kNames[] = {
      {"text", InputFormat::kText}, {"markdown", InputFormat::kMarkdown},
      {"html", InputFormat::kHtml}, {"pdf", InputFormat::kPdf},
      {"csv", InputFormat::kCsv},   {"jsonl", InputFormat::kJsonl}};
  for (const auto& [known, format] : kNames) {
    if (known == name) return format;
  }
  return std::nullopt;
}

InputFormat InputFormatOf(std::string_view file) {
  constexpr std::pair<std::string_view, InputFormat> kEndings[] = {
      {".md", InputFormat::kMarkdown}, {".markdown", InputFormat::kMarkdown},
      {".html", InputFormat::kHtml},   {".htm", InputFormat::kHtml},
      {".xhtml", InputFormat::kHtml},  {".pdf", InputFormat::kPdf},
      {".csv", InputFormat::kCsv},     {".jsonl", InputFormat::kJsonl},
      {".ndjson", InputFormat::kJsonl}};
  std::string name(file);
  std::ranges::transform(name, name.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  for (const auto& [ending, format] : kEndings) {
    if (name.ends_with(ending)) return format;
  }
  return InputFormat::kText;
}

}  // namespace pawl
