// How long does one decode step of a batch wait for its masks, on one thread and on more?
//
//   build/bin/batch_fill_bench [TOKENIZER [THREADS [SEQUENCES]]]
//   default: the tokenizer of models/tiny-extract, 2 threads, 256 sequences
//
// The sequences stand at random places of the schemas in schemas/examples. "known": every state was
// asked before, as in a server that has seen the schema; a fill is a look-up and a copy of the row.
// "new": the states of freshly compiled grammars, whose masks have to be computed; the last line is
// of the SQL of grammar/examples. One thread and many take turns, and the best of the repetitions
// counts, since other programs disturb both.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "pawl/compiler.h"
#include "pawl/matcher.h"
#include "src/base/file.h"
#include "src/text/tokenizer.h"
#include "tests/source_dir.h"

namespace {

using namespace pawl;
using Clock = std::chrono::steady_clock;

struct Setting {
  std::shared_ptr<const Vocabulary> vocabulary;
  std::vector<std::string> schemas;
  size_t sequences;
  std::string ebnf = {};  // in place of the schemas
};

std::vector<Grammar> Compile(const Setting& setting, size_t grammars) {
  const Compiler compiler(setting.vocabulary);
  std::vector<Grammar> out;
  for (size_t i = 0; i < grammars; ++i) {
    const auto grammar =
        setting.ebnf.empty()
            ? compiler.CompileJsonSchema(setting.schemas[i % setting.schemas.size()])
            : compiler.CompileGrammar(setting.ebnf, GrammarLanguage::kEbnf);
    if (!grammar.ok()) {
      std::fprintf(stderr, "%s\n", grammar.error().ToString().c_str());
      std::exit(1);
    }
    out.push_back(*grammar);
  }
  return out;
}

// Random allowed tokens, up to 60 of them; the texts are the same for the same seed, so that fresh
// grammars can be brought to the same places without asking for the mask there.
std::vector<std::string> Places(const Setting& setting, const std::vector<Grammar>& grammars) {
  std::mt19937 random(1);
  std::vector<std::string> places;
  while (places.size() < setting.sequences) {
    State at = grammars[places.size() % grammars.size()].Start();
    std::string text;
    for (size_t steps = random() % 60; steps > 0; --steps) {
      const auto allowed = at.mask()->Tokens();
      const TokenId token = allowed[random() % allowed.size()];
      if (setting.vocabulary->is_special(token)) break;
      text += setting.vocabulary->bytes(token);
      at = *at.Advance(token);
    }
    places.push_back(text);
  }
  return places;
}

std::vector<Matcher> At(const std::vector<Grammar>& grammars,
                        const std::vector<std::string>& places) {
  std::vector<Matcher> matchers;
  for (size_t i = 0; i < places.size(); ++i) {
    matchers.emplace_back(grammars[i % grammars.size()]);
    if (!matchers.back().AcceptBytes(places[i])) std::exit(1);
  }
  return matchers;
}

// Of one fill, in a row of `times`: the pool's threads sleep when nothing comes for some
// microseconds, and what it takes to wake them is paid once.
double Microseconds(const BatchFiller& filler, const std::vector<Matcher>& matchers,
                    std::vector<uint32_t>& rows, size_t stride, int times) {
  std::vector<const Matcher*> pointers;
  for (const Matcher& matcher : matchers) pointers.push_back(&matcher);
  const Clock::time_point begin = Clock::now();
  for (int i = 0; i < times; ++i) filler.Fill(pointers, rows.data(), stride);
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / times;
}

void Report(const char* what, size_t sequences, double one, double many, int threads) {
  std::printf("%-34s %10.1f us %10.1f us   %.2f x   %6.2f us a row on %d\n", what, one, many,
              one / many, many / static_cast<double>(sequences), threads);
}

void Run(const Setting& setting, size_t grammars, bool known, int threads, const char* what) {
  const size_t stride = static_cast<size_t>(setting.vocabulary->mask_words());
  std::vector<uint32_t> rows(setting.sequences * stride);
  const BatchFiller single(1);
  const BatchFiller pool(threads);
  std::vector<Grammar> compiled = Compile(setting, grammars);
  const std::vector<std::string> places = Places(setting, compiled);
  std::vector<Matcher> matchers = At(compiled, places);
  const int times = known ? 8 : 1;  // a new state is new only once
  double best[2] = {1e30, 1e30};
  for (int round = 0; round < (known ? 200 : 40); ++round) {
    for (const int which : {0, 1}) {
      if (!known) {
        compiled = Compile(setting, grammars);
        matchers = At(compiled, places);
      }
      best[which] = std::min(
          best[which], Microseconds(which == 0 ? single : pool, matchers, rows, stride, times));
    }
  }
  Report(what, setting.sequences, best[0], best[1], pool.threads());
}

}  // namespace

int main(int argc, char** argv) {
  const std::string source = SourceDir();
  const auto tokenizer = Tokenizer::FromFile(argc > 1 ? argv[1] : source + "/models/tiny-extract");
  if (!tokenizer.ok()) {
    std::fprintf(stderr, "%s\n", tokenizer.error().ToString().c_str());
    return 1;
  }
  const int threads = argc > 2 ? std::atoi(argv[2]) : 2;
  const int sequences = argc > 3 ? std::atoi(argv[3]) : 256;
  Setting setting{*(*tokenizer)->MakeVocabulary(), {}, static_cast<size_t>(sequences)};
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(source + "/schemas/examples"))
    if (entry.path().extension() == ".json") files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  for (const std::string& file : files) setting.schemas.push_back(*ReadFile(file));
  std::printf("%d sequences, %d tokens, %zu schemas\n", sequences, setting.vocabulary->size(),
              setting.schemas.size());
  std::printf("%-34s %13s %10s %d\n", "", "1 thread", "threads:", threads);
  const size_t many = std::max<size_t>(1, setting.sequences / 4);
  Run(setting, 1, true, threads, "one grammar, known states");
  Run(setting, many, true, threads, "a grammar for every 4, known");
  Run(setting, many, false, threads, "a grammar for every 4, new states");
  Run(setting, 1, false, threads, "one grammar, new states");
  setting.ebnf = *ReadFile(source + "/grammar/examples/sql.ebnf");
  Run(setting, 1, false, threads, "SQL, new states");
  return 0;
}
