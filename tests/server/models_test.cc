// Several models in one server: each answers as it would alone; memory, waiting, and the end.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "src/base/os/memory.h"
#include "src/server/body_member.h"
#include "src/server/heap_trim.h"
#include "src/server/model_choice.h"
#include "src/server/model_host.h"
#include "src/server/server.h"
#include "tests/server/http_client.h"
#include "tests/server/test_server.h"

namespace pawl::server {
namespace {

namespace fs = std::filesystem;

constexpr const char* kShipped = PAWL_SOURCE_DIR "/models/tiny-extract";
constexpr const char* kCode = PAWL_SOURCE_DIR "/models/tiny-code";
constexpr int64_t kMebibyte = int64_t{1} << 20;

ModelOfServer One(const std::string& name, const std::string& path = kShipped) {
  ModelOfServer model;
  model.path = path;
  model.model.name = name;
  model.model.model.threads = 1;
  return model;
}

// Memory for so many of the models that ship. One is counted with at most 18 MiB and a share of the
// budget. What earlier tests freed goes to the system first: a trim after this call would leave
// memory for one more.
int64_t BudgetFor(int models) {
  os::TrimHeap();
  constexpr int64_t kShares = 32;
  const int64_t bytes = ResidentBytes() + (models * 18 + 18) * kMebibyte;
  return bytes * kShares / (kShares - models);
}

std::unique_ptr<Server> ServerOfModels(std::vector<ModelOfServer> models, int64_t budget,
                                       ServerOptions options = {}) {
  options.models = std::move(models);
  options.models_bytes = budget;
  auto started = Server::Start(options);
  EXPECT_TRUE(started.ok());
  EXPECT_TRUE((*started)->WaitUntilReady().ok());
  return *std::move(started);
}

bool Soon(const std::function<bool()>& holds) {
  for (int i = 0; i < 2000; ++i) {
    if (holds()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

std::string StatusOf(Connection& c, const std::string& name) {
  return At(c.Get("/v1/models/" + name).Json(), "/status/value").text;
}

// The value of a line of /metrics; -1: there is none.
double MetricOf(int port, const std::string& line) {
  Connection c(port);
  const std::string page = c.Get("/metrics").body;
  const size_t at = page.find("\n" + line + " ");
  return at == std::string::npos ? -1 : std::stod(page.substr(at + line.size() + 2));
}

std::string Asking(const std::string& model, int i, int tokens = 24) {
  return R"({"model":")" + model + R"(","prompt":"Ann Lee, number )" + std::to_string(i) +
         R"(","temperature":0.9,"seed":)" + std::to_string(i) + R"(,"max_tokens":)" +
         std::to_string(tokens) + "}";
}

std::string ChoicesOf(const Answer& answer) {
  return json::Dump(At(answer.Json(), "/model")) + json::Dump(At(answer.Json(), "/choices"));
}

// What holds loads back, model by model: each waits in its make_drafter.
class Gate {
 public:
  std::function<Result<std::shared_ptr<Drafter>>(const ServedModel&)> Of(std::string name) {
    return [this, name = std::move(name)](const ServedModel& model) {
      std::unique_lock lock(mutex_);
      if (model.name() == name) {
        ++held_;
        open_changed_.wait(lock, [&] { return open_; });
      }
      return Result<std::shared_ptr<Drafter>>(nullptr);
    };
  }
  int held() {
    const std::lock_guard lock(mutex_);
    return held_;
  }
  void Open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    open_changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable open_changed_;
  bool open_ = false;
  int held_ = 0;
};

// ---- What a request asks for ----

std::string RandomJson(std::mt19937& random, int depth) {
  static const char* const kNames[] = {R"("model")", R"("mod\u0065l")", R"("a\"b")", R"("x")"};
  static const char* const kPlain[] = {"1",          "-2.5e3",     "true",  "null",
                                       R"("model")", R"("\\\"}")", R"("]")"};
  const auto blank = [&] { return random() % 3 == 0 ? std::string(" \n") : std::string(); };
  std::string out = blank();
  if (depth == 0 || random() % 3 == 0) return out + kPlain[random() % std::size(kPlain)] + blank();
  const bool object = random() % 2 == 0;
  out += object ? '{' : '[';
  std::vector<int> names = {0, 2, 3};
  if (random() % 2 == 0) names[0] = 1;
  std::shuffle(names.begin(), names.end(), random);
  const size_t count = random() % (names.size() + 1);
  for (size_t i = 0; i < count; ++i) {
    if (i > 0) out += ',';
    if (object) out += blank() + kNames[names[i]] + blank() + ':';
    out += RandomJson(random, depth - 1);
  }
  return out + blank() + (object ? "}" : "]") + blank();
}

TEST(ModelChoiceTest, TheMemberIsThatOfTheParsedBody) {
  std::mt19937 random(5);
  int found = 0;
  for (int i = 0; i < 3000; ++i) {
    const std::string body = RandomJson(random, 4);
    const auto parsed = json::Parse(body);
    ASSERT_TRUE(parsed.ok()) << body;
    const json::Value* const wanted =
        parsed->type == json::Type::kObject ? parsed->Find("model") : nullptr;
    const auto text = MemberText(body, "model");
    ASSERT_EQ(text.has_value(), wanted != nullptr) << body;
    if (wanted == nullptr) continue;
    ++found;
    EXPECT_EQ(json::Dump(*json::Parse(*text)), json::Dump(*wanted)) << body;
    // No part of it makes the search fail or read past the end.
    (void)MemberText(std::string_view(body).substr(0, random() % body.size()), "model");
  }
  EXPECT_GT(found, 300);
}

TEST(ModelChoiceTest, TimesAreWrittenAsOllamaDoes) {
  const std::pair<const char*, double> good[] = {{"90", 90},     {"5m", 300},   {"1h30m", 5400},
                                                 {"500ms", 0.5}, {"1.5s", 1.5}, {"-1", -1},
                                                 {"-1m", -1},    {"0", 0},      {"0s", 0}};
  for (const auto& [text, seconds] : good) {
    const auto read = KeepAliveOf(std::string_view(text));
    ASSERT_TRUE(read.has_value()) << text;
    EXPECT_DOUBLE_EQ(*read, seconds) << text;
  }
  for (const char* text : {"", "-", "m", "5x", "5m3", "1 h", "nan", "inf", "1e3s", "--1"}) {
    EXPECT_FALSE(KeepAliveOf(std::string_view(text)).has_value()) << text;
  }
}

// ---- Answers ----

TEST(ModelsTest, EachAnswersAsItWouldAlone) {
  const std::string broken = ::testing::TempDir() + "/pawl_broken_model";
  fs::remove_all(broken);
  fs::copy(kShipped, broken, fs::copy_options::recursive);
  fs::resize_file(broken + "/model.safetensors", 100000);
  std::vector<ModelOfServer> models = {One("a"),        One("b", kCode),       One("c"),
                                       One("d", kCode), One("broken", broken), One("large")};
  constexpr int kRequests = 48, kClients = 4;
  const char* const names[] = {"a", "b", "c", "d", "broken", "large"};
  const auto name_of = [&](int i) { return std::string(names[i * 7 % 11 % 6]); };
  std::vector<std::string> wanted(kRequests), found(kRequests);
  for (int m = 0; m < 4; ++m) {
    ServerOptions alone;
    alone.model.name = names[m];
    const auto server = ServerOf(m % 2 == 0 ? "tiny-extract" : "tiny-code", alone);
    Connection c(server->port());
    for (int i = 0; i < kRequests; ++i) {
      if (name_of(i) == names[m])
        wanted[i] = ChoicesOf(c.Post("/v1/completions", Asking(names[m], i)));
    }
  }
  const int64_t budget = BudgetFor(2);
  models.back().kv_bytes = 2 * budget;
  const auto server = ServerOfModels(models, budget);
  std::atomic<bool> done{false};
  int64_t most = 0;
  std::thread watcher([&] {
    while (!done) {
      most = std::max(most, ResidentBytes());
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  });
  std::vector<std::thread> clients;
  for (int k = 0; k < kClients; ++k) {
    clients.emplace_back([&, k] {
      Connection c(server->port());
      for (int i = k; i < kRequests; i += kClients) {
        const Answer answer = c.Post("/v1/completions", Asking(name_of(i), i));
        found[i] = answer.status == 200
                       ? ChoicesOf(answer)
                       : std::to_string(answer.status) + At(answer.Json(), "/error/message").text;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  done = true;
  watcher.join();
  for (int i = 0; i < kRequests; ++i) {
    if (name_of(i) == "broken") {
      EXPECT_TRUE(found[i].starts_with("503the model \"broken\" cannot be loaded: ")) << found[i];
      EXPECT_NE(found[i].find("model.safetensors"), std::string::npos) << found[i];
    } else if (name_of(i) == "large") {
      EXPECT_TRUE(found[i].starts_with("503the model \"large\" cannot be loaded: it needs "))
          << found[i];
    } else {
      EXPECT_EQ(found[i], wanted[i]) << i << name_of(i);
    }
  }
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LE(most, budget + budget / 10);
#endif
  // Two at most, and all of the four had their turn.
  int loaded = 0;
  Connection c(server->port());
  for (const char* name : names) loaded += StatusOf(c, name) == "loaded" ? 1 : 0;
  EXPECT_LE(loaded, 2);
  EXPECT_GE(MetricOf(server->port(), R"(pawl_model_loads_total{model="d"})"), 1);
  EXPECT_EQ(StatusOf(c, "large"), "failed");
  EXPECT_TRUE(server->Stop().ok());
}

TEST(ModelsTest, NamesAndLists) {
  const auto server = ServerOfModels({One("a"), One("org/b", kCode)}, BudgetFor(2));
  Connection c(server->port());
  const Answer unknown = c.Post("/v1/completions", Asking("gpt-9", 1));
  EXPECT_EQ(unknown.status, 404);
  EXPECT_EQ(At(unknown.Json(), "/error/code").text, "model_not_found");
  EXPECT_NE(unknown.body.find(R"(are \"a\", \"org/b\")"), std::string::npos) << unknown.body;
  const std::pair<const char*, int> wrong[] = {{R"({"prompt":"x"})", 400},
                                               {R"({"model":3,"prompt":"x"})", 400},
                                               {R"({"model":"a","prompt":"x")", 400},
                                               {"[1]", 400},
                                               {"no", 400},
                                               {R"({"model":"a","keep_alive":"x"})", 400}};
  for (const auto& [body, status] : wrong) {
    const Answer answer = c.Post("/v1/completions", body);
    EXPECT_EQ(answer.status, status) << body << answer.body;
  }
  EXPECT_EQ(c.Post("/v1/completions", Asking("a:latest", 1, 2)).status, 200);
  // A large body is looked at on a worker, and once more by the model.
  const std::string large = Asking("org/b", 1, 2);
  EXPECT_EQ(c.Post("/v1/completions", large.substr(0, large.size() - 1) + R"(,"user":")" +
                                          std::string(100000, 'u') + "\"}")
                .status,
            200);
  EXPECT_EQ(At(c.Get("/v1/models").Json(), "/data").items.size(), 2u);
  EXPECT_EQ(At(c.Get("/v1/models").Json(), "/data/1/id").text, "org/b");
  EXPECT_EQ(At(c.Get("/api/tags").Json(), "/models").items.size(), 2u);
  EXPECT_EQ(At(c.Get("/api/tags").Json(), "/models/0/digest").text.size(), 64u);
  EXPECT_GT(At(c.Get("/api/tags").Json(), "/models/0/modified_at").text, "2020");
  EXPECT_EQ(At(c.Get("/v1/models/org/b").Json(), "/max_model_len").text, "2048");
  EXPECT_EQ(c.Get("/v1/models/none").status, 404);
  EXPECT_EQ(At(c.Get("/props?model=org%2Fb").Json(), "/model_path").text, "org/b");
  EXPECT_EQ(c.Get("/props").status, 400);
  EXPECT_EQ(c.Get("/health").status, 200);
  const Answer missing = c.Post("/api/generate", R"({"model":"x","prompt":"y"})");
  EXPECT_EQ(missing.status, 404);
  EXPECT_EQ(At(missing.Json(), "/error").type, json::Type::kString);
  EXPECT_EQ(MetricOf(server->port(), R"(pawl_model_loaded{model="org/b"})"), 1);
  EXPECT_GT(MetricOf(server->port(), R"(pawl_output_tokens_total{model="a"})"), 0);
  EXPECT_EQ(MetricOf(server->port(), "pawl_output_tokens_total"), -1);
  EXPECT_GE(MetricOf(server->port(), R"(pawl_requests_total{route="refused",status="404"})"), 1);
}

TEST(ModelsTest, KeepAlive) {
  ModelOfServer kept = One("kept"), brief = One("brief");
  kept.keep_alive = -1;
  brief.keep_alive = 0;
  const auto server = ServerOfModels({kept, brief}, BudgetFor(2));
  Connection c(server->port());
  EXPECT_EQ(c.Post("/v1/completions", Asking("kept", 1, 2)).status, 200);
  EXPECT_EQ(c.Post("/v1/completions", Asking("brief", 1, 2)).status, 200);
  EXPECT_TRUE(Soon([&] { return StatusOf(c, "brief") == "unloaded"; }));
  EXPECT_EQ(StatusOf(c, "kept"), "loaded");
  const json::Value running = c.Get("/api/ps").Json();
  ASSERT_EQ(At(running, "/models").items.size(), 1u);
  EXPECT_EQ(At(running, "/models/0/name").text, "kept");
  // A request says it for its model, from then on.
  EXPECT_EQ(c.Post("/api/generate", R"({"model":"kept","prompt":"x","stream":false,"keep_alive":0,)"
                                    R"("options":{"num_predict":1}})")
                .status,
            200);
  EXPECT_TRUE(Soon([&] { return StatusOf(c, "kept") == "unloaded"; }));
  // Without a prompt, or with an empty one, a request loads its model, or unloads it.
  const std::string load =
      R"({"model":"kept","prompt":"","stream":false,"keep_alive":"99999999999h"})";
  const Answer loaded = c.Post("/api/generate", load);
  EXPECT_EQ(At(loaded.Json(), "/done_reason").text, "load") << loaded.body;
  EXPECT_EQ(StatusOf(c, "kept"), "loaded");
  EXPECT_EQ(c.Get("/v1/models/k%65pt%3Alatest").status, 200);
  const Answer unloaded = c.Post("/api/chat", R"({"model":"kept","messages":[],"keep_alive":0})");
  EXPECT_EQ(At(unloaded.Json(), "/done_reason").text, "unload") << unloaded.body;
  EXPECT_TRUE(Soon([&] { return StatusOf(c, "kept") == "unloaded"; }));
}

// The server looks at its models each second; that is no request for them.
TEST(ModelsTest, TheTimeOfKeepAliveRunsFromTheLastRequest) {
  ModelOfServer brief = One("brief");
  brief.keep_alive = 1.5;
  const auto server = ServerOfModels({brief, One("a"), One("b")}, BudgetFor(2));
  Connection c(server->port());
  EXPECT_EQ(c.Post("/v1/completions", Asking("brief", 1, 2)).status, 200);
  EXPECT_TRUE(Soon([&] { return StatusOf(c, "brief") == "unloaded"; }));
  for (const char* name : {"a", "b", "a"})
    EXPECT_EQ(c.Post("/v1/completions", Asking(name, 1, 2)).status, 200);
  std::this_thread::sleep_for(std::chrono::milliseconds(1200));
  EXPECT_EQ(c.Post("/v1/completions", Asking("brief", 1, 2)).status, 200);
  // The process's memory decides how many have to go, and a busy machine frees it late.
  EXPECT_EQ(StatusOf(c, "b"), "unloaded") << "b was asked for longest ago";
}

TEST(ModelsTest, StoredResponsesOutliveTheirModelAndStayWithTheirKey) {
  ModelOfServer brief = One("brief"), other = One("other");
  brief.keep_alive = 0;
  other.model.pooling = "mean";
  ServerOptions options;
  options.api_keys = {"one", "two"};
  const auto server = ServerOfModels({brief, other}, BudgetFor(2), options);
  Connection c(server->port());
  const std::string one = "Authorization: Bearer one\r\n", two = "Authorization: Bearer two\r\n";
  const std::string body = R"({"model":"brief","input":"Ann","max_output_tokens":3})";
  EXPECT_EQ(Connection(server->port()).Post("/v1/responses", body).status, 401);
  EXPECT_EQ(Connection(server->port()).Get("/v1/models").status, 401);
  const std::string id = At(c.Post("/v1/responses", body, one).Json(), "/id").text;
  EXPECT_TRUE(Soon([&] {
    return At(c.Get("/v1/models/brief", one).Json(), "/status/value").text == "unloaded";
  }));
  EXPECT_EQ(c.Get("/v1/responses/" + id, one).status, 200);
  EXPECT_EQ(c.Get("/v1/responses/" + id, two).status, 404);
  const auto next = [&](const std::string& model, const std::string& key) {
    return c
        .Post("/v1/responses",
              R"({"model":")" + model + R"(","input":"Lee","max_output_tokens":3,)" +
                  R"("previous_response_id":")" + id + "\"}",
              key)
        .status;
  };
  EXPECT_EQ(next("brief", one), 200);
  EXPECT_EQ(next("other", one), 200);
  EXPECT_EQ(next("brief", two), 400);
  // Embeddings are of one of them.
  EXPECT_EQ(c.Post("/v1/embeddings", R"({"model":"other","input":"Ann"})", two).status, 200);
  EXPECT_EQ(c.Post("/v1/embeddings", R"({"model":"brief","input":"Ann"})", two).status, 400);
}

// ---- Loads that take long ----

TEST(ModelsTest, ALoadMakesItsOwnRequestsWaitAndNoOneElses) {
  Gate gate;
  ServerOptions options;
  options.make_drafter = gate.Of("slow");
  ModelOfServer slow = One("slow");
  slow.max_batch = slow.max_queue = 1;
  const auto server = ServerOfModels({slow, One("fast")}, BudgetFor(2), options);
  const int port = server->port();
  Answer waited;
  std::thread client(
      [&] { waited = Connection(port).Post("/v1/completions", Asking("slow", 1, 2)); });
  EXPECT_TRUE(Soon([&] { return gate.held() == 1; }));
  Connection c(port);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(c.Post("/v1/completions", Asking("fast", i, 4)).status, 200);
  }
  EXPECT_EQ(StatusOf(c, "slow"), "loading");
  // Its queue has two places. A client that goes away leaves its place.
  const auto waiting = [&] {
    return MetricOf(port, R"(pawl_model_requests_waiting{model="slow"})");
  };
  EXPECT_EQ(waiting(), 1);
  {
    Connection goes(port);
    const std::string body = Asking("slow", 2, 2);
    goes.Send("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
              std::to_string(body.size()) + "\r\n\r\n" + body);
    EXPECT_TRUE(Soon([&] { return waiting() == 2; }));
    EXPECT_EQ(c.Post("/v1/completions", Asking("slow", 3, 2)).status, 429);
  }
  EXPECT_TRUE(Soon([&] { return waiting() == 1; }));
  EXPECT_EQ(MetricOf(port, R"(pawl_clients_gone_total{model="slow"})"), 1);
  gate.Open();
  client.join();
  EXPECT_EQ(waited.status, 200) << waited.body;
  EXPECT_EQ(gate.held(), 1);
}

TEST(ModelsTest, ARequestThatWaitsTooLongIsGivenUp) {
  Gate gate;
  ServerOptions options;
  options.make_drafter = gate.Of("slow");
  options.request_seconds = 0.3;
  const auto server = ServerOfModels({One("slow")}, BudgetFor(1), options);
  // The only model needs no name.
  Connection c(server->port());
  EXPECT_EQ(c.Post("/v1/completions", R"({"prompt":"x","max_tokens":2})").status, 408);
  EXPECT_EQ(MetricOf(server->port(), "pawl_timed_out_total"), -1);
  gate.Open();
  EXPECT_TRUE(Soon([&] { return StatusOf(c, "slow") == "loaded"; }));
}

TEST(ModelsTest, TheEndWhileAModelIsLoaded) {
  Gate gate;
  ServerOptions options;
  options.make_drafter = gate.Of("slow");
  options.drain_seconds = 5;
  // The third one waits for memory.
  const auto server = ServerOfModels({One("slow"), One("next")}, BudgetFor(1), options);
  std::vector<Answer> answers(2);
  std::vector<std::thread> clients;
  for (int i = 0; i < 2; ++i) {
    clients.emplace_back([&, i] {
      answers[i] = Connection(server->port())
                       .Post("/v1/completions", Asking(i == 0 ? "slow" : "next", 1, 2));
    });
    EXPECT_TRUE(Soon([&] { return gate.held() == 1; }));
  }
  EXPECT_TRUE(Soon([&] {
    return MetricOf(server->port(), R"(pawl_model_requests_waiting{model="next"})") == 1;
  }));
  std::thread stop([&] { EXPECT_TRUE(server->Stop().ok()); });
  for (std::thread& client : clients) client.join();
  for (const Answer& answer : answers) EXPECT_EQ(answer.status, 503) << answer.body;
  gate.Open();
  stop.join();
}

// ---- Who uses a model ----

class FakeExchange : public Exchange {
 public:
  const HttpRequest& request() const override { return request_; }
  void Reply(HttpReply) override {}
  void Stream(HttpReply, Pull) override {}
  void Wake() override {}
  void Post(std::function<void()> work) override { work(); }
  void OnGone(std::function<void()> gone) override {
    const std::lock_guard lock(mutex_);
    gone_ = std::move(gone);
  }
  void Abort() noexcept override {}
  // What the request got: a pointer, once it is there.
  void Give(std::shared_ptr<ServerState> state) {
    const std::lock_guard lock(mutex_);
    state_ = std::move(state);
  }
  bool has() {
    const std::lock_guard lock(mutex_);
    return state_ != nullptr;
  }
  void Drop() {
    std::shared_ptr<ServerState> state;
    const std::lock_guard lock(mutex_);
    state.swap(state_);
  }

 private:
  HttpRequest request_;
  std::mutex mutex_;
  std::function<void()> gone_;
  std::shared_ptr<ServerState> state_;
};

TEST(ModelHostTest, NoModelIsUnloadedThatIsInUse) {
  ServerOptions options;
  options.models = {One("a"), One("b")};
  options.models_bytes = BudgetFor(1);
  const auto host =
      std::make_shared<ModelHost>(options, std::make_shared<ServerState::Shared>(options));
  const auto use = [&](const char* name) {
    auto exchange = std::make_shared<FakeExchange>();
    host->Use(
        name, {}, exchange,
        [](std::shared_ptr<ServerState> state, const std::shared_ptr<Exchange> asked) {
          static_cast<FakeExchange&>(*asked).Give(std::move(state));
        },
        [](const ApiError& why, Exchange&) { ADD_FAILURE() << why.message; });
    return exchange;
  };
  const auto first = use("a");
  ASSERT_TRUE(Soon([&] { return first->has(); }));
  const auto second = use("b");
  // As long as the first one is used, whatever time goes by.
  for (int i = 0; i < 4; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    (void)host->Look(60);
    EXPECT_FALSE(second->has());
    EXPECT_TRUE(host->States()[0]->ready);
  }
  // The model leaves: who asks now comes after the one that waits.
  const auto third = use("a");
  EXPECT_FALSE(third->has());
  first->Drop();
  ASSERT_TRUE(Soon([&] { return second->has(); }));
  EXPECT_FALSE(third->has());
  EXPECT_FALSE(host->States()[0]->ready);
  second->Drop();
  ASSERT_TRUE(Soon([&] { return third->has(); }));
  EXPECT_FALSE(host->States()[1]->ready);
  third->Drop();
  host->Drain();
  EXPECT_TRUE(host->Stop().ok());
}

}  // namespace
}  // namespace pawl::server
