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

namespace pawl {
namespace {

constexpr std::string_view kReplacementBytes = "\xEF\xBF\xBD";
constexpr std::string_view kSpaces = " \n\r\t";

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

bool FitsHole(const FormatPiece& piece, char c) {
  const bool digit = c >= '0' && c <= '9';
  if (piece.kind == FormatPiece::Kind::kIndex) return digit;
  return digit || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-';
}

struct Matched {
  bool whole = false;
  size_t length = 0;
  bool more = false;  // the text ends before it is clear
};

// Whether the text begins with these pieces. Of a hole any length fits: what a model makes up is
// not checked.
Matched MatchPieces(const std::vector<FormatPiece>& pieces, std::string_view text) {
  size_t at = 0;
  for (const FormatPiece& piece : pieces) {
    const std::string_view rest = text.substr(at);
    if (piece.kind == FormatPiece::Kind::kText) {
      if (rest.starts_with(piece.text)) {
        at += piece.text.size();
        continue;
      }
      return {.more = std::string_view(piece.text).starts_with(rest)};
    }
    size_t length = 0;
    while (length < rest.size() && FitsHole(piece, rest[length])) ++length;
    if (length == rest.size()) return {.more = true};
    if (length == 0) return {};
    at += length;
  }
  return {.whole = true, .length = at};
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
  if (plan.format != nullptr && !plan.calls.empty() && !plan.direct) {
    list_opens_ = TextsOf(plan.format->list_open);
    list_closes_ = TextsOf(plan.format->list_close);
    if (!plan.format->trigger.empty()) triggers_ = {plan.format->trigger};
  }
  state_ = AfterThoughts();
  if (plan.thinking == ThinkingStart::kOpen) state_ = State::kThinking;
  if (plan.thinking == ThinkingStart::kMay && !plan.marked()) state_ = State::kStart;
}

OutputParser::State OutputParser::AfterThoughts() const {
  return plan_.direct ? State::kDirect : plan_.marked() ? State::kMessage : State::kText;
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
    if (in_call && state_ != State::kArguments) Emit(Delta::Kind::kArguments, buffer_);
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
      state_ = AfterThoughts();
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
    case State::kMessage:
      return StepMessage(at_end);
    case State::kSaid:
      return StepSaid(at_end);
    case State::kCallStart:
      return StepCallStart(at_end);
    case State::kList:
      return StepList(at_end);
    case State::kArguments:
      return StepArguments(at_end);
    case State::kInputStart:
    case State::kInput:
    case State::kInputEnd:
      return StepInput(at_end);
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
  state_ = AfterThoughts();
  return true;
}

bool OutputParser::StepThinking(bool at_end) {
  const size_t close = buffer_.find(plan_.think_close);
  if (close != std::string::npos) {
    Emit(Delta::Kind::kReasoning, std::string_view(buffer_).substr(0, close));
    buffer_.erase(0, close + plan_.think_close.size());
    state_ = plan_.free_text ? AfterThoughts() : plan_.marked() ? State::kMessage : State::kGap;
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
  for (const std::string_view trigger : triggers_) {
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

void OutputParser::Consider(std::string_view mark, State state, std::string_view close,
                            Found& found) const {
  if (mark.empty()) return;
  if (std::string_view(buffer_).starts_with(mark)) {
    if (mark.size() <= found.length) return;
    found.length = mark.size();
    found.state = state;
    found.call = nullptr;
    found.close = close;
  } else if (mark.starts_with(buffer_)) {
    found.more = true;
  }
}

void OutputParser::ConsiderCalls(Found& found) const {
  for (const CallSyntax& call : plan_.calls) {
    for (const std::vector<FormatPiece>& open : call.opens) {
      const Matched matched = MatchPieces(open, buffer_);
      found.more = found.more || matched.more;
      if (!matched.whole || matched.length <= found.length) continue;
      found.length = matched.length;
      found.call = &call;
      found.state.reset();
    }
  }
}

bool OutputParser::Take(const Found& found) {
  if (found.length == 0) return false;
  buffer_.erase(0, found.length);
  if (found.call != nullptr) {
    BeginCall(*found.call);
  } else {
    state_ = *found.state;
    said_close_ = found.close;
  }
  return true;
}

// A message begins with a mark that says what it is.
bool OutputParser::StepMessage(bool at_end) {
  if (buffer_.empty()) return false;
  const ChatFormat& format = *plan_.format;
  Found found;
  if (plan_.thinking != ThinkingStart::kOff) {
    Consider(plan_.think_open, State::kThinking, "", found);
  }
  for (const std::string_view open : TextsOf(format.answer_open)) {
    Consider(open, State::kSaid, format.answer_close, found);
  }
  Consider(format.note_open, State::kSaid, format.note_close, found);
  Consider(format.next, State::kMessage, "", found);
  Consider(format.separator, State::kMessage, "", found);
  Consider(format.tail, State::kMessage, "", found);
  for (const std::string_view open : list_opens_) Consider(open, State::kList, "", found);
  if (list_opens_.empty()) ConsiderCalls(found);
  if (found.more && !at_end) return false;
  if (Take(found)) return true;
  if (kSpaces.find(buffer_[0]) != std::string_view::npos) {
    buffer_.erase(0, 1);
    return true;
  }
  // Only without a grammar, or where a budget has cut it: it is text after all.
  said_close_ = format.answer_close;
  state_ = State::kSaid;
  return true;
}

bool OutputParser::StepSaid(bool at_end) {
  const size_t close = said_close_.empty() ? std::string::npos : buffer_.find(said_close_);
  if (close != std::string::npos) {
    Emit(Delta::Kind::kContent, std::string_view(buffer_).substr(0, close));
    buffer_.erase(0, close + said_close_.size());
    state_ = State::kMessage;
    return true;
  }
  const size_t held = at_end ? 0 : PartialAtEnd(buffer_, said_close_);
  Emit(Delta::Kind::kContent, std::string_view(buffer_).substr(0, buffer_.size() - held));
  buffer_.erase(0, buffer_.size() - held);
  return false;
}

bool OutputParser::StepCallStart(bool at_end) {
  Found found;
  for (const std::string_view open : list_opens_) Consider(open, State::kList, "", found);
  if (!in_list()) ConsiderCalls(found);
  if (found.more && !at_end) return false;
  if (Take(found)) return true;
  if (at_end) return false;
  // Only without a grammar, or where a budget has cut it: it is text after all.
  Emit(Delta::Kind::kContent, buffer_.substr(0, 1));
  buffer_.erase(0, 1);
  state_ = State::kText;
  return true;
}

bool OutputParser::StepList(bool at_end) {
  while (!buffer_.empty()) {
    Found found;
    for (const std::string_view close : list_closes_) {
      if (close.empty()) continue;
      Consider(close, State::kAfterCall, "", found);
    }
    ConsiderCalls(found);
    if (found.more && !at_end) return false;
    if (Take(found)) return true;
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
  if (plan_.direct) return;
  switch (call.body) {
    case CallSyntax::Body::kArguments:
      state_ = State::kArguments;
      arguments_ = CallArguments::Make(*plan_.format, plan_.parameters[call.tool], plan_.behind);
      break;
    case CallSyntax::Body::kInput:
      state_ = State::kInputStart;
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

bool OutputParser::StepArguments(bool at_end) {
  std::string json;
  const size_t taken = arguments_->Feed(buffer_, at_end, json);
  Emit(Delta::Kind::kArguments, json);
  buffer_.erase(0, taken);
  if (arguments_->done()) state_ = State::kCallEnd;
  return arguments_->done();
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
      const size_t length = UnescapeJson(std::string_view(buffer_).substr(i), at_end, text);
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

bool OutputParser::StepRaw(bool at_end) {
  const std::string_view close = call_->raw_close;
  const size_t end = close.empty() ? std::string::npos : buffer_.find(close);
  if (end != std::string::npos) {
    Emit(Delta::Kind::kArguments, std::string_view(buffer_).substr(0, end));
    buffer_.erase(0, end);
    state_ = State::kCallEnd;
    return true;
  }
  const size_t held = at_end ? 0 : PartialAtEnd(buffer_, close);
  Emit(Delta::Kind::kArguments, std::string_view(buffer_).substr(0, buffer_.size() - held));
  buffer_.erase(0, buffer_.size() - held);
  return false;
}

bool OutputParser::StepCallEnd(bool at_end) {
  size_t longest = 0;
  bool more = false, any = false;
  for (const std::vector<FormatPiece>& close : call_->closes) {
    const Matched matched = MatchPieces(close, buffer_);
    more = more || matched.more;
    any = any || matched.whole;
    longest = std::max(longest, matched.length);
  }
  if (more && !at_end) return false;
  buffer_.erase(0, longest);
  if (at_end && !any) buffer_.clear();
  EndCall();
  state_ = in_list() ? State::kList : plan_.marked() ? State::kMessage : State::kAfterCall;
  return true;
}

// What stands between two calls is no content.
bool OutputParser::StepAfterCall(bool at_end) {
  if (plan_.marked()) {
    state_ = State::kMessage;
    return true;
  }
  size_t i = buffer_.find_first_not_of(" \n\r\t;,");
  i = std::min(i, buffer_.size());
  spaces_ += buffer_.substr(0, i);
  buffer_.erase(0, i);
  if (buffer_.empty()) {
    if (at_end) spaces_.clear();
    return false;
  }
  for (const std::string_view trigger : triggers_) {
    if (buffer_.starts_with(trigger)) {
      spaces_.clear();
      state_ = State::kCallStart;
      return true;
    }
    if (trigger.starts_with(buffer_) && !at_end) return false;
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
