// Which requests a server takes by their Host, Origin and type: a table, for a server on loopback
// without a key and for others.
#include "src/server/http_options.h"

#include <gtest/gtest.h>

#include <string>

#include "src/server/http_server.h"
#include "tests/server/http_echo.h"

namespace pawl::server {
namespace {

// The status of the refusal; 0: none.
int Judged(const HttpOptions& options, HttpHeaders headers, const std::string& method = "POST") {
  HttpRequest head;
  head.method = method;
  head.path = "/v1/completions";
  head.headers = std::move(headers);
  const auto error = JudgeHeaders(options, head);
  return error ? error->status : 0;
}

TEST(HttpOptionsTest, HostOnLoopback) {
  HttpOptions options;
  options.known_hosts_only = true;
  options.allowed_hosts = {"Models.Example", "[fd00::7]"};
  for (const char* host : {"localhost", "localhost:8080", "LOCALHOST", "localhost.", "127.0.0.1",
                           "127.0.0.1:1", "127.255.1.2", "[::1]", "[::1]:8080", "models.example",
                           "MODELS.example:99", "[fd00::7]:1"}) {
    EXPECT_EQ(Judged(options, {{"host", host}}), 0) << host;
  }
  for (const char* host :
       {"", ":8080", "evil.example", "localhost.evil.example", "evil-localhost", "127.0.0.1.evil",
        "127.0.0.256", "127.0.0", "127.0.0.1.2", "128.0.0.1", "10.0.0.1", "0.0.0.0", "[::2]",
        "[::]", "x.models.example", "2130706433", "127.1", "models.example.evil"}) {
    EXPECT_EQ(Judged(options, {{"host", host}}), 403) << host;
    EXPECT_EQ(Judged(options, {{"host", host}}, "GET"), 403) << host;
  }
  EXPECT_EQ(Judged(options, {}), 0);  // of HTTP/1.0
  EXPECT_EQ(Judged({}, {{"host", "evil.example"}}), 0);
}

TEST(HttpOptionsTest, Origin) {
  const auto judged = [](const std::string& origin, const std::string& host,
                         const std::string& cors = "") {
    HttpOptions options;
    options.cors_origin = cors;
    return Judged(
        options,
        {{"host", host}, {"origin", origin}, {"content-type", "Application/JSON; charset=utf-8"}});
  };
  EXPECT_EQ(judged("http://localhost:8080", "localhost:8080"), 0);
  EXPECT_EQ(judged("http://LOCALHOST:8080", "localhost:8080"), 0);
  EXPECT_EQ(judged("https://api.example", "api.example"), 0);
  EXPECT_EQ(judged("https://api.example", "api.example:443"), 0);
  EXPECT_EQ(judged("http://api.example:80", "api.example"), 0);
  EXPECT_EQ(judged("http://[::1]:8080", "[::1]:8080"), 0);
  EXPECT_EQ(judged("null", "localhost:8080"), 403);
  EXPECT_EQ(judged("", "localhost:8080"), 403);
  EXPECT_EQ(judged("localhost:8080", "localhost:8080"), 403);
  EXPECT_EQ(judged("http://localhost:3000", "localhost:8080"), 403);
  EXPECT_EQ(judged("http://localhost", "localhost:8080"), 403);
  EXPECT_EQ(judged("http://evil.example", "localhost:8080"), 403);
  EXPECT_EQ(judged("http://localhost:8080/x", "localhost:8080"), 403);
  EXPECT_EQ(judged("file://", "localhost:8080"), 403);
  EXPECT_EQ(judged("chrome-extension://localhost:8080", "localhost:8080"), 403);
  EXPECT_EQ(judged("https://page.example", "localhost:8080", "https://page.example"), 0);
  EXPECT_EQ(judged("https://page.example:443", "localhost:8080", "https://PAGE.example"), 0);
  EXPECT_EQ(judged("http://page.example", "localhost:8080", "https://page.example"), 403);
  EXPECT_EQ(judged("https://page.example.evil", "localhost:8080", "https://page.example"), 403);
  EXPECT_EQ(judged("null", "localhost:8080", "https://page.example"), 403);
  EXPECT_EQ(judged("http://localhost:8080", "localhost:8080", "https://page.example"), 0);
  EXPECT_EQ(judged("https://any.example", "localhost:8080", "*"), 0);
  EXPECT_EQ(Judged({}, {{"host", "h"}, {"origin", "http://h"}, {"origin", "http://h"}}), 400);
}

TEST(HttpOptionsTest, APageSendsJson) {
  const HttpHeaders page = {{"host", "h"}, {"origin", "http://h"}};
  const auto with = [&](const char* type) {
    HttpHeaders headers = page;
    headers.emplace_back("content-type", type);
    return headers;
  };
  EXPECT_EQ(Judged({}, with("application/json")), 0);
  EXPECT_EQ(Judged({}, with("application/json ; charset=utf-8")), 0);
  EXPECT_EQ(Judged({}, with("text/plain")), 415);
  EXPECT_EQ(Judged({}, with("application/x-www-form-urlencoded")), 415);
  EXPECT_EQ(Judged({}, with("application/jsonx")), 415);
  EXPECT_EQ(Judged({}, page), 415);
  EXPECT_EQ(Judged({}, page, "GET"), 0);
  EXPECT_EQ(Judged({}, page, "OPTIONS"), 0);
  // What `curl -d` sends.
  EXPECT_EQ(Judged({}, {{"host", "h"}, {"content-type", "application/x-www-form-urlencoded"}}), 0);
}

// What could end up in a header is refused when the server starts.
TEST(HttpOptionsTest, OptionsAreChecked) {
  const auto starts = [](const std::string& cors, const std::string& host) {
    HttpOptions options;
    options.cors_origin = cors;
    if (!host.empty()) options.allowed_hosts = {host};
    return HttpServer::Start(options, EchoHandler()).ok();
  };
  for (const char* good : {"", "*", "https://page.example", "http://localhost:3000"}) {
    EXPECT_TRUE(starts(good, "")) << good;
  }
  for (const char* bad : {"http://a\r\nX: 1", "http://a\n", "http://a\r", "page.example", "http://",
                          "http://a/", "http://a b", "null", "**", "http://u@a", "://a"}) {
    EXPECT_FALSE(starts(bad, "")) << bad;
  }
  EXPECT_TRUE(starts("", "models.example"));
  EXPECT_TRUE(starts("", "10.0.0.7"));
  for (const char* bad : {"a:80", "a b", "http://a", "a\r\nb", "a/b", "*", "*.example"}) {
    EXPECT_FALSE(starts("", bad)) << bad;
  }
}

}  // namespace
}  // namespace pawl::server
