// /v1/embeddings against the states of the model, read row by row; and what files say of pooling.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "src/base/file.h"
#include "src/decode/embed_work.h"
#include "src/engine/pooling.h"
#include "src/model/model.h"
#include "src/server/server.h"
#include "tests/model/gguf_writer.h"
#include "tests/server/http_client.h"
#include "tests/server/test_server.h"

namespace pawl::server {
namespace {

constexpr const char* kModel = PAWL_SOURCE_DIR "/models/tiny-extract";

// One token a call, in doubles.
std::vector<double> PlainEmbedding(const std::vector<TokenId>& tokens, const Pooling& pooling) {
  ModelOptions options;
  options.threads = 1;
  auto model = LoadModel(kModel, options);
  EXPECT_TRUE(model.ok());
  const auto hidden = static_cast<size_t>((*model)->info().hidden);
  const SequenceId sequence = *(*model)->NewSequence(static_cast<int>(tokens.size()));
  std::vector<double> sum(hidden);
  for (size_t i = 0; i < tokens.size(); ++i) {
    std::vector<float> states(hidden);
    const ModelTap tap{.layer = ModelTap::kFinal, .states = states};
    const Row row{.token = tokens[i], .position = static_cast<int>(i), .sequence = sequence};
    EXPECT_TRUE((*model)->Run({.rows = {&row, 1}, .taps = {&tap, 1}}).ok());
    const bool counts = pooling.kind == Pooling::Kind::kMean || i + 1 == tokens.size();
    for (size_t h = 0; h < hidden && counts; ++h) sum[h] += double{states[h]};
  }
  double squares = 0;
  for (const double x : sum) squares += x * x;
  for (double& x : sum) {
    if (pooling.normalize) x /= std::sqrt(squares);
  }
  return sum;
}

std::vector<double> VectorOf(const json::Value& list) {
  std::vector<double> out;
  for (const json::Value& item : list.items) out.push_back(std::stod(item.text));
  return out;
}

double MostApart(const std::vector<double>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double most = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

std::string Listed(const std::vector<TokenId>& tokens) {
  std::string out;
  for (const TokenId token : tokens) out += (out.empty() ? "[" : ",") + std::to_string(token);
  return out + "]";
}

TEST(EmbeddingsTest, EqualTheStatesOfTheModel) {
  for (const char* kind : {"mean", "last"}) {
    const Pooling pooling = *PoolingOf(kind);
    ServerOptions options;
    options.model.pooling = kind;
    options.max_batch = 3;
    const std::unique_ptr<Server> server = ServerOf("tiny-extract", options);
    Connection c(server->port());
    std::vector<std::vector<TokenId>> texts;
    for (const int length : {1, 5, 70, 300}) {
      std::vector<TokenId> tokens;
      for (int i = 0; i < length; ++i) tokens.push_back(300 + i * 7 % 1500);
      texts.push_back(tokens);
    }
    std::string body;
    for (const auto& text : texts) body += (body.empty() ? "" : ",") + Listed(text);
    const Answer all = c.Post("/v1/embeddings", "{\"input\":[" + body + "]}");
    ASSERT_EQ(all.status, 200) << all.body;
    const json::Value value = all.Json();
    EXPECT_EQ(At(value, "/usage/prompt_tokens").text, "376");
    for (size_t i = 0; i < texts.size(); ++i) {
      const json::Value& one = At(value, "/data/" + std::to_string(i) + "/embedding");
      EXPECT_LT(MostApart(VectorOf(one), PlainEmbedding(texts[i], pooling)), 1e-6) << kind << i;
      // Alone as in company.
      const Answer alone = c.Post("/v1/embeddings", "{\"input\":" + Listed(texts[i]) + "}");
      EXPECT_EQ(json::Dump(At(alone.Json(), "/data/0/embedding")), json::Dump(one));
    }
  }
}

TEST(EmbeddingsTest, FormsOfTheVector) {
  ServerOptions options;
  options.model.pooling = "mean";
  const std::unique_ptr<Server> server = ServerOf("tiny-extract", options);
  Connection c(server->port());
  const auto ask = [&](const std::string& more) {
    return c.Post("/v1/embeddings", R"({"model":"m","input":"Ann Lee")" + more + "}");
  };
  const std::vector<double> plain = VectorOf(At(ask("").Json(), "/data/0/embedding"));
  double squares = 0;
  for (const double x : plain) squares += x * x;
  EXPECT_NEAR(squares, 1, 1e-5);
  // Base64 holds the same floats.
  const std::string coded =
      At(ask(R"(,"encoding_format":"base64")").Json(), "/data/0/embedding").text;
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  uint32_t bits = 0;
  int held = 0;
  for (const char digit : coded) {
    if (digit == '=') break;
    bits = bits << 6 | static_cast<uint32_t>(digits.find(digit));
    if ((held += 6) >= 8) bytes += static_cast<char>(bits >> (held -= 8) & 0xFF);
  }
  ASSERT_EQ(bytes.size(), plain.size() * 4);
  std::vector<double> decoded;
  for (size_t i = 0; i < plain.size(); ++i) {
    float number = 0;
    std::memcpy(&number, bytes.data() + 4 * i, 4);
    decoded.push_back(number);
  }
  EXPECT_LT(MostApart(decoded, plain), 1e-7);
  // The first numbers, to length 1.
  const std::vector<double> cut =
      VectorOf(At(ask(R"(,"dimensions":8)").Json(), "/data/0/embedding"));
  ASSERT_EQ(cut.size(), 8u);
  EXPECT_NEAR(cut[1] / cut[0], plain[1] / plain[0], 1e-4);
  double length = 0;
  for (const double x : cut) length += x * x;
  EXPECT_NEAR(length, 1, 1e-5);
  const struct {
    const char *body, *place;
  } kWrong[] = {
      {R"({"input":[]})", "/input"},
      {R"({"input":5})", "/input"},
      {R"({"input":["a",null]})", "/input"},
      {R"({"input":[99999999]})", "/input"},
      {R"({})", "/input"},
      {R"({"input":"a","dimensions":0})", "/dimensions"},
      {R"({"input":"a","dimensions":100000})", "/dimensions"},
      {R"({"input":"a","encoding_format":"int8"})", "/encoding_format"},
      {R"({"input":"a","stream":true})", "/stream"},
  };
  for (const auto& [body, place] : kWrong) {
    const Answer answer = c.Post("/v1/embeddings", body);
    EXPECT_EQ(answer.status, 400) << body;
    EXPECT_EQ(At(answer.Json(), "/error/param").text, place) << answer.body;
  }
  const std::string longer(40000, 'x');
  EXPECT_EQ(c.Post("/v1/embeddings", R"({"input":["a",")" + longer + "\"]}").status, 400);
}

TEST(EmbeddingsTest, AModelThatDoesNotSayHowHasNone) {
  const std::unique_ptr<Server> server = ServerOf("tiny-extract");
  Connection c(server->port());
  const Answer answer = c.Post("/v1/embeddings", R"({"input":"a"})");
  EXPECT_EQ(answer.status, 400);
  EXPECT_NE(answer.body.find("--pooling"), std::string::npos) << answer.body;
  EXPECT_NE(answer.body.find("modules.json"), std::string::npos) << answer.body;
}

class PoolingTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/pooling_test";
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_ + "/1_Pooling");
  }
  Result<Pooling> Read(const std::string& modules, const std::string& config) {
    EXPECT_TRUE(WriteFile(folder_ + "/modules.json", modules).ok());
    EXPECT_TRUE(WriteFile(folder_ + "/1_Pooling/config.json", config).ok());
    return ReadPooling(folder_);
  }
  std::string folder_;
};

TEST_F(PoolingTest, FoldersOfSentenceTransformers) {
  const std::string transformer =
      R"({"idx":0,"name":"0","path":"","type":"sentence_transformers.models.Transformer"})";
  const std::string pools =
      R"({"idx":1,"name":"1","path":"1_Pooling","type":"sentence_transformers.models.Pooling"})";
  const std::string scales =
      R"({"idx":2,"name":"2","path":"2_Normalize","type":"sentence_transformers.models.Normalize"})";
  const std::string mean = R"({"pooling_mode_mean_tokens":true,"pooling_mode_cls_token":false})";
  const std::string last = R"({"pooling_mode_mean_tokens":false,"pooling_mode_lasttoken":true})";
  const Result<Pooling> plain = Read("[" + transformer + "," + pools + "]", mean);
  ASSERT_TRUE(plain.ok()) << plain.error().ToString();
  EXPECT_EQ(plain->kind, Pooling::Kind::kMean);
  EXPECT_FALSE(plain->normalize);
  const Result<Pooling> scaled = Read("[" + transformer + "," + pools + "," + scales + "]", last);
  ASSERT_TRUE(scaled.ok()) << scaled.error().ToString();
  EXPECT_EQ(scaled->kind, Pooling::Kind::kLast);
  EXPECT_TRUE(scaled->normalize);
  const struct {
    std::string modules, config, says;
  } kWrong[] = {
      {"[" + transformer + "]", mean, "no part that pools"},
      {"[" + pools + "]", R"({"pooling_mode_cls_token":true})", "pooling_mode_cls_token"},
      {"[" + pools + "]", R"({"pooling_mode_mean_tokens":true,"pooling_mode_lasttoken":true})",
       "one way"},
      {"[" + pools + "]", "{}", "one way"},
      {"[" + pools + "]", R"({"pooling_mode":"max"})", "max"},
      {"[" + pools + R"(,{"path":"3_Dense","type":"sentence_transformers.models.Dense"}])", mean,
       "Dense"},
      {R"([{"path":"../x","type":"a.Pooling"}])", mean, "Pooling"},
      {"{}", mean, "array"},
      {"[", mean, "modules.json"},
  };
  for (const auto& [modules, config, says] : kWrong) {
    const Result<Pooling> read = Read(modules, config);
    ASSERT_FALSE(read.ok()) << modules << config;
    EXPECT_NE(read.error().ToString().find(says), std::string::npos) << read.error().ToString();
  }
  std::filesystem::remove_all(folder_);
}

TEST(PoolingOfGgufTest, IsThatOfItsKey) {
  const std::string path = testing::TempDir() + "/pooling.gguf";
  const auto read = [&](const auto& add) {
    GgufWriter writer;
    add(writer);
    EXPECT_TRUE(WriteFile(path, writer.File()).ok());
    return ReadPooling(path);
  };
  const auto of_type = [&](uint32_t type) {
    return read([&](GgufWriter& writer) {
      writer.Add("general.architecture", std::string_view("qwen3"));
      writer.Add("qwen3.pooling_type", type);
    });
  };
  ASSERT_TRUE(of_type(1).ok()) << of_type(1).error().ToString();
  EXPECT_EQ(of_type(1)->kind, Pooling::Kind::kMean);
  EXPECT_EQ(of_type(3)->kind, Pooling::Kind::kLast);
  EXPECT_TRUE(of_type(3)->normalize);
  for (const uint32_t other : {0u, 2u, 4u, 99u}) {  // none, cls, rank
    const Result<Pooling> pooling = of_type(other);
    ASSERT_FALSE(pooling.ok()) << other;
    EXPECT_NE(pooling.error().ToString().find("qwen3.pooling_type"), std::string::npos);
  }
  const Result<Pooling> text = read([](GgufWriter& writer) {
    writer.Add("general.architecture", std::string_view("qwen3"));
    writer.Add("qwen3.pooling_type", std::string_view("mean"));
  });
  EXPECT_FALSE(text.ok());
  // A key of another architecture is none.
  const Result<Pooling> none = read([](GgufWriter& writer) {
    writer.Add("general.architecture", std::string_view("qwen3"));
    writer.Add("llama.pooling_type", 1);
  });
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.error().message.find("there is no qwen3.pooling_type"), std::string::npos);
}

}  // namespace
}  // namespace pawl::server
