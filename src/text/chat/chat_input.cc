// Only the shape is looked at here; what messages hold is for the template to say.
#include "src/text/chat/chat_input.h"

#include <string>
#include <vector>

namespace pawl {
namespace {

// Takes the members that are null from the messages: many templates would write them out as "None".
// The reference implementation passes them on like this. `place`: of the list.
Status SettleMessages(json::Value& messages, const std::string& place) {
  if (messages.type != json::Type::kArray) return {};  // refused when it is rendered
  if (messages.items.empty()) {
    return Error{ErrorCode::kInvalid, "an empty conversation; expected at least one message",
                 place};
  }
  for (json::Value& message : messages.items) {
    std::erase_if(message.members,
                  [](const auto& member) { return member.second.type == json::Type::kNull; });
  }
  return {};
}

}  // namespace

Result<ChatInput> ChatInputFromJson(const json::Value& value) {
  ChatInput input;
  if (value.type == json::Type::kArray) {
    input.messages = value;
    if (Status status = SettleMessages(input.messages, "#"); !status.ok()) return status.error();
    return input;
  }
  if (value.type != json::Type::kObject) {
    return Error{ErrorCode::kInvalid,
                 std::string("must be a list of messages or an object with \"messages\", not ") +
                     json::TypeName(value.type),
                 "#"};
  }
  for (const auto& [key, member] : value.members) {
    const std::string place = json::PointerJoin("#", key);
    if (key == "messages") {
      input.messages = member;
    } else if (key == "tools") {
      input.tools = member;
    } else if (key == "documents") {
      input.documents = member;
    } else if (key == "add_generation_prompt") {
      if (!member.is_bool()) return Error{ErrorCode::kInvalid, "must be true or false", place};
      input.add_generation_prompt = member.type == json::Type::kTrue;
    } else if (key == "chat_template_kwargs") {
      if (member.type != json::Type::kObject) {
        return Error{ErrorCode::kInvalid, "must be an object", place};
      }
      for (const auto& [name, argument] : member.members) {
        input.arguments.emplace_back(name, argument);
      }
    } else {
      return Error{ErrorCode::kInvalid,
                   "is not known; expected messages, tools, documents, add_generation_prompt or "
                   "chat_template_kwargs",
                   place};
    }
  }
  if (value.Find("messages") == nullptr) {
    return Error{ErrorCode::kInvalid, "is missing, must be a list of messages", "#/messages"};
  }
  if (Status status = SettleMessages(input.messages, "#/messages"); !status.ok()) {
    return status.error();
  }
  return input;
}

Result<std::tm> ParseTime(std::string_view text) {
  const Error bad{ErrorCode::kInvalid,
                  "must be a time such as 2025-03-14 or 2025-03-14T09:26:53, not " +
                      json::Quote(text.substr(0, 40)),
                  ""};
  std::string_view form = "dddd-dd-ddTdd:dd:dd";
  if (text.size() == 10) form = form.substr(0, 10);
  if (text.size() != form.size()) return bad;
  for (size_t i = 0; i < form.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (form[i] == 'd' ? !digit : text[i] != form[i]) return bad;
  }
  const auto number = [&](size_t at, size_t digits) {
    int value = 0;
    for (size_t i = at; i < at + digits && i < text.size(); ++i)
      value = value * 10 + (text[i] - '0');
    return value;
  };
  const int year = number(0, 4), month = number(5, 2), day = number(8, 2);
  const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  static constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  if (year < 1 || month < 1 || month > 12 || day < 1) return bad;
  if (day > kDays[month - 1] + (leap && month == 2 ? 1 : 0)) return bad;
  std::tm time{};
  time.tm_year = year - 1900;
  time.tm_mon = month - 1;
  time.tm_mday = day;
  time.tm_hour = number(11, 2);
  time.tm_min = number(14, 2);
  time.tm_sec = number(17, 2);
  if (time.tm_hour > 23 || time.tm_min > 59 || time.tm_sec > 59) return bad;
  for (int m = 0; m < month - 1; ++m) time.tm_yday += kDays[m] + (leap && m == 1 ? 1 : 0);
  time.tm_yday += day - 1;
  // Days since Monday, 1 January of the year 1.
  const int before = year - 1;
  const int days = before * 365 + before / 4 - before / 100 + before / 400 + time.tm_yday;
  time.tm_wday = (days + 1) % 7;
  return time;
}

}  // namespace pawl
