// The answers of llama.cpp's /completion: what its members say of the output.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>

#include "src/server/server.h"
#include "tests/server/http_client.h"
#include "tests/server/test_server.h"

namespace pawl::server {
namespace {

int LlamaPort() {
  static const std::unique_ptr<Server> server = ServerOf("tiny-extract");
  return server->port();
}

json::Value Completion(const std::string& members, const std::string& prompt = "Ann Lee, born ") {
  Connection client(LlamaPort());
  const Answer answer = client.Post("/completion", R"({"prompt":)" + json::Quote(prompt) +
                                                       R"(,"temperature":0,)" + members + "}");
  EXPECT_EQ(answer.status, 200) << answer.body;
  return answer.Json();
}

int64_t WholeAt(const json::Value& value, const std::string& pointer) {
  const json::Value& found = At(value, pointer);
  EXPECT_EQ(found.type, json::Type::kNumber) << pointer << " of " << json::Dump(value);
  return std::stoll(found.text);
}

TEST(LlamaAnswerTest, CountsOfTokens) {
  Connection client(LlamaPort());
  // Longer than a page of the KV cache, so that the second call finds one.
  std::string text;
  for (int i = 0; i < 40; ++i) text += "Ann Lee, number " + std::to_string(i) + ". ";
  const json::Value tokens =
      client.Post("/tokenize", R"({"content":)" + json::Quote(text) + "}").Json();
  const auto prompt = static_cast<int64_t>(At(tokens, "/tokens").items.size());
  ASSERT_GT(prompt, 40);
  for (const int again : {0, 1}) {
    const json::Value answer = Completion(R"("n_predict":3)", text);
    EXPECT_EQ(WholeAt(answer, "/tokens_predicted"), 3);
    EXPECT_EQ(WholeAt(answer, "/timings/predicted_n"), 3);
    const int64_t evaluated = WholeAt(answer, "/tokens_evaluated");
    EXPECT_GE(evaluated, prompt);
    EXPECT_LE(evaluated, prompt + 1);  // a token that begins texts
    const int64_t cached = WholeAt(answer, "/tokens_cached");
    EXPECT_GE(cached, again);
    EXPECT_EQ(WholeAt(answer, "/timings/prompt_n"), evaluated - cached);
  }
}

TEST(LlamaAnswerTest, WhyItStopped) {
  const json::Value limit = Completion(R"("n_predict":3)");
  EXPECT_EQ(At(limit, "/stop_type").text, "limit");
  EXPECT_EQ(At(limit, "/stopping_word").text, "");
  EXPECT_EQ(At(limit, "/stop").type, json::Type::kTrue);
  EXPECT_EQ(At(limit, "/truncated").type, json::Type::kFalse);
  const json::Value eos = Completion(R"("n_predict":40,"grammar":"root ::= \"ab|c\"")");
  EXPECT_EQ(At(eos, "/stop_type").text, "eos");
  EXPECT_EQ(At(eos, "/content").text, "ab|c");
  const json::Value word =
      Completion(R"("n_predict":40,"grammar":"root ::= \"ab|c\"","stop":["|"])");
  EXPECT_EQ(At(word, "/stop_type").text, "word");
  EXPECT_EQ(At(word, "/stopping_word").text, "|");
  EXPECT_EQ(At(word, "/content").text, "ab");
}

// The last event of a stream has what the whole answer has, and no text.
TEST(LlamaAnswerTest, TheLastEventOfAStream) {
  Connection client(LlamaPort());
  const std::string body =
      client
          .Post("/completion", R"({"prompt":"Ann","temperature":0,"stream":true,"n_predict":9,)"
                               R"("grammar":"root ::= \"ab\""})")
          .body;
  const size_t last = body.rfind("data: ");
  ASSERT_NE(last, std::string::npos) << body;
  ASSERT_GT(last, 0u) << "one event alone: " << body;
  const auto end = json::Parse(std::string_view(body).substr(last + 6));
  ASSERT_TRUE(end.ok()) << body;
  EXPECT_EQ(At(*end, "/content").text, "");
  EXPECT_EQ(At(*end, "/stop").type, json::Type::kTrue);
  EXPECT_EQ(At(*end, "/stop_type").text, "eos");
  EXPECT_GT(WholeAt(*end, "/tokens_predicted"), 0);
  EXPECT_GT(WholeAt(*end, "/tokens_evaluated"), 0);
}

}  // namespace
}  // namespace pawl::server
