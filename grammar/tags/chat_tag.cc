// What a template renders of a call is what the model was trained to write, so that is what is
// asked for, with the white space there. A hole in the text of a call (an id, a number) is a
// regular expression between two constants.
#include "grammar/tags/chat_tag.h"

#include <algorithm>
#include <utility>

#include "src/base/json.h"

namespace pawl::tag {
namespace {

std::string Hole(const FormatPiece& piece) {
  const std::string pattern = piece.kind == FormatPiece::Kind::kIndex
                                  ? std::string("(?:0|[1-9][0-9]{0,3})")
                                  : "[A-Za-z0-9]{" + std::to_string(piece.length) + "}";
  return R"({"type":"regex","pattern":)" + json::Quote(pattern) + "}";
}

bool HasHoles(const std::vector<FormatPiece>& pieces) {
  for (const FormatPiece& piece : pieces) {
    if (piece.kind != FormatPiece::Kind::kText) return true;
  }
  return false;
}

// The pieces from `first` on, as formats.
std::vector<std::string> FormatsOf(const std::vector<FormatPiece>& pieces, size_t first) {
  std::vector<std::string> parts;
  for (size_t i = first; i < pieces.size(); ++i) {
    const bool text = pieces[i].kind == FormatPiece::Kind::kText;
    parts.push_back(text ? Const(pieces[i].text) : Hole(pieces[i]));
  }
  return parts;
}

std::string TagTo(std::string_view begin, const std::string& content, const std::string& ends) {
  return Concat({R"({"type":"tag","begin":)", json::Quote(begin), R"(,"content":)", content,
                 R"(,"end":)", ends, "}"});
}

// The texts that may close a call, as the "end" of a tag; where they have holes, behind the content
// instead.
std::string ClosedBy(std::string_view begin, std::string content,
                     const std::vector<std::vector<FormatPiece>>& closes) {
  std::vector<std::string> plain, all;
  bool holes = false;
  for (const std::vector<FormatPiece>& close : closes) {
    holes = holes || HasHoles(close);
    plain.push_back(json::Quote(close.empty() ? std::string() : close[0].text));
    all.push_back(close.empty() ? Const("") : Elements("sequence", FormatsOf(close, 0)));
  }
  if (!holes) return TagTo(begin, content, plain.size() == 1 ? plain[0] : List(plain));
  return TagTo(begin, Elements("sequence", {std::move(content), Elements("or", all)}), "\"\"");
}

// The texts of a call from `opens` on: one tag for each spelling of the beginning.
void AddCall(const ChatFormat& format, const TaggedCall& call,
             const std::vector<std::string_view>& opens, std::vector<std::string>& tags) {
  std::vector<std::vector<FormatPiece>> closes;
  if (call.raw && !format.raw_close.empty()) {
    closes.push_back(PiecesOf(format.raw_close, call.name));
  } else {
    for (const std::string_view close : TextsOf(format.call_close)) {
      closes.push_back(PiecesOf(close, call.name));
    }
  }
  for (const std::string_view open : opens) {
    const std::vector<FormatPiece> pieces = PiecesOf(open, call.name);
    if (!HasHoles(pieces)) {
      tags.push_back(ClosedBy(pieces[0].text, call.content, closes));
      continue;
    }
    std::vector<std::string> inner = FormatsOf(pieces, 1);
    std::string behind;
    if (pieces.back().kind == FormatPiece::Kind::kText) {
      inner.pop_back();
      behind = pieces.back().text;
    }
    inner.push_back(ClosedBy(behind, call.content, closes));
    tags.push_back(Tag(pieces[0].text, Elements("sequence", inner), ""));
  }
}

std::string Separated(const std::vector<std::string>& tags, std::string_view separator, bool many) {
  return Concat({R"({"type":"tags_with_separator","separator":)", json::Quote(separator),
                 R"(,"at_least_one":true,"stop_after_first":)", many ? "false" : "true",
                 R"(,"tags":)", List(tags), "}"});
}

// What stands before the name, where it has holes; such a text is read once for all tools.
std::string_view SharedOpen(const ChatFormat& format) {
  const std::string_view open = format.call_open[0];
  const std::string_view before =
      open.substr(0, std::min(open.find("$NAME"), open.find("$QUOTED")));
  return before.find('$') == std::string_view::npos ? std::string_view() : before;
}

std::vector<std::string> TagsOf(const ChatFormat& format, const std::vector<TaggedCall>& calls) {
  std::vector<std::string> tags, behind_shared;
  const std::string_view shared = SharedOpen(format);
  for (const TaggedCall& call : calls) {
    if (call.raw && !format.raw_open.empty()) {
      AddCall(format, call, {format.raw_open}, tags);
    } else if (!shared.empty()) {
      AddCall(format, call, {format.call_open[0].substr(shared.size())}, behind_shared);
    } else {
      AddCall(format, call, TextsOf(format.call_open), tags);
    }
  }
  if (!behind_shared.empty()) {
    const std::vector<FormatPiece> pieces = PiecesOf(shared, "");
    std::vector<std::string> inner = FormatsOf(pieces, 1);
    inner.push_back(Separated(behind_shared, "", false));
    tags.push_back(Tag(pieces[0].text, Elements("sequence", inner), ""));
  }
  return tags;
}

std::string Triggered(std::string_view trigger, const std::vector<std::string>& tags, bool many) {
  return Concat({R"({"type":"triggered_tags","triggers":[)", json::Quote(trigger), R"(],"tags":)",
                 List(tags), R"(,"stop_after_first":)", many ? "false" : "true", "}"});
}

// The list around calls, once for each spelling of its beginning.
std::vector<std::string> ListTags(const ChatFormat& format, const std::string& calls) {
  std::vector<std::string> ends, tags;
  for (const std::string_view close : TextsOf(format.list_close)) {
    ends.push_back(json::Quote(close));
  }
  for (const std::string_view open : TextsOf(format.list_open)) {
    tags.push_back(TagTo(open, calls, ends.size() == 1 ? ends[0] : List(ends)));
  }
  return tags;
}

std::string Tail(const ChatFormat& format, std::string content) {
  if (format.tail.empty()) return content;
  return Elements("sequence", {std::move(content), Optional(Const(format.tail))});
}

std::string CallsWithoutTail(const ChatFormat& format, const std::vector<TaggedCall>& calls,
                             bool many) {
  std::string list = Separated(TagsOf(format, calls), format.separator, many);
  if (!format.in_list()) return list;
  return Elements("or", ListTags(format, list));
}

std::string AnswerWithoutTail(const ChatFormat& format, const std::string& content) {
  if (!format.marked()) return content;
  std::vector<std::string> spelled;
  for (const std::string_view open : TextsOf(format.answer_open)) {
    spelled.push_back(TagTo(open, content, List({json::Quote(format.answer_close), "\"\""})));
  }
  return Elements("or", spelled);
}

}  // namespace

std::string Concat(std::initializer_list<std::string_view> parts) {
  size_t size = 0;
  for (const std::string_view part : parts) size += part.size();
  std::string out;
  out.reserve(size);
  for (const std::string_view part : parts) out += part;
  return out;
}

std::string Const(std::string_view text) {
  return R"({"type":"const_string","value":)" + json::Quote(text) + "}";
}

std::string List(const std::vector<std::string>& parts) {
  size_t size = 2;
  for (const std::string& part : parts) size += part.size() + 1;
  std::string out = "[";
  out.reserve(size);
  for (const std::string& part : parts) {
    if (out.size() > 1) out += ',';
    out += part;
  }
  return out += ']';
}

std::string Elements(const char* type, const std::vector<std::string>& parts) {
  if (parts.size() == 1) return parts[0];
  return std::string(R"({"type":")") + type + R"(","elements":)" + List(parts) + "}";
}

std::string Optional(const std::string& content) {
  return R"({"type":"optional","content":)" + content + "}";
}

std::string Tag(std::string_view begin, const std::string& content, std::string_view end) {
  return TagTo(begin, content, json::Quote(end));
}

std::string Schema(std::string_view schema, std::string_view style) {
  if (style.empty()) return Concat({R"({"type":"json_schema","json_schema":)", schema, "}"});
  return Concat(
      {R"({"type":"json_schema","style":)", json::Quote(style), R"(,"json_schema":)", schema, "}"});
}

std::string AnyText(int max_tokens) {
  std::string text = R"({"type":"any_text")";
  if (max_tokens >= 0) text += R"(,"max_tokens":)" + std::to_string(max_tokens);
  return text += "}";
}

std::string CallsAlone(const ChatFormat& format, const std::vector<TaggedCall>& calls, bool many) {
  return Tail(format, CallsWithoutTail(format, calls, many));
}

std::string TextWithCalls(const ChatFormat& format, const std::vector<TaggedCall>& calls,
                          bool many) {
  if (!format.marked()) {
    if (calls.empty()) return AnyText();
    if (!format.in_list()) return Triggered(format.trigger, TagsOf(format, calls), many);
    const std::string list = Separated(TagsOf(format, calls), format.separator, many);
    return Triggered(format.trigger, ListTags(format, list), many && format.text_behind);
  }
  const std::string answer = AnswerWithoutTail(format, AnyText());
  // What is said before a call.
  const bool own = !format.note_open.empty();
  std::vector<std::string> note = {Tag(own ? format.note_open : format.answer_open[0], AnyText(),
                                       own ? format.note_close : format.answer_close)};
  if (!format.next.empty()) note.push_back(Const(format.next));
  const std::string notes = Elements("sequence", note);
  if (calls.empty()) {
    if (!own) return Tail(format, answer);
    return Elements("sequence", {Optional(notes), answer});
  }
  const std::string with = CallsWithoutTail(format, calls, many);
  const std::string before =
      format.thinks_often ? R"({"type":"star","content":)" + notes + "}" : Optional(notes);
  return Tail(format, Elements("sequence", {before, Elements("or", {with, answer})}));
}

std::string Answer(const ChatFormat& format, const std::string& content) {
  return Tail(format, AnswerWithoutTail(format, content));
}

std::string Thoughts(const ChatFormat* format, const ThoughtFormat& thoughts) {
  const bool marked = format != nullptr && format->marked();
  const std::string block = Tag("", AnyText(thoughts.max_tokens), thoughts.close);
  std::vector<std::string> parts = {block};
  if (!marked) {
    parts.push_back(Optional(Const("\n\n")));
  } else if (!format->next.empty()) {
    parts.push_back(Const(format->next));
  }
  const bool often = format != nullptr && format->thinks_often && thoughts.max_tokens < 0;
  std::vector<std::string> opened = parts;
  opened.insert(opened.begin(), Const(thoughts.open));
  const std::string more = Elements("sequence", opened);
  if (often && !thoughts.opened) return R"({"type":"star","content":)" + more + "}";
  if (!thoughts.opened) return Optional(more);
  if (often) parts.push_back(R"({"type":"star","content":)" + more + "}");
  return Elements("sequence", parts);
}

}  // namespace pawl::tag
