// html_tool FILE...: a line of JSON for each file, with its text and the places of its words in the
// file: {"text": ..., "words": [[begin, end, file begin, file end], ...]}, in bytes.
#include <cstdio>
#include <string>

#include "src/base/file.h"
#include "src/base/json.h"
#include "src/input/input_text.h"

int main(int count, char** arguments) {
  for (int i = 1; i < count; ++i) {
    const pawl::Result<std::string> bytes = pawl::ReadFile(arguments[i]);
    const pawl::Result<pawl::InputText> read =
        bytes.ok() ? pawl::ReadHtml(*bytes) : pawl::Result<pawl::InputText>(bytes.error());
    if (!read.ok()) {
      std::printf("{\"error\":%s}\n", pawl::json::Quote(read.error().ToString()).c_str());
      continue;
    }
    std::string words;
    const std::string& text = read->text;
    for (size_t at = text.find_first_not_of(" \t\n"); at < text.size();) {
      const size_t end = std::min(text.find_first_of(" \t\n", at), text.size());
      const auto [from, to] = read->InFile(at, end);
      words += (words.empty() ? "[" : ",[") + std::to_string(at) + "," + std::to_string(end) + "," +
               std::to_string(from) + "," + std::to_string(to) + "]";
      at = text.find_first_not_of(" \t\n", end);
    }
    std::printf("{\"text\":%s,\"words\":[%s]}\n", pawl::json::Quote(text).c_str(), words.c_str());
  }
  return 0;
}
