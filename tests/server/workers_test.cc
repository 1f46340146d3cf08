// What runs where: large bodies never on a connection's thread, large work never on the worker that
// small work has for itself, and nothing goes on for a client that has gone. The probe of the
// server's work holds threads at known places, so no test measures time.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "src/server/server.h"
#include "src/server/worker_pool.h"
#include "tests/server/http_client.h"

namespace pawl::server {
namespace {

TEST(WorkerPoolTest, SmallWorkPassesLargeWork) {
  for (const int threads : {0, 1, 2, 4}) {
    const int workers = std::max(2, threads);
    std::promise<void> go;
    const std::shared_future<void> gone = go.get_future().share();
    std::atomic<int> large_done{0};
    std::vector<std::promise<WorkPlace>> small(3);
    {
      std::promise<void> last;
      WorkerPool pool(threads);
      for (int i = 0; i < workers + 3; ++i) {
        pool.Submit(
            [&, gone] {
              gone.wait();
              EXPECT_EQ(WorkerPool::Here(), WorkPlace::kWorker);
              if (++large_done == workers + 3) last.set_value();
            },
            WorkSize::kLarge);
      }
      // Every thread that takes large work is held or about to be.
      for (auto& done : small) {
        pool.Submit([&done] { done.set_value(WorkerPool::Here()); });
        (void)done.get_future().get();
      }
      EXPECT_EQ(large_done, 0);
      go.set_value();
      last.get_future().wait();
    }
    EXPECT_EQ(WorkerPool::Here(), WorkPlace::kConnection);
  }
}

TEST(WorkerPoolTest, WorkOfOneThreadKeepsItsOrder) {
  std::vector<int> order;
  std::promise<void> done, go, all;
  std::promise<WorkPlace> held;
  const std::shared_future<void> gone = go.get_future().share();
  WorkerPool pool(2, std::chrono::hours(1));
  // Both threads are held; the one for small work stays so until the other has done all else.
  pool.Submit([gone] { gone.wait(); }, WorkSize::kLarge);
  pool.Submit([&] {
    held.set_value(WorkerPool::Here());
    all.get_future().wait();
  });
  ASSERT_EQ(held.get_future().get(), WorkPlace::kSmallWorker);
  for (int i = 0; i < 6; ++i) {
    pool.Submit(
        [&, i] {
          order.push_back(i);
          if (i == 5) all.set_value();
        },
        i % 2 == 0 ? WorkSize::kLarge : WorkSize::kSmall);
  }
  go.set_value();
  pool.Submit([&] { done.set_value(); });
  done.get_future().wait();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4, 5}));
}

// Bug: two small requests for grammars that took long to compile held up all others; later, twenty.
TEST(WorkerPoolTest, SmallWorkPassesSmallWorkThatTakesLong) {
  for (const int held : {2, 5, 60}) {
    std::promise<void> go;
    const std::shared_future<void> gone = go.get_future().share();
    std::atomic<int> done{0};
    std::atomic<bool> all_held{false};  // the worker for everything, too
    {
      WorkerPool pool(2, std::chrono::milliseconds(1));
      for (int i = 0; i < held; ++i) {
        pool.Submit([&, gone] {
          if (WorkerPool::Here() == WorkPlace::kWorker) all_held = true;
          gone.wait();
          ++done;
        });
      }
      for (int round = 0; round < 3; ++round) {
        const bool only_small = all_held;
        std::promise<WorkPlace> small;
        pool.Submit([&small] { small.set_value(WorkerPool::Here()); });
        const WorkPlace place = small.get_future().get();
        EXPECT_TRUE(place == WorkPlace::kSmallWorker || !only_small);
      }
      EXPECT_EQ(done, 0);
      go.set_value();
      // Those that belong to the pool are there again for large work.
      std::promise<WorkPlace> large;
      pool.Submit([&large] { large.set_value(WorkerPool::Here()); }, WorkSize::kLarge);
      EXPECT_EQ(large.get_future().get(), WorkPlace::kWorker);
      while (done < held) std::this_thread::yield();
    }
  }
}

// What a server works on, and a gate at which large work waits.
class Probe {
 public:
  struct Part {
    WorkPlace place;
    std::string part;
    size_t bytes;
  };

  ServerOptions Options() {
    ServerOptions options;
    options.model_path = PAWL_SOURCE_DIR "/models/tiny-extract";
    options.model.model.threads = 1;
    options.on_work = [this](WorkPlace place, std::string_view part, size_t bytes) {
      std::unique_lock lock(mutex_);
      parts_.push_back({place, std::string(part), bytes});
      changed_.notify_all();
      if (bytes > kSmallBytes) changed_.wait(lock, [this] { return open_; });
    };
    return options;
  }
  void Open(bool open) {
    const std::lock_guard lock(mutex_);
    open_ = open;
    changed_.notify_all();
  }
  // Until so many parts of that name have begun.
  void Await(const std::string& part, size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return Count(part) >= count; });
  }
  std::vector<Part> parts() {
    const std::lock_guard lock(mutex_);
    return parts_;
  }
  size_t CountOf(const std::string& part) {
    const std::lock_guard lock(mutex_);
    return Count(part);
  }

 private:
  size_t Count(const std::string& part) const {
    return static_cast<size_t>(
        std::ranges::count_if(parts_, [&](const Part& p) { return p.part == part; }));
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Part> parts_;
  bool open_ = true;
};

std::unique_ptr<Server> StartServer(const ServerOptions& options) {
  auto server = Server::Start(options);
  EXPECT_TRUE(server.ok()) << server.error().ToString();
  EXPECT_TRUE((*server)->WaitUntilReady().ok());
  return *std::move(server);
}

std::string Large(const std::string& member) {
  return "{" + member + R"(,"filler":")" + std::string(kSmallBytes, 'x') + "\"}";
}
const char* const kSmallRequest = R"({"prompt":"a","max_tokens":2})";

void SendPost(Connection& c, const std::string& path, const std::string& body) {
  c.Send("POST " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body);
}

TEST(WorkersTest, WhatRunsWhere) {
  Probe probe;
  const auto server = StartServer(probe.Options());
  Connection c(server->port());
  EXPECT_EQ(c.Post("/v1/completions", kSmallRequest).status, 200);
  EXPECT_EQ(c.Post("/tokenize", R"({"content":"a"})").status, 200);
  EXPECT_EQ(c.Post("/detokenize", R"({"tokens":[1,2]})").status, 200);
  EXPECT_EQ(c.Post("/api/show", "{}").status, 200);
  for (const auto& [path, member] :
       std::vector<std::pair<std::string, std::string>>{{"/tokenize", R"("content":"a")"},
                                                        {"/detokenize", R"("tokens":[1])"},
                                                        {"/api/show", R"("name":"a")"},
                                                        {"/v1/completions", R"("prompt":"a")"}}) {
    EXPECT_EQ(c.Post(path, Large(member)).status, 200) << path;
  }
  // One that is wrong, too.
  EXPECT_EQ(c.Post("/v1/completions", Large("x") + "}").status, 400);
  std::map<std::string, std::set<WorkPlace>> small, large;
  for (const Probe::Part& part : probe.parts()) {
    (part.bytes > kSmallBytes ? large : small)[part.part].insert(part.place);
  }
  EXPECT_EQ(small["read"].count(WorkPlace::kConnection), 1U);  // completions and show
  EXPECT_EQ(small["prepare"].count(WorkPlace::kConnection), 0U);
  for (const char* part : {"read", "answer", "prepare"}) {
    EXPECT_EQ(large[part], std::set{WorkPlace::kWorker}) << part;
  }
  for (const Probe::Part& part : probe.parts()) {
    const bool short_answer = part.part == "answer" && part.bytes != 2;  // not "{}" of show
    EXPECT_FALSE(short_answer && part.place == WorkPlace::kConnection);
  }
}

// However many workers there are, all of them but one are held, and more waits.
TEST(WorkersTest, SmallRequestsPassLargeOnes) {
  for (const int workers : {1, 2, 3}) {
    Probe probe;
    ServerOptions options = probe.Options();
    options.workers = workers;
    const auto server = StartServer(options);
    probe.Open(false);
    std::vector<std::unique_ptr<Connection>> large;
    for (int i = 0; i < workers + 2; ++i) {
      large.push_back(std::make_unique<Connection>(server->port()));
      const bool tokens = i % 2 == 0;
      SendPost(*large.back(), tokens ? "/tokenize" : "/v1/completions",
               Large(tokens ? R"("content":"a")" : R"("prompt":"a","max_tokens":1)"));
    }
    probe.Await("read", static_cast<size_t>(std::max(1, workers - 1)));
    Connection c(server->port());
    for (int i = 0; i < 5; ++i) {
      EXPECT_EQ(c.Post("/v1/completions", kSmallRequest).status, 200);
      EXPECT_EQ(c.Post("/tokenize", R"({"content":"a"})").status, 200);
    }
    probe.Open(true);
    for (const auto& one : large) EXPECT_EQ(one->ReadAnswer().status, 200);
  }
}

// Reading a body ends where its client goes: what would come behind it does not begin.
TEST(WorkersTest, AClientThatGoesStopsTheReading) {
  Probe probe;
  const auto server = StartServer(probe.Options());
  probe.Open(false);
  std::string ids = R"({"tokens":[1)";
  for (int i = 0; i < 100000; ++i) ids += ",1";
  ids += "]}";
  {
    Connection c(server->port());
    SendPost(c, "/detokenize", ids);
    probe.Await("read", 1);
  }
  Connection c(server->port());
  while (c.Get("/metrics").body.find("pawl_clients_gone_total 1\n") == std::string::npos) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  probe.Open(true);
  EXPECT_EQ(c.Post("/tokenize", Large(R"("content":"a")")).status, 200);
  EXPECT_EQ(probe.CountOf("read"), 2U);
  // Of the second alone; /metrics has no body.
  const std::vector<Probe::Part> parts = probe.parts();
  EXPECT_EQ(std::ranges::count_if(
                parts, [](const auto& part) { return part.part == "answer" && part.bytes > 0; }),
            1);
}

// Bug: compiling went on after its client had gone, and the next request waited for it.
TEST(WorkersTest, AClientThatGoesStopsTheCompiling) {
  ServerOptions options = Probe().Options();
  options.on_work = nullptr;
  const auto server = StartServer(options);
  const auto counts = [&](const char* line) {
    Connection c(server->port());
    return c.Get("/metrics").body.find(line) != std::string::npos;
  };
  {
    // Takes seconds.
    std::string pattern;
    for (int i = 0; i < 30'000; ++i) pattern += "(a" + std::to_string(i) + "|[a-z]{3,9}b)?";
    Connection c(server->port());
    SendPost(c, "/v1/completions", R"({"prompt":"a","max_tokens":2,"regex":")" + pattern + "\"}");
    while (!counts("pawl_grammar_misses_total 1\n")) std::this_thread::yield();
  }
  while (!counts("pawl_compiles_stopped_total 1\n")) std::this_thread::yield();
  EXPECT_TRUE(counts("pawl_grammars 0\n"));
}

// So does the time for a request, also while it waits for a worker.
TEST(WorkersTest, ARequestThatIsReadTooLongIsAnswered) {
  Probe probe;
  ServerOptions options = probe.Options();
  options.request_seconds = 0.2;
  options.workers = 1;
  const auto server = StartServer(options);
  probe.Open(false);
  Connection read(server->port()), waiting(server->port());
  SendPost(read, "/tokenize", Large(R"("content":"a")"));
  probe.Await("read", 1);
  const std::string waits = Large(R"("prompt":"waits")");
  SendPost(waiting, "/v1/completions", waits);
  EXPECT_EQ(read.ReadAnswer().status, 408);
  EXPECT_EQ(waiting.ReadAnswer().status, 408);
  probe.Open(true);
  // The one that waited is not read any more.
  Answer later;
  for (int i = 0; i < 50 && later.status != 200; ++i) {
    later = read.Post("/tokenize", Large(R"("content":"a")"));
  }
  EXPECT_EQ(later.status, 200);
  const size_t bytes = waits.size();
  EXPECT_TRUE(std::ranges::none_of(probe.parts(),
                                   [&](const Probe::Part& part) { return part.bytes == bytes; }));
}

TEST(WorkersTest, TheQueueOfBodiesHasABound) {
  Probe probe;
  ServerOptions options = probe.Options();
  options.max_queue = 2;
  options.max_batch = 1;
  options.workers = 4;
  const auto server = StartServer(options);
  probe.Open(false);
  std::vector<std::unique_ptr<Connection>> some;
  for (int i = 0; i < 3; ++i) {
    some.push_back(std::make_unique<Connection>(server->port()));
    SendPost(*some.back(), "/tokenize", Large(R"("content":"a")"));
  }
  probe.Await("read", 3);
  Connection more(server->port());
  const Answer full = more.Post("/tokenize", Large(R"("content":"a")"));
  EXPECT_EQ(full.status, 429) << full.body;
  EXPECT_NE(full.body.find("the queue is full: 3 requests wait to be read"), std::string::npos);
  EXPECT_EQ(more.Post("/v1/completions", kSmallRequest).status, 200);
  probe.Open(true);
  for (const auto& one : some) EXPECT_EQ(one->ReadAnswer().status, 200);
}

// ---- What is too much ----

TEST(WorkersTest, PromptsThatNoContextHoldsAreRefused) {
  Probe probe;
  const auto server = StartServer(probe.Options());
  Connection c(server->port());
  const std::string spaces = std::string(1 << 20, ' '), text = json::Quote(spaces);
  const std::string messages = R"("messages":[{"role":"user","content":)" + text + "}]";
  for (const auto& [path, body] : std::vector<std::pair<std::string, std::string>>{
           {"/v1/completions", R"({"prompt":)" + text + "}"},
           {"/v1/completions", R"({"prompt":["a",)" + text + "]}"},
           {"/completion", R"({"prompt":)" + json::Quote(std::string(1 << 20, '7')) + "}"},
           {"/v1/chat/completions", "{" + messages + "}"},
           {"/infill", R"({"input_suffix":"a","input_prefix":)" + text + "}"},
           {"/api/generate", R"({"prompt":)" + text + "}"}}) {
    const Answer answer = c.Post(path, body);
    EXPECT_EQ(answer.status, 400) << path << answer.body.substr(0, 200);
    EXPECT_NE(answer.body.find(" tokens hold no more than "), std::string::npos)
        << path << answer.body.substr(0, 300);
    if (path.starts_with("/v1")) {
      EXPECT_EQ(At(answer.Json(), "/error/code").text, "context_length_exceeded");
    }
  }
}

TEST(WorkersTest, BodiesOfTooManyValuesAreRefused) {
  Probe probe;
  const auto server = StartServer(probe.Options());
  Connection c(server->port());
  std::string ids = R"({"tokens":[1)";
  for (int i = 0; i < 2'000'000; ++i) ids += ",1";
  Answer answer = c.Post("/detokenize", ids + "]}");
  EXPECT_EQ(answer.status, 400);
  EXPECT_NE(answer.body.find("holds more than 1048576 values"), std::string::npos) << answer.body;
  EXPECT_EQ(probe.CountOf("answer"), 0U);
  // Fewer members are read, and of those that change nothing 256 are named.
  std::string members = R"({"prompt":"a","max_tokens":1)";
  for (int i = 0; i < 3000; ++i) members += ",\"m" + std::to_string(i) + "\":0";
  answer = c.Post("/v1/completions", members + "}");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(At(answer.Json(), "/pawl/ignored").items.size(), 256U);
  for (int i = 3000; i < 700'000; ++i) members += ",\"m" + std::to_string(i) + "\":0";
  answer = c.Post("/v1/completions", members + "}");
  EXPECT_EQ(answer.status, 400);
  EXPECT_NE(answer.body.find("more than 4096 members"), std::string::npos) << answer.body;
}

}  // namespace
}  // namespace pawl::server
