// pawl bench decode through the command: its figures are there and make sense, its usage is
// checked.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "src/base/file.h"
#include "tests/cli/cli_test_util.h"

namespace pawl {
namespace {

using Json = nlohmann::json;

std::string Number() { return WriteScratch("number.txt", "4711"); }

TEST(BenchDecodeTest, FiguresOfAModelAndItsMasks) {
  const std::string out = ScratchPath("decode.json");
  const CommandResult result =
      RunPawl({"bench", "decode", "--model", RandomModelFolder(), "--rounds", "1", "--batch", "3",
               "--context", "8", "--prompt", "20", "--threads", "1", "--regex", "[0-9]{4}",
               "--json", out, Number()});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const char* line : {"kernels", "weights", "read", "step", "batch", "prompt", "masks",
                           "masked", "unmasked", "ratio"}) {
    EXPECT_NE(result.out.find(std::string(line) + " "), std::string::npos) << line;
  }
  const Result<std::string> text = ReadFile(out);
  ASSERT_TRUE(text.ok());
  const Json json = Json::parse(*text);
  EXPECT_EQ(json["batch"], 3);
  EXPECT_EQ(json["threads"], 1);
  for (const char* key :
       {"memory_gbs", "weights_read_gbs", "tokens_per_s", "gbs", "fraction_of_memory",
        "batch_step_ratio", "prefill_tokens_per_s", "prefill_gflops"}) {
    EXPECT_GT(json[key].get<double>(), 0) << key;
  }
  EXPECT_NEAR(json["tokens_per_s"].get<double>() * json["step_us"].get<double>() / 1e6, 1, 0.01);
  const Json& masks = json["masks"];
  EXPECT_EQ(masks["steps"], 4);
  EXPECT_EQ(masks["choices"], 4);
  EXPECT_NEAR(masks["allowed_share"].get<double>(), 10.0 / 258, 1e-4) << "ten digits of 258 tokens";
}

TEST(BenchDecodeTest, Usage) {
  const auto refused = [](const std::vector<std::string>& more, const std::string& part) {
    std::vector<std::string> arguments = {"bench", "decode", "--rounds", "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const CommandResult result = RunPawl(arguments);
    EXPECT_EQ(result.exit_code, 2) << part;
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
  };
  refused({"--shape", "135m", "--model", RandomModelFolder()}, "--shape");
  refused({"--shape", "7b"}, "--shape");
  // 26 terabytes of keys and values: told before anything is allocated.
  refused({"--shape", "8b", "--dtype", "int4", "--context", "100000", "--batch", "1000"},
          "--shape 8b --dtype int4: needs 26");
  refused({"--shape", "8b", "--context", "100000", "--batch", "1000"}, "GB are available");
  refused({"--model", RandomModelFolder(), "--regex", "a"}, "--regex");
  refused({"--model", RandomModelFolder(), Number()}, "constraint");
  refused({"--shape", "135m", "--regex", "[0-9]{4}", Number()}, "--tokenizer");
  refused({"--model", RandomModelFolder(), "--json", ScratchPath("no/such/folder.json")}, "folder");
}

}  // namespace
}  // namespace pawl
