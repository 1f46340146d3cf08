// The report of `pawl extract` and `pawl eval`: an HTML file that needs nothing else, with the
// texts, the places of values in them, and what is known of each value.
//
//   Result<RecordReport> report = RecordReport::Open({.file = "report.html"});
//   report->Write(report->BlocksOf({.name = "line 1", .text = text, .record = record}));
//   report->Close();
//
// A page is written document by document, and memory does not grow with them. A page that is full
// is followed by FILE-2.html, FILE-3.html and so on. A page that a killed run leaves can be read.
#ifndef PAWL_SRC_CLI_RECORD_REPORT_H_
#define PAWL_SRC_CLI_RECORD_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/generation.h"
#include "pawl/result.h"
#include "src/base/json.h"
#include "src/eval/field_scores.h"

namespace pawl::cli {

struct ReportOptions {
  std::string file;                                 // NAME.html
  std::string model = {}, schema = {}, data = {};   // what the page says of its making
  std::vector<std::string> settings = {"setting"};  // of the documents
  bool scored = false;                              // the right records are known
  size_t page_bytes = 20'000'000;
};

// A text with its record, or with what is wrong with it.
struct ReportDocument {
  std::string name;  // "line 7"
  size_t setting = 0;
  std::string_view text;
  std::string_view record = {};                        // JSON; empty: there is none
  std::string_view error = {};                         // where there is no record
  const std::vector<ValueDetails>* details = nullptr;  // of the record's values
  const std::vector<eval::FieldVerdict>* verdicts = nullptr;
  bool closed = false;                              // not ended by the model
  const std::vector<json::Member>* more = nullptr;  // further members of the text's line
};

class RecordReport {
 public:
  // Errors: kInvalid for another ending of the name; kIo.
  static Result<RecordReport> Open(const ReportOptions& options);
  // A document as parts of pages, several where it is large. What no page can hold is left out, and
  // the page says so.
  std::vector<std::string> BlocksOf(const ReportDocument& document) const;
  // Errors: kIo.
  Status Write(const std::vector<std::string>& blocks);
  // Ends the last page, and tells all of them how many there are. Errors: kIo.
  Status Close();

 private:
  struct Closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  RecordReport() = default;
  std::string PageName(int64_t page) const;
  Status OpenPage();
  Status EndPage();
  Status Put(std::string_view bytes);
  Status Failure(int64_t page) const;

  ReportOptions options_;
  std::string head_, tail_;  // of each page; the head ends in front of what differs
  int64_t page_ = 0;
  size_t bytes_ = 0, pages_at_ = 0;  // of this page; where its number of pages stands
  bool has_documents_ = false;
  std::unique_ptr<std::FILE, Closer> file_;
};

// The template of pages, from record_report.html.
std::string_view ReportPage();

}  // namespace pawl::cli

#endif  // PAWL_SRC_CLI_RECORD_REPORT_H_
