// Strings are the spans that masks allow (src/base/source_text.h). Numbers, dates and times are
// found by their value, in all spellings that a copied field may have. One place is remembered from
// value to value, because records are mostly copied in order.
#include "src/engine/spans.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "schemas/read/source_values.h"
#include "src/base/source_text.h"
#include "src/base/utf8.h"

namespace pawl {
namespace {

using schema::SourceValue;

class Finder {
 public:
  Finder(std::string_view text, SpanKind kind) : source_(text), kind_(kind) {
    (void)TakeCuts(text);
    for (size_t i = 0; i < text.size(); ++i) {
      if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) bytes_.push_back(i);
    }
    bytes_.push_back(text.size());
  }

  // The depth of a record is bounded by that of JSON texts.
  void Visit(const json::Value& value, const std::string& pointer) {
    switch (value.type) {
      case json::Type::kObject:
        for (const json::Member& member : value.members) {
          Visit(member.second, json::PointerJoin(pointer, member.first));
        }
        break;
      case json::Type::kArray:
        for (size_t i = 0; i < value.items.size(); ++i) {
          Visit(value.items[i], json::PointerJoin(pointer, std::to_string(i)));
        }
        break;
      case json::Type::kString:
        FindString(value.text, pointer);
        break;
      case json::Type::kNumber:
        FindNumber(value.text, pointer);
        break;
      default:
        break;
    }
  }

  std::vector<Span> Take() { return std::move(spans_); }

 private:
  using Places = std::vector<std::pair<size_t, size_t>>;  // of source_.text()

  void FindString(const std::string& value, const std::string& pointer) {
    const std::u32string decoded = DecodeCodepoints(value);
    Places places;
    const auto find = [&](SpanKind kind) {
      for (const size_t at : source_.Find(kind, decoded))
        places.emplace_back(at, at + decoded.size());
    };
    find(SpanKind::kSpan);
    if (places.empty()) places = DatesOf(value);
    if (places.empty() && kind_ == SpanKind::kChars && !decoded.empty()) find(kind_);
    Choose(places, pointer);
  }

  void FindNumber(const std::string& text, const std::string& pointer) {
    const Result<Decimal> value = Decimal::Parse(text);
    if (!value.ok()) return;
    if (!numbers_) numbers_ = schema::NumbersIn(source_.text());
    Places places;
    for (const auto& one : *numbers_) {
      if (one.value == *value && source_.IsWhole(one.begin, one.end))
        places.emplace_back(one.begin, one.end);
    }
    Choose(places, pointer);
  }

  Places DatesOf(const std::string& value) {
    Places places;
    if (value.empty() || !IsDigit(value[0])) return places;
    for (const char* format : {"date", "time", "date-time"}) {
      auto [dates, fresh] = dates_.try_emplace(format);
      if (fresh) dates->second = schema::DatesIn(source_.text(), format);
      for (const auto& one : dates->second) {
        if (one.value == value && source_.IsWhole(one.begin, one.end))
          places.emplace_back(one.begin, one.end);
      }
    }
    return places;
  }

  // The first of the places behind the place before, or else the first one.
  void Choose(Places& places, const std::string& pointer) {
    if (places.empty()) return;
    std::ranges::sort(places);
    const auto behind = std::ranges::lower_bound(places, std::pair(from_, size_t{0}));
    const auto [begin, end] = behind != places.end() ? *behind : places.front();
    from_ = end;
    const size_t first = source_.CharacterAt(begin), last = source_.CharacterBehind(end);
    spans_.push_back({pointer, first, last, bytes_[first], bytes_[last]});
  }

  SourceText source_;
  const SpanKind kind_;
  std::vector<size_t> bytes_;  // at which the characters begin, and the end
  size_t from_ = 0;
  std::optional<std::vector<SourceValue<Decimal>>> numbers_;
  std::map<std::string, std::vector<SourceValue<std::string>>> dates_;
  std::vector<Span> spans_;
};

}  // namespace

std::vector<Span> FindSpans(const json::Value& record, std::string_view text, SpanKind kind) {
  Finder finder(text, kind);
  finder.Visit(record, "");
  return finder.Take();
}

SpanKind SpanKindOf(const json::Value& schema) {
  std::vector<const json::Value*> open = {&schema};
  while (!open.empty()) {
    const json::Value& one = *open.back();
    open.pop_back();
    const json::Value* const source = one.Find("x-pawl-source");
    if (source != nullptr && source->text == "chars") return SpanKind::kChars;
    for (const json::Member& member : one.members) open.push_back(&member.second);
    for (const json::Value& item : one.items) open.push_back(&item);
  }
  return SpanKind::kSpan;
}

}  // namespace pawl
