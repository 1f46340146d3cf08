// MaskbenchPool: runs the schemas of MaskBench in child processes, so that a crash or an endless
// loop costs one schema, not the run.
#ifndef PAWL_SRC_CLI_MEASURE_MASKBENCH_POOL_H_
#define PAWL_SRC_CLI_MEASURE_MASKBENCH_POOL_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "pawl/result.h"

namespace pawl::cli {

struct MaskbenchOutcome {
  enum Kind : uint8_t {
    kPass,
    kRefused,          // the schema did not compile: `detail` says why
    kUnsatisfiable,    // refused because nothing fits it
    kValidRejected,    // a token of a valid instance was masked
    kEndRefused,       // a valid instance was read, but may not end
    kInvalidAccepted,  // an invalid instance was read and may end
    kTimeout,
    kCrash,
    kBadFile,  // not a MaskBench file
  };
  Kind kind = kPass;
  std::string detail;
  uint64_t first_mask_ns = 0;      // 0: not compiled
  std::vector<uint64_t> token_ns;  // mask + advance of every token
  uint64_t rss_bytes = 0;          // most memory that the process held so far
  std::vector<uint64_t> layers;    // whatever the job counts, summed up by the caller
};
const char* MaskbenchKindName(MaskbenchOutcome::Kind kind);

// Runs job(0) ... job(count - 1) in `workers` forked processes and hands the outcomes to `done` in
// the parent, in any order. A process that takes more than `timeout_seconds` of processor time for
// a job, or dies, is replaced; the job gets kTimeout or kCrash. What the job uses must not depend
// on other threads.
Status RunMaskbench(size_t count, int workers, double timeout_seconds,
                    const std::function<MaskbenchOutcome(size_t)>& job,
                    const std::function<void(size_t, MaskbenchOutcome)>& done);

}  // namespace pawl::cli

#endif  // PAWL_SRC_CLI_MEASURE_MASKBENCH_POOL_H_
