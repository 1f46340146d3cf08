// Threads share a compiler, and grammars too: what they see must not depend on who else is at work.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "pawl/compiler.h"
#include "tests/schemas/property_generators.h"

namespace pawl::property {
namespace {

// Everything that a few walks see of a grammar, as text that can be compared.
std::string Transcript(const Grammar& grammar, uint64_t seed) {
  std::string out;
  Dice dice(seed);
  for (int walk = 0; walk < 2; ++walk) {
    State state = grammar.Start();
    for (int step = 0; step < 12; ++step) {
      const auto mask = state.mask();
      uint64_t digest = 14695981039346656037u;
      for (const uint32_t word : mask->words()) digest = (digest ^ word) * 1099511628211u;
      out += std::to_string(digest) + (state.accepting() ? "!" : ".") + state.forced(8);
      out += "|" + state.CompletionBytes().value_or("none") + "|";
      const std::vector<TokenId> tokens = mask->Tokens();
      if (tokens.empty()) break;
      const TokenId token = dice.Pick(tokens);
      const auto next = state.Advance(token);
      if (!next) break;  // the end token
      out += std::to_string(token) + "\n";
      state = *next;
    }
  }
  return out;
}

TEST(PropertyThreadsTest, ResultsDoNotDependOnOtherThreads) {
  Dice dice(11);
  const auto vocabulary = RandomVocabulary(dice, 60);
  std::vector<std::string> schemas;
  for (int i = 0; i < 30; ++i) schemas.push_back(json::Dump(RandomSchema(dice)));

  // What one thread sees, with a compiler for each schema.
  std::vector<std::string> expected;
  for (size_t i = 0; i < schemas.size(); ++i) {
    auto grammar = Compiler(vocabulary).CompileJsonSchema(schemas[i]);
    expected.push_back(grammar.ok() ? Transcript(*grammar, i) : grammar.error().ToString());
  }

  const Compiler shared(vocabulary);
  std::vector<std::optional<Grammar>> shared_grammars;
  for (const std::string& schema : schemas) {
    auto grammar = shared.CompileJsonSchema(schema);
    shared_grammars.push_back(grammar.ok() ? std::optional<Grammar>(*grammar) : std::nullopt);
  }
  constexpr size_t kThreads = 8;
  std::vector<std::vector<std::string>> seen(kThreads, std::vector<std::string>(schemas.size()));
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (size_t k = 0; k < schemas.size(); ++k) {
        const size_t i = (k + t * 5) % schemas.size();
        // Half of the threads walk grammars that others walk too, half compile their own.
        if (t % 2 == 0 && shared_grammars[i]) {
          seen[t][i] = Transcript(*shared_grammars[i], i);
        } else {
          auto grammar = shared.CompileJsonSchema(schemas[i]);
          seen[t][i] = grammar.ok() ? Transcript(*grammar, i) : grammar.error().ToString();
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t t = 0; t < kThreads; ++t) {
    for (size_t i = 0; i < schemas.size(); ++i)
      EXPECT_EQ(seen[t][i], expected[i]) << "thread " << t << "\n" << schemas[i];
  }
}

}  // namespace
}  // namespace pawl::property
