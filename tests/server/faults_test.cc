// One request goes wrong: it fails alone. The others go on, and their outputs take the calls of the
// model that they take when nothing is wrong (one more at most).
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "src/base/file.h"
#include "src/base/stop_scope.h"
#include "src/engine/model_files.h"
#include "src/server/grammar_store.h"
#include "src/server/server.h"
#include "tests/server/drafts_of_prompt.h"
#include "tests/server/http_client.h"
#include "tests/support/model_around.h"

namespace pawl::server {
namespace {

// A model of which the sequences with one token in them get logits that are no numbers.
class PoisonedModel : public ModelAround {
 public:
  PoisonedModel(std::unique_ptr<Model> inner, TokenId poison)
      : ModelAround(std::move(inner)), poison_(poison) {}

  void FreeSequence(SequenceId sequence) override {
    poisoned_.erase(sequence);
    ModelAround::FreeSequence(sequence);
  }
  int ReusePrefix(SequenceId, std::span<const TokenId>) override { return 0; }
  std::span<const int32_t> bad_rows() const override { return bad_; }

  Status Run(const ModelCall& call) override {
    const std::span<const Row> rows = call.rows;
    bad_.clear();
    if (Status status = inner_.Run(call); !status.ok()) return status;
    for (size_t i = 0; i < rows.size(); ++i) {
      if (rows[i].token == poison_) poisoned_.insert(rows[i].sequence);
      if (rows[i].output >= 0 && poisoned_.contains(rows[i].sequence)) {
        bad_.push_back(static_cast<int32_t>(i));
      }
    }
    if (bad_.empty()) return {};
    for (const Row& row : rows) {  // the first row of a sequence is its base
      if (poisoned_.erase(row.sequence) > 0) inner_.Truncate(row.sequence, row.position);
    }
    return Error{ErrorCode::kInvalid, "the logits are not finite", ""};
  }

 private:
  const TokenId poison_;
  std::set<SequenceId> poisoned_;
  std::vector<int32_t> bad_;
};

constexpr const char* kSchema =
    R"({"type":"object","properties":{"name":{"type":"string"}},"required":["name"]})";
constexpr const char* kTemplate =
    "{% for m in messages %}{% if m.content == 'refuse' %}{{ raise_exception('not this') }}"
    "{% elif m.content == 'break' %}{{ m.nothing.there() }}{% endif %}{{ m.content }}\n"
    "{% endfor %}";

std::string Chat(const std::string& content, const std::string& more) {
  return R"({"messages":[{"role":"user","content":)" + json::Quote(content) + "}]," + more + "}";
}

std::string Format(const std::string& schema) {
  return R"("response_format":{"type":"json_schema","json_schema":{"name":"x","schema":)" + schema +
         "}}";
}

// A stream of some hundred tokens: what it said, and the calls of the model that it took.
struct Stream {
  std::string text;
  int calls = 0;
  bool good = false;
};

class LongStream {
 public:
  explicit LongStream(int port) : connection_(port) {
    const std::string body = R"({"prompt":"Ann","max_tokens":400,"temperature":1,"seed":5,
        "stream":true,"stream_options":{"include_usage":true},"close_at_budget":false,
        "structured_outputs":{"regex":"([a-z]{4} ){90}"}})";
    connection_.Send("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
                     std::to_string(body.size()) + "\r\n\r\n" + body);
  }
  // Until its first token is there.
  void Begin() {
    while (connection_.read().find("data: ") == std::string::npos && connection_.Read()) {
    }
  }
  Stream End() {
    const Answer answer = connection_.ReadAnswer();
    Stream out;
    for (const std::string& event : answer.Events()) {
      const auto value = json::Parse(event);
      if (!value.ok()) continue;
      out.text += At(*value, "/choices/0/text").text;
      const std::string calls = At(*value, "/pawl/model_calls").text;
      if (!calls.empty()) out.calls = std::stoi(calls);
    }
    out.good = answer.status == 200 && answer.complete &&
               answer.body.find("\"error\"") == std::string::npos;
    return out;
  }

 private:
  Connection connection_;
};

class FaultsTest : public ::testing::Test {
 protected:
  static constexpr const char* kPoison = "~";

  void Start() {
    options_.model_path = PAWL_SOURCE_DIR "/models/tiny-extract";
    options_.model.model.threads = 1;
    options_.model.chat_template = kTemplate;
    auto tokenizer = LoadTokenizer(options_.model_path);
    ASSERT_TRUE(tokenizer.ok());
    const std::vector<TokenId> tokens = (*tokenizer)->Encode(kPoison);
    ASSERT_EQ(tokens.size(), 1u);
    options_.wrap_model = [poison = tokens[0]](std::unique_ptr<Model> model) {
      return std::make_unique<PoisonedModel>(std::move(model), poison);
    };
    auto server = Server::Start(options_);
    ASSERT_TRUE(server.ok());
    server_ = *std::move(server);
    ASSERT_TRUE(server_->WaitUntilReady().ok());
  }

  // Sends what goes wrong while a stream runs, and compares the stream with one that ran alone.
  template <typename Fault>
  void ExpectOthersUntouched(const Fault& fault) {
    LongStream alone(server_->port());
    const Stream expected = alone.End();
    ASSERT_TRUE(expected.good);
    ASSERT_GT(expected.text.size(), 300u);
    LongStream beside(server_->port());
    beside.Begin();
    fault();
    const Stream got = beside.End();
    EXPECT_TRUE(got.good);
    EXPECT_EQ(got.text, expected.text);
    EXPECT_LE(got.calls, expected.calls + 1);
  }

  ServerOptions options_;
  std::unique_ptr<Server> server_;
};

TEST_F(FaultsTest, LogitsThatAreNoNumbers) {
  Start();
  ExpectOthersUntouched([&] {
    Connection c(server_->port());
    const Answer bad = c.Post("/v1/completions", R"({"prompt":"a ~ b","max_tokens":5})");
    EXPECT_EQ(bad.status, 500) << bad.body;
    EXPECT_NE(bad.body.find("finite"), std::string::npos) << bad.body;
    // In a list of texts it is the one.
    const Answer list = c.Post("/v1/extract", std::string(R"({"schema":)") + kSchema +
                                                  R"(,"texts":["Ann Lee","a ~ b","Bob Ray"]})");
    ASSERT_EQ(list.status, 200) << list.body;
    EXPECT_EQ(At(list.Json(), "/records/0/record").type, json::Type::kObject);
    EXPECT_EQ(At(list.Json(), "/records/1/error").type, json::Type::kObject) << list.body;
    EXPECT_EQ(At(list.Json(), "/records/2/record").type, json::Type::kObject);
  });
}

TEST_F(FaultsTest, ATemplateThatBreaks) {
  Start();
  ExpectOthersUntouched([&] {
    for (const char* content : {"refuse", "break"}) {
      Connection c(server_->port());
      const Answer bad = c.Post("/v1/chat/completions", Chat(content, R"("max_tokens":5)"));
      EXPECT_EQ(bad.status, 400) << bad.body;
      EXPECT_EQ(At(bad.Json(), "/error/param").text, "/messages") << bad.body;
      EXPECT_EQ(c.Post("/v1/chat/completions", Chat("Ann", R"("max_tokens":5)")).status, 200);
    }
  });
}

TEST_F(FaultsTest, ASchemaThatExhaustsItsFuel) {
  Start();
  ExpectOthersUntouched([&] {
    std::string branches;
    for (int i = 0; i < 40; ++i) {
      branches += std::string(i > 0 ? "," : "") + R"({"type":"string","pattern":"^(a|b)*a(a|b){)" +
                  std::to_string(12 + i) + R"(}$"})";
    }
    Connection c(server_->port());
    const Answer bad =
        c.Post("/v1/chat/completions",
               Chat("Ann", R"("max_tokens":8,)" + Format(R"({"oneOf":[)" + branches + "]}")));
    // Refused by its limits, or enforced within them.
    EXPECT_TRUE(bad.status == 400 || bad.status == 200) << bad.body;
    const Answer deep =
        c.Post("/v1/chat/completions",
               Chat("Ann", Format(R"({"pattern":"((a{1,1000}){1,1000}){1,1000}"})")));
    EXPECT_TRUE(deep.status == 400 || deep.status == 200) << deep.body;
    const Result<std::string> scopes =
        ReadFile(PAWL_SOURCE_DIR "/tests/hostile/dynamic_scopes.json");
    ASSERT_TRUE(scopes.ok());
    const Answer spent = c.Post("/v1/chat/completions", Chat("Ann", Format(*scopes)));
    EXPECT_EQ(spent.status, 400) << spent.body;
    EXPECT_EQ(At(spent.Json(), "/error/code").text, "limit") << spent.body;
    const Answer good = c.Post("/v1/chat/completions", Chat("Ann", Format(kSchema)));
    EXPECT_EQ(good.status, 200);
  });
}

TEST_F(FaultsTest, TokensThatADraftGuessedSaySo) {
  options_.make_drafter = DraftsOfPrompt;
  Start();
  Connection c(server_->port());
  // What it has to say stands in the prompt.
  const std::string words = "red green blue red green blue red green blue";
  const std::string body = R"({"messages":[{"role":"user","content":)" + json::Quote(words) +
                           R"(}],"max_tokens":60,"temperature":0,"token_report":true,
      "structured_outputs":{"regex":"( (red|green|blue|gold)){12}"}})";
  // Drafts are made of what is known of the constraint, so the second output has them.
  ASSERT_EQ(c.Post("/v1/chat/completions", body).status, 200);
  const Answer answer = c.Post("/v1/chat/completions", body);
  ASSERT_EQ(answer.status, 200) << answer.body;
  const json::Value value = answer.Json();
  int drafted = 0;
  for (const json::Value& token : At(value, "/choices/0/pawl_tokens").items) {
    drafted += At(token, "/source").text == "drafted" ? 1 : 0;
  }
  ASSERT_FALSE(At(value, "/pawl/accepted_tokens").text.empty()) << answer.body;
  EXPECT_GT(std::stoi(At(value, "/pawl/accepted_tokens").text), 0) << answer.body;
  EXPECT_GT(drafted, 0) << answer.body;
  EXPECT_LE(drafted, std::stoi(At(value, "/pawl/accepted_tokens").text));
}

TEST(GrammarStoreTest, ACompilationThatNobodyWantsIsStopped) {
  auto tokenizer = LoadTokenizer(PAWL_SOURCE_DIR "/models/tiny-extract");
  ASSERT_TRUE(tokenizer.ok());
  auto vocabulary = (*tokenizer)->MakeVocabulary();
  ASSERT_TRUE(vocabulary.ok());
  GrammarStore store(*vocabulary, {});
  ConstraintSpec spec;
  spec.kind = ConstraintSpec::Kind::kJsonSchema;
  spec.text = kSchema;
  bool known = false;
  const auto stop = std::make_shared<StopFlag>();
  stop->Stop();
  EXPECT_FALSE(store.Get(spec, {}, known, stop).ok());
  EXPECT_EQ(store.stats().grammars, 0u);
  const auto again = std::make_shared<StopFlag>();
  const auto grammar = store.Get(spec, {}, known, again);
  ASSERT_TRUE(grammar.ok());
  EXPECT_FALSE(known);
  // Too late: it is compiled, and stays.
  again->Stop();
  EXPECT_FALSE(again->stopped());
  EXPECT_TRUE(store.Get(spec, {}, known, std::make_shared<StopFlag>()).ok());
  EXPECT_TRUE(known);
}

// Bug: compiling, the first masks and the first completion went on after the client had gone.
TEST(GrammarStoreTest, WhatComesAfterCompilingIsStoppedAsWell) {
  auto tokenizer = LoadTokenizer(PAWL_SOURCE_DIR "/models/tiny-extract");
  ASSERT_TRUE(tokenizer.ok());
  auto vocabulary = (*tokenizer)->MakeVocabulary();
  ASSERT_TRUE(vocabulary.ok());
  GrammarStore store(*vocabulary, {});
  // Compiled at once; the completion of each is searched for.
  std::string many = ".{300}";
  for (int i = 0; i < 20; ++i)
    many = "(?=.*" + std::string(1, static_cast<char>('A' + i)) + ".{" +
           std::to_string(20 + 3 * i) + "})" + many;
  ConstraintSpec spec;
  spec.kind = ConstraintSpec::Kind::kRegex;
  spec.text = many;
  std::atomic<bool> halt{false};
  std::thread thread([&] {
    bool known = false;
    const StopScope scope(&halt);
    EXPECT_THROW((void)store.Get(spec, {}, known, std::make_shared<StopFlag>()), Stopped);
  });
  while (store.stats().misses == 0) std::this_thread::yield();
  halt = true;
  thread.join();
  EXPECT_EQ(store.stats().stopped, 1);
  EXPECT_EQ(store.stats().grammars, 0u);
  bool known = false;
  spec.text = "a|b";
  EXPECT_TRUE(store.Get(spec, {}, known, std::make_shared<StopFlag>()).ok());
}

}  // namespace
}  // namespace pawl::server
