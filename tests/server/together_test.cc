// Searches, samplers, choices and best_of over HTTP.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "src/base/file.h"
#include "src/server/server.h"
#include "tests/server/http_client.h"
#include "tests/server/test_server.h"

namespace pawl::server {
namespace {

int TogetherPort() {
  static const std::unique_ptr<Server> server = [] {
    ServerOptions options;
    options.search_rows = 400;
    options.search_nodes = 3000;
    return ServerOf("tiny-extract", options);
  }();
  return server->port();
}

Answer Complete(const std::string& members) {
  Connection client(TogetherPort());
  std::string body = R"({"prompt":"Ann Lee, ",)" + members;
  if (members.find("\"temperature\"") == std::string::npos) body += R"(,"temperature":0)";
  if (members.find("\"max_tokens\"") == std::string::npos) body += R"(,"max_tokens":12)";
  return client.Post("/v1/completions", body + "}");
}

std::string TextAt(const Answer& answer, int index) {
  return At(answer.Json(), "/choices/" + std::to_string(index) + "/text").text;
}

TEST(TogetherTest, BeamsObeyTheConstraintAndReport) {
  const Answer answer =
      Complete(R"("n":2,"regex":"[a-c]{2,4}","search":{"strategy":"beam","num_beams":4})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(At(answer.Json(), "/choices").items.size(), 2u);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(TextAt(answer, i).find_first_not_of("abc"), std::string::npos) << answer.body;
    EXPECT_GE(TextAt(answer, i).size(), 2u);
  }
  EXPECT_NE(TextAt(answer, 0), TextAt(answer, 1));
  EXPECT_EQ(At(answer.Json(), "/pawl/search/0/strategy").text, "beam");
  EXPECT_EQ(At(answer.Json(), "/pawl/search/0/outputs").items.size(), 2u);
}

TEST(TogetherTest, OneBeamIsGreedy) {
  const Answer plain = Complete(R"("n":1)");
  const Answer beam = Complete(R"("search":{"strategy":"beam","num_beams":1})");
  ASSERT_EQ(beam.status, 200) << beam.body;
  EXPECT_EQ(TextAt(beam, 0), TextAt(plain, 0));
  const Answer wide = Complete(R"("use_beam_search":true,"best_of":1)");
  EXPECT_EQ(TextAt(wide, 0), TextAt(plain, 0)) << wide.body;
}

TEST(TogetherTest, TheServersLimitOfRowsHolds) {
  const Answer answer =
      Complete(R"("regex":"[a-z]{11}","search":{"strategy":"best-first","search_rows":100000})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(At(answer.Json(), "/pawl/search/0/at_limit").text, "rows") << answer.body;
  EXPECT_EQ(TextAt(answer, 0).size(), 11u);
}

TEST(TogetherTest, TheServersLimitOfHypothesesHolds) {
  const Answer answer = Complete(
      R"("regex":"[a-z]{11}","search":{"strategy":"mcts","max_nodes":100000,"search_arg":{"width":200,"rollouts":1000}})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(At(answer.Json(), "/pawl/search/0/at_limit").text, "nodes") << answer.body;
  EXPECT_EQ(TextAt(answer, 0).size(), 11u);
}

TEST(TogetherTest, PhrasesAreForced) {
  const Answer answer = Complete(
      R"("regex":"[a-z ]{3,40}","max_tokens":40,"search":{"force_phrases":["blue","red"]})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_NE(TextAt(answer, 0).find("blue"), std::string::npos) << answer.body;
  EXPECT_NE(TextAt(answer, 0).find("red"), std::string::npos) << answer.body;
}

TEST(TogetherTest, SamplersHaveWeights) {
  const Answer answer =
      Complete(R"("n":2,"temperature":1,"regex":"[ab]{3}","sampler":{"name":"smc","particles":2})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(TextAt(answer, 0).size(), 3u);
  EXPECT_EQ(At(answer.Json(), "/pawl/sampler/0/outputs").items.size(), 2u);
}

TEST(TogetherTest, ChoicesHaveProbabilities) {
  const Answer answer = Complete(
      R"("guided_choice":["blue","green"],"classify":true,"exact_rows":300,"temperature":1)");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const json::Value choices = At(answer.Json(), "/pawl/classify/0/choices");
  ASSERT_EQ(choices.items.size(), 2u) << answer.body;
  const std::string best = TextAt(answer, 0);
  EXPECT_TRUE(best == "blue" || best == "green") << best;
  // A lower temperature makes the best one more probable.
  const Answer cold = Complete(
      R"("guided_choice":["blue","green"],"classify":true,"exact_rows":300,"temperature":0.3)");
  ASSERT_EQ(cold.status, 200) << cold.body;
  const auto most = [](const Answer& of) {
    return std::max(std::stod(At(of.Json(), "/pawl/classify/0/choices/0/probability").text),
                    std::stod(At(of.Json(), "/pawl/classify/0/choices/1/probability").text));
  };
  EXPECT_GT(most(cold), most(answer) + 1e-6);
}

// Where a search finds nothing, each route says so.
TEST(TogetherTest, NothingFoundIsAnErrorInEveryRoute) {
  Connection client(TogetherPort());
  const std::string rest = R"(,"max_tokens":9,"search":{"checks":["style:."]}})";
  const std::pair<const char*, std::string> kRequests[] = {
      {"/v1/completions", R"({"prompt":"a","regex":"[ab]{3}")" + rest},
      {"/v1/completions", R"({"prompt":"a","regex":"[ab]{3}","stream":true)" + rest},
      {"/v1/chat/completions",
       R"({"messages":[{"role":"user","content":"a"}],"guided_regex":"[ab]{3}")" + rest},
      {"/v1/extract", R"({"text":"a","schema":{"type":"object"})" + rest}};
  for (const auto& [route, body] : kRequests) {
    const Answer answer = client.Post(route, body);
    const bool stream = body.find("\"stream\"") != std::string::npos;
    EXPECT_EQ(answer.status, stream ? 200 : 400) << route << answer.body;
    EXPECT_NE(answer.body.find("no output was found that the checks accept"), std::string::npos)
        << answer.body;
    EXPECT_NE(answer.body.find("\"limit\""), std::string::npos) << answer.body;
  }
}

// Rows that run again because there are few branches count.
TEST(TogetherTest, FewBranchesKeepTheLimitOfRows) {
  const Answer answer = Complete(
      R"("regex":"[a-z]{11}","search":{"num_beams":16,"max_branches":1,"search_rows":60})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const json::Value found = At(answer.Json(), "/pawl/search/0");
  EXPECT_EQ(At(found, "/at_limit").text, "rows") << answer.body;
  EXPECT_LE(std::stoi(At(found, "/rows").text),
            60 + std::stoi(At(answer.Json(), "/usage/prompt_tokens").text));
  EXPECT_NE(answer.body.find("\"closed_by\":null"), std::string::npos) << answer.body;
  EXPECT_EQ(TextAt(answer, 0).size(), 11u);
}

// Without a temperature a sampler has that of the model's law.
TEST(TogetherTest, SamplersNeedNoTemperature) {
  Connection client(TogetherPort());
  const Answer answer =
      client.Post("/v1/completions",
                  R"({"prompt":"a","max_tokens":5,"regex":"[ab]{3}","sampler":{"name":"smc"}})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(TextAt(answer, 0).size(), 3u);
}

// Also where best_of is n.
TEST(TogetherTest, BestOfOrdersOutputs) {
  const std::string many = R"("temperature":1.5,"regex":"[a-z]{4}","n":5,"logprobs":1,)";
  for (const char* seed : {"5", "6", "7"}) {
    const Answer answer = Complete(many + R"("best_of":5,"seed":)" + seed);
    ASSERT_EQ(answer.status, 200) << answer.body;
    double before = 0;
    for (int i = 0; i < 5; ++i) {
      const json::Value tokens =
          At(answer.Json(), "/choices/" + std::to_string(i) + "/logprobs/token_logprobs");
      double sum = 0;
      for (const json::Value& one : tokens.items) sum += std::stod(one.text);
      const double mean = sum / static_cast<double>(tokens.items.size());
      EXPECT_TRUE(i == 0 || mean <= before + 1e-6) << answer.body;
      before = mean;
    }
  }
}

TEST(TogetherTest, BestOfKeepsTheMostProbable) {
  const std::string many = R"("temperature":1.5,"seed":5,"regex":"[a-z]{4}",)";
  const Answer best = Complete(many + R"("n":1,"best_of":4)");
  ASSERT_EQ(best.status, 200) << best.body;
  ASSERT_EQ(At(best.Json(), "/choices").items.size(), 1u);
  const Answer all = Complete(many + R"("n":4)");
  bool found = false;
  for (int i = 0; i < 4; ++i) found = found || TextAt(all, i) == TextAt(best, 0);
  EXPECT_TRUE(found) << best.body << all.body;
}

TEST(TogetherTest, WrongMembersAreNamed) {
  const std::pair<const char*, const char*> kWrong[] = {
      {R"("search":{"strategy":"worst"})", "/search/strategy"},
      {R"("search":{"strategy":"beam","beams":3})", "/search/beams"},
      {R"("search":{"num_beams":2},"n":3)", "/n"},
      {R"("search":{"num_beams":2,"n":3})", "/search/n"},
      {R"("search":{"n":3},"n":2)", "/search/n"},
      {R"("search":{"n":100000,"num_beams":4096})", "/search/n"},
      {R"("search":{"num_beams":0})", "/search/num_beams"},
      {R"("search":{"strategy":"mcts","search_arg":{"rollouts":1.5}})", "/search/search_arg"},
      {R"("search":{"strategy":"mcts","num_beams":3})", "/search/num_beams"},
      {R"("search":{"contrast":1})", "/search/contrast"},
      {R"("contrast":1)", "/contrast"},
      {R"("search":{"checks":["style:a("]})", "/search/checks/0"},
      {R"("search":{"checks":["regex:a","syntax:cobol"]})", "/search/checks/1"},
      {R"("search":{"checks":["regex:a","word:b"]})", "/search/checks/1"},
      {R"("search":{"checks":[7]})", "/search/checks/0"},
      {R"("search":{"check_timeout":0})", "/search/check_timeout"},
      // Commands and files of the server.
      {R"("search":{"checks":["regex:a","tests:true"]})", "/search/checks/1"},
      {R"("search":{"checks":["program@line:cat"]})", "/search/checks/0"},
      {R"("search":{"checks":["schema:/etc/passwd"]})", "/search/checks/0"},
      {R"("search":{"checks":["grammar:a.ebnf"]})", "/search/checks/0"},
      {R"("search":{"critic":"cat"})", "/search/critic"},
      {R"("temperature":1,"sampler":{"name":"smc","checks":["tests:true"]})", "/sampler/checks/0"},
      {R"("search":{"strategy":"superposed"},"n":9)", "/n"},
      {R"("self_infill":{"loops":1})", "/self_infill"},  // the model has no marks
      {R"("self_infill":{"loops":1.5})", "/self_infill"},
      {R"("self_infill":{"rounds":1})", "/self_infill/rounds"},
      {R"("self_infill":{},"search":{})", "/search"},
      {R"("contrast":1000,"contrast_prompt":"a")", "/contrast"},
      {R"("contrast_prompt":"a","search":{})", "/contrast_prompt"},
      {R"("contrast_prompt":"a","sampler":{"name":"smc"})", "/sampler"},
      {R"("contrast_prompt":"a","n":2)", "/n"},
      {R"("search":{"contrast":"much","contrast_prompt":"a"})", "/search/contrast"},
      {R"("sampler":{"name":"smc"})", "/temperature"},
      {R"("classify":true,"guided_choice":["a","a"])", "/guided_choice"},
      {R"("use_beam_search":true,"best_of":3,"n":3,"length_penalty":1000)", "/length_penalty"},
      {R"("search":{"early_stopping":"often"})", "/search/early_stopping"},
      {R"("search":{},"sampler":{"name":"smc"})", "/sampler"},
      {R"("sampler":{"name":"best"})", "/sampler/name"},
      {R"("classify":true)", "/classify"},
      {R"("search":{},"logit_bias":{"5":3})", "/logit_bias"},
      {R"("temperature":1,"sampler":{"name":"smc"},"logit_bias":{"5":3})", "/logit_bias"},
      {R"("contrast_prompt":"a","logit_bias":{"5":3})", "/logit_bias"},
      {R"("search":{},"best_of":3)", "/best_of"},
      {R"("temperature":1,"sampler":{"name":"smc"},"best_of":3)", "/best_of"},
      {R"("force_phrases":["a"])", "/force_phrases"},
      {R"("search":{},"force_phrases":["a"])", "/force_phrases"},
      {R"("force_in":"value")", "/force_in"},
      {R"("search":{"max_nodes":0})", "/search/max_nodes"},
      {R"("search":{"max_branches":0})", "/search/max_branches"},
      {R"("contrast_prompt":"")", "/contrast_prompt"},
      {R"("search":{"contrast_prompt":""})", "/search/contrast_prompt"},
      // Nothing is found.
      {R"("regex":"[a-c]{3}","search":{"checks":["regex:x"]})", "/search"},
      {R"("regex":"[a-c]{3}","search":{"strategy":"mcts","checks":["regex:x"]})", "/search"},
      {R"("temperature":1,"regex":"[a-c]{3}","sampler":{"name":"awrs","checks":["regex:x"]})",
       "/sampler"},
      {R"("temperature":1,"regex":"[a-c]{3}","sampler":{"name":"cars","attempts":3,"checks":["regex:x"]})",
       "/sampler"},
      {R"("guided_choice":["a","b"],"classify":true)", "/temperature"},
      {R"("temperature":1,"sampler":{"name":"smc","sampler_seconds":-1})",
       "/sampler/sampler_seconds"},
      {R"("temperature":1,"sampler":{"name":"smc","sampler_seconds":1,"seconds":1})",
       "/sampler/sampler_seconds"},
      {R"("temperature":1,"guided_choice":["blueblueblueblue","greengreengreen"],"classify":true,"exact_rows":1)",
       "/classify"},
      {R"("n":3,"best_of":2)", "/best_of"},
      {R"("typical_p":2)", "/typical_p"},
      {R"("samplers":["top_k","top_z"])", "/samplers"},
      {R"("search":{},"stop":"x")", "/stop"},
      {R"("search":{"strategy":"adadec"},"n":2)", "/n"},
      {R"("search":{},"logprobs":2)", "/logprobs"},
      {R"("search":{},"diffusion":{"steps":2})", "/diffusion"},
      {R"("diffusion":4)", "/diffusion"},
      {R"("diffusion":{"threshold":2})", "/diffusion/threshold"},
      {R"("diffusion":{"block_length":0})", "/diffusion/block_length"},
      // The model is causal.
      {R"("diffusion":{"threshold":0.5})", "/diffusion/threshold"},
      {R"("diffusion":{"steps":4})", "/diffusion/steps"},
      {R"("diffusion":{"alg":"entropy"})", "/diffusion/alg"},
  };
  for (const auto& [members, param] : kWrong) {
    const Answer answer = Complete(members);
    EXPECT_EQ(answer.status, 400) << members << answer.body;
    EXPECT_EQ(At(answer.Json(), "/error/param").text, param) << answer.body;
  }
}

TEST(TogetherTest, ChecksJudgeOutputs) {
  const Answer style = Complete(
      R"("regex":"[a-c]{3}","search":{"num_beams":27,"checks":["style:a|b","regex:[a-c]*"]})");
  ASSERT_EQ(style.status, 200) << style.body;
  EXPECT_EQ(TextAt(style, 0), "ccc");
  const Answer drawn = Complete(
      R"("temperature":1,"regex":"[a-c]{3}","sampler":{"name":"awrs","checks":["style:a|b"]})");
  ASSERT_EQ(drawn.status, 200) << drawn.body;
  EXPECT_EQ(TextAt(drawn, 0), "ccc");
#ifdef PAWL_HAVE_MONITORS
  const Answer code = Complete(
      R"x("regex":"x = (\\(1|\\)\\(|2|\\[)","search":{"num_beams":8,"checks":["syntax:python"]})x");
  ASSERT_EQ(code.status, 200) << code.body;
  EXPECT_EQ(TextAt(code, 0), "x = 2");
  const Answer monitored = Complete(
      R"x("max_tokens":40,"regex":"const xs = \\[1\\];\nxs\\.(lenght|length);","search":{"num_beams":4,"checks":["monitor:typescript"]})x");
  ASSERT_EQ(monitored.status, 200) << monitored.body;
  EXPECT_TRUE(TextAt(monitored, 0).ends_with("xs.length;")) << monitored.body;
#endif
}

// A server that was started so runs commands.
TEST(TogetherTest, CommandsRunWhereTheyMay) {
  ServerOptions options;
  options.model_path = PAWL_SOURCE_DIR "/models/tiny-extract";
  options.model.model.threads = 1;
  options.check_commands = true;
  auto server = Server::Start(options);
  ASSERT_TRUE(server.ok() && (*server)->WaitUntilReady().ok());
  Connection client((*server)->port());
  const auto complete = [&](const std::string& search) {
    return client.Post(
        "/v1/completions",
        R"({"prompt":"a","temperature":0,"max_tokens":6,"regex":"[ab]{3}","search":)" + search +
            "}");
  };
  const Answer tested = complete(R"({"num_beams":8,"checks":["tests:grep -q bab"]})");
  ASSERT_EQ(tested.status, 200) << tested.body;
  EXPECT_EQ(TextAt(tested, 0), "bab");
  const Answer scored = complete(R"({"num_beams":8,"critic":"tests:grep -c bba"})");
  ASSERT_EQ(scored.status, 200) << scored.body;
  EXPECT_EQ(TextAt(scored, 0), "bba");
  // A request that goes takes its process with it.
  const std::string file = ::testing::TempDir() + "together_test_begun";
  std::filesystem::remove(file);
  {
    Connection gone((*server)->port());
    fcntl(gone.fd(), F_SETFD, FD_CLOEXEC);  // else the process would hold it
    const std::string body =
        R"({"prompt":"a","max_tokens":6,"regex":"[ab]{3}","search":{"check_timeout":600,)"
        R"("checks":["tests:echo $$ > )" +
        file + ".new; mv " + file + ".new " + file + R"(; exec sleep 600"]}})";
    gone.Send("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
              std::to_string(body.size()) + "\r\n\r\n" + body);
    for (int i = 0; i < 500 && !std::filesystem::exists(file); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  const Result<std::string> begun = ReadFile(file);
  ASSERT_TRUE(begun.ok());
  const pid_t pid = std::stoi(*begun);
  for (int i = 0; i < 500 && kill(pid, 0) == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_NE(kill(pid, 0), 0);
  // A command that is not there is no refusal.
  const std::pair<const char*, const char*> kGone[] = {
      {R"({"checks":["style:x","tests:/no/such/command"]})", "/search/checks/1"},
      {R"({"critic":"tests:/no/such/command"})", "/search/critic"},
      {R"({"check_timeout":0.05,"checks":["tests:sleep 9"]})", "/search/checks/0"}};
  for (const auto& [search, place] : kGone) {
    const Answer gone = complete(search);
    EXPECT_NE(gone.status, 200) << gone.body;
    EXPECT_EQ(At(gone.Json(), "/error/param").text, place) << gone.body;
  }
  const Answer missing = complete(R"({"checks":["schema:/no/such.json"]})");
  EXPECT_EQ(missing.status, 400) << missing.body;
  EXPECT_EQ(At(missing.Json(), "/error/param").text, "/search/checks/0") << missing.body;
}

TEST(TogetherTest, TheOutputsOfASearchAreAnswered) {
  const Answer answer = Complete(R"("regex":"[a-c]{2,4}","search":{"n":3})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(At(answer.Json(), "/choices").items.size(), 3u) << answer.body;
  EXPECT_EQ(At(answer.Json(), "/pawl/search/0/outputs").items.size(), 3u);
}

// Where there are fewer than n, the answer has those, and says so.
TEST(TogetherTest, FewerOutputsThanAskedFor) {
  const std::string two = R"("guided_choice":["blue","green"],"search":{"num_beams":4},"n":3)";
  const Answer answer = Complete(two);
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(At(answer.Json(), "/choices").items.size(), 2u) << answer.body;
  EXPECT_NE(answer.body.find("of 3 outputs 2 were found"), std::string::npos) << answer.body;
  Connection client(TogetherPort());
  for (const char* route : {"/v1/completions", "/v1/chat/completions"}) {
    const std::string prompt = std::string(route).find("chat") != std::string::npos
                                   ? R"("messages":[{"role":"user","content":"a"}])"
                                   : R"("prompt":"a")";
    const Answer stream =
        client.Post(route, "{" + prompt + R"(,"max_tokens":12,"stream":true,)" + two + "}");
    EXPECT_EQ(stream.status, 200);
    EXPECT_NE(stream.body.find("\"index\":0"), std::string::npos) << stream.body;
    EXPECT_EQ(stream.body.find("\"index\":2"), std::string::npos) << stream.body;
    EXPECT_NE(stream.body.find("[DONE]"), std::string::npos) << stream.body;
  }
  const Answer llama = client.Post(
      "/completion",
      R"({"prompt":"a","n_predict":9,"n":2,"guided_choice":["blue"],"search":{"num_beams":4}})");
  ASSERT_EQ(llama.status, 200) << llama.body;
  EXPECT_EQ(llama.Json().items.size(), 1u) << llama.body;
}

TEST(TogetherTest, ErrorsSayWhatIsWrong) {
  const std::pair<const char*, const char*> kMessages[] = {
      {R"("contrast_prompt":"a","n":2)", "contrast without a search has one output"},
      {R"("contrast_prompt":"a","n":2,"temperature":1)", "contrast without a search"},
      {R"("search":{"force_ordered":true})", "needs force_phrases"},
      {R"("search":{"force_in":"value"})", "needs force_phrases"},
      {R"("classify":true,"choice":["a","b"])", "guided_choice, not choice"},
      {R"("temperature":1,"regex":"[a-c]{3}","sampler":{"name":"cars","attempts":3,"checks":["regex:x"]})",
       "in 3 attempts"},
      {R"("temperature":1,"regex":"[a-c]{3}","sampler":{"name":"awrs","checks":["regex:x"]})",
       "the output that was drawn is not valid"},
      {R"("temperature":1,"regex":"[a-c]{3}","sampler":{"name":"cars","sampler_seconds":1e-9})",
       "the time is over"},
  };
  for (const auto& [members, message] : kMessages) {
    const Answer answer = Complete(members);
    EXPECT_EQ(answer.status, 400) << members << answer.body;
    EXPECT_NE(answer.body.find(message), std::string::npos) << answer.body;
  }
  const Answer many =
      Complete(R"("search":{"force_phrases":[")" + std::string(70000, 'a') + "\"]}");
  EXPECT_EQ(At(many.Json(), "/error/param").text, "/search/force_phrases");
}

// The other prompt is the chat with another last message, through the model's own template.
TEST(TogetherTest, ChatsHaveContrast) {
  ServerOptions options;
  options.model.chat_template =
      "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<assistant>";
  const std::unique_ptr<Server> server = ServerOf("tiny-extract", options);
  const auto post = [&](const std::string& more) {
    Connection client(server->port());
    return client.Post(
        "/v1/chat/completions",
        R"({"messages":[{"role":"user","content":"Ann Lee lives here."}],"temperature":0,)"
        R"("max_tokens":12,"guided_regex":"[A-Za-z ]{2,30}")" +
            more + "}");
  };
  const auto said = [&](const std::string& more) {
    const Answer answer = post(more);
    EXPECT_EQ(answer.status, 200) << answer.body;
    return At(answer.Json(), "/choices/0/message/content").text;
  };
  const std::string plain = said("");
  EXPECT_EQ(said(R"(,"contrast_prompt":"Ann Lee lives here.","contrast":3)"), plain);
  EXPECT_EQ(said(R"(,"contrast_prompt":"Bob","contrast":0)"), plain);
  EXPECT_NE(said(R"(,"contrast_prompt":"Bob","contrast":5)"), plain);
  EXPECT_NE(said(R"(,"search":{"num_beams":1,"contrast_prompt":"Bob","contrast":5})"), plain);
  const Answer tools =
      post(R"(,"contrast_prompt":"Bob","tools":[{"type":"function","function":{"name":"f"}}])");
  EXPECT_EQ(tools.status, 400) << tools.body;
  EXPECT_EQ(At(tools.Json(), "/error/param").text, "/contrast_prompt") << tools.body;
}

TEST(TogetherTest, ContrastIsAnOptionOfSearches) {
  const std::string same = R"("search":{"num_beams":1,"contrast_prompt":"Ann Lee, "})";
  const Answer plain = Complete(R"("search":{"num_beams":1})");
  EXPECT_EQ(TextAt(Complete(same), 0), TextAt(plain, 0));
  const Answer other =
      Complete(R"("regex":"[a-c]{2,4}","search":{"contrast":"auto","contrast_prompt":"Bob"})");
  ASSERT_EQ(other.status, 200) << other.body;
  EXPECT_EQ(TextAt(other, 0).find_first_not_of("abc"), std::string::npos) << other.body;
}

TEST(TogetherTest, ContrastWithoutASearchIsGreedyOrDrawn) {
  const Answer plain = Complete(R"("n":1)");
  EXPECT_EQ(TextAt(Complete(R"("contrast_prompt":"Ann Lee, ")"), 0), TextAt(plain, 0));
  const std::string other = R"("contrast_prompt":"Bob","contrast":"auto")";
  const Answer searched = Complete(R"("search":{"num_beams":1,)" + other + "}");
  EXPECT_EQ(TextAt(Complete(other), 0), TextAt(searched, 0)) << searched.body;
  const Answer drawn = Complete(other + R"(,"temperature":1,"seed":3,"top_k":3)");
  ASSERT_EQ(drawn.status, 200) << drawn.body;
  EXPECT_EQ(At(drawn.Json(), "/pawl/search/0/strategy").text, "cntp") << drawn.body;
  EXPECT_EQ(At(drawn.Json(), "/pawl/ignored/0").text, "/top_k") << drawn.body;
}

Answer ExtractTogether(const std::string& members) {
  Connection client(TogetherPort());
  return client.Post("/v1/extract",
                     R"({"schema":{"type":"object","properties":{"name":{"type":"string"},"city":)"
                     R"({"type":"string"}}},"texts":["Ann Lee lives in Oslo.","Bob is here."])" +
                         members + "}");
}

TEST(TogetherTest, ExtractionHasContrast) {
  const auto record = [](const Answer& answer, int i) {
    return json::Dump(At(answer.Json(), "/records/" + std::to_string(i) + "/record"));
  };
  const Answer plain = ExtractTogether("");
  const Answer none = ExtractTogether(R"(,"contrast":0)");
  ASSERT_EQ(none.status, 200) << none.body;
  for (int i = 0; i < 2; ++i) EXPECT_EQ(record(none, i), record(plain, i)) << none.body;
  const Answer some = ExtractTogether(R"(,"contrast":"auto")");
  ASSERT_EQ(some.status, 200) << some.body;
  EXPECT_NE(some.body.find("\"name\":\"Ann Lee\""), std::string::npos) << some.body;
  EXPECT_EQ(ExtractTogether(R"(,"contrast":"much")").status, 400);
  EXPECT_EQ(ExtractTogether(R"(,"contrast":1,"contrast_prompt":"x")").status, 400);
}

TEST(TogetherTest, ASearchTellsWhatItIgnores) {
  const Answer answer = Complete(R"("search":{},"temperature":0.5,"top_k":3)");
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(At(answer.Json(), "/pawl/ignored/0").text, "/temperature") << answer.body;
  EXPECT_EQ(At(answer.Json(), "/pawl/ignored/1").text, "/top_k") << answer.body;
  EXPECT_EQ(answer.body.find("samplers"), std::string::npos) << answer.body;
}

TEST(TogetherTest, RoutesOfOllamaHaveNoSearches) {
  Connection client(TogetherPort());
  for (const char* member : {R"("search":{"strategy":"beam"})", R"("use_beam_search":true)"}) {
    const Answer answer =
        client.Post("/api/generate",
                    std::string(R"({"model":"x","prompt":"a","stream":false,)") + member + "}");
    EXPECT_EQ(answer.status, 400) << answer.body;
  }
}

TEST(TogetherTest, LlamaRoutesHaveLlamasOrder) {
  Connection client(TogetherPort());
  const Answer answer =
      client.Post("/completion", R"({"prompt":"Ann","n_predict":3,"top_k":5,"temperature":0.5})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(At(answer.Json(), "/pawl/samplers").text, "top_k,temperature");
  const Answer letters =
      client.Post("/completion", R"({"prompt":"Ann","n_predict":3,"top_k":5,"samplers":"etk"})");
  EXPECT_EQ(At(letters.Json(), "/pawl/samplers").text, "temperature,top_k") << letters.body;
}

}  // namespace
}  // namespace pawl::server
