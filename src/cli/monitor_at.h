// `pawl monitor --at LINE:COL`: the names that may stand at a place of a file, or why none is
// known.
#ifndef PAWL_SRC_CLI_MONITOR_AT_H_
#define PAWL_SRC_CLI_MONITOR_AT_H_
#ifdef PAWL_HAVE_MONITORS

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "pawl/result.h"
#include "pawl/vocabulary.h"
#include "plugins/monitors/lsp/server.h"
#include "plugins/monitors/monitor.h"
#include "src/cli/monitor_flags.h"

namespace pawl::cli {

// Prints the names and returns them for the report. `at`: a line and a column in bytes, from 1.
// Errors: kInvalid with --at as place.
Result<nlohmann::ordered_json> PrintNamesAt(const std::string& file, const std::string& text,
                                            monitors::Language language, const std::string& at,
                                            const MonitorFlags& flags,
                                            const std::shared_ptr<const Vocabulary>& vocabulary,
                                            const std::shared_ptr<monitors::LspServer>& server);

}  // namespace pawl::cli

#endif  // PAWL_HAVE_MONITORS
#endif  // PAWL_SRC_CLI_MONITOR_AT_H_
