// pawl extract --document and --input-format through the command.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "src/base/file.h"
#include "tests/cli/cli_test_util.h"

namespace pawl {
namespace {

using Json = nlohmann::json;

constexpr const char* kPaid = R"({"type": "object", "properties": {
  "paid": {"type": "array", "items": {"type": "number", "x-pawl-source": "span"},
  "minItems": 1, "maxItems": 60},
  "who": {"type": "string", "x-pawl-source": "span"}}, "required": ["paid", "who"]})";

std::string ManyPayments() {
  std::string text;
  for (int i = 0; i < 30; ++i) text += "Zo\u00eb Lee pays " + std::to_string(10 + i) + " EUR.\n\n";
  return text;
}

CommandResult RunDocument(std::vector<std::string> more) {
  std::vector<std::string> all = {"extract",    "--schema",       WriteScratch("paid.json", kPaid),
                                  "--document", "--chunk-tokens", "40"};
  all.insert(all.end(), more.begin(), more.end());
  return RunPawl(all);
}

// The record and its values where the line says they are.
void ExpectPlaces(const Json& line, const std::string& text, const char* spans) {
  ASSERT_FALSE(line["record"]["paid"].empty()) << line;
  for (const auto& [pointer, span] : line[spans].items()) {
    const Json& value = line["record"].at(Json::json_pointer(pointer));
    const size_t begin = span[0], end = span[1];
    const std::string shown = value.is_string() ? value.get<std::string>() : value.dump();
    EXPECT_EQ(text.substr(begin, end - begin), shown) << pointer;
  }
}

TEST(ExtractDocumentTest, ValuesHaveTheirPlacesInTheWholeDocument) {
  const std::string file = WriteScratch("payments.txt", ManyPayments());
  const CommandResult result = RunDocument({"--file", file, "--details"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json line = Json::parse(result.out);
  EXPECT_GT(line["chunks"], 5);
  EXPECT_TRUE(line.contains("conflicts"));
  EXPECT_EQ(line["spans"].size(), line["byte_spans"].size());
  ExpectPlaces(line, ManyPayments(), "byte_spans");
  // Without --details the record alone, the same for all batches.
  for (const char* batch : {"1", "5"}) {
    const CommandResult plain = RunDocument({"--file", file, "--batch", batch});
    EXPECT_EQ(Json::parse(plain.out), line["record"]);
  }
}

// Runs until the file has more lines than `kept`, and no longer. What it leaves of `chunks`; empty:
// it was faster.
std::string KillBehind(int kept, const std::string& arguments, const std::string& chunks) {
  const std::string script =
      std::string(PAWL_COMMAND) + " extract --document --chunk-tokens 40 --batch 1 --details " +
      arguments + " & child=$!; for i in $(seq 1000); do [ \"$(cat " + chunks +
      " 2>/dev/null | wc -l)\" -gt " + std::to_string(kept) +
      " ] && break; sleep 0.005; done; kill -9 $child 2>/dev/null; wait $child 2>/dev/null; true";
  EXPECT_EQ(std::system(("bash -c '" + script + "'").c_str()), 0);
  return std::filesystem::exists(chunks) ? *ReadFile(chunks) : "";
}

// Killed in the middle, twice, and gone on with.
TEST(ExtractDocumentTest, ARunThatWasKilledGoesOnBehindItsChunks) {
  const std::string file = WriteScratch("payments.txt", ManyPayments());
  const std::string whole = WriteScratch("whole.jsonl", ""), cut = WriteScratch("cut.jsonl", "");
  ASSERT_EQ(RunDocument({"--file", file, "--details", "--output", whole}).exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(whole + ".1.chunks"));
  const std::string chunks = cut + ".1.chunks", schema = WriteScratch("paid.json", kPaid);
  for (const int kept : {3, 7}) {
    const std::string there = KillBehind(
        kept, "--resume --schema " + schema + " --file " + file + " --output " + cut, chunks);
    if (there.empty()) continue;
    ASSERT_TRUE(WriteFile(chunks, there + "{\"chunk\":9,\"te").ok());
  }
  const CommandResult last =
      RunDocument({"--file", file, "--details", "--output", cut, "--resume", "--stats"});
  ASSERT_EQ(last.exit_code, 0) << last.err;
  const Json one = Json::parse(*ReadFile(whole)), other = Json::parse(*ReadFile(cut));
  EXPECT_EQ(one, other);
  EXPECT_FALSE(std::filesystem::exists(chunks));
  // What is there is not made again, and chunks that a killed run has left are gone.
  ASSERT_TRUE(WriteFile(chunks, "left").ok());
  EXPECT_EQ(RunDocument({"--file", file, "--details", "--output", cut, "--resume"}).exit_code, 0);
  // Nor does a run go on behind lines that are none of its own.
  const std::string done = *ReadFile(cut);
  ASSERT_TRUE(WriteFile(cut, "").ok());
  ASSERT_TRUE(WriteFile(chunks, "{\"document\":\"x\"}\n").ok());
  const CommandResult first =
      RunDocument({"--file", file, "--details", "--output", cut, "--resume"});
  EXPECT_EQ(first.exit_code, 0) << first.err;
  ASSERT_TRUE(WriteFile(cut, "").ok());
  ASSERT_TRUE(WriteFile(chunks, "notes\n").ok());
  const CommandResult foreign =
      RunDocument({"--file", file, "--details", "--output", cut, "--resume"});
  EXPECT_EQ(foreign.exit_code, 2);
  EXPECT_NE(foreign.err.find(chunks + ": line 1"), std::string::npos) << foreign.err;
  EXPECT_EQ(*ReadFile(chunks), "notes\n");
  std::filesystem::remove(chunks);
  ASSERT_TRUE(WriteFile(cut, done).ok());
  EXPECT_EQ(Json::parse(*ReadFile(cut)), one);
  EXPECT_FALSE(std::filesystem::exists(chunks));
}

// The bug: chunks of a run with other draws were taken for those of this one.
TEST(ExtractDocumentTest, ChunksOfOtherOptionsAreReadAgain) {
  const std::string file = WriteScratch("payments.txt", ManyPayments());
  const std::string whole = WriteScratch("whole.jsonl", ""), cut = WriteScratch("cut.jsonl", "");
  const std::string schema = WriteScratch("paid.json", kPaid), chunks = cut + ".1.chunks";
  const std::string there = KillBehind(
      6, "--temperature 2 --schema " + schema + " --file " + file + " --output " + cut, chunks);
  for (const std::string& output : {cut, whole}) {
    const CommandResult result = RunDocument({"--file", file, "--details", "--temperature", "2",
                                              "--top-k", "1", "--output", output, "--resume"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  if (!there.empty()) {
    EXPECT_EQ(Json::parse(*ReadFile(whole)), Json::parse(*ReadFile(cut)));
  }
}

// The bug: where the slowest chunk was the first one and the others waited for it, the engine was
// idle before the end, and the line had no record.
TEST(ExtractDocumentTest, ChunksThatWaitForASlowOneAreNotTheEnd) {
  // Only the first chunk has much to say.
  std::string text;
  for (int i = 0; i < 12; ++i) text += std::to_string(100 + i) + " ";
  text += "Ann.\n\n";
  for (int i = 0; i < 30; ++i) text += "Bo is here, and has 7 of them for us today.\n\n";
  const std::string schema = WriteScratch("list.json", R"({"type": "object", "properties": {
    "paid": {"type": "array", "items": {"type": "number", "x-pawl-source": "span"},
    "uniqueItems": true, "minItems": 1}}, "required": ["paid"]})");
  std::vector<std::string> command = {"extract",    "--schema",       schema, "--text",        text,
                                      "--document", "--chunk-tokens", "40",   "--temperature", "2"};
  for (const char* batch : {"1", "2", "3", "8"}) {
    std::vector<std::string> one = command;
    one.insert(one.end(), {"--batch", batch, "--details"});
    const CommandResult result = RunPawl(one);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const Json line = Json::parse(result.out, nullptr, false);
    ASSERT_FALSE(line.is_discarded()) << result.out;
    EXPECT_GT(line["chunks"], 10) << batch;
  }
}

TEST(ExtractDocumentTest, DocumentsMayBeLines) {
  const std::string lines = WriteScratch(
      "documents.jsonl", Json(ManyPayments()).dump() + "\n\"  \"\n\"Bo pays 7 EUR\"\n");
  const CommandResult result = RunDocument({"--file", lines});
  EXPECT_EQ(result.exit_code, 1);
  std::vector<std::string> out;
  for (size_t at = 0; at < result.out.size(); at = result.out.find('\n', at) + 1) {
    out.push_back(result.out.substr(at, result.out.find('\n', at) - at));
  }
  ASSERT_EQ(out.size(), 3u) << result.out;
  EXPECT_GT(Json::parse(out[0])["paid"].size(), 3u) << out[0];
  EXPECT_TRUE(Json::parse(out[1]).contains("error"));
  EXPECT_TRUE(Json::parse(out[2]).contains("paid"));
}

TEST(ExtractDocumentTest, HtmlIsReadAndValuesPointIntoTheFile) {
  const std::string page =
      "<html><head><title>Bill</title><script>var x = 1;</script></head><body><p>Zo&euml; Lee\n "
      "pays <b>12</b> EUR.</p><p>It was sent in March.</p></body></html>";
  const std::string file = WriteScratch("page.html", page);
  const CommandResult result = RunPawl(
      {"extract", "--schema", WriteScratch("paid.json", kPaid), "--file", file, "--details"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json line = Json::parse(result.out);
  for (const auto& [pointer, span] : line["file_spans"].items()) {
    const Json& value = line["record"].at(Json::json_pointer(pointer));
    const size_t begin = span[0], end = span[1];
    const std::string part = page.substr(begin, end - begin);
    if (value.is_number()) {
      EXPECT_EQ(part, value.dump());
    }
    EXPECT_EQ(part.find("script"), std::string::npos);
  }
  EXPECT_EQ(line["file_spans"].size(), line["spans"].size());
  const CommandResult bad =
      RunPawl({"extract", "--schema", WriteScratch("paid.json", kPaid), "--file",
               WriteScratch("wide.html", std::string("\xFF\xFE<\0", 4))});
  EXPECT_EQ(bad.exit_code, 2);
  EXPECT_NE(bad.err.find("wide.html: byte 0: is UTF-16"), std::string::npos) << bad.err;
}

TEST(ExtractDocumentTest, RowsOfATableAreTexts) {
  const std::string table = WriteScratch(
      "mails.csv", "id,text\r\n1,\"Ann pays 5 EUR,\nnow\"\r\n2,\r\n3,Bo pays 7\r\n4\r\n");
  const CommandResult result = RunPawl(
      {"extract", "--schema", WriteScratch("paid.json", kPaid), "--file", table, "--keep", "id"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.out.find("{\"id\":\"1\",\"paid\":"), std::string::npos) << result.out;
  EXPECT_NE(result.err.find("line 2: text: is empty"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("line 4: has 1 fields, not 2"), std::string::npos) << result.err;
  const CommandResult bad = RunPawl({"extract", "--schema", WriteScratch("paid.json", kPaid),
                                     "--file", WriteScratch("none.csv", "a,b\n1,2\n")});
  EXPECT_EQ(bad.exit_code, 2);
  EXPECT_NE(bad.err.find("names no column \"text\""), std::string::npos) << bad.err;
  const std::pair<const char*, const char*> broken[] = {
      {"text,id,id\na,1,2\n", "broken.csv: the first row names two columns \"id\""},
      {"text\nAnn pays 5\n\"Bo\"x\n", "broken.csv: row 3: field 1: a closing quote"},
      {"text\n\"Bo pays 5\n", "broken.csv: row 2: ends inside quotes"}};
  for (const auto& [rows, message] : broken) {
    const CommandResult refused = RunPawl({"extract", "--schema", WriteScratch("paid.json", kPaid),
                                           "--file", WriteScratch("broken.csv", rows)});
    EXPECT_EQ(refused.exit_code, 2) << rows;
    EXPECT_NE(refused.err.find(message), std::string::npos) << refused.err;
  }
  // A name of --keep that no line has is told of.
  const CommandResult named =
      RunPawl({"extract", "--schema", WriteScratch("paid.json", kPaid), "--file",
               WriteScratch("one.csv", "id,text\n1,Ann pays 5\n"), "--keep", "id,nmae"});
  EXPECT_EQ(named.exit_code, 0) << named.err;
  EXPECT_EQ(named.err, "pawl extract: note: --keep: no line has \"nmae\"\n");
}

TEST(ExtractDocumentTest, MistakesNameTheOption) {
  const auto refusal = [](const std::vector<std::string>& more) {
    std::vector<std::string> all = {"extract", "--schema", WriteScratch("paid.json", kPaid),
                                    "--text", "Ann pays 5 EUR"};
    all.insert(all.end(), more.begin(), more.end());
    const CommandResult result = RunPawl(all);
    EXPECT_EQ(result.exit_code, 2) << result.out;
    return result.err;
  };
  EXPECT_EQ(refusal({"--chunk-tokens", "40"}), "pawl extract: --chunk-tokens: needs --document\n");
  EXPECT_EQ(refusal({"--passes", "2"}), "pawl extract: --passes: needs --document\n");
  EXPECT_NE(refusal({"--document", "--chunk-tokens", "3"}).find("--chunk-tokens: must be from 16"),
            std::string::npos);
  EXPECT_EQ(refusal({"--document", "--contrast", "1"}),
            "pawl extract: --document: is for records that are drawn alone\n");
  EXPECT_NE(refusal({"--input-format", "html"}).find("--input-format"), std::string::npos);
}

}  // namespace
}  // namespace pawl
