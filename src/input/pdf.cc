// pdftotext (poppler) says where each word stands; lines and blocks are its own. A document that
// comes from elsewhere is read by that program, in a process of its own.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "src/base/file.h"
#include "src/base/os/files.h"
#include "src/base/os/processes.h"
#include "src/input/html_tokens.h"
#include "src/input/input_text.h"

namespace pawl {
namespace {

constexpr const char* kProgram = "pdftotext";
constexpr size_t kMostLayout = size_t{1} << 30;  // bytes of what it prints

double NumberIn(const HtmlToken& token, std::string_view name) {
  for (const auto& [known, value] : token.attributes) {
    if (known == name) return std::strtod(value.c_str(), nullptr);
  }
  return 0;
}

}  // namespace

Result<InputText> ReadPdfLayout(std::string_view xhtml) {
  InputText out;
  HtmlTokens tokens(xhtml);
  int page = 0, line = 0;
  const char* gap = "";
  std::optional<InputText::Box> word;
  while (const std::optional<HtmlToken> token = tokens.Next()) {
    const bool begins = token->kind == HtmlToken::Kind::kBegin;
    if (token->kind == HtmlToken::Kind::kText || token->kind == HtmlToken::Kind::kReference) {
      if (!word) continue;
      out.text += token->kind == HtmlToken::Kind::kText
                      ? std::string(xhtml.substr(token->begin, token->end - token->begin))
                      : token->name;
    } else if (token->name == "word" && begins) {
      if (!out.text.empty()) out.text += gap;
      gap = " ";
      word = InputText::Box{.begin = out.text.size(),
                            .end = 0,
                            .page = page,
                            .line = line,
                            .x0 = NumberIn(*token, "xmin"),
                            .y0 = NumberIn(*token, "ymin"),
                            .x1 = NumberIn(*token, "xmax"),
                            .y1 = NumberIn(*token, "ymax")};
    } else if (token->name == "word" && word) {
      word->end = out.text.size();
      if (word->end > word->begin) out.boxes.push_back(*word);
      word.reset();
    } else if (token->name == "line" && begins) {
      ++line;
      if (std::strcmp(gap, "\n\n") != 0) gap = "\n";
    } else if (begins && (token->name == "block" || token->name == "page")) {
      if (token->name == "page") ++page;
      gap = "\n\n";
    }
  }
  return out;
}

Result<InputText> ReadPdf(const std::string& path) {
  // What it complains of goes into a file, where there is room for all of it.
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> err(std::tmpfile(), &std::fclose);
  std::optional<os::Pipe> out;
  if (err != nullptr) out = os::MakePipe();
  if (!out) {
    return Error{ErrorCode::kIo, std::strerror(errno), path};
  }
  // A name that begins with a hyphen is no option.
  const std::string file = path.starts_with('-') ? "./" + path : path;
  os::ProcessId child = 0;
  const int failed =
      os::StartProgram({.arguments = {kProgram, "-bbox-layout", "-enc", "UTF-8", file, "-"},
                        .in = os::kNothing,
                        .out = out->write,
                        .err = ::fileno(err.get())},
                       child);
  os::CloseFile(out->write);
  Result<std::string> layout = Error{ErrorCode::kIo, std::strerror(failed), kProgram};
  std::string complaint;
  int code = -1;
  if (failed == 0) {
    layout = ReadDescriptor(out->read, kProgram, kMostLayout);
    os::CloseFile(std::exchange(out->read, -1));  // what it still writes goes nowhere
    code = os::WaitForEnd(child);
    char line[256] = "";
    std::rewind(err.get());
    if (std::fgets(line, sizeof line, err.get()) != nullptr) complaint = line;
    complaint.resize(complaint.find_last_not_of('\n') + 1);
  }
  if (out->read >= 0) os::CloseFile(out->read);
  if (failed == ENOENT && !os::MayRead(path)) {
    return Error{ErrorCode::kIo, std::string("cannot read: ") + std::strerror(errno), path};
  }
  if (failed == ENOENT) {
    return Error{ErrorCode::kIo, "PDF is read by pdftotext (poppler-utils), which is not installed",
                 path};
  }
  if (!layout.ok()) return layout.error();
  if (code != 0) {
    return Error{ErrorCode::kInvalid,
                 "pdftotext: " + (complaint.empty() ? std::string("failed") : complaint), path};
  }
  return ReadPdfLayout(*layout);
}

}  // namespace pawl
