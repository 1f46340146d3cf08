// What do fields cost whose values are copied from a text (docs/extraction.md)?
//
//   build/bin/source_bench TOKENIZER [TEXTS]     # a folder, or a tokenizer.json
//
// The first mask of a field that is not copied, which makes the tables of the vocabulary. For texts
// of 2,000 characters and of 1 MB: to bind a compiled schema, the first mask of a field, and all
// masks along random spans of it. The same of fields with a pattern. Then to bind TEXTS (20,000)
// texts of 300 characters and to walk through a field of each, with the memory after each tenth;
// and masks and completions along one word of 40,000 characters. Processor time, of one thread.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "pawl/compiler.h"
#include "pawl/grammar.h"
#include "src/text/tokenizer.h"

namespace {

using namespace pawl;

constexpr const char* kSchema = R"({"type":"object","properties":{
  "vendor":{"type":"string"},"city":{"type":["string","null"]},"total":{"type":"number"},
  "items":{"type":"array","items":{"type":"string"}}},"required":["vendor","city","total","items"]})";

double CpuMicroseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) * 1e-3;
}

// Invented words, numbers, and marks between them.
std::string MakeText(size_t size, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::string> words;
  for (int i = 0; i < 600; ++i) {
    std::string word;
    for (size_t n = 1 + random() % 3; n > 0; --n) {
      word += "bcdfghklmnprstvw"[random() % 16];
      word += "aeiou"[random() % 5];
      if (random() % 3 == 0) word += "nrstl"[random() % 5];
    }
    words.push_back(word);
  }
  std::string text;
  while (text.size() < size) {
    const uint32_t kind = random() % 20;
    std::string word = kind == 0 ? std::to_string(random() % 100000) : words[random() % 600];
    if (kind < 4 && word[0] >= 'a') word[0] = static_cast<char>(word[0] - 'a' + 'A');
    text += word + (kind == 5 ? ", " : kind == 6 ? ".\n" : " ");
  }
  text.resize(size - 1);
  return text + "x";
}

struct Bench {
  std::shared_ptr<const Tokenizer> tokenizer;
  std::shared_ptr<const Vocabulary> vocabulary;
  Grammar grammar;  // without a text

  Grammar Bind(const std::string& text) const {
    const Result<Grammar> bound = grammar.Bind(text);
    if (!bound.ok()) {
      std::fprintf(stderr, "%s\n", bound.error().ToString().c_str());
      std::exit(1);
    }
    return *bound;
  }
};

// Of a schema without a text: with the tables of the vocabulary, and once more without.
void FirstFreeMask(const Compiler& compiler) {
  for (const char* what : {"with the vocabulary's tables", "without"}) {
    const std::string schema =
        std::string(R"({"type":"object","title":")") + what +
        R"(","properties":{"vendor":{"type":"string"}},"required":["vendor"]})";
    const State field = *compiler.CompileJsonSchema(schema)->Start().Advance("{\"vendor\":\"");
    const double start = CpuMicroseconds();
    (void)field.mask();
    std::printf("%8s: first mask of a free field %.0f us, %s\n", "", CpuMicroseconds() - start,
                what);
  }
}

void Masks(const Bench& bench, size_t size, int spans) {
  const std::string text = MakeText(size, 7);
  std::vector<size_t> begins;
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    if (text[i] == ' ' && text[i + 1] != ' ') begins.push_back(i + 1);
  }
  const double start = CpuMicroseconds();
  const Grammar bound = bench.Bind(text);
  const State field = *bound.Start().Advance("{\"vendor\":\"");
  const double there = CpuMicroseconds();
  (void)field.mask();
  const double first = CpuMicroseconds() - there;
  std::mt19937 random(3);
  std::vector<double> times;
  for (int n = 0; n < spans; ++n) {
    const size_t begin = begins[random() % begins.size()];
    size_t end = begin;
    for (size_t left = 1 + random() % 4; left > 0 && end < text.size(); --left)
      end = std::min(text.find(' ', end + 1), text.size());
    std::optional<State> at = field;
    for (const TokenId token : bench.tokenizer->Encode(text.substr(begin, end - begin), {})) {
      at = at->Advance(token);
      if (!at) break;
      const double before = CpuMicroseconds();
      (void)at->mask();
      times.push_back(CpuMicroseconds() - before);
    }
  }
  std::ranges::sort(times);
  double sum = 0;
  for (const double time : times) sum += time;
  std::printf(
      "%8zu characters: bound in %.0f us, first mask %.0f us; %zu masks: mean %.1f us, p99 %.0f "
      "us\n",
      size, there - start, first, times.size(), sum / static_cast<double>(times.size()),
      times[times.size() * 99 / 100]);
}

double ResidentMegabytes() {
  std::ifstream in("/proc/self/statm");
  double pages = 0;
  in >> pages >> pages;
  return pages * static_cast<double>(::sysconf(_SC_PAGESIZE)) / 1e6;
}

void ShortTexts(const Bench& bench, int count) {
  double binding = 0, walking = 0;
  size_t masks = 0;
  std::printf("%8d texts of 300 characters: MB", count);
  for (int i = 0; i < count; ++i) {
    const std::string text = MakeText(300, static_cast<uint32_t>(i));
    const double start = CpuMicroseconds();
    const Grammar bound = bench.Bind(text);
    const double there = CpuMicroseconds();
    std::optional<State> at = bound.Start().Advance("{\"vendor\":\"");
    const size_t end = text.find(' ', text.find(' ') + 1);
    for (const TokenId token : bench.tokenizer->Encode(text.substr(0, end), {})) {
      (void)at->mask();
      at = at->Advance(token);
      ++masks;
      if (!at) break;
    }
    binding += there - start;
    walking += CpuMicroseconds() - there;
    if ((i + 1) % std::max(1, count / 10) == 0) std::printf(" %.1f", ResidentMegabytes());
  }
  std::printf("; bound in %.0f us each, then %.1f us a mask\n", binding / count,
              walking / static_cast<double>(masks));
}

void LongWord(const Bench& bench, size_t size) {
  std::mt19937 random(5);
  std::string word;
  while (word.size() < size) word += static_cast<char>('a' + random() % 26);
  const double start = CpuMicroseconds();
  std::optional<State> at = bench.Bind(word + " ends 7 here").Start().Advance("{\"vendor\":\"");
  size_t tokens = 0;
  for (const TokenId token : bench.tokenizer->Encode(word, {})) {
    (void)at->mask();
    // As the decode loop asks where completions are long.
    if (tokens % 32 == 0) (void)at->completion_length();
    at = at->Advance(token);
    if (!at) break;
    ++tokens;
  }
  std::printf("%8zu characters of one word: %zu tokens in %.3f s\n", size, tokens,
              (CpuMicroseconds() - start) * 1e-6);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    std::fprintf(stderr, "usage: source_bench TOKENIZER [TEXTS]\n");
    return 2;
  }
  auto tokenizer = Tokenizer::FromFile(argv[1]);
  if (!tokenizer.ok()) {
    std::fprintf(stderr, "%s\n", tokenizer.error().ToString().c_str());
    return 2;
  }
  const auto vocabulary = *(*tokenizer)->MakeVocabulary();
  const Compiler compiler(vocabulary);
  JsonSchemaOptions options;
  options.verbatim = JsonSchemaOptions::Verbatim::kStrings;
  options.bind_source = true;
  options.keys = JsonSchemaOptions::Keys::kAll;
  options.additional_properties = false;
  const Result<Grammar> grammar = compiler.CompileJsonSchema(kSchema, options);
  if (!grammar.ok()) {
    std::fprintf(stderr, "%s\n", grammar.error().ToString().c_str());
    return 2;
  }
  const Bench bench{*tokenizer, vocabulary, *grammar};
  FirstFreeMask(compiler);
  Masks(bench, 2'000, 2'000);
  Masks(bench, 1'000'000, 2'000);
  for (const char* conditions :
       {R"("pattern":"[0-9]{3}")", R"("pattern":"^[A-Za-z]+( [A-Za-z]+)*$","maxLength":40)"}) {
    const std::string schema = R"({"type":"object","properties":{"vendor":{"type":"string",)" +
                               std::string(conditions) + R"(}},"required":["vendor"]})";
    const Result<Grammar> narrow = compiler.CompileJsonSchema(schema, options);
    if (!narrow.ok()) return 2;
    std::printf("with %s\n", conditions);
    Masks({*tokenizer, vocabulary, *narrow}, 2'000, 2'000);
    Masks({*tokenizer, vocabulary, *narrow}, 1'000'000, 2'000);
  }
  ShortTexts(bench, argc == 3 ? std::atoi(argv[2]) : 20'000);
  LongWord(bench, 10'000);
  LongWord(bench, 40'000);
}
