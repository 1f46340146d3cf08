// Many texts: one line in, one line out, in order. A text is a request of its own, or with
// --document one of each chunk; the requests of all texts that have begun share the batch.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "src/cli/command.h"
#include "src/cli/extract_parts.h"
#include "src/cli/progress.h"
#include "src/cli/report.h"
#include "src/cli/text_source.h"

namespace pawl::cli {
namespace {

class Lines {
 public:
  Lines(const TextFlags& flags, ExtractJob& job)
      : flags_(flags),
        engine_(*job.engine),
        job_(job),
        progress_(kExtract, "reading", flags.progress),
        keeps_text_(std::ranges::find(flags.keep, "text") != flags.keep.end()),
        missing_(flags.keep.begin(), flags.keep.end()) {}

  int Run() {
    Result<std::unique_ptr<TextSource>> input = TextSource::Open(flags_.file, flags_.format());
    if (!input.ok()) return Fail(kExtract, input.error());
    bytes_ = (*input)->bytes();
    for (;;) {
      while (Submit() || Read(**input)) {
      }
      if (!Write()) break;
      if (lines_.empty() && at_end_) break;
      engine_.Step();
    }
    if (!input_error_ && at_end_) {
      Status status = job_.output->CheckTexts(number_);
      if (status.ok()) status = job_.output->Begin();
      if (!status.ok()) input_error_ = status.error();
    }
    if (input_error_.has_value()) return Fail(kExtract, *input_error_);
    for (const std::string& name : missing_) {
      if (written_ > 0) Note(kExtract, "note: --keep: no line has " + json::Quote(name));
    }
    if (Status status = WriteReasoning(flags_, reasoning_); !status.ok()) {
      return Fail(kExtract, status.error());
    }
    if (job_.report) {
      if (Status status = job_.report->Close(); !status.ok()) return Fail(kExtract, status.error());
    }
    if (Status status = Report(flags_, total_, job_); !status.ok()) {
      return Fail(kExtract, status.error());
    }
    return failed_ > 0 ? kExitSomeFailed : kExitOk;
  }

 private:
  struct Line {
    int number;
    std::vector<json::Member> more = {};  // of the text's line
    std::string text = {};                // for the report
    int64_t begin = 0, end = 0;           // in the input, in bytes
    std::shared_ptr<DocumentRun> document = nullptr;
    std::optional<Result<Generation>> output = std::nullopt;
  };

  bool has_room() const { return engine_.running() < 2 * batch(); }

  // Chunks of documents that have begun, before new texts. true: one was handed in.
  bool Submit() {
    if (!has_room()) return false;
    for (const auto& line : lines_) {
      if (line->document == nullptr || line->output) continue;
      if (line->document->SubmitNext()) return true;
    }
    return false;
  }

  // Another text, where the engine has use for it, waiting for input only when there is nothing to
  // do. true: there may be more.
  bool Read(TextSource& input) {
    // Lines that are done wait for those before them: their number has a bound too.
    const auto most = static_cast<size_t>(8 * batch());
    if (at_end_ || !has_room() || lines_.size() >= most) return false;
    const Result<bool> ready = lines_.empty() ? Result<bool>(true) : input.Ready();
    if (ready.ok() && !*ready) return false;
    Result<std::optional<TextEntry>> entry =
        ready.ok() ? input.Next() : Result<std::optional<TextEntry>>(ready.error());
    if (!entry.ok()) input_error_ = entry.error();
    at_end_ = !entry.ok() || !entry->has_value();
    if (at_end_) return false;
    TextEntry text = **std::move(entry);
    const int64_t begin = std::exchange(read_, text.end);
    if (keeps_text_ && text.status.ok()) {
      json::Value whole;
      whole.type = json::Type::kString;
      whole.text = text.text;
      text.more.emplace_back("text", std::move(whole));
    }
    if (++number_ <= job_.output->done()) {
      if (Status own = job_.output->CheckDone(text.text, text.more); !own.ok()) {
        input_error_ = own.error();
        at_end_ = true;
        return false;
      }
      // Of a run that was killed with its last record written.
      if (flags_.document.document) (void)std::remove(ChunkFileOf(flags_, number_).c_str());
      if (bytes_) pace_.set_known(static_cast<double>(read_) / static_cast<double>(*bytes_));
      return true;
    }
    lines_.push_back(std::make_unique<Line>(
        Line{.number = number_, .more = std::move(text.more), .begin = begin, .end = read_}));
    Line* const mine = lines_.back().get();
    if (!text.status.ok()) {
      mine->output = Result<Generation>(text.status.error());
      // Lines come and go without a step of the model.
      return lines_.size() > 1;
    }
    const auto done = [mine](Result<Generation> output) { mine->output = std::move(output); };
    if (job_.report) mine->text = text.text;
    if (flags_.document.document) {
      mine->document =
          RunOf(flags_, job_, std::move(text.text), "text", number_, flags_.resume, done);
    } else {
      job_.extractor->Add(text.text, "text", done);
    }
    return true;
  }

  // What is done, in order. false when no one is there to write to.
  bool Write() {
    while (!lines_.empty() && lines_.front()->output.has_value()) {
      Line& line = *lines_.front();
      if (Status status = Print(line); !status.ok()) {
        input_error_ = status.error();
        return false;
      }
      if (line.document != nullptr) line.document->RemoveFile();
      written_end_ = line.end;
      lines_.pop_front();
      ++written_;
      if (!FlushOutput().ok()) return false;  // reported when the command ends
    }
    ShowPace();
    return true;
  }

  void ShowPace() {
    double fraction = -1;
    if (bytes_) {
      auto at = static_cast<double>(written_end_);
      if (!lines_.empty() && lines_.front()->document != nullptr) {
        const Line& line = *lines_.front();
        at = static_cast<double>(line.begin) +
             static_cast<double>(line.end - line.begin) * line.document->fraction();
      }
      fraction = at / static_cast<double>(std::max<int64_t>(1, *bytes_));
    }
    progress_.Set(fmt::format("{}{}", pace_.Line(fraction, written_, "texts"),
                              failed_ > 0 ? fmt::format(", {} failed", failed_) : ""));
  }

  Status Print(Line& line) {
    Result<Generation>& output = *line.output;
    const std::string place = fmt::format("line {}", line.number);
    if (Status status = ReportText(place, line.text, output, line.more, job_); !status.ok()) {
      return status;
    }
    if (!flags_.extract.setting.thinking.file.empty()) {
      reasoning_ += (output.ok() ? json::Quote(output->reasoning) : std::string("null")) + "\n";
    }
    if (!output.ok()) {
      ++failed_;
      const std::string message = output.error().ToString();
      Note(kExtract, fmt::format("{}: {}", place, message));
      return job_.output->Write(
          {.line = fmt::format(
               "{{\"error\":{{\"line\":{},\"message\":{}}}{}}}", line.number, json::Quote(message),
               flags_.details || !flags_.keep.empty() ? MembersJson(line.more) : ""),
           .record = {},
           .error = message,
           .kept = line.more});
    }
    for (const json::Member& one : line.more) missing_.erase(one.first);
    RecordAnswer answer = AnswerOf(flags_, line.number - 1, *output, line.more);
    OnOneLine(answer);
    for (const std::string& note : NotesOn(*output, *job_.extractor)) {
      Note(kExtract, fmt::format("{}: {}", place, note));
    }
    Add(output->stats, total_);
    return job_.output->Write(answer);
  }

  int batch() const { return flags_.extract.batch; }

  const TextFlags& flags_;
  ExtractEngine& engine_;
  ExtractJob& job_;
  Progress progress_;
  Pace pace_;
  std::deque<std::unique_ptr<Line>> lines_;  // read, not yet written
  std::optional<int64_t> bytes_;             // of the input
  int64_t read_ = 0, written_end_ = 0;
  int number_ = 0;
  int failed_ = 0;
  int64_t written_ = 0;
  const bool keeps_text_;  // --keep text
  bool at_end_ = false;
  std::optional<Error> input_error_;
  GenerationStats total_;
  std::string reasoning_;          // a line of JSON for each line
  std::set<std::string> missing_;  // of --keep, no line so far had them
};

}  // namespace

int ExtractMany(const TextFlags& flags, ExtractJob& job) { return Lines(flags, job).Run(); }

}  // namespace pawl::cli
