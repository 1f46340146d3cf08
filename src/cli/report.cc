#include "src/cli/report.h"

#include <fmt/format.h>

namespace pawl::cli {

void Add(const GenerationStats& stats, GenerationStats& total) {
  total.prompt_tokens += stats.prompt_tokens;
  total.reused_tokens += stats.reused_tokens;
  total.output_tokens += stats.output_tokens;
  total.sampled_tokens += stats.sampled_tokens;
  total.forced_tokens += stats.forced_tokens;
  total.closing_tokens += stats.closing_tokens;
  total.forward_calls += stats.forward_calls;
  total.prefill_seconds += stats.prefill_seconds;
  total.decode_seconds += stats.decode_seconds;
  total.constraint_seconds += stats.constraint_seconds;
  total.sample_seconds += stats.sample_seconds;
}

std::string Describe(const GenerationStats& s) {
  return fmt::format(
      "prompt {} tokens ({} reused), output {} tokens ({} sampled, {} forced, {} closing), {} "
      "model "
      "calls; seconds: prompt {:.3f}, output {:.3f}, constraint {:.3f}, sampling {:.3f}",
      s.prompt_tokens, s.reused_tokens, s.output_tokens, s.sampled_tokens, s.forced_tokens,
      s.closing_tokens, s.forward_calls, s.prefill_seconds, s.decode_seconds, s.constraint_seconds,
      s.sample_seconds);
}

}  // namespace pawl::cli
