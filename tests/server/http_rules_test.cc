// HTTP by the section of RFC 9112 (connections and messages) and RFC 9110 (what fields mean): what
// is accepted, what is refused, and what becomes of the connection.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/server/http_echo.h"
#include "tests/server/memory_stream.h"

namespace pawl::server {
namespace {

HttpOptions SmallLimits() {
  HttpOptions options;
  options.max_header_bytes = 1000;
  options.max_body_bytes = 100;
  return options;
}

struct Case {
  const char* section;
  std::string bytes;
  // The statuses of the answers, then "close" where the connection is not used any more; "wait"
  // where it waits for more of a request.
  const char* answers;
  // The last body, of an echo; empty: anything.
  const char* body = "";
};

std::string Post(const std::string& fields, const std::string& body) {
  return "POST /a HTTP/1.1\r\nHost: h\r\n" + fields + "\r\n" + body;
}
std::string Get(const std::string& fields) {
  return "GET /a HTTP/1.1\r\nHost: h\r\n" + fields + "\r\n";
}
std::string Chunked(const std::string& body) {
  return Post("Transfer-Encoding: chunked\r\n", body);
}

const std::vector<Case>& Cases() {
  static const std::string k0(1, '\0');
  static const std::vector<Case> cases = {
      // RFC 9112, 2.1 and 2.2: lines.
      {"9112 2.1", Get(""), "200", "GET /a 0:"},
      {"9112 2.1", Get("") + Get("") + Get(""), "200 200 200"},
      {"9112 2.1", "GET /a HTTP/1.1\r\nHost: h\r\n", "wait"},
      {"9112 2.2", "\r\n" + Get(""), "200"},
      {"9112 2.2", Get("") + "\r\n" + Get(""), "200 200"},
      {"9112 2.2", "\r\n\r\n" + Get(""), "400 close"},
      {"9112 2.2", "GET /a HTTP/1.1\nHost: h\r\n\r\n", "400 close"},
      {"9112 2.2", "GET /a HTTP/1.1\r\nHost: h\n\r\n", "400 close"},
      {"9112 2.2", "GET /a HTTP/1.1\r\nHost: h\r\n\n", "400 close"},
      {"9112 2.2", "GET /a HTTP/1.1\rHost: h\r\n\r\n", "400 close"},
      {"9112 2.2", Get("X: a\rb\r\n"), "400 close"},
      {"9112 2.2", "GET /a HTTP/1.1\r\n Host: h\r\n\r\n", "400 close"},
      // 3: the request line.
      {"9112 3", "GET  /a HTTP/1.1\r\nHost: h\r\n\r\n", "400 close"},
      {"9112 3", "GET /a  HTTP/1.1\r\nHost: h\r\n\r\n", "400 close"},
      {"9112 3", "GET\t/a HTTP/1.1\r\nHost: h\r\n\r\n", "400 close"},
      {"9112 3", "GET /a HTTP/1.1 \r\nHost: h\r\n\r\n", "400 close"},
      {"9112 3", " GET /a HTTP/1.1\r\nHost: h\r\n\r\n", "400 close"},
      {"9112 3", "GET /a\r\nHost: h\r\n\r\n", "400 close"},
      {"9112 3", "GET\r\n\r\n", "400 close"},
      {"9112 3", "GET /" + std::string(2000, 'a') + " HTTP/1.1\r\nHost: h\r\n\r\n", "414 close"},
      {"9112 3.1", "G@T /a HTTP/1.1\r\nHost: h\r\n\r\n", "400 close"},
      {"9112 3.1", "(GET) /a HTTP/1.1\r\nHost: h\r\n\r\n", "400 close"},
      {"9112 3.1", "M-SEARCH /a HTTP/1.1\r\nHost: h\r\n\r\n", "200", "M-SEARCH /a 0:"},
      {"9112 3.2", "GET a HTTP/1.1\r\nHost: h\r\n\r\n", "400 close"},
      {"9112 3.2", "GET /a b HTTP/1.1\r\nHost: h\r\n\r\n", "400 close"},
      {"9112 3.2", "GET /a#b HTTP/1.1\r\nHost: h\r\n\r\n", "400 close"},
      {"9112 3.2", "GET /\"a\" HTTP/1.1\r\nHost: h\r\n\r\n", "400 close"},
      {"9112 3.2", "GET /\xC3\xA4 HTTP/1.1\r\nHost: h\r\n\r\n", "400 close"},
      {"9112 3.2", "GET /a" + k0 + " HTTP/1.1\r\nHost: h\r\n\r\n", "400 close"},
      {"9112 3.2", "GET /a%2 HTTP/1.1\r\nHost: h\r\n\r\n", "400 close"},
      {"9112 3.2", "GET /a%zz HTTP/1.1\r\nHost: h\r\n\r\n", "400 close"},
      {"9112 3.2.1", "GET /a%20b?c=d/?e HTTP/1.1\r\nHost: h\r\n\r\n", "200",
       "GET /a%20b?c=d/?e 0:"},
      {"9112 3.2.2", "GET http://h/a?b HTTP/1.1\r\nHost: h\r\n\r\n", "200", "GET /a?b 0:"},
      {"9112 3.2.2", "GET HTTP://h HTTP/1.1\r\nHost: h\r\n\r\n", "200", "GET / 0:"},
      {"9112 3.2.2", "GET http:///a HTTP/1.1\r\nHost: h\r\n\r\n", "400 close"},
      {"9112 3.2.2", "GET http://u@h/a HTTP/1.1\r\nHost: h\r\n\r\n", "400 close"},
      {"9112 3.2.2", "GET ftp://h/a HTTP/1.1\r\nHost: h\r\n\r\n", "400 close"},
      {"9112 3.2.3", "CONNECT h:80 HTTP/1.1\r\nHost: h:80\r\n\r\n", "405 close"},
      {"9112 3.2.4", "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", "200", "OPTIONS * 0:"},
      {"9112 3.2.4", "GET * HTTP/1.1\r\nHost: h\r\n\r\n", "400 close"},
      // 2.3 and RFC 9110, 2.5: versions.
      {"9112 2.3", "GET /a HTTP/1.0\r\n\r\n", "200 close"},
      {"9112 2.3", "GET /a HTTP/1.7\r\nHost: h\r\n\r\n", "200"},
      {"9112 2.3", "GET /a HTTP/2.0\r\nHost: h\r\n\r\n", "505 close"},
      {"9112 2.3", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "505 close"},
      {"9112 2.3", "GET /a HTTP/0.9\r\n\r\n", "505 close"},
      {"9112 2.3", "GET /a http/1.1\r\nHost: h\r\n\r\n", "400 close"},
      {"9112 2.3", "GET /a HTTP/1\r\nHost: h\r\n\r\n", "400 close"},
      {"9112 2.3", "GET /a HTTP/1.10\r\nHost: h\r\n\r\n", "400 close"},
      {"9112 2.3", "GET /a HTTP/1,1\r\nHost: h\r\n\r\n", "400 close"},
      // 3.2 and RFC 9110, 7.2: Host.
      {"9112 3.2", "GET /a HTTP/1.1\r\n\r\n", "400 close"},
      {"9112 3.2", Get("Host: h\r\n"), "400 close"},
      {"9112 3.2", Get("HOST: other\r\n"), "400 close"},
      {"9112 3.2", "GET /a HTTP/1.1\r\nHost: a b\r\n\r\n", "400 close"},
      {"9112 3.2", "GET /a HTTP/1.1\r\nHost: a/b\r\n\r\n", "400 close"},
      {"9112 3.2", "GET /a HTTP/1.1\r\nHost: u@h\r\n\r\n", "400 close"},
      {"9112 3.2", "GET /a HTTP/1.1\r\nHost: h:80x\r\n\r\n", "400 close"},
      {"9112 3.2", "GET /a HTTP/1.1\r\nHost: a, b\r\n\r\n", "400 close"},
      {"9112 3.2", "GET /a HTTP/1.1\r\nHost: [::1\r\n\r\n", "400 close"},
      {"9112 3.2", "GET /a HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", "200"},
      {"9112 3.2", "GET /a HTTP/1.1\r\nHost:\r\n\r\n", "200"},
      {"9112 3.2", "GET http://h/a HTTP/1.1\r\n\r\n", "400 close"},
      // 5: fields.
      {"9112 5", Get("X:a\r\nY:\r\nZ: \t b c\t \r\n"), "200"},
      {"9112 5", Get("X\r\n"), "400 close"},
      {"9112 5", Get(": a\r\n"), "400 close"},
      {"9112 5.1", Get("X : a\r\n"), "400 close"},
      {"9112 5.1", Get("X\t: a\r\n"), "400 close"},
      {"9112 5.1", Get("X Y: a\r\n"), "400 close"},
      {"9112 5.1", Get("X(: a\r\n"), "400 close"},
      {"9112 5.1", Get("\xC3\xA4: a\r\n"), "400 close"},
      {"9112 5.2", Get("X: a\r\n b\r\n"), "400 close"},
      {"9112 5.2", Get("X: a\r\n\tb\r\n"), "400 close"},
      {"9110 5.5", Get("X: a" + k0 + "b\r\n"), "400 close"},
      {"9110 5.5", Get("X: a\x1B[31m\r\n"), "400 close"},
      {"9110 5.5", Get("X: a\x7F\r\n"), "400 close"},
      {"9110 5.5", Get("X: \xC3\xA4\tb\r\n"), "200"},
      {"9110 5.4", Get("X: " + std::string(2000, 'a') + "\r\n"), "431 close"},
      // 6.2: Content-Length, and RFC 9110, 8.6.
      {"9112 6.2", Post("Content-Length: 5\r\n", "hello"), "200", "POST /a 5:hello"},
      {"9112 6.2", Post("Content-Length: 5\r\n", "hell"), "wait"},
      {"9112 6.2", Post("Content-Length: 005\r\n", "hello") + Get(""), "200 200"},
      {"9112 6.2", Post("Content-Length: 0\r\n", "") + Get(""), "200 200"},
      {"9110 8.6", Post("Content-Length:\r\n", ""), "400 close"},
      {"9110 8.6", Post("Content-Length: -1\r\n", ""), "400 close"},
      {"9110 8.6", Post("Content-Length: +5\r\n", "hello"), "400 close"},
      {"9110 8.6", Post("Content-Length: 0x5\r\n", "hello"), "400 close"},
      {"9110 8.6", Post("Content-Length: 5 5\r\n", "hello"), "400 close"},
      {"9110 8.6", Post("Content-Length: 5, 5\r\n", "hello"), "400 close"},
      {"9110 8.6", Post("Content-Length: 5\r\nContent-Length: 5\r\n", "hello"), "400 close"},
      {"9110 8.6", Post("Content-Length: 5\r\nContent-Length: 6\r\n", "hello!"), "400 close"},
      {"9110 8.6", Post("Content-Length: 101\r\n", ""), "413 close"},
      {"9110 8.6", Post("Content-Length: 99999999999999999999999999\r\n", ""), "413 close"},
      {"9110 8.6", Post("Content-Length: 18446744073709551616\r\n", ""), "413 close"},
      // 6.1 and 6.3: Transfer-Encoding.
      {"9112 6.1", Chunked("5\r\nhello\r\n0\r\n\r\n") + Get(""), "200 200"},
      {"9112 6.1", Post("Transfer-Encoding: Chunked\r\n", "0\r\n\r\n"), "200", "POST /a 0:"},
      {"9112 6.1", Post("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n"),
       "400 close"},
      {"9112 6.1", Post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "hello"),
       "400 close"},
      {"9112 6.1", "POST /a HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400 close"},
      {"9112 6.1", Post("Transfer-Encoding: chunked, chunked\r\n", "0\r\n\r\n"), "400 close"},
      {"9112 6.1",
       Post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
       "400 close"},
      {"9112 6.1", Post("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"), "501 close"},
      {"9112 6.3", Post("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n"), "400 close"},
      {"9112 6.3", Post("Transfer-Encoding: chunked, gzip\r\n", "0\r\n\r\n"), "400 close"},
      {"9112 6.3", Post("Transfer-Encoding: gzip\r\n", "0\r\n\r\n"), "400 close"},
      {"9112 6.3", Post("Transfer-Encoding: identity\r\n", ""), "400 close"},
      {"9112 6.3", Post("Transfer-Encoding:\r\n", ""), "400 close"},
      {"9112 6.3", Post("Transfer-Encoding: chunked;q=1\r\n", "0\r\n\r\n"), "400 close"},
      {"9112 6.3", Post("Transfer-Encoding: \"chunked\"\r\n", "0\r\n\r\n"), "400 close"},
      {"9112 6.3", Post("Transfer-Encoding: , chunked\r\n", "0\r\n\r\n"), "400 close"},
      {"9112 6.3", Post("Transfer-Encoding : chunked\r\n", "0\r\n\r\n"), "400 close"},
      {"9112 6.3", Post("Transfer-Encoding: chunked\x0B\r\n", "0\r\n\r\n"), "400 close"},
      {"9112 6.3", Post("", "hello HTTP/1.1\r\n\r\n"), "200 400 close"},
      // 7.1: chunks.
      {"9112 7.1", Chunked("5\r\nhel\no\r\n3\r\nabc\r\n000\r\n\r\n"), "200", "POST /a 8:hel\noabc"},
      {"9112 7.1", Chunked("A\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n"), "200"},
      {"9112 7.1", Chunked("\r\nhello\r\n0\r\n\r\n"), "400 close"},
      {"9112 7.1", Chunked("zz\r\nhello\r\n0\r\n\r\n"), "400 close"},
      {"9112 7.1", Chunked("0x5\r\nhello\r\n0\r\n\r\n"), "400 close"},
      {"9112 7.1", Chunked("-5\r\nhello\r\n0\r\n\r\n"), "400 close"},
      {"9112 7.1", Chunked(" 5\r\nhello\r\n0\r\n\r\n"), "400 close"},
      {"9112 7.1", Chunked("5 \r\nhello\r\n0\r\n\r\n"), "400 close"},
      {"9112 7.1", Chunked("5\nhello\r\n0\r\n\r\n"), "400 close"},
      {"9112 7.1", Chunked("5\r\nhelloX\r\n0\r\n\r\n"), "400 close"},
      {"9112 7.1", Chunked("5\r\nhello\n0\r\n\r\n"), "400 close"},
      {"9112 7.1", Chunked("5\r\nhello\r\n0\r\n"), "wait"},
      {"9112 7.1", Chunked("65\r\n"), "413 close"},
      {"9112 7.1", Chunked("40\r\n" + std::string(64, 'x') + "\r\n40\r\n"), "413 close"},
      {"9112 7.1", Chunked("FFFFFFFFFFFFFFFF\r\n"), "413 close"},
      {"9112 7.1", Chunked("10000000000000005\r\nhello\r\n0\r\n\r\n"), "400 close"},
      {"9112 7.1", Chunked("00000000000000005\r\nhello\r\n0\r\n\r\n"), "400 close"},
      {"9112 7.1.1", Chunked("5;a=b ; c = \"d;\\\"\\r\"\r\nhello\r\n0;z\r\n\r\n"), "200"},
      {"9112 7.1.1", Chunked("5;\r\nhello\r\n0\r\n\r\n"), "400 close"},
      {"9112 7.1.1", Chunked("5;a=\"b\r\nhello\r\n0\r\n\r\n"), "400 close"},
      {"9112 7.1.1", Chunked("5;a=b c\r\nhello\r\n0\r\n\r\n"), "400 close"},
      {"9112 7.1.1", Chunked("5;a\rb\r\nhello\r\n0\r\n\r\n"), "400 close"},
      {"9112 7.1.1",
       Chunked("1;a=" + std::string(600, 'b') + "\r\nx\r\n1;a=" + std::string(600, 'b') + "\r\n"),
       "431 close"},
      {"9112 7.1.2", Chunked("0\r\nX: a\r\nY: b\r\n\r\n") + Get(""), "200 200"},
      {"9112 7.1.2", Chunked("0\r\nX: " + std::string(70000, 'a') + "\r\n\r\n"), "431 close"},
      {"9112 7.1.2",
       Chunked("0\r\nX: " + std::string(500, 'a') + "\r\nY: " + std::string(500, 'a') + "\r\n\r\n"),
       "431 close"},
      {"9112 7.1.2", Chunked("0\r\nX : a\r\n\r\n"), "400 close"},
      {"9112 7.1.2", Chunked("0\r\nX: a\r\n b\r\n\r\n"), "400 close"},
      {"9110 6.5.1", Chunked("0\r\nContent-Length: 9\r\nHost: other\r\n\r\n") + Get(""), "200 200"},
      // 9.3 and 9.6: connections.
      {"9112 9.3", Get("Connection: close\r\n") + Get(""), "200 close"},
      {"9112 9.3", Get("Connection: X, CLOSE\r\n") + Get(""), "200 close"},
      {"9112 9.3", "GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" + Get(""), "200 200"},
      {"9112 9.3", "GET /a HTTP/1.0\r\n\r\n" + Get(""), "200 close"},
      {"9112 9.6", "GET /none HTTP/1.1\r\nHost: h\r\n\r\n" + Get(""), "404 200"},
      {"9112 9.6", "POST /none HTTP/1.1\r\nHost: h\r\nContent-Length: 40\r\n\r\n" + Get(""),
       "404 close"},
      // RFC 9110, 10.1.1: Expect.
      {"9110 10.1.1", Post("Expect: 100-continue\r\nContent-Length: 5\r\n", "hello"), "200"},
      {"9110 10.1.1", Post("Expect: 100-CONTINUE\r\nContent-Length: 0\r\n", ""), "200"},
      {"9110 10.1.1", Post("Expect: x\r\nContent-Length: 5\r\n", "hello"), "417 close"},
      {"9110 10.1.1", Post("Expect: 100-continue, x\r\nContent-Length: 5\r\n", "hello"),
       "417 close"},
      {"9110 10.1.1", "POST /a HTTP/1.0\r\nExpect: x\r\nContent-Length: 5\r\n\r\nhello",
       "200 close"},
      {"9110 10.1.1",
       "POST /none HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n",
       "404 close"},
      {"9110 8.4", Post("Content-Encoding: gzip\r\nContent-Length: 5\r\n", "hello"), "415 close"},
  };
  return cases;
}

std::string Shown(const std::string& bytes) {
  std::string out;
  for (const char c : bytes.substr(0, 300)) {
    out += c == '\r' ? "\\r" : c == '\n' ? "\\n" : std::string(1, c);
  }
  return out;
}

// What the connection says, in pieces of `piece` bytes; `half`: and the client sends no more.
std::string Talk(const std::string& bytes, size_t piece, bool half, std::string& body) {
  MemoryClient client(std::make_shared<HttpShared>(SmallLimits(), EchoHandler()));
  for (size_t at = 0; at < bytes.size(); at += piece) client.Say(bytes.substr(at, piece));
  const bool closed_itself = client.wire().out_ended || client.wire().closed;
  if (half) client.EndSaying();
  bool whole = false;
  std::string out;
  for (const EchoAnswer& answer : ReadAnswers(client.wire().out, whole)) {
    out += std::to_string(answer.status) + " ";
    body = answer.body;
    EXPECT_EQ(answer.status >= 400, answer.body.find("\"error\"") != std::string::npos);
  }
  EXPECT_TRUE(whole) << client.wire().out;
  if (closed_itself) out += "close ";
  if (!out.empty()) out.pop_back();
  return out.empty() ? "wait" : out;
}

TEST(HttpRulesTest, BySection) {
  EXPECT_GE(Cases().size(), 60u);
  for (const Case& one : Cases()) {
    for (const size_t piece : {size_t{1} << 20, size_t{1}, size_t{7}}) {
      std::string body;
      EXPECT_EQ(Talk(one.bytes, piece, false, body), one.answers)
          << one.section << " in pieces of " << piece << ": " << Shown(one.bytes);
      if (*one.body == '\0') continue;
      EXPECT_EQ(body, one.body) << Shown(one.bytes);
    }
  }
}

// RFC 9112, 9.6 and 8: a client that has closed its side is answered, and so is all that it sent
// before; half a request is no request.
TEST(HttpRulesTest, HalfClosedClientsAreAnswered) {
  for (const Case& one : Cases()) {
    std::string body;
    const std::string wanted = one.answers == std::string("wait") ? "400" : one.answers;
    EXPECT_EQ(Talk(one.bytes, size_t{1} << 20, true, body), wanted) << Shown(one.bytes);
  }
  MemoryClient nothing(std::make_shared<HttpShared>(SmallLimits(), EchoHandler()));
  nothing.Say("\r\n");
  nothing.EndSaying();
  EXPECT_EQ(nothing.wire().out, "");
  EXPECT_TRUE(nothing.wire().closed);
}

TEST(HttpRulesTest, ContinueIsSaidOnlyWhereTheBodyIsWanted) {
  const auto shared = std::make_shared<HttpShared>(SmallLimits(), EchoHandler());
  const std::string expects = "Expect: 100-continue\r\nContent-Length: 5\r\n";
  MemoryClient client(shared);
  client.Say(Post(expects, ""));
  EXPECT_EQ(client.wire().out, "HTTP/1.1 100 Continue\r\n\r\n");
  client.Say("hello");
  bool whole = false;
  ASSERT_EQ(ReadAnswers(client.wire().out, whole).size(), 1u);
  EXPECT_TRUE(whole);
  for (const std::string& bytes :
       {"POST /none HTTP/1.1\r\nHost: h\r\n" + expects + "\r\n", Post(expects, "h"),
        Post("Expect: 100-continue\r\nContent-Length: 500\r\n", ""),
        Post("Expect: 100-continue\r\n", "")}) {
    MemoryClient other(shared);
    other.Say(bytes);
    EXPECT_EQ(other.wire().out.find("100 Continue"), std::string::npos) << bytes;
  }
}

// Nothing of the body is taken where the headers are refused: the bytes stay with the client.
TEST(HttpRulesTest, HeadersAreJudgedBeforeTheBody) {
  std::vector<std::string> judged;
  HttpHandler handler = EchoHandler();
  handler.judge = [&](const HttpRequest& head) -> std::optional<HttpReply> {
    judged.push_back(head.path);
    EXPECT_EQ(head.body.size(), 0u);
    return ApiError{.status = 401, .message = "no"}.ToReply();
  };
  MemoryClient client(std::make_shared<HttpShared>(SmallLimits(), handler));
  client.Say("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 99\r\n\r\n");
  bool whole = false;
  const auto answers = ReadAnswers(client.wire().out, whole);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].status, 401);
  EXPECT_NE(answers[0].head.find("connection: close"), std::string::npos);
  EXPECT_EQ(judged, std::vector<std::string>{"/a"});
  EXPECT_TRUE(client.wire().out_ended);
}

// A request that comes too slowly is told so; a connection at rest is closed.
TEST(HttpRulesTest, Time) {
  const auto shared = std::make_shared<HttpShared>(SmallLimits(), EchoHandler());
  MemoryClient slow(shared);
  slow.Say("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n");
  slow.Pass(std::chrono::seconds(29));
  EXPECT_EQ(slow.wire().out, "");
  slow.Say("abc");
  slow.Pass(std::chrono::seconds(2));
  EXPECT_TRUE(slow.wire().out.starts_with("HTTP/1.1 408 Request Timeout\r\n")) << slow.wire().out;
  MemoryClient rests(shared);
  rests.Say(Get(""));
  rests.Pass(std::chrono::seconds(70));
  EXPECT_FALSE(rests.wire().closed);
  rests.Pass(std::chrono::seconds(6));
  EXPECT_TRUE(rests.wire().closed);
  EXPECT_EQ(shared->exchanges, 0);
}

// While a whole answer is made, a client that has closed its side hears a 100 now and then; one
// that has gone is found out by that, and who works for it is told.
TEST(HttpRulesTest, WhoSendsNoMoreIsAskedWhetherItIsThere) {
  std::shared_ptr<Exchange> kept;
  bool gone = false;
  HttpHandler handler = EchoHandler();
  handler.handle = [&](std::shared_ptr<Exchange> exchange) {
    exchange->OnGone([&] { gone = true; });
    kept = std::move(exchange);
  };
  const auto shared = std::make_shared<HttpShared>(SmallLimits(), handler);
  {
    MemoryClient client(shared);
    client.Say(Get(""));
    client.EndSaying();
    EXPECT_EQ(client.wire().out, "");
    client.Pass(std::chrono::seconds(1));
    EXPECT_EQ(client.wire().out, "HTTP/1.1 100 Continue\r\n\r\n");
    kept->Reply({.body = "{}"});
    EXPECT_TRUE(client.RunIfWanted());
    bool whole = false;
    EXPECT_EQ(ReadAnswers(client.wire().out, whole).size(), 1u);
    EXPECT_FALSE(gone);
  }
  MemoryClient client(shared);
  client.Say(Get(""));
  client.EndSaying();
  client.Pass(std::chrono::milliseconds(100));
  EXPECT_FALSE(gone);
  client.wire().broken = true;
  client.Pass(std::chrono::seconds(1));
  EXPECT_TRUE(gone);
  EXPECT_TRUE(client.wire().closed);
  EXPECT_EQ(shared->exchanges, 0);
  kept->Reply({});
  kept.reset();
}

// A stream is what was pulled, in chunks, however little the client takes at a time.
TEST(HttpRulesTest, Streams) {
  std::shared_ptr<Exchange> kept;
  HttpHandler handler = EchoHandler();
  std::string piece;
  bool more = true;
  handler.handle = [&](std::shared_ptr<Exchange> exchange) {
    kept = exchange;
    exchange->Stream({.content_type = "text/event-stream"}, [&](std::string& out) {
      out += std::exchange(piece, "");
      return more;
    });
  };
  MemoryClient client(std::make_shared<HttpShared>(SmallLimits(), handler));
  client.wire().room = 3;
  client.Say(Get(""));
  piece = "one";
  kept->Wake();
  EXPECT_TRUE(client.RunIfWanted());
  EXPECT_TRUE(client.wire().out.ends_with("\r\n\r\n3\r\none\r\n")) << client.wire().out;
  piece = std::string(20, 'x');
  more = false;
  kept->Wake();
  EXPECT_TRUE(client.RunIfWanted());
  EXPECT_TRUE(client.wire().out.ends_with("14\r\nxxxxxxxxxxxxxxxxxxxx\r\n0\r\n\r\n"));
  kept.reset();
  client.Say(Get(""));
  EXPECT_TRUE(client.wire().out.ends_with("0\r\n\r\n"));
}

}  // namespace
}  // namespace pawl::server
