// Runs a fuzz target without libFuzzer: for compilers that have none, and for a quick look in the
// ordinary tests. It takes the same arguments as far as it knows them:
//
//   schema_fuzz -runs=2000 -seed=1 tests/fuzz/corpus/schema     mutations of the files of a folder
//   schema_fuzz -max_total_time=30 tests/fuzz/corpus/schema
//   schema_fuzz crash-input                                     a file: once, as it is
//
// Nothing guides the mutations, but they are the same on every machine for the same seed. The input
// that is being tried stands in the file named by -artifact=, so it survives a crash.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/file.h"
#include "src/base/random.h"
#include "tests/fuzz/fuzz_util.h"

namespace pawl::fuzz {
namespace {

namespace fs = std::filesystem;

// Words that a mutation may insert.
constexpr std::string_view kWords[] = {"{",     "}",           "[",           "]",
                                       "\"",    ":",           ",",           "\\",
                                       "(",     ")",           "*",           "+",
                                       "?",     "|",           "^",           "$",
                                       ".",     "{2,3}",       "(?=",         "(?<!",
                                       "\\d",   "\\u0",        "[^",          "\\b",
                                       "null",  "true",        "0",           "-1",
                                       "1e9",   "0.5",         "\"a\"",       "{}",
                                       "[]",    "not",         "anyOf",       "\"type\"",
                                       "enum",  "\"$ref\"",    "\"#\"",       "items",
                                       "const", "if",          "\xC3\xA9",    "\xF0\x9F\x98\x80",
                                       "\xFF",  "\"pattern\"", "\"minimum\"", "oneOf"};

// A stream of numbers; the driver is the only place where one is wanted.
class Draws {
 public:
  explicit Draws(uint64_t seed) : seed_(seed) {}
  size_t Below(size_t n) { return Philox4x32(seed_, 0, count_++).word[0] % n; }

 private:
  uint64_t seed_;
  uint64_t count_ = 0;
};

std::string Mutated(std::string text, const std::vector<std::string>& seeds, Draws& draws) {
  constexpr size_t kMostSteps = 6;
  for (size_t step = draws.Below(kMostSteps) + 1; step > 0; --step) {
    const size_t at = draws.Below(text.size() + 1);
    const size_t length = std::min(text.size() - at, draws.Below(12) + 1);
    switch (draws.Below(6)) {
      case 0:
        text.insert(at, kWords[draws.Below(std::size(kWords))]);
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, text.substr(at, length));
        break;
      case 3:
        if (at < text.size()) text[at] = static_cast<char>(draws.Below(256));
        break;
      case 4: {
        const std::string& other = seeds[draws.Below(seeds.size())];
        const size_t from = draws.Below(other.size() + 1);
        text.insert(at, other.substr(from, draws.Below(40)));
        break;
      }
      default:
        text.replace(at, length, kWords[draws.Below(std::size(kWords))]);
    }
  }
  return text;
}

void Try(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
}

int Main(const std::vector<std::string>& arguments) {
  int64_t runs = -1;
  double seconds = -1;
  uint64_t seed = 1;
  std::string artifact;
  std::vector<std::string> seeds;
  for (const std::string& argument : arguments) {
    const std::string value = argument.substr(std::min(argument.size(), argument.find('=') + 1));
    if (argument.starts_with("-runs=")) runs = std::atoll(value.c_str());
    if (argument.starts_with("-max_total_time=")) seconds = std::atof(value.c_str());
    if (argument.starts_with("-seed=")) seed = std::strtoull(value.c_str(), nullptr, 10);
    if (argument.starts_with("-artifact=")) artifact = value;
    if (argument.starts_with("-")) continue;
    if (!fs::is_directory(argument)) {
      const Result<std::string> content = ReadFile(argument);
      if (!content.ok()) {
        std::fprintf(stderr, "%s\n", content.error().ToString().c_str());
        return 2;
      }
      Try(*content);
      continue;
    }
    std::vector<std::string> files;
    for (const auto& entry : fs::directory_iterator(argument)) {
      files.push_back(entry.path().string());
    }
    std::sort(files.begin(), files.end());
    for (const std::string& file : files)
      seeds.push_back(ReadFile(file).ok() ? *ReadFile(file) : "");
  }
  if (seeds.empty()) return 0;
  for (const std::string& input : seeds) Try(input);
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  Draws draws(seed);
  int64_t done = 0;
  while ((runs < 0 || done < runs) &&
         (seconds < 0 || std::chrono::duration<double>(Clock::now() - begin).count() < seconds)) {
    if (runs < 0 && seconds < 0) break;
    const std::string input = Mutated(seeds[draws.Below(seeds.size())], seeds, draws);
    if (!artifact.empty() && !WriteFile(artifact, input).ok()) return 2;
    Try(input);
    ++done;
  }
  if (!artifact.empty()) fs::remove(artifact);
  std::printf("%lld inputs, %zu seeds, nothing found\n", static_cast<long long>(done),
              seeds.size());
  return 0;
}

}  // namespace
}  // namespace pawl::fuzz

int main(int argc, char** argv) { return pawl::fuzz::Main({argv + 1, argv + argc}); }
