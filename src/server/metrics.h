// Counters of a server, and how Prometheus reads them. Thread-safe.
#ifndef PAWL_SRC_SERVER_METRICS_H_
#define PAWL_SRC_SERVER_METRICS_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace pawl::server {

// How many observations were at most so many seconds, by a list of bounds.
class Histogram {
 public:
  using Bounds = std::array<double, 14>;
  // Of requests.
  static constexpr Bounds kBounds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                     0.25,  0.5,    1,     2.5,  5,     10,   60};
  // Of steps of the batch.
  static constexpr Bounds kStepBounds = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01,
                                         0.025,  0.05,    0.1,    0.25,  0.5,    1,     10};

  explicit Histogram(const Bounds& bounds = kBounds) : bounds_(bounds) {}
  void Observe(double seconds);
  // In Prometheus's text format.
  void Write(const std::string& name, const std::string& help, std::string& out) const;

 private:
  const Bounds bounds_;
  std::array<std::atomic<int64_t>, kBounds.size() + 1> counts_{};
  std::atomic<int64_t> nanos_{0};
};

struct Metrics {
  void CountRequest(const std::string& route, int status);
  void WriteRequests(std::string& out) const;

  std::atomic<int64_t> prompt_tokens{0}, reused_tokens{0}, output_tokens{0}, sampled_tokens{0},
      forced_tokens{0}, closing_tokens{0};
  std::atomic<int64_t> cancelled{0}, refused_full{0}, timed_out{0};
  std::atomic<int64_t> mask_micros{0}, prefill_micros{0}, decode_micros{0};
  Histogram first_token, request, compile, queue;
  Histogram step{Histogram::kStepBounds};

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, int64_t> requests_;
};

// One number with its description, in Prometheus's text format; `type` is "counter" or "gauge".
void WriteMetric(const std::string& name, const std::string& type, const std::string& help,
                 double value, std::string& out);

}  // namespace pawl::server

#endif  // PAWL_SRC_SERVER_METRICS_H_
