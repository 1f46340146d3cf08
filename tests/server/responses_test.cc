// Stored answers of /v1/responses: the store itself, and what clients do with it.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "src/server/response_store.h"
#include "src/server/server.h"
#include "tests/server/http_client.h"
#include "tests/server/test_server.h"

namespace pawl::server {
namespace {

ResponseStore::Entry EntryOf(int key, std::string response = "{}") {
  return {.key = key, .response = std::move(response), .messages = "[]"};
}

TEST(ResponseStoreTest, AnEntryIsThereForItsKey) {
  ResponseStore store(10000, 60);
  EXPECT_TRUE(store.Put("resp_1", EntryOf(1)));
  EXPECT_FALSE(store.Put("resp_1", EntryOf(2)));
  ASSERT_NE(store.Find("resp_1", 1), nullptr);
  EXPECT_EQ(store.Find("resp_1", 1)->response, "{}");
  EXPECT_EQ(store.Find("resp_1", 0), nullptr);
  EXPECT_EQ(store.Find("resp_1", 2), nullptr);
  EXPECT_FALSE(store.Remove("resp_1", 2));
  EXPECT_TRUE(store.Remove("resp_1", 1));
  EXPECT_FALSE(store.Remove("resp_1", 1));
  EXPECT_EQ(store.bytes(), 0u);
  EXPECT_FALSE(store.Put("resp_2", EntryOf(1, std::string(20000, 'x'))));
  ResponseStore off(0, 60);
  EXPECT_FALSE(off.on());
  EXPECT_FALSE(off.Put("resp_3", EntryOf(0)));
}

TEST(ResponseStoreTest, AgeEndsAnEntry) {
  double now = 100;
  ResponseStore store(10000, 60, [&] { return now; });
  EXPECT_TRUE(store.Put("resp_1", EntryOf(1)));
  now = 130;
  EXPECT_TRUE(store.Put("resp_2", EntryOf(1)));
  now = 159;
  EXPECT_NE(store.Find("resp_1", 1), nullptr);
  now = 161;
  EXPECT_EQ(store.Find("resp_1", 1), nullptr);
  EXPECT_NE(store.Find("resp_2", 1), nullptr);
  EXPECT_EQ(store.size(), 1u);
}

TEST(ResponseStoreTest, ABusyKeyDoesNotPushOutTheOthers) {
  ResponseStore store(20000, 60);
  EXPECT_TRUE(store.Put("resp_quiet", EntryOf(1, std::string(500, 'q'))));
  for (int i = 0; i < 1000; ++i) {
    EXPECT_TRUE(store.Put("resp_" + std::to_string(i), EntryOf(2, std::string(500, 'b'))));
  }
  EXPECT_NE(store.Find("resp_quiet", 1), nullptr);
  EXPECT_NE(store.Find("resp_999", 2), nullptr);
  EXPECT_EQ(store.Find("resp_0", 2), nullptr);
}

// Against a list that is searched from its beginning.
TEST(ResponseStoreTest, RandomEntriesStayWithinTheBytes) {
  std::mt19937 random(5);
  ResponseStore store(50000, 1e9);
  std::map<std::string, int> made;
  for (int i = 0; i < 3000; ++i) {
    const int key = static_cast<int>(random() % 4);
    const std::string id = "resp_" + std::to_string(random() % 400);
    if (random() % 4 == 0) {
      const bool was = store.Find(id, key) != nullptr;
      EXPECT_EQ(store.Remove(id, key), was);
      if (was) {
        EXPECT_EQ(made[id], key);
      }
    } else {
      const size_t before = store.size();
      if (store.Put(id, EntryOf(key, std::string(random() % 3000, 'r')))) made[id] = key;
      EXPECT_LE(store.size(), before + 1);
    }
    EXPECT_LE(store.bytes(), 50000u);
  }
  size_t found = 0;
  for (const auto& [id, key] : made) found += store.Find(id, key) != nullptr ? 1 : 0;
  EXPECT_EQ(found, store.size());
}

ServerOptions StoringOptions() {
  ServerOptions options;
  options.api_keys = {"first", "second"};
  // The prompt's tokens tell which messages are in it.
  options.model.chat_template =
      "{% for m in messages %}<{{ m.role }}>{{ m.content }}"
      "{% for c in m.tool_calls or [] %}[{{ c.function.name }}]{% endfor %}\n{% endfor %}";
  return options;
}

class ResponsesTest : public testing::Test {
 protected:
  static int Port() {
    static const std::unique_ptr<Server> server = ServerOf("tiny-extract", StoringOptions());
    return server->port();
  }
  static std::string As(const std::string& key) { return "Authorization: Bearer " + key + "\r\n"; }
  Answer Ask(const std::string& members, const std::string& key = "first") {
    return c_.Post("/v1/responses", R"({"max_output_tokens":6,"temperature":0,)" + members + "}",
                   As(key));
  }
  std::string IdOf(const Answer& answer) {
    EXPECT_EQ(answer.status, 200) << answer.body;
    return At(answer.Json(), "/id").text;
  }
  Answer Send(const char* method, const std::string& id, const std::string& key = "first") {
    return c_.Request(method, "/v1/responses/" + id, As(key));
  }
  Connection c_{Port()};
};

TEST_F(ResponsesTest, AnAnswerIsReadAndDeletedByItsKey) {
  const Answer made = Ask(R"("input":"Ann Lee")");
  const std::string id = IdOf(made);
  EXPECT_EQ(At(made.Json(), "/store").type, json::Type::kTrue);
  const Answer read = Send("GET", id);
  EXPECT_EQ(read.status, 200);
  EXPECT_EQ(read.body, made.body);
  EXPECT_EQ(Send("GET", id, "second").status, 404);
  EXPECT_EQ(Send("DELETE", id, "second").status, 404);
  EXPECT_EQ(c_.Get("/v1/responses/" + id).status, 401);
  EXPECT_EQ(Send("POST", id).status, 405);
  const Answer deleted = Send("DELETE", id);
  EXPECT_EQ(deleted.status, 200);
  EXPECT_EQ(At(deleted.Json(), "/deleted").type, json::Type::kTrue);
  EXPECT_EQ(Send("GET", id).status, 404);
  EXPECT_EQ(Send("DELETE", id).status, 404);
  EXPECT_EQ(Send("GET", "nothing").status, 400);
}

// What goes on from an answer is what the whole chat as input gives.
TEST_F(ResponsesTest, ARequestGoesOnFromAnAnswer) {
  const Answer first = Ask(R"("input":"Ann Lee, 7","instructions":"Be brief.")");
  const std::string said = At(first.Json(), "/output/0/content/0/text").text;
  const Answer second =
      Ask(R"("input":"And Bo?","previous_response_id":)" + json::Quote(IdOf(first)));
  EXPECT_EQ(At(second.Json(), "/previous_response_id").text, IdOf(first));
  const Answer third = Ask(R"("input":"Why?","previous_response_id":)" + json::Quote(IdOf(second)));
  const std::string then = At(second.Json(), "/output/0/content/0/text").text;
  const auto message = [](const char* role, const std::string& text) {
    return std::string(R"({"role":")") + role + R"(","content":)" + json::Quote(text) + "}";
  };
  // Instructions are of one request alone.
  const std::string chat = message("user", "Ann Lee, 7") + "," + message("assistant", said) + "," +
                           message("user", "And Bo?");
  const Answer whole = Ask("\"store\":false,\"input\":[" + chat + "]");
  EXPECT_EQ(At(whole.Json(), "/store").type, json::Type::kFalse);
  EXPECT_EQ(At(whole.Json(), "/output/0/content/0/text").text, then);
  EXPECT_EQ(At(whole.Json(), "/usage/input_tokens").text,
            At(second.Json(), "/usage/input_tokens").text);
  const Answer all = Ask("\"input\":[" + chat + "," + message("assistant", then) + "," +
                         message("user", "Why?") + "]");
  EXPECT_EQ(At(all.Json(), "/usage/input_tokens").text,
            At(third.Json(), "/usage/input_tokens").text);
  EXPECT_EQ(Send("GET", IdOf(whole)).status, 404) << "was asked not to be stored";
  const Answer foreign =
      Ask(R"("input":"x","previous_response_id":)" + json::Quote(IdOf(first)), "second");
  EXPECT_EQ(foreign.status, 400);
  EXPECT_NE(foreign.body.find("previous_response_id"), std::string::npos) << foreign.body;
}

TEST_F(ResponsesTest, AStreamIsStoredAsItsLastEventSays) {
  const Answer stream = Ask(R"("input":"Ann Lee","stream":true)");
  ASSERT_EQ(stream.status, 200);
  std::string body, id;
  for (const std::string& event : stream.Events()) {
    const auto one = json::Parse(event);
    ASSERT_TRUE(one.ok()) << event;
    if (const json::Value* response = one->Find("response")) {
      body = json::Dump(*response);
      id = At(*response, "/id").text;
    }
  }
  const Answer read = Send("GET", id);
  ASSERT_EQ(read.status, 200);
  EXPECT_EQ(json::Dump(read.Json()), body);
}

TEST(ResponsesOffTest, NothingIsStored) {
  ServerOptions options;
  options.store_bytes = 0;
  const std::unique_ptr<Server> server = ServerOf("tiny-extract", options);
  Connection c(server->port());
  const Answer made = c.Post("/v1/responses", R"({"input":"Ann","max_output_tokens":3})");
  ASSERT_EQ(made.status, 200) << made.body;
  EXPECT_EQ(At(made.Json(), "/store").type, json::Type::kFalse);
  const std::string id = At(made.Json(), "/id").text;
  EXPECT_EQ(c.Get("/v1/responses/" + id).status, 404);
  const Answer refused =
      c.Post("/v1/responses", R"({"input":"Ann","previous_response_id":")" + id + "\"}");
  EXPECT_EQ(refused.status, 400);
  EXPECT_NE(refused.body.find("stores no responses"), std::string::npos) << refused.body;
}

}  // namespace
}  // namespace pawl::server
