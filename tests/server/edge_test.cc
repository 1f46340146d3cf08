// The edge of a whole server: what is said before a body is read, what a page of the web may do,
// and the lines for curl that the documents have.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "src/base/digest.h"
#include "src/base/file.h"
#include "src/base/utf8.h"
#include "src/server/server.h"
#include "tests/server/drafts_of_prompt.h"
#include "tests/server/http_client.h"

namespace pawl::server {
namespace {

std::unique_ptr<Server> StartEdge(const std::vector<std::string>& keys,
                                  const std::vector<std::string>& hosts,
                                  const char* drafts = nullptr) {
  ServerOptions options;
  options.model.pooling = "mean";
  options.model_path = PAWL_SOURCE_DIR "/models/tiny-extract";
  options.model.model.threads = 1;
  options.api_keys = keys;
  options.http.allowed_hosts = hosts;
  if (drafts != nullptr) {
    options.make_drafter = [drafts](const ServedModel& model) { return DraftsOf(drafts, model); };
  }
  auto server = Server::Start(options);
  EXPECT_TRUE(server.ok()) << server.error().ToString();
  EXPECT_TRUE((*server)->WaitUntilReady().ok());
  return *std::move(server);
}

int OpenPort() {
  static const std::unique_ptr<Server> server = StartEdge({}, {"models.example"});
  return server->port();
}

// The answer to a head, of whose body nothing is sent.
Answer ToHead(int port, const std::string& line, const std::string& fields, size_t length) {
  Connection c(port);
  c.Send(line + " HTTP/1.1\r\n" + fields + "Content-Length: " + std::to_string(length) +
         "\r\n\r\n");
  Answer answer = c.ReadAnswer();
  EXPECT_FALSE(c.Read()) << "the connection goes on";
  return answer;
}

// What drafts have learned is kept by whom it is of. The file tells no key.
TEST(EdgeTest, TheHistoryOfDraftsHasNoKey) {
  const std::string history = ::testing::TempDir() + "/edge_drafts.history";
  std::remove(history.c_str());
  const std::string key = "sk-5e3f-a-key-of-the-test";
  {
    ServerOptions options;
    options.model_path = PAWL_SOURCE_DIR "/models/tiny-extract";
    options.model.model.threads = 1;
    options.api_keys = {key, "another"};
    options.make_drafter = [&](const ServedModel& model) {
      return DraftsOf("history", model, history);
    };
    auto server = Server::Start(options);
    ASSERT_TRUE(server.ok() && (*server)->WaitUntilReady().ok());
    Connection c((*server)->port());
    const std::string body =
        R"({"prompt":"a","temperature":0,"max_tokens":12,"regex":"[a-c]{3,9}"})";
    for (const std::string& one : options.api_keys) {
      EXPECT_EQ(c.Post("/v1/completions", body, "Authorization: Bearer " + one + "\r\n").status,
                200);
    }
  }
  const Result<std::string> kept = ReadFile(history, 1 << 20);
  ASSERT_TRUE(kept.ok()) << kept.error().ToString();
  EXPECT_EQ(kept->find(key), std::string::npos);
  EXPECT_EQ(kept->find("another"), std::string::npos);
  for (const std::string& one : {key, std::string("another")}) {
    Digest digest(DigestKind::kSha256);
    digest.Add("pawl draft owner\n" + one);
    std::string owner = digest.Hex().substr(0, 16);
    owner.erase(0, owner.find_first_not_of('0'));
    EXPECT_NE(kept->find(" " + owner + "\n"), std::string::npos) << *kept;
  }
}

TEST(EdgeTest, HeadersAreJudgedBeforeTheBody) {
  const auto server = StartEdge({"secret"}, {});
  const int port = server->port();
  const std::string host = "Host: h\r\n", key = host + "Authorization: Bearer secret\r\n";
  for (const size_t length : {size_t{10}, size_t{8} << 20, size_t{1} << 40}) {
    EXPECT_EQ(ToHead(port, "POST /v1/completions", host, length).status, 401);
    EXPECT_EQ(ToHead(port, "POST /nothing", host, length).status, 401);
    EXPECT_EQ(ToHead(port, "POST /nothing", key, length).status, 404);
    const Answer other = ToHead(port, "PUT /v1/completions", key, length);
    EXPECT_EQ(other.status, 405);
    EXPECT_NE(other.head.find("\r\nallow: POST\r\n"), std::string::npos) << other.head;
    EXPECT_EQ(ToHead(port, "POST /v1/models", key, length).status, 405);
  }
  const Answer large = ToHead(port, "POST /v1/completions", key, (size_t{8} << 20) + 1);
  EXPECT_EQ(large.status, 413);
  EXPECT_EQ(At(large.Json(), "/error/code").text, "too_large");
  // Ollama's clients read another shape.
  EXPECT_EQ(At(ToHead(port, "POST /api/chat", key, size_t{1} << 40).Json(), "/error").type,
            json::Type::kString);
  Connection c(port);
  EXPECT_EQ(c.Get("/v1/models").status, 401);
  EXPECT_EQ(c.Get("/v1/models", "Authorization: Bearer secret\r\n").status, 200);  // and goes on
  EXPECT_NE(c.Get("/metrics").body.find("{route=\"refused\",status=\"413\"} 2"), std::string::npos);
}

int PageStatus(const std::string& fields, const std::string& line = "POST /tokenize") {
  Connection c(OpenPort());
  const std::string body = R"({"prompt":"a"})";
  c.Send(line + " HTTP/1.1\r\n" + fields + "Content-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body);
  return c.ReadAnswer().status;
}

TEST(EdgeTest, PagesOfTheWeb) {
  const std::string json = "Content-Type: application/json\r\n";
  // DNS rebinding: the page's own name leads here.
  EXPECT_EQ(PageStatus("Host: evil.example\r\nOrigin: http://evil.example\r\n" + json), 403);
  EXPECT_EQ(PageStatus("Host: evil.example\r\n", "GET /v1/models"), 403);
  EXPECT_EQ(PageStatus("Host: evil.example\r\n", "GET /health"), 403);
  // A form, or a script, of another page.
  EXPECT_EQ(PageStatus("Host: localhost\r\nOrigin: http://evil.example\r\n"
                       "Content-Type: text/plain\r\n"),
            403);
  EXPECT_EQ(PageStatus("Host: localhost\r\nOrigin: null\r\n" + json), 403);
  EXPECT_EQ(PageStatus("Host: localhost\r\nOrigin: http://evil.example\r\n", "OPTIONS /tokenize"),
            403);
  // The playground, programs, and other names that were allowed.
  EXPECT_EQ(PageStatus("Host: localhost:1\r\nOrigin: http://localhost:1\r\n" + json), 200);
  EXPECT_EQ(PageStatus("Host: localhost:1\r\nOrigin: http://localhost:1\r\n"
                       "Content-Type: text/plain\r\n"),
            415);
  EXPECT_EQ(PageStatus("Host: 127.0.0.1\r\n"), 200);
  EXPECT_EQ(PageStatus("Host: models.example\r\nOrigin: https://models.example\r\n" + json), 200);
  EXPECT_EQ(PageStatus(""), 400);
  // With a key any name is good, and none is a foreign page's.
  const auto keyed = StartEdge({"secret"}, {});
  Connection c(keyed->port());
  c.Send("GET /v1/models HTTP/1.1\r\nHost: any.example\r\nX-Api-Key: secret\r\n\r\n");
  EXPECT_EQ(c.ReadAnswer().status, 200);
  c.Send(
      "GET /v1/models HTTP/1.1\r\nHost: any.example\r\nOrigin: http://evil.example\r\n"
      "X-Api-Key: secret\r\n\r\n");
  EXPECT_EQ(c.ReadAnswer().status, 403);
}

// Commands that begin with `curl` in the fenced code of a page, each up to where its quotes close.
std::vector<std::string> CurlLines(const std::string& page) {
  const Result<std::string> text = ReadFile(std::string(PAWL_SOURCE_DIR) + "/" + page);
  EXPECT_TRUE(text.ok());
  std::vector<std::string> commands;
  bool fenced = false, open = false;
  size_t begin = 0;
  while (begin < text->size()) {
    const size_t end = std::min(text->find('\n', begin), text->size());
    const std::string line = text->substr(begin, end - begin);
    begin = end + 1;
    if (line.starts_with("```")) fenced = !fenced;
    if (!fenced || (!open && !line.starts_with("curl "))) continue;
    if (open) {
      commands.back() += "\n" + line;
    } else {
      commands.push_back(line);
    }
    size_t quotes = 0;
    for (const char c : commands.back()) quotes += c == '\'' ? 1 : 0;
    open = quotes % 2 == 1 || line.ends_with('\\');
  }
  return commands;
}

// The status that the line gets, or what its comment says: `# 403`.
TEST(EdgeTest, TheDocumentsLinesForCurl) {
  if (std::system("curl --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "there is no curl";
  const std::string place = "127.0.0.1:8080", open = "127.0.0.1:" + std::to_string(OpenPort());
  size_t count = 0;
  for (const char* page : {"docs/server.md", "docs/deploy.md", "README.md"}) {
    for (std::string command : CurlLines(page)) {
      std::string wanted = "200";
      if (const size_t mark = command.rfind("# "); mark != std::string::npos) {
        if (std::isdigit(static_cast<unsigned char>(command[mark + 2])) != 0) {
          wanted = command.substr(mark + 2, 3);
        }
      }
      const size_t at = command.find(place);
      ASSERT_NE(at, std::string::npos) << command;
      command.replace(at, place.size(), open);
      command.insert(4, " --noproxy '*' -s -o /dev/null -w '%{http_code}'");
      std::FILE* const pipe = ::popen(command.c_str(), "r");
      ASSERT_NE(pipe, nullptr);
      char status[8] = "";
      const size_t size = std::fread(status, 1, 3, pipe);
      ::pclose(pipe);
      EXPECT_EQ(std::string(status, size), wanted) << page << ": " << command;
      ++count;
    }
  }
  EXPECT_GE(count, 5u);
}

// What nginx sends to a replica by examples/deploy/nginx.conf: the replica knows the name.
TEST(EdgeTest, TheProxyPassesTheName) {
  const Result<std::string> conf =
      ReadFile(std::string(PAWL_SOURCE_DIR) + "/examples/deploy/nginx.conf");
  ASSERT_TRUE(conf.ok());
  EXPECT_NE(conf->find("proxy_set_header Host $http_host;"), std::string::npos);
  EXPECT_EQ(PageStatus("Host: models.example:8443\r\nOrigin: https://models.example:8443\r\n"
                       "Content-Type: application/json\r\nX-Request-Id: 1\r\n"),
            200);
  // Without the line nginx sends the name of its upstream.
  EXPECT_EQ(PageStatus("Host: pawl\r\n"), 403);
}

// A trailer that no key was asked for ended the server, and took memory without a bound.
TEST(EdgeTest, TrailersCount) {
  Connection c(OpenPort());
  c.Send(
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
      "1d\r\n{\"prompt\":\"a\",\"max_tokens\":2}\r\n0\r\nX: " +
      std::string(70'000, 'a') + "\r\n\r\n");
  EXPECT_EQ(c.ReadAnswer().status, 431);
  EXPECT_EQ(Connection(OpenPort()).Get("/health").status, 200);
}

// What one client wrote is no draft of another, who would see it by the time that outputs take.
TEST(EdgeTest, DraftsLearnByKey) {
  const auto server = StartEdge({"first", "second"}, {}, "ngram");
  Connection c(server->port());
  const auto accepted = [&](const std::string& key) {
    const Answer answer = c.Post("/v1/completions",
                                 R"({"prompt":"x","max_tokens":80,"temperature":0,
        "structured_outputs":{"regex":"([a-z]{3,9} ){12}"}})",
                                 "X-Api-Key: " + key + "\r\n");
    EXPECT_EQ(answer.status, 200) << answer.body;
    const json::Value value = answer.Json();
    const json::Value* const pawl = value.Find("pawl");
    const json::Value* const count = pawl == nullptr ? nullptr : pawl->Find("accepted_tokens");
    return count == nullptr ? 0 : std::stoi(count->text);
  };
  // Masks of the constraint are known from the second output on.
  (void)accepted("first");
  (void)accepted("first");
  const int own = accepted("first");
  EXPECT_GT(own, accepted("second"));
  const std::string metrics = c.Get("/metrics").body;
  const std::string name = "\npawl_draft_memory_bytes ";
  const size_t at = metrics.find(name);
  ASSERT_NE(at, std::string::npos);
  EXPECT_GE(std::stod(metrics.substr(at + name.size())), 1 << 20);  // the table of n-grams
}

// Tokens of a client may end in the middle of a character.
TEST(EdgeTest, EchoedTokensAreUtf8) {
  Connection c(OpenPort());
  std::string tokens;
  for (int token = 0; token < 2000; token += 7)
    tokens += (token > 0 ? "," : "") + std::to_string(token);
  for (const char* const logprobs : {"null", "0"}) {
    const Answer answer = c.Post(
        "/v1/completions",
        R"({"prompt":[)" + tokens + R"(],"echo":true,"max_tokens":1,"logprobs":)" + logprobs + "}");
    EXPECT_EQ(answer.status, 200);
    EXPECT_TRUE(CheckUtf8(answer.body).ok());
    EXPECT_TRUE(json::Parse(answer.body).ok());
  }
}

}  // namespace
}  // namespace pawl::server
