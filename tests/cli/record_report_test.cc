// --report of pawl extract and pawl eval: what stands in the pages. tests/clients/report_test.py
// opens them in a browser.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/cli/cli_test_util.h"

namespace pawl {
namespace {

using Json = nlohmann::json;

std::string PageText(const std::string& file) {
  std::ifstream in(file);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// The blocks of JSON of a page, in its order: what it says of itself, then its documents.
std::vector<Json> BlocksOf(const std::string& page) {
  std::vector<Json> out;
  const std::string begin = "<script type=\"application/json\"", end = "</script>";
  for (size_t at = page.find(begin, page.find("<body>")); at != std::string::npos;
       at = page.find(begin, at + 1)) {
    const size_t from = page.find('>', at) + 1;
    out.push_back(Json::parse(page.substr(from, page.find(end, from) - from)));
  }
  return out;
}

std::string ReportSchema() {
  return WriteScratch("report_schema.json", R"({"type": "object", "properties": {
    "name": {"type": "string", "maxLength": 3}, "n": {"enum": [1, 2]}}, "required": ["name", "n"]})");
}

TEST(RecordReportTest, HasWhatDetailsSay) {
  const std::string text = "</script><!-- <b>\"Al\" \xF0\x9F\x98\x80";
  const std::string lines = WriteScratch(
      "report.jsonl", Json{{"text", text}, {"id", "<i>"}}.dump() + "\n" + "17\n\"Bo 2\"\n");
  const std::string file = ScratchPath("report.html");
  const std::vector<std::string> arguments = {
      "extract",      "--schema",     ReportSchema(), "--model", RandomModelFolder(),
      "--json-lines", "--max-tokens", "120",          "--file",  lines};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = arguments;
    all.insert(all.end(), more.begin(), more.end());
    return RunPawl(all);
  };
  const CommandResult plain = with({}), details = with({"--details"});
  const CommandResult reported = with({"--report", file});
  EXPECT_EQ(reported.exit_code, 1);
  EXPECT_EQ(reported.out, plain.out);
  const std::string page = PageText(file);
  const std::vector<Json> blocks = BlocksOf(page);
  ASSERT_EQ(blocks.size(), 4u);
  EXPECT_EQ(blocks[0]["page"], 1);
  EXPECT_EQ(blocks[0]["pages"], 1);
  EXPECT_EQ(blocks[1]["text"], text);
  EXPECT_EQ(blocks[1]["more"], Json::parse(R"([["id", "<i>"]])"));
  EXPECT_EQ(page.find("</script><!--"), std::string::npos);
  EXPECT_EQ(page.find("<i>"), std::string::npos);
  EXPECT_NE(page.find("default-src 'none'; script-src 'sha256-"), std::string::npos);
  EXPECT_EQ(page.find("unsafe"), std::string::npos);
  const Json said = Json::parse(details.out.substr(0, details.out.find('\n')));
  ASSERT_EQ(blocks[1]["values"].size(), said["probability"].size());
  for (const Json& value : blocks[1]["values"]) {
    const std::string pointer = value["p"];
    EXPECT_EQ(Json::parse(value["v"].get<std::string>()),
              said["record"][Json::json_pointer(pointer)]);
    EXPECT_NEAR(value["q"], said["probability"][pointer], 1e-5);
    EXPECT_NEAR(value["u"], said["surprise"][pointer], 1e-4);
    EXPECT_EQ(value.value("s", Json()), said["spans"].value(pointer, Json()));
    EXPECT_EQ(value.contains("a"), said["alternatives"].contains(pointer));
  }
  EXPECT_EQ(blocks[1]["values"][1]["a"].size(), 2u);
  EXPECT_NE(blocks[2]["error"].get<std::string>().find("must be a JSON string"), std::string::npos);
  EXPECT_EQ(blocks[3]["name"], "line 3");
  for (const auto& [more, message] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"--report", "a.pdf"}, "--report: must be the name of a .html file"},
           {{"--report", "/nowhere/a.html"}, "/nowhere/a.html: cannot write"},
           {{"--report", file, "--contrast", "1"}, "--report: is for records that are drawn alone"},
           {{"--report", file, "--output", ScratchPath("a.jsonl"), "--resume"},
            "--report: cannot be used with --resume"}}) {
    const CommandResult wrong = with(more);
    EXPECT_EQ(wrong.exit_code, 2);
    EXPECT_NE(wrong.err.find(message), std::string::npos) << wrong.err;
  }
}

TEST(RecordReportTest, SaysWhatIsWrong) {
  const std::string data = WriteScratch(
      "report_eval.jsonl",
      "{\"text\": \"Al 1\", \"record\": {\"name\": \"Al\", \"n\": 1, \"tags\": [\"a\"]}}\n");
  const std::string written =
      WriteScratch("report_written.jsonl", R"({"record": {"name": "Bo", "tags": ["a"], "new": 1}})"
                                           "\n");
  const std::string file = ScratchPath("report_eval.html");
  const CommandResult result = RunPawl(
      {"eval", "--data", data, "--written", written, "--written", written, "--report", file});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::vector<Json> blocks = BlocksOf(PageText(file));
  ASSERT_EQ(blocks.size(), 3u);
  EXPECT_EQ(blocks[0]["scored"], true);
  EXPECT_EQ(blocks[0]["settings"].size(), 2u);
  EXPECT_EQ(blocks[2]["setting"], 1);
  EXPECT_EQ(blocks[1]["values"], Json::parse(R"([
      {"p": "/name", "f": "name", "v": "\"Bo\"", "ok": false, "want": "\"Al\""},
      {"p": "/tags/0", "f": "tags[]", "v": "\"a\"", "ok": true},
      {"p": "/new", "f": "new", "v": "1", "s": [3, 4], "ok": false, "want": "null"},
      {"p": "/n", "f": "n", "ok": false, "want": "1"}])"));
  const CommandResult model =
      RunPawl({"eval", "--data", data, "--schema", ReportSchema(), "--model", RandomModelFolder(),
               "--max-tokens", "120", "--against", "--keys required", "--report", file});
  ASSERT_EQ(model.exit_code, 0) << model.err;
  const std::vector<Json> made = BlocksOf(PageText(file));
  ASSERT_EQ(made.size(), 3u);
  EXPECT_TRUE(made[1]["values"][0].contains("q"));
  EXPECT_TRUE(made[1]["values"][0].contains("ok"));
  const CommandResult wrong =
      RunPawl({"eval", "--data", data, "--schema", ReportSchema(), "--model", RandomModelFolder(),
               "--variants", "--report", file});
  EXPECT_NE(wrong.err.find("--report: cannot be used with --variants"), std::string::npos)
      << wrong.err;
}

// Full pages, a text that no page can hold, and memory.
TEST(RecordReportTest, PagesHaveABound) {
  const std::string much(1'500'000, '<');  // six bytes each
  std::string data, written;
  for (int i = 0; i < 4; ++i) {
    const std::string text = i == 3 ? much + much + "\u00e9" + much + " 3" : much;
    data += Json{{"text", text}, {"record", {{"n", i}}}}.dump() + "\n";
    written += Json{{"record", {{"n", i}}}}.dump() + "\n";
  }
  const std::string file = ScratchPath("pages.html");
  const CommandResult result =
      RunPawl({"eval", "--data", WriteScratch("pages.jsonl", data), "--written",
               WriteScratch("pages_written.jsonl", written), "--report", file});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::vector<size_t> documents = {2, 1, 1, 1};
  std::string large;
  for (size_t page = 1; page <= 4; ++page) {
    const std::string name =
        page == 1 ? file : ScratchPath("pages-" + std::to_string(page) + ".html");
    EXPECT_LE(std::filesystem::file_size(name), 20'000'000u);
    const std::vector<Json> blocks = BlocksOf(PageText(name));
    ASSERT_EQ(blocks.size(), 1 + documents[page - 1]) << page;
    EXPECT_EQ(blocks[0]["page"], page);
    EXPECT_EQ(blocks[0]["pages"], 4);
    // The large one is in two parts, with its value where that stands.
    if (page < 3) continue;
    EXPECT_FALSE(blocks[1].contains("cut"));
    const std::string text = blocks[1]["text"];
    large += text;
    if (page == 3) {
      EXPECT_EQ(blocks[1]["name"], "line 4 (part 1 of 2)");
      EXPECT_GT(std::filesystem::file_size(name), 19'900'000u);
      EXPECT_TRUE(blocks[1]["values"].empty());
    } else {
      ASSERT_EQ(blocks[1]["values"].size(), 1u);
      const Json span = blocks[1]["values"][0]["s"];
      EXPECT_EQ(span[1], text.size());
      EXPECT_EQ(span[0], text.size() - 1);
    }
  }
  EXPECT_EQ(large, much + much + "\u00e9" + much + " 3");
  EXPECT_FALSE(std::filesystem::exists(ScratchPath("pages-5.html")));
}

}  // namespace
}  // namespace pawl
