// Texts, records and names reach the page as data only: in blocks of JSON, which no browser runs,
// with each `<` escaped so that none of them ends early. The page's script writes them as text. Its
// policy allows this one script and this one sheet of styles, by their digests, and nothing else:
// no picture, no font, no request.
#include "src/cli/record_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "src/base/digest.h"
#include "src/engine/record_values.h"

namespace pawl::cli {
namespace {

constexpr std::string_view kPolicyMark = "<!--policy-->", kDocumentsMark = "<!--documents-->\n";
constexpr std::string_view kBlockBegin = "<script type=\"application/json\" class=\"document\">";
constexpr std::string_view kBlockEnd = "</script>\n";
constexpr size_t kAboutBytes = 16384;  // of a page, for what differs between pages

std::string Base64OfHex(std::string_view hex) {
  static constexpr char kDigits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto digit = [&](size_t i) {
    if (i >= hex.size()) return 0U;
    const char c = hex[i];
    return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10);
  };
  std::string out;
  for (size_t i = 0; i < hex.size(); i += 3) {
    // Three digits of 4 bits are two of 6.
    const unsigned bits = digit(i) << 8 | digit(i + 1) << 4 | digit(i + 2);
    out += kDigits[bits >> 6];
    if (i + 1 < hex.size()) out += kDigits[bits & 63];
  }
  while (out.size() % 4 != 0) out += '=';
  return out;
}

std::string_view Inside(std::string_view page, std::string_view begin, std::string_view end) {
  const size_t from = page.find(begin) + begin.size();
  return page.substr(from, page.find(end, from) - from);
}

std::string Source(std::string_view text) {
  Digest digest(DigestKind::kSha256);
  digest.Add(text);
  return "'sha256-" + Base64OfHex(digest.Hex()) + "'";
}

// Inside a block of JSON `<` stands in strings only.
std::string Shielded(std::string_view json) {
  std::string out;
  for (const char c : json) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

std::string FieldOf(const json::Value& record, const std::string& pointer) {
  std::string out;
  const json::Value* at = &record;
  for (const std::string& token : json::PointerTokens(pointer)) {
    const bool list = at != nullptr && at->type == json::Type::kArray;
    if (list) {
      out += "[]";
      at = json::ItemAt(*at, token);
    } else {
      out += (out.empty() ? "" : ".") + token;
      at = at == nullptr ? nullptr : at->Find(token);
    }
  }
  return out;
}

std::string Figure(double value) { return fmt::format("{:.6g}", value); }

// What is known of the values of one document.
class Values {
 public:
  explicit Values(const ReportDocument& document) {
    if (document.details != nullptr) {
      for (const ValueDetails& one : *document.details) details_[one.pointer] = &one;
    }
    if (document.verdicts == nullptr) return;
    for (const eval::FieldVerdict& one : *document.verdicts) {
      if (one.written_at) verdicts_[*one.written_at] = &one;
      if (!one.written_at && !one.right) missing_.push_back(&one);
    }
  }

  // A list of JSON.
  std::string Json(std::string_view record) const {
    std::string out;
    const auto places = ValuesIn(record);
    const Result<json::Value> tree = json::Parse(record);
    if (places && tree.ok()) {
      for (const ValuePlace& place : *places) {
        out += (out.empty() ? "{" : ",{") + std::string("\"p\":") + json::Quote(place.pointer) +
               ",\"f\":" + json::Quote(FieldOf(*tree, place.pointer)) +
               ",\"v\":" + json::Quote(record.substr(place.begin, place.end - place.begin)) +
               FiguresOf(place.pointer) + VerdictOf(place.pointer) + "}";
      }
    }
    for (const eval::FieldVerdict* one : missing_) {
      out += (out.empty() ? "{" : ",{") + std::string("\"p\":") + json::Quote(one->right_at) +
             ",\"f\":" + json::Quote(one->field) +
             ",\"ok\":false,\"want\":" + json::Quote(one->right_json) + "}";
    }
    return "[" + out + "]";
  }

 private:
  std::string FiguresOf(const std::string& pointer) const {
    const auto found = details_.find(pointer);
    if (found == details_.end()) return "";
    const ValueDetails& one = *found->second;
    std::string out;
    if (one.span) out += fmt::format(",\"s\":[{},{}]", one.span->begin, one.span->end);
    if (one.probability) out += ",\"q\":" + Figure(*one.probability);
    if (std::isfinite(one.surprise)) out += ",\"u\":" + Figure(one.surprise);
    std::string list;
    for (const ValueDetails::Alternative& other : one.alternatives) {
      list += (list.empty() ? "[" : ",[") + json::Quote(other.value) + "," +
              Figure(other.probability) + "]";
    }
    if (!list.empty()) out += ",\"a\":[" + list + "]";
    return out;
  }

  // The verdict on the value, or on the list or object that it is a part of.
  std::string VerdictOf(std::string pointer) const {
    for (;;) {
      const auto found = verdicts_.find(pointer);
      if (found != verdicts_.end()) {
        const eval::FieldVerdict& one = *found->second;
        return one.right ? ",\"ok\":true" : ",\"ok\":false,\"want\":" + json::Quote(one.right_json);
      }
      if (pointer.empty()) return "";
      pointer.resize(pointer.rfind('/'));
    }
  }

  std::map<std::string, const ValueDetails*> details_;
  std::map<std::string, const eval::FieldVerdict*> verdicts_;
  std::vector<const eval::FieldVerdict*> missing_;
};

std::string MoreJson(const std::vector<json::Member>* more) {
  std::string out;
  if (more == nullptr) return out;
  for (const json::Member& one : *more) {
    const bool text = one.second.type == json::Type::kString;
    out += (out.empty() ? "[" : ",[") + json::Quote(one.first) + "," +
           json::Quote(text ? one.second.text : json::Dump(one.second)) + "]";
  }
  return out.empty() ? "" : ",\"more\":[" + out + "]";
}

// The longest beginning of the text whose JSON fits.
std::string_view Fitting(std::string_view text, size_t bytes) {
  size_t length = std::min(text.size(), bytes);
  while (length > 0) {
    // Not in the middle of a character.
    while (length < text.size() && (static_cast<unsigned char>(text[length]) & 0xC0) == 0x80) {
      --length;
    }
    const size_t needed = Shielded(json::Quote(text.substr(0, length))).size();
    if (needed <= bytes) break;
    length = std::min(length - 1,
                      static_cast<size_t>(static_cast<double>(length) * static_cast<double>(bytes) /
                                          static_cast<double>(needed)));
  }
  return text.substr(0, length);
}

}  // namespace

Result<RecordReport> RecordReport::Open(const ReportOptions& options) {
  RecordReport out;
  out.options_ = options;
  if (!options.file.ends_with(".html")) {
    return Error{ErrorCode::kInvalid,
                 "must be the name of a .html file, not " + json::Quote(options.file), "--report"};
  }
  const std::string_view page = ReportPage();
  const std::string policy = fmt::format(
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src {}; "
      "style-src {}; base-uri 'none'; form-action 'none'\">",
      Source(Inside(page, "<script>", "</script>")), Source(Inside(page, "<style>", "</style>")));
  const size_t mark = page.find(kPolicyMark), documents = page.find(kDocumentsMark);
  out.head_ = std::string(page.substr(0, mark)) + policy;
  out.head_ += page.substr(mark + kPolicyMark.size(), documents - mark - kPolicyMark.size());
  out.tail_ = page.substr(documents + kDocumentsMark.size());
  if (Status status = out.OpenPage(); !status.ok()) return status.error();
  return out;
}

std::string RecordReport::PageName(int64_t page) const {
  const std::string stem = options_.file.substr(0, options_.file.size() - 5);
  return page == 1 ? options_.file : fmt::format("{}-{}.html", stem, page);
}

Status RecordReport::Failure(int64_t page) const {
  return Error{ErrorCode::kIo, std::string("cannot write: ") + std::strerror(errno),
               PageName(page)};
}

Status RecordReport::Put(std::string_view bytes) {
  bytes_ += bytes.size();
  return std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) == bytes.size() ? Status()
                                                                                 : Failure(page_);
}

Status RecordReport::OpenPage() {
  ++page_;
  bytes_ = 0;
  has_documents_ = false;
  file_.reset(std::fopen(PageName(page_).c_str(), "w"));
  if (file_ == nullptr) return Failure(page_);
  std::string settings;
  for (const std::string& name : options_.settings) {
    settings += (settings.empty() ? "" : ",") + json::Quote(name);
  }
  const std::string name = std::filesystem::path(options_.file).filename().string();
  std::string about = fmt::format(
      "<script type=\"application/json\" id=\"about\">{{\"page\":{:8},\"pages\":", page_);
  pages_at_ = head_.size() + about.size();
  about += fmt::format("{:8}", 0);
  about += Shielded(fmt::format(
      ",\"file\":{},\"model\":{},\"schema\":{},\"data\":{},\"scored\":{},\"settings\":[{}]}}",
      json::Quote(name), json::Quote(options_.model), json::Quote(options_.schema),
      json::Quote(options_.data), options_.scored, settings));
  return Put(head_ + about + std::string(kBlockEnd));
}

std::string RecordReport::BlockOf(const ReportDocument& document) const {
  const std::string start =
      fmt::format("{{\"name\":{},\"setting\":{}{}{}", json::Quote(document.name), document.setting,
                  document.closed ? ",\"closed\":true" : "",
                  document.error.empty() ? "" : ",\"error\":" + json::Quote(document.error));
  std::string rest =
      MoreJson(document.more) + ",\"values\":" + Values(document).Json(document.record) + "}";
  const size_t other = head_.size() + tail_.size() + kAboutBytes;
  const size_t most = options_.page_bytes > other ? options_.page_bytes - other : 0;
  const auto shielded = [](std::string_view json) { return Shielded(json).size(); };
  const std::string text = json::Quote(document.text);
  std::string json = start + ",\"text\":" + text + rest;
  if (shielded(json) > most) {
    constexpr std::string_view kCut = ",\"cut\":true,\"text\":";
    const size_t fixed = shielded(start) + kCut.size();
    if (fixed + shielded(rest) > most / 2) rest = "}";
    const size_t used = fixed + shielded(rest);
    const std::string_view kept = Fitting(document.text, most > used ? most - used : 0);
    json = start + std::string(kCut) + json::Quote(kept) + rest;
  }
  return std::string(kBlockBegin) + Shielded(json) + std::string(kBlockEnd);
}

Status RecordReport::Write(std::string_view block) {
  if (has_documents_ && bytes_ + block.size() + tail_.size() > options_.page_bytes) {
    if (Status status = EndPage(); !status.ok()) return status;
    if (Status status = OpenPage(); !status.ok()) return status;
  }
  has_documents_ = true;
  if (Status status = Put(block); !status.ok()) return status;
  return std::fflush(file_.get()) == 0 ? Status() : Failure(page_);
}

Status RecordReport::EndPage() {
  if (Status status = Put(tail_); !status.ok()) return status;
  return std::fflush(file_.get()) == 0 ? Status() : Failure(page_);
}

Status RecordReport::Close() {
  if (Status status = EndPage(); !status.ok()) return status;
  const std::string pages = fmt::format("{:8}", page_);
  for (int64_t page = page_; page >= 1; --page) {
    if (page != page_) file_.reset(std::fopen(PageName(page).c_str(), "r+"));
    const bool written = file_ != nullptr &&
                         std::fseek(file_.get(), static_cast<long>(pages_at_), SEEK_SET) == 0 &&
                         std::fwrite(pages.data(), 1, pages.size(), file_.get()) == pages.size() &&
                         std::fflush(file_.get()) == 0;
    if (!written) return Failure(page);
  }
  return {};
}

}  // namespace pawl::cli
