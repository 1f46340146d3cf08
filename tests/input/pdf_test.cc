// What pdftotext prints as a text with boxes; and, where it is installed, a small document.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "src/base/file.h"
#include "src/input/input_text.h"

namespace pawl {
namespace {

constexpr const char* kLayout = R"(<!DOCTYPE html><html><head><title>no</title></head><body><doc>
<page width="200" height="100"><flow><block xMin="1"><line xMin="1">
<word xMin="10.5" yMin="20" xMax="30" yMax="32">Invoice</word>
<word xMin="34" yMin="19.25" xMax="50" yMax="32">7</word></line>
<line><word xMin="10" yMin="40" xMax="30" yMax="52">A&amp;B</word></line></block></flow></page>
<page width="200" height="100"><flow><block><line>
<word xMin="1" yMin="2" xMax="3" yMax="4">Ende</word></line></block></flow></page></doc></body></html>)";

ValueDetails SpanOf(const char* pointer, int64_t begin, int64_t end) {
  ValueDetails out;
  out.pointer = pointer;
  out.span = {begin, end, begin, end};
  return out;
}

TEST(PdfTest, WordsHaveBoxes) {
  const Result<InputText> read = ReadPdfLayout(kLayout);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->text, "Invoice 7\nA&B\n\nEnde");
  const ValueDetails values[] = {SpanOf("/all", 2, 13), SpanOf("/last", 15, 19)};
  const auto places = read->PlacesJson(values);
  ASSERT_EQ(places.size(), 1u);
  EXPECT_EQ(places[0], R"("boxes":{"/all":[{"page":1,"box":[10.50,19.25,50.00,32.00]},)"
                       R"({"page":1,"box":[10.00,40.00,30.00,52.00]}],)"
                       R"("/last":[{"page":2,"box":[1.00,2.00,3.00,4.00]}]})");
}

// A program in its place: what it is asked for, and what becomes of its answers.
TEST(PdfTest, PdftotextIsRun) {
  const std::string folder = ::testing::TempDir() + "pawl_pdftotext";
  std::filesystem::create_directories(folder);
  const std::string before = std::getenv("PATH");
  const auto install = [&](const std::string& script) {
    ASSERT_TRUE(WriteFile(folder + "/pdftotext", "#!/bin/sh\n" + script).ok());
    std::filesystem::permissions(folder + "/pdftotext", std::filesystem::perms::owner_all);
  };
  ::setenv("PATH", (folder + ":" + before).c_str(), 1);
  ASSERT_TRUE(WriteFile(folder + "/layout", kLayout).ok());
  install("echo \"$@\" > '" + folder + "/asked'\ncat '" + folder + "/layout'\n");
  const Result<InputText> read = ReadPdf("-a file.pdf");
  ASSERT_TRUE(read.ok()) << read.error().ToString();
  EXPECT_EQ(read->text, "Invoice 7\nA&B\n\nEnde");
  EXPECT_EQ(*ReadFile(folder + "/asked"), "-bbox-layout -enc UTF-8 ./-a file.pdf -\n");
  install("echo 'Syntax Error: no PDF' >&2\nexit 1\n");
  const Error broken = ReadPdf("x.pdf").error();
  EXPECT_EQ(broken.code, ErrorCode::kInvalid);
  EXPECT_EQ(broken.place, "x.pdf");
  EXPECT_EQ(broken.message, "pdftotext: Syntax Error: no PDF");
  ::setenv("PATH", "/nowhere", 1);
  const Error missing = ReadPdf(folder + "/layout").error();
  EXPECT_EQ(missing.code, ErrorCode::kIo);
  EXPECT_NE(missing.message.find("poppler-utils"), std::string::npos);
  EXPECT_EQ(ReadPdf("x.pdf").error().message, "cannot read: No such file or directory");
  ::setenv("PATH", before.c_str(), 1);
  std::filesystem::remove_all(folder);
}

TEST(PdfTest, PdftotextSaysWhereWordsStand) {
  if (std::system("command -v pdftotext > /dev/null 2>&1") != 0) {
    GTEST_SKIP() << "pdftotext is not installed";
  }
  const std::string file = ::testing::TempDir() + "pawl_input_test.pdf";
  const std::string stream = "BT /F1 12 Tf 72 700 Td (Invoice 7 from Acme) Tj ET";
  const std::string pdf =
      "%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n"
      "2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
      "3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 "
      "5 0 R>>>>>>endobj\n4 0 obj<</Length " +
      std::to_string(stream.size()) + ">>stream\n" + stream +
      "\nendstream endobj\n5 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj\n"
      "trailer<</Root 1 0 R>>\n%%EOF\n";
  ASSERT_TRUE(WriteFile(file, pdf).ok());
  const Result<InputText> read = ReadPdf(file);
  ASSERT_TRUE(read.ok()) << read.error().ToString();
  EXPECT_EQ(read->text, "Invoice 7 from Acme");
  ASSERT_EQ(read->boxes.size(), 4u);
  EXPECT_NEAR(read->boxes[0].x0, 72, 0.01);
  EXPECT_LT(read->boxes[0].y0, 92);
  EXPECT_GT(read->boxes[0].y1, 88);
  EXPECT_EQ(ReadPdf("no such file.pdf").ok(), false);
}

}  // namespace
}  // namespace pawl
