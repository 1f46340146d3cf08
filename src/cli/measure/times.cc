// Percentiles are by nearest rank, so each is a time that was measured. All times are sorted once.
#include "src/cli/measure/times.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace pawl::cli {
namespace {

constexpr std::pair<const char*, double> kPercentiles[] = {
    {"p25", 0.25}, {"p50", 0.5},  {"p75", 0.75},    {"p90", 0.9},
    {"p95", 0.95}, {"p99", 0.99}, {"p99.9", 0.999}, {"max", 1}};

}  // namespace

std::vector<std::pair<std::string, double>> SummaryOfTimes(std::vector<uint64_t> ns) {
  std::vector<std::pair<std::string, double>> out;
  std::sort(ns.begin(), ns.end());
  const double count = static_cast<double>(std::max<size_t>(1, ns.size()));
  out.emplace_back("avg", std::accumulate(ns.begin(), ns.end(), 0.0) / count / 1000);
  for (const auto& [name, share] : kPercentiles) {
    const auto rank =
        static_cast<size_t>(std::max(0.0, std::ceil(share * static_cast<double>(ns.size())) - 1));
    out.emplace_back(name, ns.empty() ? 0 : static_cast<double>(ns[rank]) / 1000);
  }
  return out;
}

std::string SummaryJson(const std::vector<uint64_t>& ns) {
  std::string out = "{";
  for (const auto& [key, value] : SummaryOfTimes(ns))
    out += fmt::format("{}\"{}\":{:.3f}", out.size() > 1 ? "," : "", key, value);
  return out + "}";
}

}  // namespace pawl::cli
