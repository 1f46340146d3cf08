// /v1/rerank against the last states of the same layers, read by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "src/base/file.h"
#include "src/engine/loaded_model.h"
#include "src/model/model.h"
#include "src/server/server.h"
#include "tests/server/http_client.h"
#include "tests/server/test_server.h"
#include "tests/support/lora_files.h"

namespace pawl::server {
namespace {

constexpr const char* kRanked = PAWL_SOURCE_DIR "/models/tiny-extract";

// The model that ships with a random head for so many labels.
std::string RankingFolder(int64_t labels, std::vector<float>* head = nullptr) {
  const std::string folder = testing::TempDir() + "/rerank-" + std::to_string(labels);
  std::filesystem::create_directories(folder);
  std::filesystem::copy_file(std::string(kRanked) + "/tokenizer.json", folder + "/tokenizer.json",
                             std::filesystem::copy_options::overwrite_existing);
  std::string config = *ReadFile(std::string(kRanked) + "/config.json");
  const size_t at = config.find("ForCausalLM");
  EXPECT_NE(at, std::string::npos);
  config.replace(at, 11, "ForSequenceClassification");
  WriteText(folder + "/config.json", config);
  FloatTensors tensors = ReadFloats(*Checkpoint::Open(kRanked));
  tensors.erase("lm_head.weight");
  FloatTensor& score = tensors["score.weight"];
  score.shape = {labels, tensors.at("model.norm.weight").shape[0]};
  std::mt19937 random(4);
  std::normal_distribution<float> normal(0, 0.2f);
  for (int64_t i = 0; i < labels * score.shape[1]; ++i) score.values.push_back(normal(random));
  WriteSafetensors(folder + "/model.safetensors", tensors);
  if (head != nullptr) *head = score.values;
  return folder;
}

std::unique_ptr<Server> RankingServer(const std::string& folder) {
  ServerOptions options;
  options.model_path = folder;
  options.model.model.threads = 1;
  auto started = Server::Start(options);
  EXPECT_TRUE(started.ok() && (*started)->WaitUntilReady().ok());
  return *std::move(started);
}

TEST(RerankTest, EqualsTheHeadOverTheLastState) {
  std::vector<float> head;
  const std::unique_ptr<Server> server = RankingServer(RankingFolder(1, &head));
  const std::vector<std::string> documents = {
      "Ann Lee works at Harrow Ltd.", "x", "Der Hafen von Porto liegt am Douro.",
      "Phone: 020 7946 0018, and a long text behind it " + std::string(200, 'a')};
  const std::string query = "Where does Ann work?";
  // By the causal model with these layers.
  const auto loaded = LoadedModel::Open(kRanked);
  ModelOptions options;
  options.threads = 1;
  options.dtype = WeightDtype::kFp32;
  const auto model = LoadModel(kRanked, options);
  ASSERT_TRUE(loaded.ok() && model.ok());
  std::vector<double> expected;  // the tokenizer's form for two texts adds nothing
  for (const std::string& document : documents) {
    std::vector<TokenId> tokens;
    for (const std::string& text : {query, document}) {
      const auto more = (*loaded)->tokenizer().EncodeWithin(text, 1 << 20);
      tokens.insert(tokens.end(), more->begin(), more->end());
    }
    const auto hidden = head.size();
    std::vector<float> states(hidden * tokens.size());
    const ModelTap tap{.layer = ModelTap::kFinal, .states = states};
    const SequenceId sequence = *(*model)->NewSequence(static_cast<int>(tokens.size()));
    std::vector<Row> rows;
    for (size_t i = 0; i < tokens.size(); ++i) {
      rows.push_back({.token = tokens[i], .position = static_cast<int>(i), .sequence = sequence});
    }
    ASSERT_TRUE((*model)->Run({.rows = rows, .taps = {&tap, 1}}).ok());
    double logit = 0;
    for (size_t i = 0; i < hidden; ++i)
      logit += double{head[i]} * states[states.size() - hidden + i];
    expected.push_back(logit);
  }
  std::string list;
  for (const std::string& document : documents) {
    list += (list.empty() ? "" : ",") + json::Quote(document);
  }
  Connection c(server->port());
  for (const bool raw : {false, true}) {
    const Answer answer =
        c.Post("/v1/rerank", R"({"query": )" + json::Quote(query) + R"(, "documents": [)" + list +
                                 R"(], "return_documents": true, "raw_scores": )" +
                                 (raw ? "true}" : "false}"));
    ASSERT_EQ(answer.status, 200) << answer.body;
    const json::Value value = answer.Json();
    const json::Value& results = At(value, "/results");
    ASSERT_EQ(results.items.size(), documents.size());
    double before = 1e30;
    for (const json::Value& result : results.items) {
      const auto index = static_cast<size_t>(std::stoi(At(result, "/index").text));
      const double score = std::stod(At(result, "/relevance_score").text);
      EXPECT_NEAR(score, raw ? expected[index] : 1 / (1 + std::exp(-expected[index])), 1e-4);
      EXPECT_LE(score, before);
      before = score;
      EXPECT_EQ(At(result, "/document/text").text, documents[index]);
    }
  }
  const Answer two = c.Post("/rerank", R"({"query": "q", "documents": [{"text": "a"}, "b", "c"],
                                           "top_n": 2})");
  ASSERT_EQ(two.status, 200) << two.body;
  EXPECT_EQ(At(two.Json(), "/results").items.size(), 2u);
  EXPECT_EQ(two.body.find("\"document\""), std::string::npos);
}

TEST(RerankTest, WhatIsRefused) {
  const std::unique_ptr<Server> server = RankingServer(RankingFolder(1));
  Connection c(server->port());
  const auto refused = [&](const std::string& body, const char* says) {
    const Answer answer = c.Post("/v1/rerank", body);
    EXPECT_EQ(answer.status, 400) << answer.body;
    EXPECT_NE(answer.body.find(says), std::string::npos) << answer.body;
  };
  refused(R"({"documents": ["a"]})", "/query");
  refused(R"({"query": "a"})", "/documents");
  refused(R"({"query": "a", "documents": []})", "1 to 2048");
  refused(R"({"query": "a", "documents": [7]})", "/documents/0");
  refused(R"({"query": "a", "documents": ["b"], "top_n": 0})", "/top_n");
  refused(R"({"query": "a", "documents": [")" + std::string(60000, 'x') + R"("]})", "/documents/0");
  const Answer writes = c.Post("/v1/completions", R"({"prompt": "a"})");
  EXPECT_EQ(writes.status, 400);
  EXPECT_NE(writes.body.find("/v1/rerank"), std::string::npos) << writes.body;
  // Heads of several labels, and models without one.
  const std::unique_ptr<Server> several = RankingServer(RankingFolder(3));
  Connection to_several(several->port());
  const std::string body = R"({"query": "a", "documents": ["b"]})";
  const Answer labels = to_several.Post("/v1/rerank", body);
  EXPECT_EQ(labels.status, 400);
  EXPECT_NE(labels.body.find("has 3 labels"), std::string::npos) << labels.body;
  const std::unique_ptr<Server> causal = ServerOf("tiny-extract");
  Connection to_causal(causal->port());
  const Answer none = to_causal.Post("/v1/rerank", body);
  EXPECT_EQ(none.status, 400);
  EXPECT_NE(none.body.find("ForSequenceClassification"), std::string::npos) << none.body;
}

}  // namespace
}  // namespace pawl::server
