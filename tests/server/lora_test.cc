// `pawl serve --lora`: clients ask for an adapter by the name of a model.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "src/server/server.h"
#include "tests/server/http_client.h"
#include "tests/server/test_server.h"
#include "tests/support/lora_files.h"

namespace pawl::server {
namespace {

constexpr const char* kLoraBase = PAWL_SOURCE_DIR "/models/tiny-extract";

std::vector<LoraAdapter> ServedAdapters() {
  std::vector<LoraAdapter> made;
  const FloatTensors weights = ReadFloats(*Checkpoint::Open(kLoraBase));
  for (int i = 0; i < 2; ++i) {
    std::mt19937 random(static_cast<uint32_t>(i) + 8);
    TestLora lora;
    for (const auto& [name, tensor] : weights) {
      if (tensor.shape.size() != 2 || name.find("_proj.weight") == std::string::npos) continue;
      lora.Add(name.substr(0, name.size() - 7), tensor.shape[0], tensor.shape[1], random);
    }
    const std::string folder = testing::TempDir() + "/server-lora-" + std::to_string(i);
    lora.Write(folder);
    made.push_back({i == 0 ? "legal" : "mail", folder});
  }
  return made;
}

std::unique_ptr<Server> ServerWith(std::vector<LoraAdapter> adapters) {
  ServerOptions options;
  options.model.name = "base";
  options.model.pooling = "mean";
  options.model.model.lora = std::move(adapters);
  options.max_batch = 6;
  return ServerOf("tiny-extract", options);
}

std::string TextBody(const std::string& model, int number) {
  return R"({"model": ")" + model + R"(", "prompt": "Ann Lee lives in Porto. Number )" +
         std::to_string(number % 2) + R"(", "max_tokens": 12, "seed": )" + std::to_string(number) +
         R"(, "temperature": 1})";
}

std::string CompletionOf(Server& server, const std::string& body) {
  Connection c(server.port());
  const Answer answer = c.Post("/v1/completions", body);
  EXPECT_EQ(answer.status, 200) << answer.body;
  const auto parsed = json::Parse(answer.body);
  return parsed.ok() ? At(*parsed, "/choices/0/text").text : "";
}

TEST(LoraServerTest, AnswersAreThoseOfTheNamedAdapter) {
  const std::vector<LoraAdapter> adapters = ServedAdapters();
  const std::unique_ptr<Server> both = ServerWith(adapters);
  const std::unique_ptr<Server> base = ServerWith({});
  const std::unique_ptr<Server> mail = ServerWith({adapters[1]});
  // All at a time, so that their rows share calls.
  std::vector<std::string> texts(8);
  std::vector<std::thread> clients;
  const auto name_of = [](size_t i) { return i % 3 == 0 ? "base" : i % 3 == 1 ? "legal" : "mail"; };
  for (size_t i = 0; i < texts.size(); ++i) {
    clients.emplace_back(
        [&, i] { texts[i] = CompletionOf(*both, TextBody(name_of(i), static_cast<int>(i))); });
  }
  for (std::thread& client : clients) client.join();
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::string body = TextBody(name_of(i), static_cast<int>(i));
    if (i % 3 == 1) continue;
    EXPECT_EQ(texts[i], CompletionOf(i % 3 == 0 ? *base : *mail, body)) << body;
  }
  Connection c(both->port());
  // A text, scored; a vector; a record with its alternatives; a search: each has the adapter.
  const std::map<std::string, std::string> asked = {
      {"/v1/completions", R"("prompt": "Ann Lee", "echo": true, "logprobs": 0, "max_tokens": 0})"},
      {"/v1/embeddings", R"("input": "Ann Lee"})"},
      {"/v1/extract", R"("text": "Ann", "details": true, "seed": 1, "schema": {"type": "object",
          "properties": {"a": {"enum": ["x", "y"]}}, "required": ["a"]}})"},
      {"/v1/chat/completions", R"("messages": [{"role": "user", "content": "Ann"}], "max_tokens": 5,
          "seed": 1, "search": {"strategy": "beam", "num_beams": 2, "max_tokens": 4},
          "close_at_budget": false})"}};
  Connection to_mail(mail->port()), to_base(base->port());
  for (const auto& [route, rest] : asked) {
    const auto values = [&, route = route, rest = rest](Connection& to, const char* model) {
      const Answer answer = to.Post(route, std::string(R"({"model": ")") + model + "\", " + rest);
      EXPECT_EQ(answer.status, 200) << answer.body;
      const auto parsed = json::Parse(answer.body);
      EXPECT_EQ(At(*parsed, "/model").text, model) << route;
      std::string out;
      for (const char* const at :
           {"/choices/0/logprobs/token_logprobs/1", "/data/0/embedding/3",
            "/records/0/details/~1a/probability", "/choices/0/message/content",
            "/pawl/search/0/outputs/0/score"}) {
        out += At(*parsed, at).text + " ";
      }
      return out;
    };
    const std::string found = values(c, "mail");
    EXPECT_EQ(found, values(to_mail, "mail")) << route;
    EXPECT_EQ(values(c, "base"), values(to_base, "base")) << route;
    if (route != "/v1/extract") {
      EXPECT_NE(found, values(c, "base")) << route;
    }
  }
}

TEST(LoraServerTest, NamesAreListedAndChecked) {
  const std::unique_ptr<Server> server = ServerWith(ServedAdapters());
  Connection c(server->port());
  const Answer list = c.Get("/v1/models");
  const auto models = json::Parse(list.body);
  ASSERT_TRUE(models.ok());
  ASSERT_EQ(At(*models, "/data").items.size(), 3u);
  EXPECT_EQ(At(*models, "/data/0/id").text, "base");
  EXPECT_EQ(At(*models, "/data/2/id").text, "mail");
  EXPECT_EQ(At(*models, "/data/2/parent").text, "base");
  EXPECT_EQ(c.Get("/v1/models/legal").status, 200);
  EXPECT_EQ(c.Get("/v1/models/tax").status, 404);
  const Answer unknown = c.Post("/v1/completions", R"({"model": "tax", "prompt": "A"})");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_NE(unknown.body.find("this server has"), std::string::npos) << unknown.body;
  EXPECT_EQ(c.Post("/v1/completions", R"({"model": 7, "prompt": "A"})").status, 400);
  EXPECT_EQ(c.Post("/v1/completions", R"({"prompt": "A", "max_tokens": 2})").status, 200);
  const Answer latest =
      c.Post("/api/generate", R"({"model": "mail:latest", "prompt": "A", "stream": false,
                                  "options": {"num_predict": 2}})");
  EXPECT_EQ(latest.status, 200) << latest.body;
  EXPECT_NE(latest.body.find(R"("model":"mail")"), std::string::npos) << latest.body;
}

TEST(LoraServerTest, AServerIsNotStartedWithWhatIsWrong) {
  ServerOptions options;
  options.model_path = kLoraBase;
  options.model.name = "base";
  options.model.model.lora = {{"base", ServedAdapters()[0].path}};
  auto started = Server::Start(options);
  ASSERT_TRUE(started.ok());
  const Status same = (*started)->WaitUntilReady();
  ASSERT_FALSE(same.ok());
  EXPECT_NE(same.error().message.find("name of the model itself"), std::string::npos);
}

}  // namespace
}  // namespace pawl::server
