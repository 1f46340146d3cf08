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
#include <functional>
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

// A value, as JSON in front of its place and behind it.
struct ShownValue {
  std::string name, rest;
  std::optional<ValueDetails::Span> span;

  // In a part of the document with these characters.
  std::string Json(int64_t begin, int64_t end) const {
    if (!span) return name + rest;
    return name +
           fmt::format(",\"s\":[{},{}]", span->begin - begin, std::min(span->end, end) - begin) +
           rest;
  }
};

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

  // In the order of the record.
  std::vector<ShownValue> Of(std::string_view record) const {
    std::vector<ShownValue> out;
    const auto places = ValuesIn(record);
    const Result<json::Value> tree = json::Parse(record);
    if (places && tree.ok()) {
      for (const ValuePlace& place : *places) {
        ShownValue& value = out.emplace_back();
        value.name = "{\"p\":" + json::Quote(place.pointer) +
                     ",\"f\":" + json::Quote(FieldOf(*tree, place.pointer)) +
                     ",\"v\":" + json::Quote(record.substr(place.begin, place.end - place.begin));
        const auto found = details_.find(place.pointer);
        if (found != details_.end()) {
          value.span = found->second->span;
          value.rest = FiguresOf(*found->second);
        }
        value.rest += VerdictOf(place.pointer) + "}";
      }
    }
    for (const eval::FieldVerdict* one : missing_) {
      ShownValue& value = out.emplace_back();
      value.name = "{\"p\":" + json::Quote(one->right_at) + ",\"f\":" + json::Quote(one->field);
      value.rest = ",\"ok\":false,\"want\":" + json::Quote(one->right_json) + "}";
    }
    return out;
  }

 private:
  static std::string FiguresOf(const ValueDetails& one) {
    std::string out;
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

// A part of a document: some of its text, and the values that stand there.
struct DocumentPart {
  size_t begin = 0, end = 0;  // bytes
  int64_t begin_character = 0, end_character = 0;
  std::vector<const ShownValue*> values = {};
  bool cut = false;  // values are left out
};

// Parts whose JSON has at most so many bytes. They end at lines, or inside of long ones.
class DocumentParts {
 public:
  DocumentParts(std::string_view text, size_t most) : text_(text), most_(most) {}

  std::vector<DocumentPart> Of(const std::vector<ShownValue>& values) {
    // Values without a place go with those before them.
    std::vector<std::pair<int64_t, const ShownValue*>> placed;
    int64_t place = 0;
    for (const ShownValue& value : values) {
      if (value.span) place = value.span->begin;
      placed.emplace_back(place, &value);
    }
    std::ranges::stable_sort(placed, {}, &std::pair<int64_t, const ShownValue*>::first);
    auto next = placed.begin();
    do {
      AddText();
      const bool at_end = part_.end == text_.size();
      for (; next != placed.end() && (at_end || next->first < part_.end_character); ++next) {
        AddValue(*next->second);
      }
    } while (part_.end < text_.size());
    EndPart();
    return std::move(parts_);
  }

 private:
  static constexpr size_t kPiece = 4096;

  void AddText() {
    const std::string_view rest = text_.substr(part_.end);
    size_t length = std::min({rest.size(), kPiece, rest.find('\n')});
    if (length < rest.size() && rest[length] == '\n') ++length;
    while (length < rest.size() && IsInsideCharacter(rest[length])) ++length;
    const std::string_view piece = rest.substr(0, length);
    const size_t bytes = Shielded(json::Quote(piece)).size();
    if (used_ > 0 && used_ + bytes > most_) EndPart();
    used_ += bytes;
    part_.end += length;
    part_.end_character += std::ranges::count_if(piece, std::not_fn(IsInsideCharacter));
  }

  void AddValue(const ShownValue& value) {
    const size_t bytes = Shielded(value.Json(0, part_.end_character)).size() + 1;
    if (used_ + bytes > most_) {
      part_.cut = true;
      return;
    }
    used_ += bytes;
    part_.values.push_back(&value);
  }

  void EndPart() {
    std::ranges::sort(part_.values);  // in the order of the record again
    used_ = 0;
    DocumentPart next{.begin = part_.end,
                      .end = part_.end,
                      .begin_character = part_.end_character,
                      .end_character = part_.end_character};
    parts_.push_back(std::exchange(part_, std::move(next)));
  }

  static bool IsInsideCharacter(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

  const std::string_view text_;
  const size_t most_;
  std::vector<DocumentPart> parts_;
  DocumentPart part_;
  size_t used_ = 0;  // by part_
};

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

std::vector<std::string> RecordReport::BlocksOf(const ReportDocument& document) const {
  const std::string facts = fmt::format(
      ",\"setting\":{}{}{}", document.setting, document.closed ? ",\"closed\":true" : "",
      document.error.empty() ? "" : ",\"error\":" + json::Quote(document.error));
  std::string more = MoreJson(document.more);
  const size_t other =
      head_.size() + tail_.size() + kAboutBytes + json::Quote(document.name).size();
  const size_t all = options_.page_bytes > other ? options_.page_bytes - other : 0;
  const bool cut = Shielded(more).size() > all / 4;
  if (cut) more.clear();
  const size_t fixed = Shielded(facts).size() + Shielded(more).size();
  const std::vector<ShownValue> values = Values(document).Of(document.record);
  const std::vector<DocumentPart> parts =
      DocumentParts(document.text, all > fixed ? all - fixed : 0).Of(values);
  std::vector<std::string> out;
  for (const DocumentPart& part : parts) {
    std::string name = document.name;
    if (parts.size() > 1) name += fmt::format(" (part {} of {})", out.size() + 1, parts.size());
    const bool first = out.empty();
    std::string json = "{\"name\":" + json::Quote(name) + facts;
    if (part.cut || (first && cut)) json += ",\"cut\":true";
    json += ",\"text\":" + json::Quote(document.text.substr(part.begin, part.end - part.begin));
    if (first) json += more;
    json += ",\"values\":[";
    for (const ShownValue* value : part.values) {
      json += (value == part.values.front() ? "" : ",") +
              value->Json(part.begin_character, part.end_character);
    }
    out.push_back(std::string(kBlockBegin) + Shielded(json + "]}") + std::string(kBlockEnd));
  }
  return out;
}

Status RecordReport::Write(const std::vector<std::string>& blocks) {
  for (const std::string& block : blocks) {
    if (has_documents_ && bytes_ + block.size() + tail_.size() > options_.page_bytes) {
      if (Status status = EndPage(); !status.ok()) return status;
      if (Status status = OpenPage(); !status.ok()) return status;
    }
    has_documents_ = true;
    if (Status status = Put(block); !status.ok()) return status;
  }
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
