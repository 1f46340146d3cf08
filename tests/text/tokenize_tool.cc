// tokenize_tool TOKENIZER [parse_special] [add_special]: for scripts/check_tokenizers.py.
//
// Reads strings from the standard input, each as its length (four bytes, little endian) and its
// bytes; writes a line for each: the ids, a tab, and in hexadecimal what they decode to. On the
// standard error, as JSON: the seconds that loading took and the seconds that encoding everything
// took.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

#include "src/text/tokenizer.h"

int main(int argc, char** argv) {
  using Clock = std::chrono::steady_clock;
  if (argc < 2) return 2;
  pawl::EncodeOptions options;
  for (int i = 2; i < argc; ++i) {
    if (std::strcmp(argv[i], "parse_special") == 0) options.parse_special = true;
    if (std::strcmp(argv[i], "add_special") == 0) options.add_special_tokens = true;
  }
  const auto begin = Clock::now();
  const auto tokenizer = pawl::Tokenizer::FromFile(argv[1]);
  if (!tokenizer.ok()) {
    std::fprintf(stderr, "%s\n", tokenizer.error().ToString().c_str());
    return 2;
  }
  const auto loaded = Clock::now();
  std::vector<std::string> texts;
  unsigned char head[4];
  while (std::fread(head, 1, 4, stdin) == 4) {
    std::string text(head[0] | head[1] << 8 | head[2] << 16 | static_cast<uint32_t>(head[3]) << 24,
                     '\0');
    if (std::fread(text.data(), 1, text.size(), stdin) != text.size()) return 2;
    texts.push_back(std::move(text));
  }
  const auto start = Clock::now();
  std::vector<std::vector<pawl::TokenId>> all;
  for (const std::string& text : texts) all.push_back((*tokenizer)->Encode(text, options));
  const auto end = Clock::now();
  for (const auto& ids : all) {
    std::string line;
    for (const pawl::TokenId id : ids) line += std::to_string(id) + " ";
    line += "\t";
    for (const char c : (*tokenizer)->Decode(ids, options.parse_special)) {
      char hex[3];
      std::snprintf(hex, sizeof hex, "%02x", static_cast<unsigned char>(c));
      line += hex;
    }
    std::puts(line.c_str());
  }
  const auto seconds = [](auto duration) {
    return std::chrono::duration<double>(duration).count();
  };
  std::fprintf(stderr, "{\"load\": %.4f, \"encode\": %.4f}\n", seconds(loaded - begin),
               seconds(end - start));
  return 0;
}
