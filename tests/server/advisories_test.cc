// The advisories of other engines and servers, each as an attack on the nearest part of this one. A
// test is named by the advisory's number. Each test asserts the status, the processor time of the
// process, the bytes that the heap has gained, and that a plain request is answered afterwards.
// Where Pawl has no such part, the test asserts what stands in its place.
#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/base/json.h"
#include "src/server/server.h"
#include "tests/allowed_time.h"
#include "tests/server/http_client.h"

namespace pawl::server {
namespace {

constexpr int64_t kMebibyte = int64_t{1} << 20;
constexpr int64_t kGrammarBytes = 16 * kMebibyte;

// Bytes that were asked for and not freed; 0 where the heap is not counted (sanitizers).
int64_t BytesOfHeap() {
  const struct mallinfo2 heap = mallinfo2();
  return static_cast<int64_t>(heap.uordblks + heap.hblkhd);
}

std::string Repeated(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

class AdvisoriesTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    ServerOptions options;
    options.model_path = PAWL_SOURCE_DIR "/models/tiny-extract";
    options.model.model.threads = 1;
    options.grammar_bytes = kGrammarBytes;
    auto server = Server::Start(options);
    ASSERT_TRUE(server.ok());
    ASSERT_TRUE((*server)->WaitUntilReady().ok());
    server_ = server->release();
  }
  static void TearDownTestSuite() {
    delete server_;
    server_ = nullptr;
  }

  void SetUp() override {
    Plain();
    heap_ = BytesOfHeap();
    seconds_ = ProcessorSeconds();
  }
  void TearDown() override {
    Plain();
    EXPECT_LE(ProcessorSeconds() - seconds_, AllowedSeconds(most_seconds_));
    // What grammars keep has a budget of its own; a grammar in use may be beyond it.
    EXPECT_LE(BytesOfHeap() - heap_, 2 * kGrammarBytes);
  }

  static Answer Post(const std::string& route, const std::string& body) {
    return Connection(server_->port()).Post(route, body);
  }
  static void Plain() {
    const Answer answer =
        Post("/v1/completions", R"({"prompt":"A","max_tokens":2,"choice":["a"]})");
    EXPECT_EQ(answer.status, 200) << answer.body;
  }
  static Answer Complete(const std::string& members) {
    return Post("/v1/completions", R"({"prompt":"A","max_tokens":16,)" + members + "}");
  }
  static Answer Schema(const std::string& schema) {
    return Complete(
        R"("response_format":{"type":"json_schema","json_schema":{"name":"x","schema":)" + schema +
        "}}");
  }
  // An error that names the member of the request.
  static void Refuses(const Answer& answer, const std::string& param) {
    EXPECT_EQ(answer.status, 400) << answer.body.substr(0, 500);
    EXPECT_EQ(At(answer.Json(), "/error/param").text.substr(0, param.size()), param)
        << answer.body.substr(0, 500);
    EXPECT_FALSE(At(answer.Json(), "/error/message").text.empty());
  }

  static Server* server_;
  double most_seconds_ = 2;
  int64_t heap_ = 0;
  double seconds_ = 0;
};
Server* AdvisoriesTest::server_ = nullptr;

// vLLM, outlines: a cache of grammars on disk that every new schema makes larger. Pawl has no cache
// on disk; the one in memory has a budget in bytes, keys included.
TEST_F(AdvisoriesTest, Cve_2025_29770_CacheOfGrammars) {
  most_seconds_ = 20;
  for (int i = 0; i < 400; ++i) {
    const Answer answer =
        Schema(R"({"type":"object","properties":{"k)" + std::to_string(i) +
               R"(":{"type":"string","pattern":"^a)" + std::to_string(i) + R"(.*b"}}})");
    ASSERT_EQ(answer.status, 200) << answer.body;
  }
}

// xgrammar: a cache in memory without a bound; long keys count as well.
TEST_F(AdvisoriesTest, Cve_2025_32381_KeysOfTheCache) {
  most_seconds_ = 20;
  for (int i = 0; i < 60; ++i) {
    const Answer answer = Schema(R"({"type":"integer","description":")" +
                                 std::string(1 << 20, 'x') + std::to_string(i) + R"("})");
    ASSERT_EQ(answer.status, 200) << answer.body;
  }
}

// vLLM: an invalid schema ends the engine.
TEST_F(AdvisoriesTest, Cve_2025_48942_InvalidSchema) {
  for (const char* schema :
       {R"({"type":"nonsense"})", R"({"type":7})", R"({"properties":[]})", R"({"minimum":"a"})",
        R"({"$ref":"#/nowhere"})", R"({"enum":{}})", R"({"pattern":"("})", R"("text")", "7",
        R"({"items":"x"})", R"({"anyOf":[]})"}) {
    SCOPED_TRACE(schema);
    Refuses(Schema(schema), "/response_format/json_schema");
  }
}

// vLLM: an invalid regex ends the engine.
TEST_F(AdvisoriesTest, Cve_2025_48943_InvalidRegex) {
  for (const char* regex : {"[", "(", "a{2,1}", "*", "\\\\", "(?<=a", "[z-a]", "\\\\1", "(?P<x"}) {
    SCOPED_TRACE(regex);
    Refuses(Complete(R"("regex":")" + std::string(regex) + "\""), "/regex");
  }
}

// vLLM: tools whose parameters have a wrong `type` or `pattern`.
TEST_F(AdvisoriesTest, Cve_2025_48944_SchemaOfATool) {
  for (const char* parameters :
       {R"({"type":"object","properties":{"a":{"type":"something"}}})",
        R"({"type":"object","properties":{"a":{"type":"string","pattern":"["}}})",
        R"({"type":["x"]})", "7"}) {
    SCOPED_TRACE(parameters);
    Refuses(
        Post(
            "/v1/chat/completions",
            R"({"messages":[{"role":"user","content":"a"}],"max_tokens":9,"tool_choice":"required",)"
            R"("tools":[{"type":"function","function":{"name":"f","parameters":)" +
                std::string(parameters) + "}}]}"),
        "/tools/0/function/parameters");
  }
}

// vLLM: regexes that backtrack over what the model or the client wrote. Pawl's automata do not
// backtrack: the classic bombs compile, and reading is linear.
TEST_F(AdvisoriesTest, Cve_2025_48887_BacktrackingRegex) {
  for (const char* regex :
       {"(a+)+$", "(a|a)*b", "(a|aa)+c", "(.*a){20}", "([a-zA-Z]+)*x", "(a*)*"}) {
    SCOPED_TRACE(regex);
    EXPECT_EQ(Complete(R"("regex":")" + std::string(regex) + "\"").status, 200);
  }
}
TEST_F(AdvisoriesTest, Ghsa_j828_28rj_hfhp_BacktrackingParsersOfCalls) {
  const std::string text = Repeated("[f(a=", 20000);
  EXPECT_EQ(Post("/v1/chat/completions",
                 R"({"messages":[{"role":"user","content":"a"},{"role":"assistant","content":)" +
                     json::Quote(text) + R"(},{"role":"user","content":"b"}],"max_tokens":2})")
                .status,
            200);
}

// xgrammar: a rule that leads to itself without a token.
TEST_F(AdvisoriesTest, Cve_2025_57809_EndlessRecursion) {
  for (const char* grammar : {R"(root ::= root\n)", R"(root ::= a\na ::= b\nb ::= a\n)",
                              R"(root ::= root root | \"a\"\n)", R"(root ::= (root)*\n)",
                              R"(root ::= \"\" root \"\"\n)"}) {
    SCOPED_TRACE(grammar);
    const Answer answer = Complete(R"("ebnf":")" + std::string(grammar) + "\"");
    EXPECT_TRUE(answer.status == 200 || answer.status == 400) << answer.body;
  }
}

// xgrammar: minutes for an enum of many values.
TEST_F(AdvisoriesTest, Cve_2025_58446_HugeEnum) {
  std::string values;
  for (int i = 0; i < 50000; ++i) {
    values += (i > 0 ? ",\"value " : "\"value ") + std::to_string(i * 7919) + "\"";
  }
  EXPECT_EQ(Schema(R"({"enum":[)" + values + "]}").status, 200);
}

// xgrammar: 30,000 nested brackets end in a crash of the stack.
TEST_F(AdvisoriesTest, Cve_2026_25048_NestedBrackets) {
  const auto nested = [](int depth) {
    return Repeated("(", depth) + "\\\"a\\\"" + Repeated(")", depth);
  };
  for (const int depth : {30000, 100000}) {
    const Answer grammar = Complete(R"("ebnf":"root ::= )" + nested(depth) + R"(\n")");
    EXPECT_TRUE(grammar.status == 200 || grammar.status == 400) << grammar.body.substr(0, 300);
    const Answer regex =
        Complete(R"("regex":")" + Repeated("(", depth) + "a" + Repeated(")", depth) + "\"");
    EXPECT_TRUE(regex.status == 200 || regex.status == 400) << regex.body.substr(0, 300);
    const Answer schema = Schema(Repeated(R"({"items":)", depth) + "{}" + Repeated("}", depth));
    EXPECT_TRUE(schema.status == 200 || schema.status == 400) << schema.body.substr(0, 300);
  }
}

// vLLM: a regex whose automaton is exponential, without a time limit.
TEST_F(AdvisoriesTest, Cve_2026_55574_ExponentialAutomaton) {
  for (const char* regex :
       {"(a|b)*a(a|b){20000}", "[\\\\s\\\\S]*a[\\\\s\\\\S]{2000}", "((a{1,100}){1,100}){1,100}"}) {
    SCOPED_TRACE(regex);
    const Answer answer = Complete(R"("regex":")" + std::string(regex) + "\"");
    EXPECT_TRUE(answer.status == 200 || answer.status == 400) << answer.body;
  }
}

// vLLM: errors of a grammar in the engine end it; a deadline for compiling.
TEST_F(AdvisoriesTest, Ghsa_q9q8_922v_2c42_ErrorsOfGrammars) {
  std::string words;
  for (int i = 0; i < 300; ++i) words += (i > 0 ? " | T" : "T") + std::to_string(i);
  std::string terminals;
  for (int i = 0; i < 300; ++i)
    terminals += "T" + std::to_string(i) + ": /[a-z]*" + std::to_string(i) + "[a-z]*/\\n";
  const Answer answer = Complete(R"("grammar":"start: ()" + words + R"()*\n)" + terminals + "\"");
  EXPECT_TRUE(answer.status == 200 || answer.status == 400) << answer.body.substr(0, 300);
  Refuses(Complete(R"("grammar":"start: nothing\n")"), "/grammar");
}

// vLLM: lists in a request without a bound on their size.
TEST_F(AdvisoriesTest, Ghsa_4fv6_24cq_h5pw_SizesOfLists) {
  most_seconds_ = 6;
  std::string bias;
  for (int i = 0; i < 100000; ++i) bias += (i > 0 ? ",\"" : "\"") + std::to_string(i) + "\":1";
  Refuses(Complete(R"("logit_bias":{)" + bias + "}"), "/logit_bias");
  // Lists that Pawl does not have are named as ignored, and cost their bytes alone.
  const std::string numbers = "[0" + Repeated(",0", 500000) + "]";
  for (const char* list : {"bad_words", "allowed_token_ids"}) {
    const Answer answer = Complete("\"" + std::string(list) + "\":" + numbers);
    EXPECT_TRUE(answer.status == 200 || answer.status == 400) << answer.body.substr(0, 300);
  }
  Refuses(Post("/v1/completions",
               R"({"prompt":["a")" + Repeated(R"(,"a")", 3000) + R"(],"max_tokens":1})"),
          "/prompt");
}

// vLLM: `n` without a bound.
TEST_F(AdvisoriesTest, Cve_2026_34756_NumberOfOutputs) {
  for (const char* n : {"65", "100000", "2147483648", "99999999999999999999", "-1", "0", "1.5"}) {
    SCOPED_TRACE(n);
    Refuses(Complete(R"("n":)" + std::string(n)), "/n");
  }
}

// vLLM: a chat template of the client's own, and options of the template that change the call. The
// template comes from the model alone.
TEST_F(AdvisoriesTest, Cve_2025_61620_ChatTemplateOfTheClient) {
  const std::string bomb =
      R"("{% for a in range(100000000) %}{% for b in range(100000000) %}x{% endfor %}{% endfor %}")";
  const std::string head = R"({"messages":[{"role":"user","content":"a"}],"max_tokens":2,)";
  const Answer direct = Post("/v1/chat/completions", head + R"("chat_template":)" + bomb + "}");
  EXPECT_TRUE(direct.status == 200 || direct.status == 400) << direct.body;
  if (direct.status == 200) {
    EXPECT_NE(direct.body.find("/chat_template"), std::string::npos) << direct.body;
  }
  const Answer inside = Post("/v1/chat/completions",
                             head + R"("chat_template_kwargs":{"chat_template":)" + bomb + "}}");
  EXPECT_TRUE(inside.status == 200 || inside.status == 400) << inside.body;
}
TEST_F(AdvisoriesTest, Cve_2025_62426_TokenizeInTheTemplatesOptions) {
  const Answer answer = Post(
      "/v1/chat/completions",
      R"({"messages":[{"role":"user","content":"a"}],"max_tokens":2,"chat_template_kwargs":{"tokenize":true,"return_dict":true}})");
  EXPECT_TRUE(answer.status == 200 || answer.status == 400) << answer.body;
}

// llama.cpp: the stack of GBNF grammars.
TEST_F(AdvisoriesTest, Cve_2026_2069_StackOfGbnf) {
  for (const char* grammar : {R"(root ::= a\na ::= a | \"x\"\n)", R"(root ::= (\"a\"*)*\n)",
                              R"(root ::= ((\"a\"?)*)*\n)", R"(root ::= \"a\"{0,100000}\n)"}) {
    SCOPED_TRACE(grammar);
    const Answer answer = Complete(R"("grammar":")" + std::string(grammar) + "\"");
    EXPECT_TRUE(answer.status == 200 || answer.status == 400) << answer.body;
  }
}

// llama.cpp: a negative n_discard writes before a buffer. Pawl shifts no context; negative numbers
// of tokens are errors, or mean no limit where llama.cpp's API says so.
TEST_F(AdvisoriesTest, Cve_2026_21869_NegativeNumbers) {
  const Answer answer = Post("/completion", R"({"prompt":"a","n_predict":2,"n_discard":-100000})");
  EXPECT_TRUE(answer.status == 200 || answer.status == 400) << answer.body;
  for (const char* member : {"max_tokens", "top_k", "logprobs"}) {
    const Answer negative =
        Post("/v1/completions", R"({"prompt":"a",")" + std::string(member) + R"(":-100000})");
    EXPECT_TRUE(negative.status == 400 || std::string(member) == "top_k") << negative.body;
  }
}

// llama.cpp, SGLang, imp: nested groups, empty groups, left recursion, counts that are written out.
TEST_F(AdvisoriesTest, LlamaCpp_26600_NestedGroups) {
  for (const std::string& pattern :
       {Repeated("(", 60000) + "a" + Repeated(")", 60000), std::string("()"), std::string("(|)"),
        std::string("a{2000000000}"), std::string("(a{60000}){60000}")}) {
    const Answer answer = Schema(R"({"type":"string","pattern":")" + pattern + R"("})");
    EXPECT_TRUE(answer.status == 200 || answer.status == 400) << answer.body.substr(0, 300);
  }
}

// xgrammar: a regex with a zero byte.
TEST_F(AdvisoriesTest, Xgrammar_850_ZeroByte) {
  for (const char* regex : {R"(\u0000)", R"(a\u0000b)", R"([\u0000-\u0001])"}) {
    const Answer answer = Complete(R"("regex":")" + std::string(regex) + "\"");
    EXPECT_TRUE(answer.status == 200 || answer.status == 400) << answer.body;
  }
}

// Ollama: a page whose name is rebound to 127.0.0.1 reads the answers.
TEST_F(AdvisoriesTest, Cve_2024_28224_NameThatIsReboundToLoopback) {
  const std::string body = R"({"prompt":"a","max_tokens":1})";
  const auto with = [&](const std::string& headers) {
    Connection c(server_->port());
    c.Send("POST /v1/completions HTTP/1.1\r\n" + headers +
           "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
    return c.ReadAnswer().status;
  };
  const std::string port = std::to_string(server_->port());
  EXPECT_EQ(with("Host: evil.example\r\n"), 403);
  EXPECT_EQ(with("Host: evil.example:" + port + "\r\n"), 403);
  EXPECT_EQ(with("Host: 127.0.0.1.evil.example\r\n"), 403);
  EXPECT_EQ(with("Host: localhost\r\nOrigin: http://evil.example\r\n"), 403);
  EXPECT_EQ(with("Host: localhost:" + port + "\r\n"), 200);
  EXPECT_EQ(with("Host: 127.0.0.1:" + port + "\r\n"), 200);
  EXPECT_EQ(with("Host: [::1]:" + port + "\r\n"), 200);
}

}  // namespace
}  // namespace pawl::server
