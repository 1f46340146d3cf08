// A model that fills masks over HTTP: options of its loop, and what is refused by name.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "src/server/server.h"
#include "tests/server/http_client.h"
#include "tests/server/test_server.h"

namespace pawl::server {
namespace {

int CanvasPort() {
  static const std::unique_ptr<Server> server = ServerOf("tiny-extract-diffusion");
  return server->port();
}

Answer FillCanvas(const std::string& members) {
  Connection client(CanvasPort());
  std::string body = R"({"prompt":"Ann Lee, ","max_tokens":12,)" + members;
  if (members.find("\"temperature\"") == std::string::npos) body += R"(,"temperature":0)";
  return client.Post("/v1/completions", body + "}");
}

// Places are known, and neither probabilities nor surprises.
TEST(CanvasTest, DetailsOfRecords) {
  Connection client(CanvasPort());
  const Answer answer = client.Post(
      "/v1/extract",
      R"({"schema":{"type":"object","properties":{"name":{"type":"string","x-pawl-source":"span"},)"
      R"("kind":{"enum":["x","y"]}},"required":["name","kind"]},)"
      R"("text":"Ann Lee works at Halden Glass.","max_tokens":40,"details":true})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const json::Value record = At(answer.Json(), "/records/0");
  EXPECT_EQ(json::Dump(At(record, "/probability")), R"({"/name":null,"/kind":null})");
  EXPECT_EQ(json::Dump(At(record, "/surprise")), R"({"/name":null,"/kind":null})");
  EXPECT_EQ(json::Dump(At(record, "/alternatives")), "{}");
  EXPECT_NE(At(record, "/spans").Find("/name"), nullptr) << answer.body;
  EXPECT_NE(At(record, "/byte_spans").Find("/name"), nullptr) << answer.body;
}

TEST(CanvasTest, WhatMeansNothingIsRefusedByName) {
  const std::pair<const char*, const char*> kRefused[] = {
      {R"("repetition_penalty":1.5)", "/repetition_penalty"},
      {R"("frequency_penalty":0.5)", "/frequency_penalty"},
      {R"("top_k":5)", "/top_k"},
      {R"("mirostat":2)", "/mirostat"},
      {R"("typical_p":0.5)", "/typical_p"},
      {R"("xtc_probability":0.5)", "/xtc_probability"},
      {R"("dry_multiplier":0.8)", "/dry_multiplier"},
      {R"("draft_lanes":4)", "/draft_lanes"},
      {R"("logprobs":2)", "/logprobs"},
      {R"("best_of":3)", "/best_of"},
      {R"("search":{"num_beams":2})", "/search"},
      {R"("use_beam_search":true,"best_of":2)", "/use_beam_search"},
      {R"("sampler":{"name":"smc"},"temperature":1)", "/sampler"},
      {R"("classify":true,"guided_choice":["a","b"])", "/classify"},
      {R"("diffusion":{"steps":4,"threshold":0.5})", "/diffusion/steps"},
      {R"("diffusion":{"remasking":"random"})", "/diffusion/remasking"},
      {R"("diffusion":{"kv_refresh":4})", "/diffusion/kv_refresh"},
      {R"("diffusion":{"schedule":"fast"})", "/diffusion/schedule"},
      {R"("diffusion":{"steps":"many"})", "/diffusion/steps"},
      {R"("diffusion":{"stepz":4})", "/diffusion/stepz"},
  };
  for (const auto& [members, param] : kRefused) {
    const Answer answer = FillCanvas(members);
    EXPECT_EQ(answer.status, 400) << members << answer.body;
    EXPECT_EQ(At(answer.Json(), "/error/param").text, param) << answer.body;
  }
}

// Whose order of stages is the server's own.
TEST(CanvasTest, TheRouteOfLlamaCppFillsMasks) {
  Connection client(CanvasPort());
  const std::string request = R"({"prompt":"Ann Lee, ","n_predict":12,"temperature":0)";
  const Answer answer = client.Post("/completion", request + "}");
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(client.Post("/completion", request + R"(,"samplers":["top_k"]})").status, 400);
}

TEST(CanvasTest, OptionsOfTheLoop) {
  const auto text = [](const std::string& diffusion) {
    const Answer answer = FillCanvas(R"("regex":"[a-z]{4,8}","diffusion":{)" + diffusion + "}");
    EXPECT_EQ(answer.status, 200) << answer.body;
    return At(answer.Json(), "/choices/0/text").text;
  };
  const std::string steps = text("");
  EXPECT_EQ(steps.find_first_not_of("abcdefghijklmnopqrstuvwxyz"), std::string::npos);
  EXPECT_EQ(text(R"("schedule":"ssd")"), steps);
  EXPECT_EQ(text(R"("cache":"dual","kv_refresh":1)"), steps);
  EXPECT_GE(text(R"("schedule":"prophet","cache":"dkv","alg":"entropy","eps":0.1)").size(), 4u);
}

TEST(CanvasTest, AStreamThatFailsEndsAsOthersDo) {
  const Answer answer = FillCanvas(R"("stream":true,"regex":"[a-z]{400}")");
  if (answer.status != 200) {
    EXPECT_EQ(answer.status, 400);
    return;
  }
  const auto events = answer.Events();
  ASSERT_GE(events.size(), 2u);
  EXPECT_EQ(events.back(), "[DONE]");
  EXPECT_NE(events[events.size() - 2].find("\"error\""), std::string::npos) << answer.body;
}

// Keys that are asked for with null for "not there" are left out of the record, also as it comes.
TEST(CanvasTest, AStreamHasWhatTheRecordHas) {
  const std::string request =
      R"({"schema":{"type":"object","properties":{"name":{"type":"string","maxLength":8},)"
      R"("phone":{"type":"string","maxLength":8}}},"prompt":"Ann Lee","max_tokens":60,"keys":"all",)"
      R"("temperature":0,"stream":)";
  Connection client(CanvasPort());
  const Answer whole = client.Post("/v1/completions", request + "false}");
  ASSERT_EQ(whole.status, 200) << whole.body;
  Connection second(CanvasPort());
  const Answer stream = second.Post("/v1/completions", request + "true}");
  std::string text;
  for (const std::string& event : stream.Events()) {
    if (event == "[DONE]") continue;
    text += At(*json::Parse(event), "/choices/0/text").text;
  }
  EXPECT_EQ(text, At(whole.Json(), "/choices/0/text").text);
}

}  // namespace
}  // namespace pawl::server
