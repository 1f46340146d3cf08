// Answers are lines of JSON or rows of a table; what a text has besides its record is put together
// here. A bar is shown where it is known how much there is to do.
#include "src/cli/extract_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "src/base/file.h"
#include "src/cli/command.h"
#include "src/cli/report.h"
#include "src/engine/record_details.h"

namespace pawl::cli {

InputFormat TextFlags::format() const {
  if (json_lines) return InputFormat::kJsonl;
  if (text) return InputFormat::kText;
  if (!input_format.empty()) return *InputFormatNamed(input_format);
  return InputFormatOf(file);
}

std::string TextFlags::Source() const {
  if (text.has_value()) return "--text";
  return file == "-" ? "standard input" : file;
}

std::string ChunkFileOf(const TextFlags& flags, int64_t line) {
  return fmt::format("{}.{}.chunks", flags.output, line);
}

std::shared_ptr<DocumentRun> RunOf(const TextFlags& flags, ExtractJob& job, std::string text,
                                   const std::string& source, int64_t line, bool resume,
                                   DocumentRun::Done done) {
  DocumentRun::Options options;
  options.document = flags.document.options;
  options.ahead = static_cast<size_t>(ChunksAhead(flags.extract.batch));
  options.resume = resume;
  options.settings = flags.given;
  if (!flags.output.empty()) options.chunk_file = ChunkFileOf(flags, line);
  return std::make_shared<DocumentRun>(*job.extractor, std::move(text), source, std::move(options),
                                       std::move(done));
}

std::string MembersJson(const std::vector<json::Member>& members) {
  std::string out;
  for (const json::Member& one : members) {
    out += "," + json::Quote(one.first) + ":" + json::Dump(one.second);
  }
  return out;
}

RecordAnswer AnswerOf(const TextFlags& flags, int64_t index, const Generation& output,
                      const std::vector<json::Member>& more, const InputText* input) {
  RecordAnswer answer{.line = {}, .record = output.text, .error = {}, .kept = more};
  std::vector<json::Member> kept = more, passed;
  std::erase_if(kept, [&](const json::Member& one) {
    return std::ranges::find(flags.keep, one.first) == flags.keep.end();
  });
  const size_t begin = answer.record.find_first_not_of(" \t\r\n");
  if (!kept.empty() && begin != std::string::npos && answer.record[begin] == '{') {
    const size_t next = answer.record.find_first_not_of(" \t\r\n", begin + 1);
    const std::string members = MembersJson(kept).substr(1);
    answer.record.insert(begin + 1, members + (answer.record[next] == '}' ? "" : ","));
  }
  answer.line = answer.record;
  if (flags.details) {
    for (const json::Member& one : more) {
      if (!IsMemberOfDetails(one.first)) passed.push_back(one);
    }
    RecordLine line;
    line.index = index;
    line.record = answer.record;
    line.reasoning = output.reasoning;
    line.members = DetailsJson(output.details);
    if (output.chunks > 0) {
      line.members +=
          fmt::format(",{},\"chunks\":{}", ConflictsJson(output.conflicts), output.chunks);
    }
    if (input != nullptr) {
      for (const std::string& member : input->PlacesJson(output.details)) {
        line.members += "," + member;
      }
    }
    line.members += MembersJson(passed);
    line.closed = output.stop == StopReason::kClosed;
    line.finish_reason = line.closed ? "length" : "stop";
    line.closed_by = output.closed_by;
    line.prompt_tokens = output.stats.prompt_tokens;
    line.output_tokens = output.stats.output_tokens;
    answer.line = line.Json();
  }
  return answer;
}

Status ReportText(const std::string& name, std::string_view text, const Result<Generation>& output,
                  const std::vector<json::Member>& more, ExtractJob& job) {
  if (!job.report) return {};
  const std::string error = output.ok() ? "" : output.error().ToString();
  ReportDocument document{.name = name, .text = text, .error = error, .more = &more};
  if (output.ok()) {
    document.record = output->text;
    document.details = &output->details;
    document.closed = output->stop == StopReason::kClosed;
  }
  return job.report->Write(job.report->BlocksOf(document));
}

void OnOneLine(RecordAnswer& answer) {
  for (char& c : answer.line) {
    if (c == '\n' || c == '\r') c = ' ';
  }
}

Status WriteReasoning(const TextFlags& flags, const std::string& lines) {
  const std::string& file = flags.extract.setting.thinking.file;
  return file.empty() ? Status() : WriteFile(file, lines);
}

void NoteSettings(const Extractor& extractor) {
  for (const std::string& note : SettingNotes(extractor)) Note(kExtract, note);
}

Status Report(const TextFlags& flags, const GenerationStats& stats, ExtractJob& job) {
  const ExtractFlags& extract = flags.extract;
  if (extract.stats) NoteSettings(*job.extractor);
  if (Status status = ReportStats(kExtract, extract.stats, extract.stats_json, stats,
                                  SettingsJson(*job.extractor));
      !status.ok()) {
    return status;
  }
  return job.engine->Save();
}

std::string PaceLine(double fraction, double known, int64_t done, const char* what,
                     double seconds) {
  constexpr int kBar = 24;
  const double rate = static_cast<double>(done) / std::max(1e-3, seconds);
  std::string out = fmt::format("{} {}, {:.{}f} a second", done, what, rate, rate < 10 ? 2 : 0);
  if (fraction < 0) return out;
  fraction = std::min(fraction, 1.0);
  const int full = static_cast<int>(fraction * kBar);
  out = fmt::format("[{}{}] {:.0f} %, {}", std::string(static_cast<size_t>(full), '#'),
                    std::string(static_cast<size_t>(kBar - full), '.'), 100 * fraction, out);
  const double gone = fraction - known;
  if (gone <= 0 || seconds <= 0) return out;
  const auto left = static_cast<int64_t>(seconds * (1 - fraction) / gone + 0.5);
  if (left < 3600) return out + fmt::format(", {}:{:02} left", left / 60, left % 60);
  return out + fmt::format(", {}:{:02}:{:02} left", left / 3600, left / 60 % 60, left % 60);
}

std::string Pace::Line(double fraction, int64_t done, const char* what) const {
  const std::chrono::duration<double> gone = std::chrono::steady_clock::now() - begin_;
  return PaceLine(fraction, known_, done, what, gone.count());
}

}  // namespace pawl::cli
