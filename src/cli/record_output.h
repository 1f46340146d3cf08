// Where `pawl extract` writes records: standard output, or a file of lines or rows that a later run
// goes on with.
//
//   Result<RecordOutput> out = RecordOutput::Open({.file = "records.csv", .keys = {"name"}});
//   out->Write({.record = R"({"name":"Ann"})", .kept = {{"id", seven}}});
#ifndef PAWL_SRC_CLI_RECORD_OUTPUT_H_
#define PAWL_SRC_CLI_RECORD_OUTPUT_H_

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/result.h"
#include "src/base/json.h"

namespace pawl::cli {

// One answer: a record, or what is wrong with a text.
struct RecordAnswer {
  std::string line;                     // of JSON, without its end
  std::string record;                   // of the line; empty: there is none
  std::string error;                    // of the text, where there is no record
  std::vector<json::Member> kept = {};  // members of the text's line for the columns of a table
};

// A member that lines of --details have themselves; others of the text's line stand next to them.
bool IsMemberOfDetails(std::string_view name);

struct RecordOutputOptions {
  std::string file = {};                          // empty: standard output; NAME.jsonl or NAME.csv
  bool resume = false;                            // goes on behind what is in the file
  std::vector<std::string> keep = {}, keys = {};  // the columns of a table, in this order
  bool details = false;                           // lines have the record as a member
  // With `resume`: what is wrong with a record of an earlier run.
  std::function<Status(const json::Value& record)> check = {};
  // The same of what it has copied from its text.
  std::function<Status(const json::Value& record, const std::string& text)> check_text = {};
  std::function<Status(const std::string& key, const std::string& cell, const std::string& text)>
      check_cell = {};
};

// Lines of JSON or rows of a table, one at a time.
class AnswerReader {
 public:
  // Errors: kIo.
  static Result<AnswerReader> Open(const std::string& name, bool table);
  // nullopt after the last whole one; tail() is what stands behind it. Errors: kIo.
  Result<std::optional<std::string>> Next();
  int64_t line() const { return line_; }    // the first of what Next gave
  int64_t bytes() const { return bytes_; }  // up to its end
  const std::string& tail() const { return tail_; }

 private:
  struct Closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string name_, tail_;
  bool table_ = false;
  int64_t line_ = 0, next_ = 1, bytes_ = 0;
  std::string block_;  // of the file
  size_t at_ = 0;      // read up to there
  std::unique_ptr<std::FILE, Closer> file_;
};

class RecordOutput {
 public:
  // Errors: kInvalid for another ending of the name, and, with the line as place, for answers of
  // another run; kIo.
  static Result<RecordOutput> Open(const RecordOutputOptions& options);
  // Answers of earlier runs that are in the file. What was cut off in the middle does not count.
  int64_t done() const { return done_; }
  // The next of them, from the first on, has to be that of the text. `more`: the other members of
  // its line. REQUIRES: called at most done() times.
  Status CheckDone(const std::string& text, const std::vector<json::Member>& more);
  // The error where there are more of them than texts.
  Status CheckTexts(int64_t texts) const;
  // Until then a file that the run goes on with is as it was; Write does it too.
  Status Begin();
  // Errors: kIo. On standard output FlushOutput tells of them.
  Status Write(const RecordAnswer& answer);

 private:
  struct Closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  RecordOutput() = default;
  Status ReadDone(const RecordOutputOptions& options);
  Status CheckTail(const std::string& tail, const RecordOutputOptions& options) const;
  std::string HeaderOf() const;
  Error NotOfThisRun(const std::string& problem, int64_t line) const;
  // What is wrong with an answer as that of the text; empty: nothing.
  std::string ProblemOfRow(const std::string& row, const std::string& text,
                           const std::vector<json::Member>& more) const;
  std::string ProblemOfLineOf(const std::string& line, const std::string& text,
                              const std::vector<json::Member>& more) const;
  std::string RowOf(const RecordAnswer& answer) const;

  std::string name_;
  RecordOutputOptions options_;
  std::optional<AnswerReader> again_;  // for CheckDone
  std::vector<std::string> keep_, keys_;
  bool table_ = false;
  int64_t done_ = 0;
  int64_t next_line_ = 1;  // behind the whole answers
  int64_t kept_ = 0;       // their bytes
  bool begun_ = true;
  std::unique_ptr<std::FILE, Closer> file_;  // nullptr: standard output
};

}  // namespace pawl::cli

#endif  // PAWL_SRC_CLI_RECORD_OUTPUT_H_
