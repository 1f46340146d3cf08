// Spans of requests: what the header traceparent says, and that the lines are what a collector of
// OpenTelemetry reads (opentelemetry-proto, trace.proto, in its JSON form).
#include "src/server/request_span.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <mutex>
#include <string>
#include <vector>

#include "src/server/server.h"
#include "tests/server/http_client.h"
#include "tests/server/test_server.h"

namespace pawl::server {
namespace {

const std::string kTrace = "4bf92f3577b34da6a3ce929d0e0e4736", kSpan = "00f067aa0ba902b7";

TEST(RequestSpanTest, TraceParents) {
  const std::string good = "00-" + kTrace + "-" + kSpan + "-01";
  const auto parent = ReadTraceParent(good);
  ASSERT_TRUE(parent);
  EXPECT_EQ(parent->trace, kTrace);
  EXPECT_EQ(parent->span, kSpan);
  EXPECT_TRUE(parent->sampled);
  EXPECT_FALSE(ReadTraceParent("00-" + kTrace + "-" + kSpan + "-00")->sampled);
  EXPECT_FALSE(ReadTraceParent("00-" + kTrace + "-" + kSpan + "-0a")->sampled);
  EXPECT_TRUE(ReadTraceParent("00-" + kTrace + "-" + kSpan + "-0b")->sampled);
  // A later version may go on; this one may not.
  EXPECT_TRUE(ReadTraceParent("cc-" + kTrace + "-" + kSpan + "-01-more"));
  EXPECT_FALSE(ReadTraceParent(good + "-more"));
  EXPECT_FALSE(ReadTraceParent("cc-" + kTrace + "-" + kSpan + "-01more"));
  EXPECT_FALSE(ReadTraceParent("ff-" + kTrace + "-" + kSpan + "-01"));
  EXPECT_FALSE(ReadTraceParent("00-" + std::string(32, '0') + "-" + kSpan + "-01"));
  EXPECT_FALSE(ReadTraceParent("00-" + kTrace + "-" + std::string(16, '0') + "-01"));
  // Cut anywhere, or with any character changed to one that may not stand there.
  for (size_t i = 0; i < good.size(); ++i) {
    EXPECT_FALSE(ReadTraceParent(good.substr(0, i))) << i;
    for (const char wrong : {'G', 'A', ' ', '\xC3'}) {
      std::string bad = good;
      bad[i] = wrong;
      EXPECT_FALSE(ReadTraceParent(bad)) << bad;
    }
  }
}

// The value of an attribute, as text; empty where it is not there.
std::string Attribute(const json::Value& span, const std::string& key) {
  for (const json::Value& one : At(span, "/attributes").items) {
    if (At(one, "/key").text == key) return At(one, "/value").members.front().second.text;
  }
  return "";
}

TEST(RequestSpanTest, ALineForEachRequest) {
  std::mutex mutex;
  std::vector<std::string> lines;
  ServerOptions options;
  options.version = "9.9";
  options.trace = [&](const std::string& line) {
    const std::lock_guard lock(mutex);
    lines.push_back(line);
  };
  std::unique_ptr<Server> server = ServerOf("tiny-extract", options);
  const std::string body = R"({"messages":[{"role":"user","content":"Ann"}],"max_tokens":3})";
  {
    Connection c(server->port());
    EXPECT_EQ(
        c.Post("/v1/chat/completions", body, "traceparent: 00-" + kTrace + "-" + kSpan + "-01\r\n")
            .status,
        200);
    EXPECT_EQ(
        c.Post("/v1/chat/completions", body, "traceparent: 00-" + kTrace + "-" + kSpan + "-00\r\n")
            .status,
        200);
    EXPECT_EQ(c.Post("/v1/chat/completions", body).status, 200);
    EXPECT_EQ(c.Post("/v1/chat/completions", "{").status, 400);
    EXPECT_EQ(c.Get("/health").status, 200);
    EXPECT_EQ(c.Post("/v1/chat/completions", R"({"messages":7})").status, 400);
    EXPECT_EQ(c.Post("/detokenize", "[").status, 400);
    EXPECT_EQ(c.Get("/nowhere").status, 404);
  }
  ASSERT_TRUE(server->Stop().ok());
  server.reset();
  ASSERT_EQ(lines.size(), 6u);  // the second caller records nothing
  std::vector<json::Value> spans;
  for (const std::string& line : lines) {
    const auto value = json::Parse(line);
    ASSERT_TRUE(value.ok()) << line;
    EXPECT_EQ(Attribute(At(*value, "/resourceSpans/0/resource"), "service.name"), "pawl");
    EXPECT_EQ(Attribute(At(*value, "/resourceSpans/0/resource"), "service.version"), "9.9");
    spans.push_back(At(*value, "/resourceSpans/0/scopeSpans/0/spans/0"));
  }
  const json::Value& joined = spans[0];
  EXPECT_EQ(At(joined, "/traceId").text, kTrace);
  EXPECT_EQ(At(joined, "/parentSpanId").text, kSpan);
  EXPECT_EQ(At(joined, "/name").text, "POST /v1/chat/completions");
  EXPECT_EQ(Attribute(joined, "http.response.status_code"), "200");
  EXPECT_EQ(Attribute(joined, "gen_ai.operation.name"), "chat");
  EXPECT_EQ(Attribute(joined, "gen_ai.response.model"), "tiny-extract");
  EXPECT_EQ(Attribute(joined, "gen_ai.usage.output_tokens"), "3");
  const long long begin = std::atoll(At(joined, "/startTimeUnixNano").text.c_str());
  const long long end = std::atoll(At(joined, "/endTimeUnixNano").text.c_str());
  const long long first = std::atoll(At(joined, "/events/0/timeUnixNano").text.c_str());
  EXPECT_LT(begin, first);
  EXPECT_LE(first, end);
  // A trace of its own.
  EXPECT_EQ(At(spans[1], "/traceId").text.size(), 32u);
  EXPECT_NE(At(spans[1], "/traceId").text, kTrace);
  EXPECT_EQ(At(spans[1], "/spanId").text.size(), 16u);
  EXPECT_EQ(At(spans[1], "/parentSpanId").text, "");
  EXPECT_EQ(Attribute(spans[2], "http.response.status_code"), "400");
  EXPECT_EQ(Attribute(spans[2], "gen_ai.usage.output_tokens"), "");
  // Those that are refused have the route that they asked for.
  const auto route = [&](size_t i) { return Attribute(spans[i], "http.route"); };
  EXPECT_EQ(route(2), "/v1/chat/completions");
  EXPECT_EQ(Attribute(spans[2], "gen_ai.operation.name"), "chat");
  EXPECT_EQ(route(3), "/v1/chat/completions");
  EXPECT_EQ(route(4), "/detokenize");
  EXPECT_EQ(Attribute(spans[4], "gen_ai.operation.name"), "");
  EXPECT_EQ(route(5), "");
}

}  // namespace
}  // namespace pawl::server
