// Walks through small schemas until the wanted number of walks is reached; prints what went wrong.
//
//   build/bin/dead_end_tool [WALKS [SEED [FIRST]]]
#include <cstdlib>
#include <iostream>

#include "tests/schemas/dead_ends.h"

int main(int argc, char** argv) {
  const auto argument = [&](int i, uint64_t otherwise) {
    return argc > i ? std::strtoull(argv[i], nullptr, 10) : otherwise;
  };
  const uint64_t walks = argument(1, 1'000'000), seed = argument(2, 1);
  uint64_t first = argument(3, 0);
  constexpr int kWalks = 10;
  constexpr uint64_t kBlock = 500;
  pawl::property::WalkReport all;
  size_t failures = 0;
  while (all.walks < walks && failures < 50) {
    const auto report = pawl::property::WalkSmallSchemas(seed, first, kBlock, kWalks, true, 50);
    first += kBlock;
    for (const std::string& failure : report.failures) std::cout << failure << std::endl;
    failures += report.failures.size();
    all.schemas += report.schemas;
    all.unsatisfiable += report.unsatisfiable;
    all.refused += report.refused;
    all.walks += report.walks;
    all.finished += report.finished;
    all.cut += report.cut;
    all.completions += report.completions;
    all.valid += report.valid;
    all.invalid += report.invalid;
    all.undecided_dead += report.undecided_dead;
    all.undecided_open += report.undecided_open;
    for (const auto& [keywords, count] : report.undecided) all.undecided[keywords] += count;
  }
  std::cout << all.schemas << " schemas (in each order " << all.unsatisfiable << " unsatisfiable, "
            << all.refused << " refused), " << all.walks << " walks, " << all.finished
            << " finished, " << all.cut << " cut; " << all.completions << " completions; "
            << all.valid << " valid and " << all.invalid << " invalid instances\n"
            << failures << " failures\n"
            << "where the solver had not decided: " << all.undecided_dead << " dead ends, "
            << all.undecided_open << " missing completions\n";
  for (const auto& [keywords, count] : all.undecided)
    std::cout << "  " << count << "  " << keywords << "\n";
  return failures == 0 ? 0 : 1;
}
