// Memory that runs out while a connection works: the k-th allocation fails, for each k there is.
// The connection closes or answers 500, the work for it hears of it, the counts are right, and
// the next connection is served.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "src/server/http_server.h"
#include "tests/server/failing_memory.h"
#include "tests/server/http_client.h"
#include "tests/server/http_echo.h"
#include "tests/server/memory_stream.h"

namespace pawl::server {
namespace {

std::string Request(const std::string& path, const std::string& fields, const std::string& body) {
  return "POST " + path + " HTTP/1.1\r\nHost: localhost\r\n" + fields + "\r\n" + body;
}

// Answers in each of the forms there are, by the path.
class Conversation {
 public:
  Conversation() {
    HttpHandler handler = EchoHandler();
    handler.handle = [this, echo = handler.handle](std::shared_ptr<Exchange> exchange) {
      const std::string& path = exchange->request().path;
      exchange->OnGone([this] { ++gone_; });
      if (path == "/echo") return echo(std::move(exchange));
      if (path == "/drop") return;
      if (path == "/throw") throw std::runtime_error("a handler that throws");
      if (path == "/keep") {
        kept_ = std::move(exchange);
        throw std::runtime_error("a handler that throws, and somebody has the exchange");
      }
      if (path == "/post") {
        exchange->Post([exchange] { exchange->Reply({.body = std::string(100, 'p')}); });
        return;
      }
      exchange->Stream({.content_type = "text/event-stream"}, [n = 0](std::string& out) mutable {
        out += std::string(100, 's');
        return ++n < 5;
      });
    };
    HttpOptions options;
    options.cors_origin = "https://page.example";
    shared_ = std::make_shared<HttpShared>(options, handler);
    const std::string large(200'000, 'x');
    texts_ = {
        Request("/echo", "Content-Length: 5\r\nX-Request-Id: mine\r\n", "hello"),
        Request("/echo", "Transfer-Encoding: chunked\r\n",
                "5;a=b\r\nhello\r\n30d40\r\n" + large + "\r\n0\r\nX: y\r\n\r\n"),
        Request("/none", "Content-Length: 5\r\n", "hello"),
        Request("/drop", "Content-Length: 5\r\n", "hello"),
        Request("/throw", "Content-Length: 5\r\n", "hello"),
        Request("/keep", "Content-Length: 5\r\n", "hello"),
        Request("/post", "Content-Length: 5\r\n", "hello"),
        Request("/stream", "Content-Length: 5\r\nExpect: 100-continue\r\n", "hello"),
        Request("/echo", "Content-Length: x\r\n", ""),
        Request("/echo", "Origin: http://other.example\r\nContent-Length: 5\r\n", "hello"),
    };
  }

  size_t texts() const { return texts_.size(); }
  int gone() const { return gone_; }
  bool failed() const { return failed_; }

  // The statuses of what is said to the text, pipelined three times.
  std::string Talk(size_t text, int64_t left, bool once = false) {
    std::string out;
    {
      MemoryClient client(shared_);
      client.wire().in = texts_[text] + texts_[text] + texts_[text];
      {
        const Failing failing(left, once);
        client.Run();
        failed_ = Failing::failed();
      }
      bool whole = false;
      // Chunked answers are not taken apart here.
      if (client.wire().out.find("chunked") == std::string::npos) {
        for (const EchoAnswer& answer : ReadAnswers(client.wire().out, whole)) {
          out += std::to_string(answer.status) + " ";
        }
      } else {
        out = std::to_string(client.wire().out.size());
      }
      {
        const Failing failing(0);
        client.wire().broken = true;
        client.Run(IoTask::kGone);
        kept_.reset();
      }
      EXPECT_TRUE(client.wire().closed);
    }
    EXPECT_EQ(shared_->exchanges, 0) << texts_[text].substr(0, 100);
    EXPECT_EQ(shared_->connections, 0) << texts_[text].substr(0, 100);
    EXPECT_EQ(shared_->bodies.bytes(), 0u);
    return out;
  }

 private:
  std::shared_ptr<HttpShared> shared_;
  std::vector<std::string> texts_;
  std::shared_ptr<Exchange> kept_;
  int gone_ = 0;
  bool failed_ = false;
};

TEST(HttpFaultsTest, TheKthAllocationFails) {
  Conversation conversation;
  const std::string plain = conversation.Talk(0, -1);
  EXPECT_EQ(plain, "200 200 200 ");
  EXPECT_EQ(conversation.Talk(3, -1), "500 ");
  EXPECT_EQ(conversation.Talk(4, -1), "500 ");
  EXPECT_EQ(conversation.Talk(5, -1), "");  // it hears that its client has gone
  EXPECT_EQ(conversation.gone(), 1);
  int64_t failures = 0;
  for (size_t text = 0; text < conversation.texts(); ++text) {
    for (const bool once : {true, false}) {
      for (int64_t k = 0;; ++k) {
        conversation.Talk(text, k, once);
        if (!conversation.failed()) break;
        ++failures;
        ASSERT_LT(k, 10'000);
      }
    }
    EXPECT_EQ(conversation.Talk(0, -1), plain);
  }
  EXPECT_GT(failures, 200);
}

// A thread that lets go of an exchange, or answers, may have no memory at all.
TEST(HttpFaultsTest, AnsweringTakesNoMemory) {
  std::shared_ptr<Exchange> kept;
  HttpHandler handler = EchoHandler();
  handler.handle = [&](std::shared_ptr<Exchange> exchange) { kept = std::move(exchange); };
  const auto shared = std::make_shared<HttpShared>(HttpOptions{}, handler);
  MemoryClient client(shared);
  client.Say(Request("/a", "Content-Length: 0\r\nX-Request-Id: the-id\r\n", ""));
  {
    const Failing failing(0);
    kept.reset();
    EXPECT_TRUE(client.RunIfWanted());
  }
  EXPECT_TRUE(client.wire().out.starts_with("HTTP/1.1 500 ")) << client.wire().out;
  EXPECT_NE(client.wire().out.find("x-request-id: the-id\r\n"), std::string::npos);
  bool whole = false;
  ASSERT_EQ(ReadAnswers(client.wire().out, whole).size(), 1u);
  EXPECT_TRUE(whole);
  EXPECT_EQ(shared->exchanges, 0);

  MemoryClient other(shared);
  other.Say(Request("/a", "Content-Length: 0\r\n", ""));
  HttpReply reply{.body = std::string(1000, 'x')};
  {
    const Failing failing(0);
    kept->Reply(std::move(reply));
    kept->Wake();
    kept.reset();
  }
  EXPECT_TRUE(other.RunIfWanted());
  EXPECT_TRUE(other.wire().out.starts_with("HTTP/1.1 200 ")) << other.wire().out;
}

// An exception of a handler, on real threads: that connection ends, and the server lives.
TEST(HttpFaultsTest, AHandlerThatThrows) {
  HttpHandler handler = EchoHandler();
  handler.handle = [echo = handler.handle](std::shared_ptr<Exchange> exchange) {
    if (exchange->request().path == "/throw") throw std::length_error("thrown");
    echo(std::move(exchange));
  };
  handler.judge = [](const HttpRequest& head) -> std::optional<HttpReply> {
    if (head.path == "/judge") throw std::length_error("thrown");
    return std::nullopt;
  };
  const auto server = HttpServer::Start({}, handler);
  ASSERT_TRUE(server.ok());
  Connection good((*server)->port());
  EXPECT_EQ(good.Get("/a").status, 200);
  for (const char* path : {"/throw", "/judge"}) {
    for (int i = 0; i < 20; ++i) {
      Connection c((*server)->port());
      const int status = c.Get(path).status;
      EXPECT_TRUE(status == 500 || status == 0) << status;
      EXPECT_FALSE(c.Read());  // and is closed
    }
  }
  EXPECT_EQ(good.Get("/a").status, 200);
  // A client has its answer a moment before the server has counted it.
  for (int i = 0; i < 1000 && (*server)->exchanges() > 0; ++i) ::usleep(1000);
  EXPECT_EQ((*server)->exchanges(), 0);
}

// The request that ended the server once: a trailer above what a library took.
TEST(HttpFaultsTest, LongTrailers) {
  const auto server = HttpServer::Start({}, EchoHandler());
  ASSERT_TRUE(server.ok());
  Connection c((*server)->port());
  c.Send(Request("/a", "Transfer-Encoding: chunked\r\n", "1\r\nx\r\n0\r\nX: ") +
         std::string(70'000, 'a') + "\r\n\r\n");
  EXPECT_EQ(c.ReadAnswer().status, 431);
  // Many short ones: no more than the limit is read of them.
  Connection many((*server)->port());
  many.Send(Request("/a", "Transfer-Encoding: chunked\r\n", "1\r\nx\r\n0\r\n"));
  size_t sent = 0;
  while (sent < (size_t{1} << 20) && many.Send("X: " + std::string(1000, 'a') + "\r\n")) {
    sent += 1000;
  }
  EXPECT_EQ(many.ReadAnswer().status, 431);
  EXPECT_EQ(Connection((*server)->port()).Get("/a").status, 200);
}

}  // namespace
}  // namespace pawl::server
