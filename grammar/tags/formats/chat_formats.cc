// A template is recognised by texts that only its family writes. The formats are tried in order, so
// that one whose marks are part of another's (Hermes, of which GLM and Qwen 3 Coder have
// <tool_call>) comes behind it. What no format fits is nullptr: a foreign form of calls is never
// asked for silently.
#include "grammar/tags/formats/chat_formats.h"

#include <algorithm>

#include "src/base/json.h"

namespace pawl {
namespace {

bool HasText(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool Recognises(const ChatFormat& format, std::string_view chat) {
  const std::vector<std::string_view> marks = TextsOf(format.marks);
  const std::vector<std::string_view> without = TextsOf(format.without);
  return !marks.empty() && std::ranges::all_of(marks, [&](auto m) { return HasText(chat, m); }) &&
         std::ranges::none_of(without, [&](auto m) { return HasText(chat, m); });
}

}  // namespace

std::span<const ChatFormat* const> ChatFormats() {
#define PAWL_POINTER(format) &format,
  static constexpr const ChatFormat* kFormats[] = {PAWL_CHAT_FORMATS(PAWL_POINTER)};
#undef PAWL_POINTER
  return kFormats;
}

const ChatFormat* ChatFormatNamed(std::string_view name) {
  for (const ChatFormat* format : ChatFormats()) {
    if (format->name == name) return format;
    for (const std::string_view alias : TextsOf(format->aliases)) {
      if (alias == name) return format;
    }
  }
  return nullptr;
}

const ChatFormat* FormatOf(std::string_view chat_template) {
  for (const ChatFormat* format : ChatFormats()) {
    if (Recognises(*format, chat_template)) return format;
  }
  return nullptr;
}

ThinkMarks ThinkMarksOf(std::string_view chat_template, const ChatFormat* format) {
  if (format != nullptr && format->marked() && !format->think_close.empty()) {
    return {format->think_open, format->think_close};
  }
  if (format != nullptr && !format->think_close.empty()) {
    // The marks may be put together out of parts there.
    const std::string_view close = format->think_close;
    if (HasText(chat_template, close) ||
        HasText(chat_template, close.substr(0, close.find(':', 3)))) {
      return {format->think_open, close};
    }
  }
  static constexpr ThinkMarks kCommon[] = {{"<think>", "</think>"}, {"[THINK]", "[/THINK]"}};
  for (const ThinkMarks& marks : kCommon) {
    if (HasText(chat_template, marks.close)) return marks;
  }
  return {};
}

std::vector<FormatPiece> PiecesOf(std::string_view text, std::string_view tool_name) {
  using Kind = FormatPiece::Kind;
  std::vector<FormatPiece> pieces;
  const auto literal = [&](std::string_view part) {
    if (part.empty()) return;
    if (pieces.empty() || pieces.back().kind != Kind::kText) pieces.emplace_back();
    pieces.back().text += part;
  };
  while (!text.empty()) {
    const size_t at = std::min(text.find('$'), text.size());
    literal(text.substr(0, at));
    text.remove_prefix(at);
    if (text.starts_with("$NAME")) {
      literal(tool_name);
      text.remove_prefix(5);
    } else if (text.starts_with("$QUOTED")) {
      literal(json::Quote(tool_name));
      text.remove_prefix(7);
    } else if (text.starts_with("$INDEX")) {
      pieces.push_back({Kind::kIndex, "", 0});
      text.remove_prefix(6);
    } else if (text.starts_with("$ID9")) {
      pieces.push_back({Kind::kId, "", 9});
      text.remove_prefix(4);
    } else if (text.starts_with("$ID10")) {
      pieces.push_back({Kind::kId, "", 10});
      text.remove_prefix(5);
    } else if (!text.empty()) {
      text.remove_prefix(1);  // kNoText
    }
  }
  return pieces;
}

std::vector<std::string_view> TextsOf(const FormatTexts& texts) {
  std::vector<std::string_view> given;
  for (const std::string_view text : texts) {
    if (text.empty()) break;
    given.push_back(text == kNoText ? std::string_view() : text);
  }
  return given;
}

}  // namespace pawl
