// How a server ends: what others hear while its last outputs run.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "src/server/server.h"
#include "tests/server/http_client.h"
#include "tests/server/test_server.h"

namespace pawl::server {
namespace {

// The listener stays until the last output has ended: a new connection hears that the server ends.
TEST(StoppingTest, WhileTheLastOutputRunsOthersHearThatTheServerEnds) {
  const std::unique_ptr<Server> server = ServerOf("tiny-extract");
  Connection long_one(server->port());
  const std::string body =
      R"({"prompt":"a","max_tokens":3000,"stream":true,"temperature":1,"seed":1,
      "structured_outputs":{"regex":"[a-z]{2500,}"}})";
  ASSERT_TRUE(long_one.Send("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
                            std::to_string(body.size()) + "\r\n\r\n" + body));
  while (Connection(server->port()).Get("/metrics").body.find("pawl_requests_live 1\n") ==
         std::string::npos) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  std::thread stop([&] { EXPECT_TRUE(server->Stop().ok()); });
  int refused = 0;
  for (int i = 0; i < 1000 && refused == 0; ++i) {
    Connection other(server->port());
    const Answer health = other.Get("/health");
    if (health.status != 503) continue;
    ++refused;
    EXPECT_EQ(other.Post("/v1/chat/completions", R"({"messages":[{"role":"user","content":"a"}]})")
                  .status,
              503);
  }
  EXPECT_EQ(refused, 1);
  const Answer answer = long_one.ReadAnswer();
  stop.join();
  EXPECT_NE(answer.body.find("[DONE]"), std::string::npos);
}

}  // namespace
}  // namespace pawl::server
