// Sums are added field by field, sources of drafts by their name. Averages are taken when they are
// shown, so sums of sums stay right.
#include "src/cli/report.h"

#include <fmt/format.h>

#include "src/base/file.h"
#include "src/base/json.h"
#include "src/cli/command.h"
#include "src/engine/document.h"

namespace pawl::cli {

void Add(const GenerationStats& stats, GenerationStats& total) { AddStats(stats, total); }

void NoteStats(std::string_view command, const GenerationStats& s) {
  const auto note = [&](const std::string& line) { Note(command, line); };
  note(fmt::format(
      "prompt {} tokens ({} reused), output {} tokens ({} sampled, {} forced, {} closing), {} "
      "model calls; seconds: prompt {:.3f}, output {:.3f}, constraint {:.3f}, sampling {:.3f}",
      s.prompt_tokens, s.reused_tokens, s.output_tokens, s.sampled_tokens, s.forced_tokens,
      s.closing_tokens, s.forward_calls, s.prefill_seconds, s.decode_seconds, s.constraint_seconds,
      s.sample_seconds));
  if (s.reasoning_tokens > 0) {
    note(fmt::format("{} of the output's tokens are thoughts", s.reasoning_tokens));
  }
  if (s.mask_surprise > 0) {
    note(fmt::format("mask_surprise {:.2f} nats: how much the constraint went against the model",
                     s.mask_surprise));
  }
  if (s.drafts.sources.empty()) return;
  note(fmt::format("drafts: {} rows in {} calls, {} accepted ({:.0f} expected); {:.3f} ms",
                   s.drafts.rows, s.drafts.calls, s.drafts.accepted, s.drafts.expected,
                   s.drafts.seconds * 1e3));
  if (s.drafts.lossy > 0) {
    note(
        fmt::format("  {} of the output's tokens are other ones by --draft-lossy", s.drafts.lossy));
  }
  for (const DraftSourceStats& source : s.drafts.sources) {
    note(fmt::format("  {}: {} drafted, {} kept by the filter, {} accepted; {:.3f} ms", source.name,
                     source.drafted, source.kept, source.accepted, source.seconds * 1e3));
    if (source.model_calls > 0) {
      note(fmt::format("    {} calls of the draft model, {} of them while a device verified",
                       source.model_calls, source.late_calls));
    }
  }
}

std::string StatsJson(const GenerationStats& s, std::string_view more) {
  std::string out = fmt::format(
      "{{\"prompt_tokens\":{},\"reused_tokens\":{},\"output_tokens\":{},\"sampled_tokens\":{},"
      "\"forced_tokens\":{},\"closing_tokens\":{},\"reasoning_tokens\":{},"
      "\"forward_calls\":{},\"seconds\":{{"
      "\"prompt\":{:.6f},\"output\":{:.6f},\"constraint\":{:.6f},\"sampling\":{:.6f}}},"
      "\"drafts\":{{\"calls\":{},\"rows\":{},\"accepted\":{},\"expected\":{:.3f},\"lossy\":{},"
      "\"seconds\":{:.6f},\"sources\":{{",
      s.prompt_tokens, s.reused_tokens, s.output_tokens, s.sampled_tokens, s.forced_tokens,
      s.closing_tokens, s.reasoning_tokens, s.forward_calls, s.prefill_seconds, s.decode_seconds,
      s.constraint_seconds, s.sample_seconds, s.drafts.calls, s.drafts.rows, s.drafts.accepted,
      s.drafts.expected, s.drafts.lossy, s.drafts.seconds);
  const char* comma = "";
  for (const DraftSourceStats& source : s.drafts.sources) {
    out += fmt::format(
        "{}{}:{{\"drafted\":{},\"kept\":{},\"accepted\":{},\"model_calls\":{},\"late_calls\":{},"
        "\"seconds\":{:.6f}}}",
        comma, json::Quote(source.name), source.drafted, source.kept, source.accepted,
        source.model_calls, source.late_calls, source.seconds);
    comma = ",";
  }
  out += "}}";
  // Where it was asked for.
  if (s.mask_surprise > 0) out += fmt::format(",\"mask_surprise\":{:.4f}", s.mask_surprise);
  return out.append(more) + "}\n";
}

Status ReportStats(std::string_view command, bool stats_flag, const std::string& file,
                   const GenerationStats& stats, std::string_view more) {
  if (stats_flag) NoteStats(command, stats);
  return file.empty() ? Status() : WriteFile(file, StatsJson(stats, more));
}

}  // namespace pawl::cli
