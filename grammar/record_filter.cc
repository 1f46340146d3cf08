// Whether a null belongs to the record is asked of the grammar of the schema as it was given: where
// it takes the key with null, null is a value of the schema and stays. Elsewhere the key is left
// out. In a union of objects both may be possible, and only what follows tells. So the filter
// follows both readings. Readings that come to the same state have the same future, and of these
// the first is kept; there are never more of them than keys that were null one after another.
#include "grammar/record_filter.h"

#include <algorithm>
#include <optional>

namespace pawl {
namespace {

constexpr size_t kMostReadings = 64;
// Bytes that wait for the state to read them.
constexpr size_t kMostUnread = 4096;
constexpr std::string_view kNull = "null";

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

}  // namespace

RecordFilter::RecordFilter(std::shared_ptr<const RecordKeys> keys) : keys_(std::move(keys)) {
  readings_.push_back({keys_->given.Start(), {}, {}, {}});
}

std::string RecordFilter::Feed(std::string_view bytes) {
  if (failed_) return std::string(bytes);
  for (size_t i = 0; i < bytes.size(); ++i) {
    Take(bytes[i]);
    if (failed_) {
      readings_[0].out.append(bytes.substr(i + 1));
      break;
    }
  }
  if (readings_[0].unread.size() > kMostUnread) ReadOn();
  if (readings_.size() > 1) return {};
  return std::exchange(readings_[0].out, {});
}

std::string RecordFilter::Finish() {
  if (!failed_) ReadOn();
  const auto whole =
      std::ranges::find_if(readings_, [](const Reading& one) { return one.at.accepting(); });
  Reading& best = whole == readings_.end() ? readings_[0] : *whole;
  std::string out = std::exchange(best.out, {});
  if (!failed_ && stage_ != Stage::kText) out += MemberFor(best) + null_;
  member_.clear();
  null_.clear();
  return out;
}

void RecordFilter::Take(char c) {
  switch (stage_) {
    case Stage::kText:
      return TakeText(c);
    case Stage::kMember:
      return TakeMember(c);
    case Stage::kNull:
      return TakeNull(c);
  }
}

void RecordFilter::TakeText(char c) {
  if (in_string_) {
    in_string_ = escaped_ || c != '"';
    escaped_ = !escaped_ && c == '\\';
    return Pass({&c, 1});
  }
  if (IsSpace(c)) {
    for (Reading& reading : readings_) {
      if (reading.left_out) continue;
      reading.unread += c;
      reading.out += c;
    }
    return;
  }
  for (Reading& reading : readings_) reading.left_out = false;
  if (c == ',' && !objects_.empty() && objects_.back()) {
    stage_ = Stage::kMember;
    has_key_ = has_colon_ = false;
    member_ = c;
    return;
  }
  Pass({&c, 1});
  if (c == '"') in_string_ = true;
  if (c == '{' || c == '[') Open(c == '{');
  if (c == '}' || c == ']') Close();
}

void RecordFilter::TakeMember(char c) {
  if (in_string_) {
    in_string_ = escaped_ || c != '"';
    escaped_ = !escaped_ && c == '\\';
    has_key_ = !in_string_;
    member_ += c;
    return;
  }
  if (!has_key_ && c == '"') {
    in_string_ = true;
    if (member_.empty() || member_[0] != ',') leads_.back() = member_;
    member_ += c;
    return;
  }
  if (!has_key_ && c == '}') {  // an empty object
    Pass(member_);
    member_.clear();
    stage_ = Stage::kText;
    return TakeText(c);
  }
  if (has_colon_ && !IsSpace(c)) {
    if (c == 'n') {
      stage_ = Stage::kNull;
      return TakeNull(c);
    }
    TakeMemberText();
    stage_ = Stage::kText;
    return TakeText(c);
  }
  has_colon_ = has_colon_ || c == ':';
  member_ += c;
}

void RecordFilter::TakeNull(char c) {
  null_ += c;
  if (!kNull.starts_with(null_)) {  // no JSON: what the grammar does not write
    TakeMemberText();
    Pass(std::exchange(null_, {}));
    stage_ = Stage::kText;
    return;
  }
  if (null_.size() == kNull.size()) Decide();
}

void RecordFilter::Pass(std::string_view bytes) {
  for (Reading& reading : readings_) {
    reading.unread += bytes;
    reading.out += bytes;
  }
}

void RecordFilter::Open(bool object) {
  objects_.push_back(object);
  leads_.emplace_back();
  for (Reading& reading : readings_) reading.fresh.push_back(true);
  if (!object) return;
  stage_ = Stage::kMember;
  has_key_ = has_colon_ = false;
  member_.clear();
}

void RecordFilter::Close() {
  if (objects_.empty()) return;
  objects_.pop_back();
  leads_.pop_back();
  for (Reading& reading : readings_) reading.fresh.pop_back();
  if (!objects_.empty() || readings_.size() == 1) return;
  // The end of the record: the first reading that is one.
  ReadOn();
  const auto whole =
      std::ranges::find_if(readings_, [](const Reading& one) { return one.at.accepting(); });
  if (whole != readings_.end()) std::swap(*whole, readings_[0]);
  readings_.erase(readings_.begin() + 1, readings_.end());
}

// The held member as it stands behind what the reading has taken of the object: without a comma
// where it is the first one.
std::string RecordFilter::MemberFor(const Reading& reading) const {
  if (member_.empty() || member_[0] != ',' || !reading.fresh.back()) return member_;
  size_t begin = 1;
  while (begin < member_.size() && IsSpace(member_[begin])) ++begin;
  return leads_.back() + member_.substr(begin);
}

void RecordFilter::TakeMemberText() {
  for (Reading& reading : readings_) {
    const std::string text = MemberFor(reading);
    reading.unread += text;
    reading.out += text;
    reading.fresh.back() = false;
  }
  member_.clear();
  if (readings_.size() > 1) ReadOn();
}

void RecordFilter::Decide() {
  ReadOn();
  std::vector<Reading> next;
  const auto add = [&](Reading reading) {
    const bool known =
        std::ranges::any_of(next, [&](const Reading& other) { return other.SameFuture(reading); });
    if (!known && next.size() < kMostReadings) next.push_back(std::move(reading));
  };
  for (const Reading& reading : readings_) {
    const std::string text = MemberFor(reading) + null_;
    std::optional<State> kept = reading.at.Advance(text);
    if (kept) {
      Reading with = reading;
      with.at = *std::move(kept);
      with.out += text;
      with.fresh.back() = false;
      add(std::move(with));
      if (!keys_->unions) continue;
    }
    Reading without = reading;
    without.left_out = true;
    add(std::move(without));
  }
  readings_ = std::move(next);
  member_.clear();
  null_.clear();
  stage_ = Stage::kText;
}

void RecordFilter::ReadOn() {
  std::vector<Reading> next;
  for (Reading& reading : readings_) {
    std::optional<State> at = reading.at.Advance(std::string_view(reading.unread));
    if (!at) continue;
    reading.at = *std::move(at);
    reading.unread.clear();
    const bool known =
        std::ranges::any_of(next, [&](const Reading& other) { return other.SameFuture(reading); });
    if (!known) next.push_back(std::move(reading));
  }
  if (next.empty()) {
    failed_ = true;
    readings_.erase(readings_.begin() + 1, readings_.end());
    return;
  }
  readings_ = std::move(next);
}

}  // namespace pawl
