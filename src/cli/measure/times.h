// What is said of many measured times: their average and percentiles.
#ifndef PAWL_SRC_CLI_MEASURE_TIMES_H_
#define PAWL_SRC_CLI_MEASURE_TIMES_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace pawl::cli {

// (name, microseconds): avg, p25 ... p99.9 (nearest rank), max. All 0 where there are no times.
std::vector<std::pair<std::string, double>> SummaryOfTimes(std::vector<uint64_t> ns);

// The same as the members of a JSON object: {"avg":0.512,...}.
std::string SummaryJson(const std::vector<uint64_t>& ns);

}  // namespace pawl::cli

#endif  // PAWL_SRC_CLI_MEASURE_TIMES_H_
