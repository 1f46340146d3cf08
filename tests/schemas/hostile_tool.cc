// hostile_tool TOKENIZER FILE|FOLDER...: what hostile schemas cost with a real vocabulary.
//
// Each schema is compiled and walked in a process of its own, in compact layout with the
// properties in order and with any order, white space and spelling, kWalks times each. A walk takes
// up to kTokens random tokens (white space, of which there are hundreds, hardly ever): the mask of
// each state, a completion for every kAsk-th, or fewer where completions are long, as in the decode
// loop. Prints one line for each layout, that of its dearest walk, dearest first: seconds of
// processor time, peak memory with the vocabulary, and what came of it. Exit code 1 when one took
// more than the bar: a second, or 512 MB.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

#include "pawl/compiler.h"
#include "src/base/file.h"
#include "src/text/tokenizer.h"
#include "tests/schemas/property_generators.h"

namespace pawl::property {
namespace {

constexpr int kTokens = 256, kAsk = 4, kWalks = 3;
constexpr int kTries = 20;           // to draw a token that is not white space
constexpr int kBytesPerToken = 256;  // of a completion, before a new one is asked for
constexpr double kSeconds = 1;
constexpr long kMegabytes = 512;
constexpr rlim_t kMostSeconds = 4;

struct Outcome {
  double compile = 0, walk = 0, slowest = 0;  // seconds; the slowest step of the walk
  char text[160] = "";
};

double Now() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

Outcome Attempt(const std::string& schema, const JsonSchemaOptions& options,
                const std::shared_ptr<const Vocabulary>& vocabulary, int seed) {
  Outcome out;
  const double begin = Now();
  const auto say = [&](const std::string& text) {
    std::snprintf(out.text, sizeof out.text, "%s", text.c_str());
  };
  const Compiler compiler(vocabulary);
  auto grammar = compiler.CompileJsonSchema(schema, options);
  out.compile = Now() - begin;
  if (!grammar.ok()) {
    say(grammar.error().ToString());
    return out;
  }
  Dice dice(static_cast<uint64_t>(seed));
  State state = grammar->Start();
  std::string text;
  int ask = 0;
  for (int token = 0; token < kTokens; ++token) {
    const double step = Now();
    const auto mask = state.mask();
    TokenId next = kNoToken;
    if (token >= ask) {
      const auto end = state.CompletionBytes();
      ask = end ? token + kAsk + static_cast<int>(end->size() / kBytesPerToken) : kTokens;
      if (end && !end->empty() && dice.Percent(40)) next = vocabulary->LongestPrefix(*end);
    }
    out.slowest = std::max(out.slowest, Now() - step);
    if (next == kNoToken) {
      const std::vector<TokenId> tokens = mask->Tokens();
      if (tokens.empty()) {
        text = "DEAD END after " + text;
        break;
      }
      const auto blank = [&](TokenId id) {
        return vocabulary->bytes(id).find_first_not_of(" \t\n\r") == std::string_view::npos;
      };
      for (int tries = 0; tries == 0 || (tries < kTries && blank(next)); ++tries)
        next = dice.Pick(tokens);
    }
    const auto after = state.Advance(next);
    if (!after) break;
    text += vocabulary->bytes(next);
    state = *after;
  }
  out.walk = Now() - begin - out.compile;
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  say(text);
  return out;
}

struct Row {
  Outcome outcome;
  std::string name;
  long megabytes = 0;
  double seconds = 0;
  int status = 0;
};

Row Measure(const std::string& file, bool any, int seed,
            const std::shared_ptr<const Vocabulary>& vocabulary) {
  Row row;
  row.name = (any ? "any    " : "schema ") + std::filesystem::path(file).stem().string();
  int ends[2];
  if (pipe(ends) != 0) std::abort();
  const pid_t child = fork();
  if (child == 0) {
    const rlimit limit{kMostSeconds, kMostSeconds};
    setrlimit(RLIMIT_CPU, &limit);
    JsonSchemaOptions options;
    options.whitespace = JsonSchemaOptions::Whitespace::kCompact;
    if (any) {
      options.order = JsonSchemaOptions::Order::kAny;
      options.whitespace = JsonSchemaOptions::Whitespace::kAny;
      options.canonical_spelling = false;
      options.allow_exponents = true;
    }
    const auto schema = ReadFile(file);
    const Outcome outcome = Attempt(schema.ok() ? *schema : "", options, vocabulary, seed);
    _exit(write(ends[1], &outcome, sizeof outcome) == sizeof outcome ? 0 : 1);
  }
  close(ends[1]);
  const bool told = read(ends[0], &row.outcome, sizeof row.outcome) == sizeof row.outcome;
  close(ends[0]);
  rusage usage{};
  wait4(child, &row.status, 0, &usage);
  if (!told) std::strcpy(row.outcome.text, "DIED");
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  row.seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  row.megabytes = usage.ru_maxrss / 1024;
  return row;
}

int Run(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "hostile_tool TOKENIZER FILE|FOLDER...\n");
    return 2;
  }
  const auto tokenizer = Tokenizer::FromFile(argv[1]);
  if (!tokenizer.ok()) {
    std::fprintf(stderr, "%s\n", tokenizer.error().ToString().c_str());
    return 2;
  }
  const auto vocabulary = *(*tokenizer)->MakeVocabulary();
  // What belongs to the vocabulary alone is found once, here.
  Attempt(R"({"type":"object"})", {}, vocabulary, 0);
  std::vector<std::string> files;
  for (int i = 2; i < argc; ++i) {
    if (!std::filesystem::is_directory(argv[i])) {
      files.emplace_back(argv[i]);
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(argv[i]))
      files.push_back(entry.path().string());
  }
  std::vector<Row> rows;
  for (const std::string& file : files) {
    for (const bool any : {false, true}) {
      Row dearest;
      for (int walk = 0; walk < kWalks; ++walk) {
        Row row = Measure(file, any, 5 + walk, vocabulary);
        const bool died = row.status != 0;
        const long most = std::max(row.megabytes, dearest.megabytes);
        if (walk == 0 || row.seconds > dearest.seconds) dearest = std::move(row);
        dearest.megabytes = most;
        if (died) break;
      }
      rows.push_back(std::move(dearest));
      std::fprintf(stderr, "%6.2f %s\n", rows.back().seconds, rows.back().name.c_str());
    }
  }
  std::sort(rows.begin(), rows.end(),
            [](const Row& a, const Row& b) { return a.seconds > b.seconds; });
  int over = 0;
  for (const Row& row : rows) {
    const bool bad = row.seconds > kSeconds || row.megabytes > kMegabytes || row.status != 0;
    over += bad ? 1 : 0;
    std::printf("%c %6.2f s (compile %5.2f walk %5.2f slowest %5.2f) %5ld MB  %-34s %s\n",
                bad ? '!' : ' ', row.seconds, row.outcome.compile, row.outcome.walk,
                row.outcome.slowest, row.megabytes, row.name.c_str(), row.outcome.text);
  }
  std::printf("%zu schemas twice each, %d over the bar\n", files.size(), over);
  return over > 0 ? 1 : 0;
}

}  // namespace
}  // namespace pawl::property

int main(int argc, char** argv) { return pawl::property::Run(argc, argv); }
