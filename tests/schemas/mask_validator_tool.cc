// mask_validator_tool [STATES [SEED [FIRST]]]: masks of small schemas against the validator of
// tests/oracle; prints one line. Exit code 1 and the place at the first difference.
#include <cstdlib>
#include <iostream>

#include "tests/schemas/mask_validator.h"

int main(int argc, char** argv) {
  const auto argument = [&](int i, uint64_t otherwise) {
    return argc > i ? std::strtoull(argv[i], nullptr, 10) : otherwise;
  };
  const pawl::property::MaskReport report =
      pawl::property::CheckMasks(argument(2, 1), argument(3, 0), argument(1, 100'000));
  std::cout << report.states << " states of " << report.schemas << " schemas: " << report.demanded
            << " tokens that valid instances go on with, all allowed; " << report.completed
            << " others allowed, all completed to valid texts but " << report.undecided
            << " where the solver had not decided; " << report.refused << " refused\n";
  if (report.failure.empty()) return 0;
  std::cout << report.failure << "\n";
  return 1;
}
