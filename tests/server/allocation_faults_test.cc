// Memory runs out once, anywhere: the k-th allocation of one kind of thread fails while a request
// of each kind is answered next to another one. Whatever k is, the process lives, at most one of
// the two requests fails and the other one says what it always says, and a plain request afterwards
// is right.
//
// Each case counts the allocations of a run first, then spreads its faults over them. With
// PAWL_ALL_ALLOCATIONS=1 in the environment each allocation fails once, which takes long.
#include "tests/server/allocation_faults.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pawl/compiler.h"
#include "pawl/engine.h"
#include "src/base/failure.h"
#include "src/server/server.h"
#include "tests/server/http_client.h"

namespace pawl::server {
namespace {

using faults::Kind;

constexpr const char* kModel = PAWL_SOURCE_DIR "/models/tiny-extract";

int Port() {
  static const std::unique_ptr<Server> server = [] {
    faults::Exempt();
    ServerOptions options;
    options.model_path = kModel;
    options.model.model.threads = 2;  // so that masks and tokens are found on the pool
    options.request_seconds = 20;
    auto made = Server::Start(options);
    EXPECT_TRUE(made.ok() && (*made)->WaitUntilReady().ok());
    return *std::move(made);
  }();
  return server->port();
}

// One that no grammar, mask or prompt is known of yet, so that all of them are made.
std::string Schema(int number) {
  return R"({"title":")" + std::to_string(number) + R"(","type":"object","properties":{)" +
         R"("name":{"type":"string","maxLength":9},"kind":{"enum":["a","b"]},)" +
         R"("n":{"type":"integer","minimum":3,"maximum":70}},)" +
         R"("required":["name","kind","n"],"additionalProperties":false})";
}

struct Case {
  const char* name;
  const char* path;
  // The request; what is not to be known already is made of `number`.
  std::function<std::string(int number)> body;
  // Faults for each kind of thread.
  std::vector<std::pair<Kind, int>> faults;
};

constexpr const char* kTail = R"(,"temperature":1,"seed":3,"max_tokens":40})";

const std::vector<Case>& Cases() {
  static const std::vector<Case> cases = {
      {"chat with a schema",
       "/v1/chat/completions",
       [](int number) {
         return R"({"messages":[{"role":"user","content":"Ann, 7"}],"response_format":)"
                R"({"type":"json_schema","json_schema":{"name":"x","schema":)" +
                Schema(number) + "}}" + kTail;
       },
       {{faults::kOther, 30}, {faults::kWorker, 160}, {faults::kDecoder, 60}, {faults::kPool, 30}}},
      {"stream",
       "/v1/completions",
       [](int) {
         return std::string(R"({"prompt":"Ann","stream":true,"logprobs":2,"temperature":1,)") +
                R"("seed":3,"max_tokens":12})";
       },
       {{faults::kOther, 60}, {faults::kWorker, 30}, {faults::kDecoder, 60}, {faults::kPool, 15}}},
      {"extract",
       "/v1/extract",
       [](int number) {
         return R"({"texts":["Ann, 7","Bob, 9"],"max_tokens":40,"schema":)" + Schema(number) + "}";
       },
       {{faults::kOther, 30}, {faults::kWorker, 100}, {faults::kDecoder, 60}, {faults::kPool, 30}}},
      {"scoring",
       "/v1/completions",
       [](int) {
         return std::string(R"({"prompt":["Ann Lee","Bob"],"echo":true,"logprobs":2,)") +
                R"("temperature":1,"seed":3,"max_tokens":4})";
       },
       {{faults::kOther, 30}, {faults::kWorker, 30}, {faults::kDecoder, 60}, {faults::kPool, 10}}},
      {"compile",
       "/v1/constraints/compile",
       [](int number) {
         return R"({"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":)" +
                Schema(number) + "}}}";
       },
       {{faults::kOther, 10}, {faults::kWorker, 100}}},
#ifdef PAWL_HAVE_MONITORS
      {"code under a monitor",
       "/v1/fim/completions",
       [](int number) {
         return std::string(R"({"prompt":"interface P { width: number; height: number }\n)") +
                R"(function f(p: P) {\n  return p.","suffix":";\n}\n","filename":"a)" +
                std::to_string(number) + R"(.ts",)" + R"("temperature":1,"seed":3,"max_tokens":8})";
       },
       {{faults::kOther, 20}, {faults::kWorker, 80}, {faults::kDecoder, 80}, {faults::kPool, 20}}},
#endif
  };
  return cases;
}

// What an answer says, without ids and times.
std::string Said(const Answer& answer) {
  if (answer.status != 200 || !answer.complete) return "";
  std::string out;
  const auto read = [&](const json::Value& value) {
    for (const char* place : {"/choices/0/message/content", "/choices/0/text", "/choices/1/text",
                              "/choices/0/logprobs", "/choices/1/logprobs", "/records", "/error"}) {
      const json::Value& part = At(value, place);
      if (part.type != json::Type::kNull) out += json::Dump(part) + "\n";
    }
  };
  if (!answer.body.starts_with("data: ")) {
    read(answer.Json());
    return out + (At(answer.Json(), "/ok").is_bool() ? "compiled" : "");
  }
  // How tokens share events depends on when the client reads.
  std::string text, numbers;
  for (const std::string& event : answer.Events()) {
    if (event == "[DONE]") return text + "\n" + numbers + event;
    const auto value = json::Parse(event);
    if (!value.ok() || At(*value, "/error").type != json::Type::kNull) return "";
    text += At(*value, "/choices/0/text").text;
    for (const json::Value& number : At(*value, "/choices/0/logprobs/token_logprobs").items) {
      numbers += number.text + " ";
    }
  }
  return "";
}

// Good, or failed as it should: 500 or 503, an error event, or a connection that was closed.
bool FailedWell(const Answer& answer) {
  if (answer.status == 500 || answer.status == 503 || answer.status == 0) return true;
  if (!answer.complete) return true;
  return answer.status == 200 && answer.body.find("\"error\"") != std::string::npos;
}

constexpr const char* kOtherRequest =
    R"({"prompt":"Nina and","temperature":1,"seed":9,"max_tokens":10,"logprobs":1,)"
    R"("structured_outputs":{"regex":"[a-z ]{40}"},"close_at_budget":false})";
constexpr const char* kPlain =
    R"({"prompt":"Once","temperature":1,"seed":5,"max_tokens":3,"logprobs":1})";

class AllocationFaultsTest : public testing::Test {
 protected:
  void SetUp() override { faults::Exempt(); }

  // The request of the case next to another one.
  std::pair<Answer, Answer> Both(const Case& c) {
    const std::string body = c.body(++number_);
    Connection one(Port()), two(Port());
    const auto send = [](Connection& connection, const char* path, const std::string& text) {
      connection.Send(std::string("POST ") + path + " HTTP/1.1\r\nHost: localhost\r\n" +
                      "Content-Type: application/json\r\nContent-Length: " +
                      std::to_string(text.size()) + "\r\n\r\n" + text);
    };
    send(two, "/v1/completions", kOtherRequest);
    send(one, c.path, body);
    Answer first = one.ReadAnswer();
    return {std::move(first), two.ReadAnswer()};
  }

  Answer Plain() {
    Connection connection(Port());
    return connection.Post("/v1/completions", kPlain, "Content-Type: application/json\r\n");
  }

  static inline int number_ = 0;
};

struct Tally {
  int runs = 0, failed = 0, closed = 0, busy = 0, fine = 0;
};

TEST_F(AllocationFaultsTest, ServerThreads) {
  const bool all = std::getenv("PAWL_ALL_ALLOCATIONS") != nullptr;
  const char* const only = std::getenv("PAWL_ALLOCATIONS_OF");
  const std::string plain = Said(Plain());
  ASSERT_NE(plain, "");
  int runs = 0;
  for (const Case& c : Cases()) {
    if (only != nullptr && std::string_view(c.name).find(only) == std::string_view::npos) continue;
    (void)Both(c);
    const auto [one, two] = Both(c);
    const std::string good = Said(one), other = Said(two);
    ASSERT_NE(good, "") << c.name << ": " << one.status << " " << one.body;
    ASSERT_NE(other, "") << two.body;
    for (const auto& [kind, share] : c.faults) {
      faults::Arm(kind, 0);
      (void)Both(c);
      const int64_t count = faults::Disarm();
      const int64_t faults_here = all ? count : std::min<int64_t>(count, share);
      Tally tally;
      for (int64_t i = 0; i < faults_here; ++i) {
        const int64_t k = 1 + i * count / faults_here;
        // Every tenth time memory stays out for a while.
        const int64_t burst = i % 10 == 9 ? 8 : 1;
        const std::string where = std::string(c.name) + ", " + faults::NameOf(kind) +
                                  ", allocation " + std::to_string(k) + " of " +
                                  std::to_string(count) + ", burst " + std::to_string(burst);
        faults::Arm(kind, k, burst);
        const auto [target, bystander] = Both(c);
        const bool came = faults::Disarm() >= k;
        const Answer after = Plain();
        ASSERT_EQ(Said(after), plain) << where << ": " << after.status << after.body;
        const bool target_good = Said(target) == good, other_good = Said(bystander) == other;
        EXPECT_TRUE(target_good || FailedWell(target))
            << where << ": " << target.status << " " << target.body << "\nwant " << good;
        EXPECT_TRUE(other_good || FailedWell(bystander))
            << where << ": " << bystander.status << " " << bystander.body << "\nwant " << other;
        if (burst == 1) {
          EXPECT_TRUE(target_good || other_good) << where << ": " << target.status << target.body
                                                 << bystander.status << bystander.body;
        }
        if (!came) {
          EXPECT_TRUE(target_good && other_good) << where;
        }
        ++tally.runs;
        const Answer& bad = target_good ? bystander : target;
        if (target_good && other_good) {
          ++tally.fine;
        } else if (bad.status == 503) {
          ++tally.busy;
        } else if (bad.status == 0 || !bad.complete) {
          ++tally.closed;
        } else {
          ++tally.failed;
        }
        if (HasFailure()) return;
      }
      std::printf(
          "%-22s %-13s %6lld allocations, %4d faults: %d without effect, %d times 503, "
          "%d closed, %d others\n",
          c.name, faults::NameOf(kind), static_cast<long long>(count), tally.runs, tally.fine,
          tally.busy, tally.closed, tally.failed);
      runs += tally.runs;
    }
  }
  std::printf("%d faults\n", runs);
}

// ---- The engine, as Python, C and the command have it ----

class EngineFaultsTest : public testing::Test {
 protected:
  void SetUp() override {
    faults::Exempt();
    EngineOptions options;
    options.model.threads = 2;
    Result<Engine> made = Engine::Load(kModel, options);
    ASSERT_TRUE(made.ok());
    engine_.emplace(*std::move(made));
    const Compiler compiler(engine_->vocabulary());
    Result<Grammar> grammar = compiler.CompileJsonSchema(Schema(0));
    ASSERT_TRUE(grammar.ok());
    grammar_ = *std::move(grammar);
    plain_ = Plain();
    ASSERT_NE(plain_, "");
  }

  std::string Plain() {
    EngineRequest request;
    request.prompt = "Once";
    request.options.max_tokens = 4;
    const Result<Generation> output = engine_->Generate(request);
    return output.ok() ? output->text : "";
  }

  // `run` answers what it got, "" after an error that says that memory ran out. Its own allocations
  // fail too.
  void Check(const char* name, int share, const std::function<std::string()>& run) {
    const bool all = std::getenv("PAWL_ALL_ALLOCATIONS") != nullptr;
    const std::string good = run();
    ASSERT_NE(good, "") << name;
    for (const Kind kind : {faults::kCaller, faults::kPool}) {
      const auto counted = [&](int64_t k) {
        faults::Arm(kind, k);
        faults::CountAsCaller();
        std::string got;
        try {
          got = run();
        } catch (const std::bad_alloc&) {  // of the caller's own, such as a list of answers
        }
        faults::Exempt();
        return std::make_pair(std::move(got), faults::Disarm());
      };
      const int64_t count = counted(0).second;
      const int64_t here = all ? count : std::min<int64_t>(count, share);
      int failed = 0;
      for (int64_t i = 0; i < here; ++i) {
        const int64_t k = 1 + i * count / here;
        const auto [got, seen] = counted(k);
        const std::string where =
            std::string(name) + ", " + faults::NameOf(kind) + ", " + std::to_string(k);
        EXPECT_TRUE(got == good || (got.empty() && seen >= k)) << where << ": " << got;
        ASSERT_EQ(Plain(), plain_) << where;
        failed += got.empty() ? 1 : 0;
      }
      EXPECT_EQ(run(), good) << name;
      std::printf("%-22s %-13s %6lld allocations, %4lld faults: %d failed\n", name,
                  faults::NameOf(kind), static_cast<long long>(count), static_cast<long long>(here),
                  failed);
    }
  }

  template <typename T>
  static bool IsGood(const Result<T>& result) {
    if (!result.ok()) {
      EXPECT_TRUE(IsOutOfMemory(result.error())) << result.error().ToString();
    }
    return result.ok();
  }

  std::optional<Engine> engine_;
  std::optional<Grammar> grammar_;
  std::string plain_;
};

TEST_F(EngineFaultsTest, Samplers) {
  for (const SamplerKind kind : {SamplerKind::kSmc, SamplerKind::kAwrs, SamplerKind::kArs}) {
    const std::string name = "sampler " + std::to_string(static_cast<int>(kind));
    Check(name.c_str(), 60, [&] {
      EngineRequest request;
      request.prompt = "Ann, 7\n";
      request.grammar = grammar_;
      SamplerOptions options;
      options.sampler = kind;
      options.n = 2;
      options.particles = 3;
      options.seed = 4;
      options.max_tokens = 40;
      options.attempts = 3;
      const Result<SamplerResult> result = engine_->Sample(request, options);
      if (!result.ok() && !IsOutOfMemory(result.error())) return result.error().ToString();
      if (!IsGood(result)) return std::string();
      std::string text = "done\n";
      for (const WeightedOutput& output : result->outputs) text += output.text + "\n";
      return text;
    });
  }
}

TEST_F(EngineFaultsTest, GeneratingScoringAndCompiling) {
  Check("generate", 100, [&] {
    EngineRequest request;
    request.prompt = "Ann, 7\n";
    request.grammar = grammar_;
    request.options.max_tokens = 40;
    request.options.sampling = {.temperature = 1, .seed = 4};
    std::vector<EngineRequest> requests(2, request);
    requests[1].options.sampling.seed = 5;
    const std::vector<Result<Generation>> outputs = engine_->GenerateAll(requests);
    std::string text;
    for (const Result<Generation>& output : outputs) {
      if (!IsGood(output)) return std::string();
      text += output->text + "\n";
    }
    return text;
  });
  Check("score", 40, [&] {
    EngineRequest request;
    request.prompt = "Ann";
    const std::vector<TokenId> tokens = {5, 6, 7};
    const Result<std::vector<double>> scores = engine_->Score(request, tokens);
    if (!IsGood(scores)) return std::string();
    std::string text;
    for (const double score : *scores) text += std::to_string(score) + "\n";
    return text;
  });
  int number = 1000;
  Check("compile", 200, [&] {
    const Compiler compiler(engine_->vocabulary());
    const Result<Grammar> grammar = compiler.CompileJsonSchema(Schema(++number));
    if (!IsGood(grammar)) return std::string();
    const auto tokens = grammar->Start().CompletionTokens();
    return std::to_string(tokens.has_value() ? tokens->size() : 0);
  });
}

}  // namespace
}  // namespace pawl::server
