// A state machine over a buffer. Each step takes something from the front of the buffer, or says
// that it needs more. Where a mark may begin at the end of the buffer, that much is held back; all
// else goes out at once.
//
// The grammar guarantees the shapes, so the parser does not check them. Where a budget has cut the
// output, or a model without a constraint writes something else, what is left in the buffer at the
// end goes out as what it stood in.
#include "src/engine/output_parser.h"

#include <algorithm>
#include <utility>

#include "src/base/json.h"
#include "src/base/utf8.h"

namespace pawl {
namespace {

constexpr std::string_view kReplacementBytes = "\xEF\xBF\xBD";
constexpr std::string_view kSpaces = " \n\r\t";

// The length of the longest end of `text` with which `mark` begins, less than the whole mark.
size_t PartialAtEnd(std::string_view text, std::string_view mark) {
  size_t most = std::min(text.size(), mark.size() - 1);
  for (; most > 0; --most) {
    if (text.ends_with(mark.substr(0, most))) return most;
  }
  return 0;
}

// Length of the character that begins at the front; 0: not complete; negative: that many bytes are
// none.
int CharacterLength(std::string_view bytes) {
  const auto at = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned char first = at(0);
  if (first < 0x80) return 1;
  const int length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4) return -1;
  for (size_t i = 1; i < static_cast<size_t>(length); ++i) {
    if (i >= bytes.size()) return 0;
    unsigned char least = 0x80, most = 0xBF;
    if (i == 1 && first == 0xE0) least = 0xA0;
    if (i == 1 && first == 0xED) most = 0x9F;
    if (i == 1 && first == 0xF0) least = 0x90;
    if (i == 1 && first == 0xF4) most = 0x8F;
    if (at(i) < least || at(i) > most) return -static_cast<int>(i);
  }
  return length;
}

std::optional<uint32_t> Hex4(std::string_view text) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) {
    const char c = text[i];
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) return std::nullopt;
    value = value * 16 + static_cast<uint32_t>(digit);
  }
  return value;
}

// One escape at the front of `text`: its length, and what it stands for in `out`; 0: not complete.
size_t Unescape(std::string_view text, bool at_end, std::string& out) {
  if (text.size() < 2) return 0;
  const char c = text[1];
  static constexpr std::string_view kFrom = "nrtbf", kTo = "\n\r\t\b\f";
  if (const size_t i = kFrom.find(c); i != std::string_view::npos) {
    out += kTo[i];
    return 2;
  }
  if (c != 'u') {
    out += c;
    return 2;
  }
  if (text.size() < 6) return 0;
  const std::optional<uint32_t> high = Hex4(text.substr(2));
  if (!high) return 2;
  if (*high < 0xD800 || *high > 0xDFFF) {
    AppendUtf8(*high, out);
    return 6;
  }
  if (text.size() < 12 && !at_end) return 0;
  const std::optional<uint32_t> low =
      text.size() >= 12 && text.substr(6, 2) == "\\u" ? Hex4(text.substr(8)) : std::nullopt;
  if (*high >= 0xDC00 || !low || *low < 0xDC00 || *low > 0xDFFF) {
    out += kReplacementBytes;
    return 6;
  }
  AppendUtf8(0x10000 + ((*high - 0xD800) << 10) + (*low - 0xDC00), out);
  return 12;
}

}  // namespace

std::string Utf8Gate::Feed(std::string_view bytes) {
  held_ += bytes;
  std::string out;
  size_t at = 0;
  while (at < held_.size()) {
    const std::string_view rest = std::string_view(held_).substr(at);
    const int length = CharacterLength(rest);
    if (length == 0) break;
    if (length < 0) {
      out += kReplacementBytes;
      at += static_cast<size_t>(-length);
    } else {
      out += rest.substr(0, static_cast<size_t>(length));
      at += static_cast<size_t>(length);
    }
  }
  held_.erase(0, at);
  return out;
}

std::string Utf8Gate::Finish() {
  if (held_.empty()) return "";
  held_.clear();
  return std::string(kReplacementBytes);
}

OutputParser::OutputParser(const OutputPlan& plan) : plan_(plan) {
  state_ = plan.direct ? State::kDirect : State::kText;
  if (plan.thinking == ThinkingStart::kOpen) state_ = State::kThinking;
  if (plan.thinking == ThinkingStart::kMay) state_ = State::kStart;
}

std::vector<Delta> OutputParser::Feed(std::string_view bytes) {
  buffer_ += gate_.Feed(bytes);
  while (Step(false)) {
  }
  return std::exchange(out_, {});
}

std::vector<Delta> OutputParser::Finish() {
  buffer_ += gate_.Finish();
  while (Step(true)) {
  }
  // What never came to its end.
  if (!buffer_.empty() || !spaces_.empty()) {
    const bool in_call = call_open_ && state_ != State::kCallEnd;
    if (in_call && state_ != State::kParameters) Emit(Delta::Kind::kArguments, buffer_);
    if (state_ == State::kCallStart) Emit(Delta::Kind::kContent, buffer_);
    buffer_.clear();
    spaces_.clear();
  }
  EndCall();
  return std::exchange(out_, {});
}

bool OutputParser::Step(bool at_end) {
  switch (state_) {
    case State::kStart:
      return StepStart(at_end);
    case State::kThinking:
      return StepThinking(at_end);
    case State::kGap: {
      const size_t text = buffer_.find_first_not_of(kSpaces);
      buffer_.erase(0, std::min(text, buffer_.size()));
      if (buffer_.empty()) return false;
      state_ = plan_.direct ? State::kDirect : State::kText;
      return true;
    }
    case State::kDirect:
      if (!call_open_) BeginCall(plan_.calls[0]);
      if (buffer_.empty()) return false;
      Emit(Delta::Kind::kArguments, buffer_);
      buffer_.clear();
      return false;
    case State::kText:
      return StepText(at_end);
    case State::kCallStart:
      return StepCallStart(at_end);
    case State::kList:
      return StepList(at_end);
    case State::kJson:
      return StepJson();
    case State::kInputStart:
    case State::kInput:
    case State::kInputEnd:
      return StepInput(at_end);
    case State::kParameters:
      return StepParameters(at_end);
    case State::kRaw:
      return StepRaw(at_end);
    case State::kCallEnd:
      return StepCallEnd(at_end);
    case State::kAfterCall:
      return StepAfterCall(at_end);
  }
  return false;
}

// Thoughts begin with their mark, perhaps behind white space; anything else is the answer.
bool OutputParser::StepStart(bool at_end) {
  const size_t text = buffer_.find_first_not_of(kSpaces);
  if (text == std::string::npos && !at_end) return false;
  const std::string_view rest =
      text == std::string::npos ? std::string_view() : std::string_view(buffer_).substr(text);
  if (rest.starts_with(plan_.think_open)) {
    buffer_.erase(0, text + plan_.think_open.size());
    state_ = State::kThinking;
    return true;
  }
  if (!at_end && std::string_view(plan_.think_open).starts_with(rest)) return false;
  state_ = plan_.direct ? State::kDirect : State::kText;
  return true;
}

bool OutputParser::StepThinking(bool at_end) {
  const size_t close = buffer_.find(plan_.think_close);
  if (close != std::string::npos) {
    Emit(Delta::Kind::kReasoning, std::string_view(buffer_).substr(0, close));
    buffer_.erase(0, close + plan_.think_close.size());
    state_ = State::kGap;
    return true;
  }
  const size_t held = at_end ? 0 : PartialAtEnd(buffer_, plan_.think_close);
  Emit(Delta::Kind::kReasoning, std::string_view(buffer_).substr(0, buffer_.size() - held));
  buffer_.erase(0, buffer_.size() - held);
  return false;
}

bool OutputParser::StepText(bool at_end) {
  size_t first = std::string::npos;
  size_t held = 0;
  for (const std::string& trigger : plan_.triggers) {
    first = std::min(first, buffer_.find(trigger));
    if (!at_end) held = std::max(held, PartialAtEnd(buffer_, trigger));
  }
  if (first != std::string::npos) {
    Emit(Delta::Kind::kContent, std::string_view(buffer_).substr(0, first));
    buffer_.erase(0, first);
    state_ = State::kCallStart;
    return true;
  }
  Emit(Delta::Kind::kContent, std::string_view(buffer_).substr(0, buffer_.size() - held));
  buffer_.erase(0, buffer_.size() - held);
  return false;
}

const CallSyntax* OutputParser::CallAt(std::string_view text, bool& may_come) const {
  may_come = false;
  const CallSyntax* found = nullptr;
  for (const CallSyntax& call : plan_.calls) {
    if (text.starts_with(call.begin) &&
        (found == nullptr || call.begin.size() > found->begin.size())) {
      found = &call;
    }
    if (text.size() < call.begin.size() && std::string_view(call.begin).starts_with(text)) {
      may_come = true;
    }
  }
  return found;
}

bool OutputParser::StepCallStart(bool at_end) {
  if (plan_.in_list) {
    for (const std::string& trigger : plan_.triggers) {
      if (!buffer_.starts_with(trigger)) continue;
      buffer_.erase(0, trigger.size());
      break;
    }
    state_ = State::kList;
    return true;
  }
  bool may_come = false;
  const CallSyntax* call = CallAt(buffer_, may_come);
  if (call == nullptr && may_come && !at_end) return false;
  if (call == nullptr) {
    // Only without a grammar, or where a budget has cut it: it is text after all.
    if (at_end) return false;
    Emit(Delta::Kind::kContent, buffer_.substr(0, 1));
    buffer_.erase(0, 1);
    state_ = State::kText;
    return true;
  }
  buffer_.erase(0, call->begin.size());
  BeginCall(*call);
  return true;
}

bool OutputParser::StepList(bool at_end) {
  while (!buffer_.empty()) {
    bool may_come = false;
    if (const CallSyntax* call = CallAt(buffer_, may_come)) {
      buffer_.erase(0, call->begin.size());
      BeginCall(*call);
      return true;
    }
    if (buffer_.starts_with(plan_.list_end)) {
      buffer_.erase(0, plan_.list_end.size());
      state_ = State::kAfterCall;
      return true;
    }
    const bool end_may_come = std::string_view(plan_.list_end).starts_with(buffer_);
    if ((may_come || end_may_come) && !at_end) return false;
    buffer_.erase(0, 1);  // brackets, separators
  }
  return false;
}

void OutputParser::BeginCall(const CallSyntax& call) {
  call_ = &call;
  call_open_ = true;
  Delta delta;
  delta.kind = Delta::Kind::kCallBegin;
  delta.call = calls_++;
  delta.tool = call.tool;
  delta.text = plan_.names[call.tool];
  out_.push_back(std::move(delta));
  depth_ = 0;
  in_string_ = escaped_ = scalar_ = false;
  first_parameter_ = true;
  if (plan_.direct) return;
  switch (call.body) {
    case CallSyntax::Body::kJson:
      state_ = State::kJson;
      break;
    case CallSyntax::Body::kInput:
      state_ = State::kInputStart;
      break;
    case CallSyntax::Body::kParameters:
      state_ = State::kParameters;
      Emit(Delta::Kind::kArguments, "{");
      break;
    case CallSyntax::Body::kRaw:
      state_ = State::kRaw;
      break;
  }
}

void OutputParser::EndCall() {
  if (!call_open_) return;
  call_open_ = false;
  out_.push_back({Delta::Kind::kCallEnd, calls_ - 1, call_->tool, ""});
}

// Arguments end where their value ends.
bool OutputParser::StepJson() {
  size_t i = 0;
  bool ended = false;
  for (; i < buffer_.size() && !ended; ++i) {
    const char c = buffer_[i];
    if (in_string_) {
      if (escaped_) {
        escaped_ = false;
      } else if (c == '\\') {
        escaped_ = true;
      } else if (c == '"') {
        in_string_ = false;
        ended = depth_ == 0;
      }
    } else if (c == '"') {
      in_string_ = true;
    } else if (c == '{' || c == '[') {
      ++depth_;
    } else if (c == '}' || c == ']') {
      if (scalar_ && depth_ == 0) break;  // that of the call
      ended = --depth_ == 0;
    } else if (depth_ == 0) {
      if (scalar_ && c == call_->end[0]) break;
      scalar_ = true;
    }
  }
  const bool done = ended || i < buffer_.size();
  Emit(Delta::Kind::kArguments, std::string_view(buffer_).substr(0, i));
  buffer_.erase(0, i);
  if (done) state_ = State::kCallEnd;
  return done;
}

bool OutputParser::StepInput(bool at_end) {
  if (state_ == State::kInputStart) {
    const size_t colon = buffer_.find(':');
    const size_t quote = colon == std::string::npos ? colon : buffer_.find('"', colon);
    if (quote == std::string::npos) {
      if (at_end) buffer_.clear();
      return false;
    }
    buffer_.erase(0, quote + 1);
    state_ = State::kInput;
  }
  if (state_ == State::kInput) {
    std::string text;
    size_t i = 0;
    while (i < buffer_.size() && buffer_[i] != '"') {
      if (buffer_[i] != '\\') {
        text += buffer_[i++];
        continue;
      }
      const size_t length = Unescape(std::string_view(buffer_).substr(i), at_end, text);
      if (length == 0) break;
      i += length;
    }
    Emit(Delta::Kind::kArguments, text);
    const bool ended = i < buffer_.size() && buffer_[i] == '"';
    buffer_.erase(0, ended ? i + 1 : i);
    if (!ended) {
      if (at_end) buffer_.clear();
      return false;
    }
    state_ = State::kInputEnd;
  }
  const size_t brace = buffer_.find('}');
  if (brace == std::string::npos) {
    buffer_.clear();
    return false;
  }
  buffer_.erase(0, brace + 1);
  state_ = State::kCallEnd;
  return true;
}

// One parameter at a time.
bool OutputParser::StepParameters(bool at_end) {
  static constexpr std::string_view kBegin = "<parameter=", kEnd = "</parameter>";
  const size_t text = buffer_.find_first_not_of(kSpaces);
  if (text == std::string::npos) return false;
  const std::string_view rest = std::string_view(buffer_).substr(text);
  if (rest.starts_with(kBegin)) {
    const size_t name_end = rest.find('>');
    if (name_end == std::string_view::npos) return false;
    const size_t end = rest.find(kEnd, name_end);
    if (end == std::string_view::npos) return false;
    const std::string key(rest.substr(kBegin.size(), name_end - kBegin.size()));
    const std::string value(rest.substr(name_end + 1, end - name_end - 1));
    buffer_.erase(0, text + end + kEnd.size());
    Parameter(key, value);
    return true;
  }
  if (!at_end && (kBegin.starts_with(rest) || std::string_view(call_->end).starts_with(rest)) &&
      rest.size() < std::max(kBegin.size(), call_->end.size()) && rest != call_->end) {
    return false;
  }
  buffer_.erase(0, text);
  Emit(Delta::Kind::kArguments, "}");
  state_ = State::kCallEnd;
  return true;
}

void OutputParser::Parameter(std::string_view key, std::string_view value) {
  // A template writes each value on lines of its own.
  if (value.starts_with('\n')) value.remove_prefix(1);
  if (value.ends_with('\n')) value.remove_suffix(1);
  const json::Value* property = nullptr;
  if (const json::Value* all = plan_.parameters[call_->tool].Find("properties")) {
    property = all->Find(key);
  }
  const json::Value* type = property == nullptr ? nullptr : property->Find("type");
  bool text = type != nullptr && type->text == "string";
  if (property != nullptr && type == nullptr) {
    const json::Value* one = property->Find("const");
    const json::Value* many = property->Find("enum");
    if (many != nullptr && !many->items.empty()) one = &many->items[0];
    text = one != nullptr && one->type == json::Type::kString;
  }
  std::string out = first_parameter_ ? "" : ",";
  first_parameter_ = false;
  out += json::Quote(key) + ":";
  const Result<json::Value> parsed = text ? Error{} : json::Parse(value);
  out += parsed.ok() ? json::Dump(*parsed) : json::Quote(value);
  Emit(Delta::Kind::kArguments, out);
}

bool OutputParser::StepRaw(bool at_end) {
  const size_t end = buffer_.find(call_->end);
  if (end != std::string::npos) {
    Emit(Delta::Kind::kArguments, std::string_view(buffer_).substr(0, end));
    buffer_.erase(0, end);
    state_ = State::kCallEnd;
    return true;
  }
  const size_t held = at_end ? 0 : PartialAtEnd(buffer_, call_->end);
  Emit(Delta::Kind::kArguments, std::string_view(buffer_).substr(0, buffer_.size() - held));
  buffer_.erase(0, buffer_.size() - held);
  return false;
}

bool OutputParser::StepCallEnd(bool at_end) {
  const std::string& end = call_->end;
  if (buffer_.size() < end.size() && std::string_view(end).starts_with(buffer_) && !at_end) {
    return false;
  }
  if (buffer_.starts_with(end)) {
    buffer_.erase(0, end.size());
  } else if (at_end) {
    buffer_.clear();
  }
  EndCall();
  state_ = plan_.in_list ? State::kList : State::kAfterCall;
  return true;
}

// What stands between two calls is no content.
bool OutputParser::StepAfterCall(bool at_end) {
  size_t i = buffer_.find_first_not_of(" \n\r\t;,");
  i = std::min(i, buffer_.size());
  spaces_ += buffer_.substr(0, i);
  buffer_.erase(0, i);
  if (buffer_.empty()) {
    if (at_end) spaces_.clear();
    return false;
  }
  for (const std::string& trigger : plan_.triggers) {
    if (buffer_.starts_with(trigger)) {
      spaces_.clear();
      state_ = State::kCallStart;
      return true;
    }
    if (std::string_view(trigger).starts_with(buffer_) && !at_end) return false;
  }
  buffer_.insert(0, std::exchange(spaces_, ""));
  state_ = State::kText;
  return true;
}

void OutputParser::Emit(Delta::Kind kind, std::string_view text) {
  if (text.empty()) return;
  const int call = kind == Delta::Kind::kArguments ? calls_ - 1 : -1;
  if (!out_.empty() && out_.back().kind == kind && out_.back().call == call) {
    out_.back().text += text;
    return;
  }
  out_.push_back({kind, call, call >= 0 ? call_->tool : 0, std::string(text)});
}

}  // namespace pawl
