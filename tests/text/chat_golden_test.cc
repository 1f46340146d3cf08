// What the reference implementation renders (scripts/make_chat_goldens.py), text for text.
#include <gtest/gtest.h>

#include <string>

#include "src/base/file.h"
#include "tests/source_dir.h"
#include "tests/text/chat_case.h"

namespace pawl {
namespace {

const std::string kChatFolder = SourceDir() + "/tests/data/chat/";

TEST(ChatGolden, EveryCase) {
  const Result<std::string> text = ReadFile(kChatFolder + "goldens.json");
  ASSERT_TRUE(text.ok());
  Result<json::Value> root = json::Parse(*text);
  ASSERT_TRUE(root.ok()) << root.error().ToString();
  const json::Value* cases = root->Find("cases");
  ASSERT_NE(cases, nullptr);
  ASSERT_GE(cases->items.size(), 300u);
  int rendered = 0;
  for (const json::Value& golden : cases->items) {
    json::Value one = golden;
    const std::string& name = golden.Find("name")->text;
    if (golden.Find("template") == nullptr) {
      const Result<std::string> source = ReadFile(kChatFolder + "templates/" + name + ".jinja");
      ASSERT_TRUE(source.ok()) << name;
      one.members.emplace_back("template", json::Value{json::Type::kString, *source, {}, {}});
    }
    const std::string what = name + ": " + one.Find("template")->text.substr(0, 200) + "\n" +
                             json::Dump(*golden.Find("input")).substr(0, 300);
    const Result<MarkedText> answer = RenderCase(one);
    if (const json::Value* output = golden.Find("output")) {
      ASSERT_TRUE(answer.ok()) << what << "\n" << answer.error().ToString();
      EXPECT_EQ(answer->bytes(), output->text) << what;
      ++rendered;
    } else {
      ASSERT_FALSE(answer.ok()) << what << "\n" << answer->bytes();
      EXPECT_NE(answer.error().code, ErrorCode::kInternal);
      EXPECT_NE(answer.error().place.find(':'), std::string::npos) << answer.error().ToString();
    }
  }
  EXPECT_GE(rendered, 300);
}

}  // namespace
}  // namespace pawl
