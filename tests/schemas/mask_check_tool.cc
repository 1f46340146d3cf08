// mask_check_tool TOKENIZER PAIRS SEED [MASKBENCH_FOLDER]: masks on a real vocabulary against
// trying every token.
//
// Draws schemas (random ones and, with a folder, every other time one of MaskBench), random options
// and random walks, until PAIRS pairs of schema and state were looked at. In each state the mask is
// compared with what follows from single bytes alone: the tokens whose bytes Machine::Step takes
// one by one. Beginnings that tokens share are walked once; nothing else is saved. Prints one line;
// exit code 1 and the place when a token differs.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "grammar/masks/mask_builder.h"
#include "grammar/vocabulary_tables.h"
#include "schemas/machine/schema_machine.h"
#include "schemas/masks/schema_masks.h"
#include "schemas/read/schema_reader.h"
#include "src/base/file.h"
#include "src/base/json.h"
#include "src/text/tokenizer.h"
#include "tests/schemas/property_checks.h"
#include "tests/schemas/property_generators.h"

namespace pawl::property {
namespace {

constexpr int kStatesOfWalk = 24;

std::vector<uint32_t> ByBytes(Machine& machine, const Vocabulary& vocabulary, Machine::Key state) {
  const TokenTrie& trie = TrieOf(vocabulary);
  const auto nodes = trie.nodes();
  std::vector<uint32_t> words(static_cast<size_t>(vocabulary.mask_words()));
  std::vector<Machine::Key> stack(static_cast<size_t>(trie.max_depth()) + 1);
  stack[0] = state;
  for (uint32_t i = 0; i < nodes.size();) {
    const Machine::Key next = machine.Step(stack[nodes[i].depth - 1u], nodes[i].byte);
    if (next == Machine::kDead) {
      i = nodes[i].end;
      continue;
    }
    trie.SetBits(nodes[i], words.data());
    stack[nodes[i].depth] = next;
    ++i;
  }
  return words;
}

struct Tally {
  long pairs = 0, schemas = 0, skipped = 0;
  bool differs = false;
};

void Walk(const std::string& schema, const Vocabulary& vocabulary, Dice& dice, Tally& tally) {
  const auto document = json::Parse(schema);
  const JsonSchemaOptions options = RandomOptions(dice);
  auto read = document.ok() ? schema::ReadJsonSchema(*document, options)
                            : Result<schema::ReadSchema>(document.error());
  if (!read.ok()) {
    ++tally.skipped;
    return;
  }
  schema::SchemaMachine machine(std::move(read->table), options, &schema::MakeSchemaMasks);
  if (!machine.CheckSatisfiable().ok()) {
    ++tally.skipped;
    return;
  }
  ++tally.schemas;
  MaskBuilder builder(machine, vocabulary);
  Machine::Key state = machine.Start();
  std::string text;
  for (int step = 0; step < kStatesOfWalk && state != Machine::kDead; ++step) {
    const std::vector<uint32_t> mask = builder.Build(state),
                                slow = ByBytes(machine, vocabulary, state);
    ++tally.pairs;
    std::vector<TokenId> allowed;
    for (TokenId token = 0; token < vocabulary.size(); ++token) {
      if (vocabulary.is_special(token)) continue;
      const auto bit = [&](const auto& words) {
        return (words[static_cast<size_t>(token) >> 5] >> (token & 31) & 1) != 0;
      };
      if (bit(slow)) allowed.push_back(token);
      if (bit(slow) == bit(mask)) continue;
      std::printf("%s\nafter %s: token %d, %s, is %s\n", schema.c_str(), text.c_str(), token,
                  json::Quote(vocabulary.bytes(token)).c_str(),
                  bit(mask) ? "in the mask and does not fit" : "not in the mask and fits");
      tally.differs = true;
      return;
    }
    if (allowed.empty()) return;
    // Long strings of nonsense lead nowhere: the shortest completion takes part of the path.
    std::string bytes(vocabulary.bytes(dice.Pick(allowed)));
    if (dice.Percent(40)) {
      if (const auto end = machine.CompletionBytes(state); end && !end->empty())
        bytes = end->substr(0, 1 + dice.Below(end->size()));
    }
    for (const char c : bytes) {
      if (state != Machine::kDead) state = machine.Step(state, static_cast<uint8_t>(c));
    }
    text += bytes;
  }
}

int Run(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "mask_check_tool TOKENIZER PAIRS SEED [MASKBENCH_FOLDER]\n");
    return 2;
  }
  const auto tokenizer = Tokenizer::FromFile(argv[1]);
  if (!tokenizer.ok()) {
    std::fprintf(stderr, "%s\n", tokenizer.error().ToString().c_str());
    return 2;
  }
  const auto vocabulary = *(*tokenizer)->MakeVocabulary();
  const long pairs = std::atol(argv[2]);
  Dice dice(std::strtoull(argv[3], nullptr, 10));
  std::vector<std::string> files;
  if (argc > 4) {
    for (const auto& entry : std::filesystem::directory_iterator(argv[4]))
      files.push_back(entry.path().string());
    std::sort(files.begin(), files.end());
  }
  Tally tally;
  while (tally.pairs < pairs && !tally.differs) {
    std::string schema = json::Dump(RandomSchema(dice));
    if (!files.empty() && dice.Percent(50)) {
      const auto text = ReadFile(dice.Pick(files));
      const auto file = text.ok() ? json::Parse(*text) : Result<json::Value>(text.error());
      if (!file.ok() || file->Find("schema") == nullptr) continue;
      schema = json::Dump(*file->Find("schema"));
    }
    Walk(schema, *vocabulary, dice, tally);
  }
  std::printf("%ld states of %ld schemas (%ld refused or unsatisfiable), %d tokens each: %s\n",
              tally.pairs, tally.schemas, tally.skipped, vocabulary->size(),
              tally.differs ? "a difference" : "no difference");
  return tally.differs ? 1 : 0;
}

}  // namespace
}  // namespace pawl::property

int main(int argc, char** argv) { return pawl::property::Run(argc, argv); }
