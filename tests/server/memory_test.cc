// What a server keeps stays within its bytes, by the count of the heap itself and not only by its
// own.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "pawl/result.h"
#include "src/base/json.h"
#include "src/engine/model_files.h"
#include "src/server/grammar_store.h"
#include "src/server/server.h"
#include "tests/server/http_client.h"
#include "tests/server/test_server.h"

namespace pawl::server {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

// Bytes that were asked for and not freed; 0 where nothing counts them (sanitizers).
int64_t HeapBytes() {
  const struct mallinfo2 heap = mallinfo2();
  return static_cast<int64_t>(heap.uordblks + heap.hblkhd);
}

std::string SchemaNumber(int i) {
  const std::string name = "field_" + std::to_string(i);
  return R"({"type":"object","properties":{")" + name +
         R"(":{"type":"string","format":"date"},"n":{"type":"integer","minimum":)" +
         std::to_string(i % 1000) + R"(},"e":{"enum":["red","green","blue"]}},"required":[")" +
         name + R"(","n","e"],"additionalProperties":false})";
}

TEST(MemoryTest, GrammarsTakeWhatIsCounted) {
  if (HeapBytes() == 0) GTEST_SKIP() << "the heap is not counted here";
  auto tokenizer = LoadTokenizer(PAWL_SOURCE_DIR "/models/tiny-extract");
  ASSERT_TRUE(tokenizer.ok());
  auto vocabulary = (*tokenizer)->MakeVocabulary();
  ASSERT_TRUE(vocabulary.ok());
  constexpr int64_t kBytes = 4 * kMiB;
  const auto get = [](GrammarStore& store, int i) {
    ConstraintSpec spec;
    spec.kind = ConstraintSpec::Kind::kJsonSchema;
    spec.text = SchemaNumber(i);
    bool known = false;
    ASSERT_TRUE(store.Get(spec, {}, known, std::make_shared<StopFlag>()).ok());
    EXPECT_FALSE(known);
  };
  {
    GrammarStore first(*vocabulary, {.max_bytes = kBytes});  // tables that all share
    get(first, -1);
  }
  const int64_t before = HeapBytes();
  GrammarStore store(*vocabulary, {.max_bytes = kBytes});
  int64_t half = 0, counted = 0;
  for (int i = 0; i < 300; ++i) {
    get(store, i);
    if (i == 149) half = HeapBytes();
    counted = std::max(counted, static_cast<int64_t>(store.stats().bytes));
  }
  const int64_t end = HeapBytes();
  // One grammar's states may be beyond the budget until it is idle.
  EXPECT_LE(counted, kBytes + kBytes / 2);
  EXPECT_LE(end - before, kBytes + kBytes / 2) << "counted: " << store.stats().bytes;
  EXPECT_LE(end - half, kBytes / 4);
}

// Each request has a schema that was never there. The first ones fill the budget.
TEST(MemoryTest, AServerStaysAsItIs) {
  if (HeapBytes() == 0) GTEST_SKIP() << "the heap is not counted here";
  ServerOptions options;
  options.model_path = PAWL_SOURCE_DIR "/models/tiny-extract";
  options.model.model.threads = 1;
  options.grammar_bytes = 4 * kMiB;
  const auto server = Server::Start(options);
  ASSERT_TRUE(server.ok());
  ASSERT_TRUE((*server)->WaitUntilReady().ok());
  Connection c((*server)->port());
  int64_t half = 0;
  for (int i = 0; i < 140; ++i) {
    const std::string stream = i % 2 == 0 ? "true" : "false";
    const std::string text = "Order " + std::to_string(i) + ", red, 2026-11-23";
    const Answer answer = c.Post(
        "/v1/chat/completions",
        R"({"messages":[{"role":"user","content":")" + text + R"("}],"max_tokens":30,"stream":)" +
            stream +
            R"(,"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":)" +
            SchemaNumber(i) + "}}}");
    ASSERT_EQ(answer.status, 200) << answer.body;
    if (i == 69) half = HeapBytes();
  }
  EXPECT_LE(HeapBytes() - half, kMiB);
  const std::string metrics = c.Get("/metrics").body;
  for (const char* name : {"\nprocess_resident_memory_bytes ", "\npawl_heap_used_bytes ",
                           "\npawl_heap_free_bytes ", "\npawl_grammar_bytes "}) {
    EXPECT_NE(metrics.find(name), std::string::npos) << name;
  }
}

// The model's context is longer than what the memory for keys and values holds.
TEST(MemoryTest, APromptBeyondTheKvCache) {
  ServerOptions options;
  options.model.model.kv_bytes = int64_t{4} << 20;
  const auto server = ServerOf("tiny-extract", options);
  Connection c(server->port());
  std::string text;
  for (int i = 0; i < 100; ++i) text += "Ann Lee, number " + std::to_string(i) + ". ";
  const std::string quoted = json::Quote(text);
  for (const auto& [path, body, param] : std::vector<std::array<std::string, 3>>{
           {"/v1/completions", R"({"prompt":)" + quoted + "}", "/prompt"},
           {"/v1/chat/completions", R"({"messages":[{"role":"user","content":)" + quoted + "}]}",
            "/messages"}}) {
    const Answer answer = c.Post(path, body);
    EXPECT_EQ(answer.status, 400) << path << answer.body;
    EXPECT_EQ(At(answer.Json(), "/error/code").text, "context_length_exceeded") << answer.body;
    EXPECT_EQ(At(answer.Json(), "/error/param").text, param) << answer.body;
  }
  EXPECT_EQ(c.Post("/v1/completions", R"({"prompt":"Ann","max_tokens":2})").status, 200);
}

}  // namespace
}  // namespace pawl::server
