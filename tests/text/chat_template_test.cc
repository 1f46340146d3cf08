// What goldens do not show: messages, limits, marks, dates, what is refused.
#include "src/text/chat/chat_template.h"

#include <gtest/gtest.h>

#include <string>

#include "src/base/random.h"

namespace pawl {
namespace {

ChatInput InputOf(std::string_view messages) {
  ChatInput input;
  const Result<json::Value> value = json::Parse(messages);
  EXPECT_TRUE(value.ok());
  if (value.ok()) input.messages = *value;
  input.special_tokens = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
  return input;
}

Result<MarkedText> Render(std::string_view source, const ChatInput& input,
                          const ChatLimits& limits = {}) {
  const Result<ChatTemplate> chat = ChatTemplate::Parse(source);
  if (!chat.ok()) return chat.error();
  return chat->Render(input, limits);
}

std::string ErrorOf(std::string_view source, std::string_view messages = "[]") {
  const Result<MarkedText> text = Render(source, InputOf(messages));
  return text.ok() ? "rendered: " + text->bytes() : text.error().ToString();
}

// The text with its data in angle brackets.
std::string Marked(const MarkedText& text) {
  std::string out;
  size_t done = 0;
  for (const TextRange& range : text.data()) {
    out += text.bytes().substr(done, range.begin - done) + "<" +
           text.bytes().substr(range.begin, range.end - range.begin) + ">";
    done = range.end;
  }
  return out + text.bytes().substr(done);
}

std::string Marked(std::string_view source, std::string_view messages) {
  const Result<MarkedText> text = Render(source, InputOf(messages));
  return text.ok() ? Marked(*text) : text.error().ToString();
}

// Each interface joins them before a template sees them.
TEST(ChatTemplateTest, TextPartsBecomeOneText) {
  const auto joined = [](const char* messages) -> std::string {
    ChatInput input = *ChatInputFromJson(*json::Parse(messages));
    const Status status = JoinTextParts(input);
    return status.ok() ? input.messages.items[0].Find("content")->text : status.error().ToString();
  };
  EXPECT_EQ(joined(R"([{"role":"user","content":[{"type":"text","text":"a"},"b"]}])"), "ab");
  EXPECT_EQ(joined(R"([{"role":"user","content":"c"}])"), "c");
  EXPECT_EQ(joined(R"([{"role":"user","content":[{"type":"document"}]}])"),
            "#/messages/0/content/0: is a part of type \"document\"; a conversation may have text "
            "alone");
  EXPECT_EQ(joined(R"([{"role":"user","content":[{"type":"text","text":1}]}])"),
            "#/messages/0/content/0/text: must be a string");
}

TEST(ChatTemplate, MessagesNameThePlaceAndWhatWasExpected) {
  EXPECT_EQ(ErrorOf("{{ 1 + }}"), "1:8: expected a value, found '}}'");
  EXPECT_EQ(ErrorOf("a\n {% if x %}"), "2:5: 'if' is not closed; expected {% endif %}");
  EXPECT_EQ(ErrorOf("{% include 'x' %}"),
            "1:4: there is no tag \"include\"; expected if, elif, else, for, break, continue, set, "
            "macro, call, raw, generation or the end of one");
  EXPECT_EQ(ErrorOf("{% if 1 %}{% endfor %}"), "1:14: 'endfor' does not fit; expected 'endif'");
  EXPECT_EQ(ErrorOf("é{{ x.y }}"), "1:7: cannot take \"y\" of \"x\", which is undefined");
  EXPECT_EQ(
      ErrorOf("{{ 'a' + 1 }}"),
      "1:8: cannot apply '+' to a string and an integer; expected two numbers, two strings or "
      "two lists ('~' joins anything)");
  EXPECT_EQ(ErrorOf("{{ raise_exception('no system role') }}"),
            "1:19: the template refuses: no system role");
  EXPECT_EQ(ErrorOf("{{ [1 }}"), "1:7: found '}'; expected ']'");
  EXPECT_EQ(ErrorOf("{{ [1, }}").substr(0, 4), "1:8:");
  EXPECT_NE(ErrorOf("{{ 1|nothing }}").find("1:6: there is no filter \"nothing\"; there are abs"),
            std::string::npos);
  EXPECT_EQ(ErrorOf("{{ strftime_now('%Y') }}"),
            "1:16: strftime_now: the template asks for the time, and none is given");
  EXPECT_EQ(ErrorOf("{{ [].append(1) }}"),
            "1:7: a template cannot change a list: append(); '+' makes a new one");
}

TEST(ChatTemplate, InputIsCheckedWithItsPlace) {
  EXPECT_EQ(ErrorOf("", "{}"), "#/messages: must be a list of messages, not object");
  EXPECT_EQ(ErrorOf("", "[{\"role\": \"user\"}, 7]"),
            "#/messages/1: must be an object with a role, not number");
  EXPECT_EQ(ErrorOf("", "[{\"content\": \"x\"}]"),
            "#/messages/0/role: must be a string, such as \"user\"");
  const auto input = [](std::string_view text) { return ChatInputFromJson(*json::Parse(text)); };
  EXPECT_EQ(input("{\"tools\": []}").error().ToString(),
            "#/messages: is missing, must be a list of messages");
  EXPECT_EQ(input("{\"messages\": [], \"tool\": []}").error().place, "#/tool");
  EXPECT_EQ(input("[]").error().ToString(),
            "#: an empty conversation; expected at least one message");
  EXPECT_EQ(input("{\"messages\": []}").error().place, "#/messages");
}

// Whatever the template would write for them. A part may say "image": null.
TEST(ChatTemplate, PartsThatAreNoTextAreErrors) {
  const std::string source = "{% for m in messages %}{{ m.content[0].text }}{% endfor %}";
  const std::pair<const char*, const char*> kCases[] = {
      {R"([{"role":"user","content":[{"type":"text","text":"a"},{"type":"image"}]}])",
       "#/messages/0/content/1: is of type \"image\"; a conversation may have text alone"},
      {R"([{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}])",
       "#/messages/0/content/0: is of type \"image_url\"; a conversation may have text alone"},
      {R"([{"role":"user","content":"a"},{"role":"user","content":[{"text":"a","audio":"x"}]}])",
       "#/messages/1/content/0: is of type \"audio\"; a conversation may have text alone"},
      {R"([{"role":"user","content":"a","images":["aGk="]}])",
       "#/messages/0: is of type \"images\"; a conversation may have text alone"},
  };
  for (const auto& [messages, error] : kCases) EXPECT_EQ(ErrorOf(source, messages), error);
  EXPECT_EQ(Marked(source, R"([{"role":"user","images":[],"content":[{"type":"text","text":"a",
                               "image":null}]}])"),
            "<a>");
}

TEST(ChatTemplate, MarksFollowDataThroughWhatATemplateDoes) {
  const char* messages = R"([{"role": "user", "content": " a|b "}])";
  EXPECT_EQ(Marked("{{ bos_token }}[{{ messages[0].role }}]{{ messages[0].content }}x", messages),
            "<s>[user]< a|b >x");
  const char* say = "{% set c = messages[0].content %}{{ ";
  const auto marked = [&](const std::string& expression) {
    return Marked(say + expression + " }}", messages);
  };
  EXPECT_EQ(marked("'x' + c | trim + 'y'"), "x<a|b>y");
  EXPECT_EQ(marked("c.split('|') | join('-')"), "< a>-<b >");
  EXPECT_EQ(marked("c.replace('|', '<>')"), "< a><><b >");
  EXPECT_EQ(marked("('x' ~ c ~ 'y')[1:-2] | upper"), "< A|B>");
  EXPECT_EQ(marked("c | tojson"), "\"< a|b >\"");
  EXPECT_EQ(marked("'[{}]{:*>7}'.format(c, c)"), "[< a|b >]**< a|b >");
  EXPECT_EQ(marked("'<' | safe + c.replace('|', '&')"), "<< a>&amp;<b >");
  EXPECT_EQ(marked("[c, 'd']"), "['< a|b >', 'd']");
  EXPECT_EQ(marked("('d' ~ c) | reverse"), "< b|a >d");
  EXPECT_EQ(marked("c | list | first ~ 'x'"), "< >x");
  EXPECT_EQ(marked("{'k': c} | tojson(indent=1)"), "{\n \"k\": \"< a|b >\"\n}");
  EXPECT_EQ(Marked("{% set x %}t{{ messages[0].content }}{% endset %}{{ x }}", messages),
            "t< a|b >");
  EXPECT_EQ(
      Marked("{% macro m(t) %}<{{ t }}>{% endmacro %}{{ m(messages[0].content) | trim('<>') }}",
             messages),
      "< a|b >");
  // Keys are data, and roles that are not known are, too.
  EXPECT_EQ(Marked("{{ messages[0] | list | join(' ') }}", messages), "<role> <content>");
  EXPECT_EQ(Marked("{{ messages[0].role }}", R"([{"role": "</s>"}])"), "<</s>>");
}

TEST(ChatTemplate, MarkedTextKeepsMarksLikeAByteByByteTwin) {
  struct Twin {
    std::string bytes;
    std::string marks;
  };
  uint64_t count = 0;
  const auto draw = [&](size_t n) { return Philox4x32(5, 0, count++).word[0] % n; };
  for (int round = 0; round < 300; ++round) {
    MarkedText text;
    Twin twin;
    for (int step = 0; step < 12; ++step) {
      const std::string piece(draw(4), static_cast<char>('a' + draw(26)));
      switch (draw(4)) {
        case 0:
          text.Append(piece);
          twin.bytes += piece;
          twin.marks += std::string(piece.size(), '0');
          break;
        case 1:
          text.AppendData(piece);
          twin.bytes += piece;
          twin.marks += std::string(piece.size(), '1');
          break;
        case 2: {
          const size_t begin = draw(twin.bytes.size() + 1);
          const size_t end = begin + draw(twin.bytes.size() - begin + 1);
          text = text.Slice(begin, end);
          twin = {twin.bytes.substr(begin, end - begin), twin.marks.substr(begin, end - begin)};
          break;
        }
        default: {
          const MarkedText copy = text;
          text.Append(copy);
          twin = {twin.bytes + twin.bytes, twin.marks + twin.marks};
        }
      }
      if (twin.bytes.size() > 500) break;
    }
    std::string marks(text.size(), '0');
    size_t last = 0;
    for (const TextRange& range : text.data()) {
      ASSERT_LT(range.begin, range.end);
      ASSERT_TRUE(last == 0 || range.begin > last) << "neither empty nor adjacent";
      last = range.end;
      for (size_t i = range.begin; i < range.end; ++i) marks[i] = '1';
    }
    ASSERT_EQ(text.bytes(), twin.bytes);
    ASSERT_EQ(marks, twin.marks);
  }
}

TEST(ChatTemplate, LimitsAreErrorsAndDeterministic) {
  const auto code = [](std::string_view source, const ChatLimits& limits = {.fuel = 500000}) {
    const Result<MarkedText> text = Render(source, InputOf("[]"), limits);
    return text.ok() ? ErrorCode::kInternal : text.error().code;
  };
  const ErrorCode limit = ErrorCode::kLimit;
  EXPECT_EQ(code("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"),
            limit);
  EXPECT_EQ(code("{% set ns = namespace(s='ab') %}{% for i in range(99) %}{% set ns.s = ns.s ~ "
                 "ns.s %}{% endfor %}"),
            limit);
  EXPECT_EQ(code("{% set ns = namespace(l=[1]) %}{% for i in range(99) %}{% set ns.l = [ns.l, "
                 "ns.l] %}{% endfor %}{{ ns.l }}"),
            limit);
  EXPECT_EQ(code("{% set ns = namespace(l=[1]) %}{% for i in range(99) %}{% set ns.l = ns.l + ns.l "
                 "%}{% endfor %}"),
            limit);
  EXPECT_EQ(code("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"), limit);
  EXPECT_EQ(code("{{ 'a' * 99999999999 }}"), limit);
  EXPECT_EQ(code("{{ '{:>9999999999}'.format(1) }}"), limit);
  EXPECT_EQ(code("{% for i in range(9999) %}{{ '{:>1000000}'.format(1) }}{% endfor %}"), limit);
  EXPECT_EQ(code("{{ range(999999) }}"), limit);
  EXPECT_EQ(code("{{ 9223372036854775807 + 1 }}"), limit);
  EXPECT_EQ(code("{{ 2 ** 64 }}"), limit);
  EXPECT_EQ(code("{{ 'abc' }}", {.max_output = 2}), limit);
  EXPECT_EQ(code("{{ 'abc' }}", {.fuel = 4}), limit);
  EXPECT_TRUE(Render("{{ 'abc' }}", InputOf("[]"), {.fuel = 60}).ok());
  EXPECT_EQ(ChatTemplate::Parse(std::string(ChatTemplate::kMaxBytes + 1, 'x')).error().code, limit);
}

// Neither the parser nor the interpreter calls itself, so this takes no stack.
TEST(ChatTemplate, NestingCostsNoStack) {
  constexpr int kDeep = 40000;
  const auto times = [](const std::string& text) {
    std::string out;
    for (int i = 0; i < kDeep; ++i) out += text;
    return out;
  };
  const auto rendered = [](const std::string& source) {
    const Result<MarkedText> text = Render(source, InputOf("[]"));
    return text.ok() ? text->bytes() : text.error().ToString();
  };
  EXPECT_EQ(rendered("{{ " + times("(") + "1" + times(")") + " }}"), "1");
  EXPECT_EQ(rendered("{{ " + times("- ") + "1 }}"), "1");
  EXPECT_EQ(rendered("{{ " + times("not ") + "1 }}"), "True");
  EXPECT_EQ(rendered("{{ (" + times("[") + times("]") + ") | length }}"), "1");
  EXPECT_EQ(rendered("{{ " + times("0 or ") + "7 }}"), "7");
  EXPECT_EQ(rendered("{{ " + times("1 if 0 else ") + "7 }}"), "7");
  EXPECT_EQ(rendered(times("{% if 1 %}") + "x" + times("{% endif %}")), "x");
  const std::string deep =
      "{% set ns = namespace(l=[]) %}{% for i in range(90000) %}{% set ns.l = [ns.l] %}{% endfor "
      "%}";
  EXPECT_EQ(rendered(deep + "{{ ns.l | tojson | length }}"), "180002");
  EXPECT_EQ(rendered(deep + "{{ ns.l == [ns.l] }}"), "False");
}

TEST(ChatTemplate, Dates) {
  ChatInput input = InputOf("[]");
  const char* source = "{{ strftime_now('%A %-d %B %Y %j %H:%M:%S %y %p %I %e') }}";
  const auto at = [&](std::string_view time) {
    const Result<std::tm> parsed = ParseTime(time);
    if (!parsed.ok()) return parsed.error().ToString();
    input.now = *parsed;
    const Result<MarkedText> text = Render(source, input);
    return text.ok() ? text->bytes() : text.error().ToString();
  };
  EXPECT_EQ(at("2024-02-29"), "Thursday 29 February 2024 060 00:00:00 24 AM 12 29");
  EXPECT_EQ(at("1999-12-31T23:59:58"), "Friday 31 December 1999 365 23:59:58 99 PM 11 31");
  EXPECT_EQ(at("2000-03-01T12:05:00"), "Wednesday 1 March 2000 061 12:05:00 00 PM 12  1");
  for (const char* bad :
       {"2023-02-29", "2023-13-01", "2023-1-1", "", "2023-01-01T25:00:00", "2023-01-01 10:00:00"}) {
    EXPECT_FALSE(ParseTime(bad).ok()) << bad;
  }
}

TEST(ChatTemplate, ArgumentsComeLastAndCaseIsNeverGuessed) {
  ChatInput input = InputOf("[]");
  input.arguments = {{"tools", *json::Parse("[1]")}, {"x", *json::Parse("\"ﬁ\"")}};
  EXPECT_EQ(Render("{{ tools }}", input)->bytes(), "[1]");
  const Result<MarkedText> upper = Render("{{ x | upper }}", input);
  ASSERT_FALSE(upper.ok());
  EXPECT_EQ(upper.error().code, ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace pawl
