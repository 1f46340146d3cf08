// Counters are atomic numbers; a text for Prometheus is written when it is asked for. Buckets of a
// histogram are counted apart and summed up as the format wants it.
#include "src/server/metrics.h"

#include <cstdio>

namespace pawl::server {
namespace {

std::string ShownNumber(double value) {
  char digits[40];
  std::snprintf(digits, sizeof digits, "%.15g", value);
  return digits;
}

void Head(const std::string& name, const std::string& type, const std::string& help,
          std::string& out) {
  out += "# HELP " + name + " " + help + "\n# TYPE " + name + " " + type + "\n";
}

}  // namespace

void Histogram::Observe(double seconds) {
  size_t i = 0;
  while (i < bounds_.size() && seconds > bounds_[i]) ++i;
  ++counts_[i];
  nanos_ += static_cast<int64_t>(seconds * 1e9);
}

void Histogram::Write(const std::string& name, const std::string& help, std::string& out) const {
  Head(name, "histogram", help, out);
  int64_t sum = 0;
  for (size_t i = 0; i < bounds_.size(); ++i) {
    sum += counts_[i];
    out += name + "_bucket{le=\"" + ShownNumber(bounds_[i]) + "\"} " + std::to_string(sum) + "\n";
  }
  sum += counts_[bounds_.size()];
  out += name + "_bucket{le=\"+Inf\"} " + std::to_string(sum) + "\n";
  out += name + "_sum " + ShownNumber(static_cast<double>(nanos_) * 1e-9) + "\n";
  out += name + "_count " + std::to_string(sum) + "\n";
}

void Metrics::CountRequest(const std::string& route, int status) {
  const std::lock_guard lock(mutex_);
  ++requests_[{route, status}];
}

void Metrics::WriteRequests(std::string& out) const {
  Head("pawl_requests_total", "counter", "Requests by route and status.", out);
  const std::lock_guard lock(mutex_);
  for (const auto& [key, count] : requests_) {
    out += "pawl_requests_total{route=\"" + key.first + "\",status=\"" +
           std::to_string(key.second) + "\"} " + std::to_string(count) + "\n";
  }
}

void WriteMetric(const std::string& name, const std::string& type, const std::string& help,
                 double value, std::string& out) {
  Head(name, type, help, out);
  out += name + " " + ShownNumber(value) + "\n";
}

}  // namespace pawl::server
