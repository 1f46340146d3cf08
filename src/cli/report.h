// Statistics of generations as text.
#ifndef PAWL_SRC_CLI_REPORT_H_
#define PAWL_SRC_CLI_REPORT_H_

#include <string>
#include <string_view>

#include "pawl/generation.h"
#include "pawl/result.h"

namespace pawl::cli {

// Sums `stats` into `total`.
void Add(const GenerationStats& stats, GenerationStats& total);
// As notes of a command: a line, and one more for each source of drafts.
void NoteStats(std::string_view command, const GenerationStats& stats);
// NoteStats where `stats_flag` (--stats) asks for it, and StatsJson to `file` (--stats-json; empty:
// none). Errors: kIo.
Status ReportStats(std::string_view command, bool stats_flag, const std::string& file,
                   const GenerationStats& stats, std::string_view more = {});
// The same as a JSON object in a line. `more`: further members, each behind a comma.
std::string StatsJson(const GenerationStats& stats, std::string_view more = {});

}  // namespace pawl::cli

#endif  // PAWL_SRC_CLI_REPORT_H_
