// What `pawl extract` has for one text and for many.
#ifndef PAWL_SRC_CLI_EXTRACT_PARTS_H_
#define PAWL_SRC_CLI_EXTRACT_PARTS_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pawl/generation.h"
#include "pawl/result.h"
#include "src/base/json.h"
#include "src/cli/document_run.h"
#include "src/cli/extractor.h"
#include "src/cli/record_output.h"
#include "src/cli/record_report.h"
#include "src/input/input_format.h"
#include "src/input/input_text.h"

namespace pawl::cli {

inline constexpr const char* kExtract = "extract";

struct TextFlags {
  ExtractFlags extract;
  std::optional<std::string> text;
  std::string file = "-";
  std::string input_format;  // empty: by the file's name
  bool json_lines = false;
  bool progress = false;
  bool details = false;
  std::string output, report, diffusion_svg;
  std::vector<std::string> keep;  // members of a line that its record gets
  bool resume = false;
  DocumentFlags document;
  std::string given;  // the options of the command that records depend on, as text

  InputFormat format() const;
  bool many() const { return !text && HasManyTexts(format()); }
  // What errors call the one text.
  std::string Source() const;
};

// What is loaded once.
struct ExtractJob {
  std::unique_ptr<ExtractEngine> engine;
  std::unique_ptr<Extractor> extractor;
  InputText input;  // the one text
  std::optional<RecordOutput> output;
  std::optional<RecordReport> report;
};

// Where the chunks of the document of a line are kept.
std::string ChunkFileOf(const TextFlags& flags, int64_t line);
// The document of a line, or the one text.
std::shared_ptr<DocumentRun> RunOf(const TextFlags& flags, ExtractJob& job, std::string text,
                                   const std::string& source, int64_t line, bool resume,
                                   DocumentRun::Done done);

// Members of a text's line, as they follow others.
std::string MembersJson(const std::vector<json::Member>& members);
// What becomes of a text. `more`: the other members of its line. `input`: nullptr: as it is in the
// file.
RecordAnswer AnswerOf(const TextFlags& flags, int64_t index, const Generation& output,
                      const std::vector<json::Member>& more, const InputText* input = nullptr);
// A document of the report, where one is written.
Status ReportText(const std::string& name, std::string_view text, const Result<Generation>& output,
                  const std::vector<json::Member>& more, ExtractJob& job);
// White space of an answer that would break its line becomes a space: inside JSON strings there is
// none.
void OnOneLine(RecordAnswer& answer);
// To the file of --reasoning: a line of JSON for each text.
Status WriteReasoning(const TextFlags& flags, const std::string& lines);
void NoteSettings(const Extractor& extractor);
// What is told and kept at the end.
Status Report(const TextFlags& flags, const GenerationStats& stats, ExtractJob& job);

// How far work has come, for the line on the terminal: a bar, the rate and the time that is left.
class Pace {
 public:
  // `known`: what was done before this run.
  explicit Pace(double known = 0) : known_(known) {}
  void set_known(double known) { known_ = known; }
  // `fraction`: of all, 0 to 1; below 0: not known. `done` and `what`: "7", "texts".
  std::string Line(double fraction, int64_t done, const char* what) const;

 private:
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  double known_;
};
// The same for a number of seconds; a pure function. `seconds`: since the begin.
std::string PaceLine(double fraction, double known, int64_t done, const char* what, double seconds);

// All texts of an input with many. Returns the exit code.
int ExtractMany(const TextFlags& flags, ExtractJob& job);

}  // namespace pawl::cli

#endif  // PAWL_SRC_CLI_EXTRACT_PARTS_H_
