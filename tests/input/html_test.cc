// Texts of HTML documents: random ones whose text and places are known from how they are made, and
// the corners of the standard.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "src/input/html_tokens.h"
#include "src/input/input_format.h"
#include "src/input/input_text.h"

namespace pawl {
namespace {

std::string TextOf(std::string_view html) {
  const Result<InputText> read = ReadHtml(html);
  return read.ok() ? read->text : "error: " + read.error().ToString();
}

// Words and what stands between them, in HTML and in text.
TEST(HtmlTest, RandomDocumentsHaveTheirTextAndPlaces) {
  const std::vector<std::pair<std::string, std::string>> words = {
      {"word", "word"},   {"caf&eacute;", "café"},   {"&lt;b&gt;", "<b>"},   {"a&b", "a&b"},
      {"x&amp;y", "x&y"}, {"&#65;&#x42;", "AB"},     {"&copy2024", "©2024"}, {"漢字", "漢字"},
      {"3<4", "3<4"},     {"no<b></b>tag", "notag"}, {"a<!-- x -->b", "ab"}, {"&notit;", "¬it;"}};
  const std::vector<std::pair<std::string, std::string>> gaps = {
      {" ", " "},
      {"\n \t", " "},
      {"<br>", "\n"},
      {"</p>\n<p class='a b' title=\"x > y\">", "\n\n"},
      {"<td>", "\t"},
      {" <tr><td> ", "\n"},
      {"<script>if (a < b) \"</p>\" </script> ", " "},
      {" <style>p { }</style>", " "},
      {" <!doctype x><?php a ?>", " "},
      {"<li>", "\n"},
      {"&#32;&#10;", " "},
      {"<h1 a=b/ c>", "\n\n"},
      {" <a href=/x?a&b=1> ", " "},
      {" <template><p>no</p></template> ", " "}};
  std::mt19937 random(3);
  for (int round = 0; round < 2000; ++round) {
    std::string html = round % 3 == 0 ? "\xEF\xBB\xBF<html><body>\n" : "<p>", text;
    std::vector<std::pair<size_t, size_t>> in_text, in_file;
    for (size_t i = random() % 12; i > 0; --i) {
      const auto& [written, shown] = words[random() % words.size()];
      in_text.emplace_back(text.size(), text.size() + shown.size());
      in_file.emplace_back(html.size(), html.size() + written.size());
      html += written;
      text += shown;
      if (i == 1) break;
      const auto& [between, gap] = gaps[random() % gaps.size()];
      html += between;
      text += gap;
    }
    html += round % 2 == 0 ? "</p>\n" : "<br> ";
    const Result<InputText> read = ReadHtml(html);
    ASSERT_TRUE(read.ok()) << html;
    ASSERT_EQ(read->text, text) << html;
    for (size_t i = 0; i < in_text.size(); ++i) {
      const auto place = read->InFile(in_text[i].first, in_text[i].second);
      ASSERT_EQ(place, in_file[i]) << text << "\n" << html;
    }
  }
}

TEST(HtmlTest, Corners) {
  EXPECT_EQ(TextOf(""), "");
  EXPECT_EQ(TextOf(" <p> \n"), "");
  EXPECT_EQ(TextOf("<title>A &amp; <b>B</title>C"), "A & <b>B\n\nC");
  EXPECT_EQ(TextOf("<pre>\n  a\n   b</pre>c"), "  a\n   b\n\nc");
  EXPECT_EQ(TextOf("x<textarea> a  b </textarea>"), "x\n a  b");
  EXPECT_EQ(TextOf("<script><!-- <script> </script> --></script>x"), "x");
  EXPECT_EQ(TextOf("<script>no"), "");
  EXPECT_EQ(TextOf("a<script src=x/>b</script>c"), "ac");
  EXPECT_EQ(TextOf("a<!-->b<!--->c<!-- d --!>e<!-- f"), "abce");
  EXPECT_EQ(TextOf("a</>b</ x>c"), "abc");
  EXPECT_EQ(TextOf("a <b"), "a");
  EXPECT_EQ(TextOf("a < b & c &; &x; <3"), "a < b & c &; &x; <3");
  EXPECT_EQ(TextOf("&#0;&#xD800;&#x110000;&#99999999999;&#128;"),
            "\xEF\xBF\xBD\xEF\xBF\xBD"
            "\xEF\xBF\xBD\xEF\xBF\xBD€");
  EXPECT_EQ(TextOf("&NotEqualTilde;&AMP&amp"), "≂̸&&");
  EXPECT_EQ(TextOf("a<xmp><b>&amp;</xmp>"), "a<b>&amp;");
  EXPECT_EQ(TextOf("one&nbsp;two"), "one\u00a0two");
}

TEST(HtmlTest, OtherEncodings) {
  const std::string page =
      "<meta charset=\"ISO-8859-1\"><p>Zo\xEB pays 5 \x80 <b>f\xFCr</b> &uuml;";
  const Result<InputText> read = ReadHtml(page);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->text, "Zoë pays 5 € für ü");
  const auto slice = [&](std::string_view part) {
    const size_t at = read->text.find(part);
    const auto [begin, end] = read->InFile(at, at + part.size());
    return page.substr(begin, end - begin);
  };
  EXPECT_EQ(slice("Zoë"), "Zo\xEB");
  EXPECT_EQ(slice("€"), "\x80");
  EXPECT_EQ(slice("für ü"), "f\xFCr</b> &uuml;");
  EXPECT_EQ(TextOf("caf\xE9"), "café");
  EXPECT_EQ(TextOf("<meta charset=utf-8>caf\xE9"), "error: byte 23: is not UTF-8");
  EXPECT_EQ(TextOf("<meta content='text/html; charset=Shift_JIS'>\x83"),
            "error: byte 45: is in shift_jis; UTF-8 and windows-1252 are read");
  EXPECT_EQ(TextOf(std::string_view("\xFF\xFE<\0", 4)),
            "error: byte 0: is UTF-16; UTF-8 and windows-1252 are read");
}

// What has no end takes no more time than its length.
TEST(HtmlTest, HostileDocumentsEnd) {
  std::string all;
  for (int i = 0; i < 200'000; ++i) all += "&amp;";
  EXPECT_EQ(TextOf("<title>" + all).size(), 200'000u);
  EXPECT_EQ(TextOf("<script>" + all), "");
  for (const char* piece : {"<", "</", "<a ", "<!--", "<p>", "&#", "<td>", "<pre>\n", "<title>"}) {
    std::string text;
    for (int i = 0; i < 100'000; ++i) text += piece;
    EXPECT_LE(TextOf(text).size(), text.size()) << piece;
  }
}

TEST(InputFormatTest, ByTheNameOfTheFile) {
  EXPECT_EQ(InputFormatOf("a/b.HTML"), InputFormat::kHtml);
  EXPECT_EQ(InputFormatOf("x.md"), InputFormat::kMarkdown);
  EXPECT_EQ(InputFormatOf("x.jsonl"), InputFormat::kJsonl);
  EXPECT_EQ(InputFormatOf("-"), InputFormat::kText);
  EXPECT_EQ(InputFormatOf("html"), InputFormat::kText);
  EXPECT_EQ(InputFormatNamed("pdf"), InputFormat::kPdf);
  EXPECT_FALSE(InputFormatNamed("docx").has_value());
}

}  // namespace
}  // namespace pawl
