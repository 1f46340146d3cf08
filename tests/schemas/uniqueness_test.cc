// uniqueItems next to `contains`: decided by counting, against all arrays over a few values; values
// without end among objects and pairs; and what long arrays cost.
#include "schemas/solve/uniqueness.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "schemas/machine/schema_machine.h"
#include "schemas/read/schema_reader.h"
#include "tests/schemas/dead_ends.h"
#include "tests/schemas/property_generators.h"

namespace pawl::schema {
namespace {

std::unique_ptr<SchemaMachine> MachineOf(const std::string& schema, bool any = false) {
  JsonSchemaOptions options;
  options.whitespace = JsonSchemaOptions::Whitespace::kCompact;
  if (any) options.order = JsonSchemaOptions::Order::kAny;
  auto read = ReadJsonSchema(*json::Parse(schema), options);
  if (!read.ok()) return nullptr;
  return std::make_unique<SchemaMachine>(std::move(read->table), options);
}

// Some array of different values below `values` with a length and a number of matches in bounds.
bool Exists(int values, int matching, int least, int most, int least_matches, int most_matches) {
  for (int m = 0; m <= matching; ++m) {
    for (int other = 0; other <= values - matching; ++other) {
      if (m >= least_matches && m <= most_matches && m + other >= least && m + other <= most)
        return true;
    }
  }
  return false;
}

TEST(UniquenessTest, MatchesOfContainsAreCounted) {
  property::Dice dice(21);
  int possible = 0, impossible = 0;
  for (int round = 0; round < 300; ++round) {
    const int values = dice.Between(1, 5), matching = dice.Between(0, values);
    const int least = dice.Between(0, 5), most = dice.Between(0, 5);
    const int least_matches = dice.Between(0, 3), most_matches = dice.Between(0, 4);
    std::string all, some;
    for (int i = 0; i < values; ++i) {
      all += (i == 0 ? "" : ",") + std::to_string(i);
      if (i < matching) some += (i == 0 ? "" : ",") + std::to_string(i);
    }
    const std::string schema =
        R"({"type":"array","uniqueItems":true,"items":{"enum":[)" + all + R"(]},"contains":)" +
        (matching == 0 ? "false" : R"({"enum":[)" + some + "]}") + R"(,"minItems":)" +
        std::to_string(least) + R"(,"maxItems":)" + std::to_string(most) + R"(,"minContains":)" +
        std::to_string(least_matches) + R"(,"maxContains":)" + std::to_string(most_matches) + "}";
    const auto machine = MachineOf(schema);
    ASSERT_NE(machine, nullptr) << schema;
    const bool exists = Exists(values, matching, least, most, least_matches, most_matches);
    EXPECT_EQ(machine->CheckSatisfiable().ok(), exists) << schema;
    EXPECT_EQ(machine->undecided(), 0u) << schema;
    ++(exists ? possible : impossible);
    if (!exists) continue;
    property::WalkReport report;
    property::WalkSchema(*json::Parse(schema), 7, 6, true, report);
    for (const std::string& failure : report.failures) ADD_FAILURE() << failure;
    EXPECT_EQ(report.undecided_dead + report.undecided_open, 0u) << schema;
  }
  EXPECT_GE(possible, 60);
  EXPECT_GE(impossible, 60);
}

// Bug: "no output that fits was found".
TEST(UniquenessTest, ArraysAndObjectsHaveNoEnd) {
  for (const char* items :
       {R"({"type":"array","items":{"type":"integer"},"minItems":2,"maxItems":2})",
        R"({"type":"array","items":{"type":"integer"},"maxItems":1})",
        R"({"type":"object","properties":{"a":{"type":"string"},"b":{"type":"boolean"}},
            "required":["a","b"],"additionalProperties":false})",
        R"({"type":"object","properties":{"a":{"enum":[1,2]},"b":{"type":"integer"}},
            "required":["b"]})"}) {
    const std::string schema =
        std::string(R"({"type":"array","uniqueItems":true,"minItems":100,)") + R"("items":)" +
        items + "}";
    const auto machine = MachineOf(schema);
    ASSERT_NE(machine, nullptr);
    const auto text = machine->CompletionBytes(machine->Start());
    ASSERT_TRUE(text.has_value()) << schema;
    EXPECT_EQ(json::Parse(*text)->items.size(), 100u);
    EXPECT_EQ(machine->undecided(), 0u);
  }
}

struct Cost {
  bool read;
  uint64_t frames, steps;
};

Cost Read(const std::string& schema, const std::string& text) {
  const auto machine = MachineOf(schema, true);
  Machine::Key at = machine->Start();
  for (size_t i = 0; i < text.size() && at != Machine::kDead; ++i)
    at = machine->Step(at, static_cast<uint8_t>(text[i]));
  return {at != Machine::kDead && machine->Accepting(at), machine->frame_count(),
          machine->solver_steps()};
}

// Bug: time and memory grew with the square of the number of items.
TEST(UniquenessTest, LongArraysBesideContainsAreLinear) {
  const struct {
    const char *items, *contains;
    bool objects;
  } cases[] = {{R"({"type":"integer"})", R"({"const":3})", false},
               {R"({"type":"integer"})", R"({"minimum":100})", false},
               {R"({"type":"object","properties":{"id":{"type":"integer"},"name":{"type":"string"}},
                    "required":["id","name"],"additionalProperties":false})",
                R"({"properties":{"name":{"const":"n5"}},"required":["name"]})", true}};
  for (const auto& c : cases) {
    const std::string schema = std::string(R"({"type":"array","uniqueItems":true,"items":)") +
                               c.items + R"(,"contains":)" + c.contains + "}";
    Cost costs[2];
    for (const int n : {200, 800}) {
      std::string text = "[";
      for (int i = 0; i < n; ++i) {
        const std::string id = std::to_string(7 * i + 3);
        text += (i == 0 ? "" : ",") +
                (c.objects ? R"({"id":)" + id + R"(,"name":"n)" + std::to_string(i) + "\"}" : id);
      }
      costs[n == 800] = Read(schema, text + "]");
      EXPECT_TRUE(costs[n == 800].read) << schema;
    }
    EXPECT_LE(costs[1].frames, 5 * costs[0].frames) << schema;
    EXPECT_LE(costs[1].steps, 5 * costs[0].steps + 100) << schema;
    EXPECT_LE(costs[1].frames, 800u * 40) << schema;
  }
}

// Bug: canonical numbers have an end, so each was kept apart from all before it; objects that only
// differ in a member which `contains` looks at, or in keys without a name, were not counted.
TEST(UniquenessTest, WrittenArraysBesideContainsAreLinear) {
  const std::string object = R"({"type":"object","properties":{"a":{"type":"integer"}},)"
                             R"("required":["a"])";
  const struct {
    std::string items, contains;
    bool objects;
  } cases[] = {{R"({"type":"integer"})", R"({"const":7})", false},
               {object + "}", R"({"properties":{"a":{"const":5}},"required":["a"]})", true},
               {object + R"(,"additionalProperties":false})", R"({"required":["a"]})", true}};
  for (const auto& c : cases) {
    Cost costs[2];
    for (const int n : {100, 400}) {
      const auto machine =
          MachineOf(R"({"type":"array","uniqueItems":true,"minItems":)" + std::to_string(n) +
                    R"(,"items":)" + c.items + R"(,"contains":)" + c.contains + "}");
      ASSERT_NE(machine, nullptr);
      Machine::Key at = machine->Start();
      std::string text = "[";
      for (int i = 0; i < n; ++i) {
        // As many digits as canonical numbers have.
        const std::string number =
            i == n / 2 ? (c.objects ? "5" : "7") : std::to_string(12345678901230000 + 7 * i);
        text += (i == 0 ? "" : ",") + (c.objects ? R"({"a":)" + number + "}" : number);
      }
      text += "]";
      for (size_t i = 0; i < text.size() && at != Machine::kDead; ++i) {
        at = machine->Step(at, static_cast<uint8_t>(text[i]));
        if (i % 1000 != 0 || at == Machine::kDead) continue;
        const auto rest = machine->CompletionBytes(at);
        ASSERT_TRUE(rest.has_value()) << text.substr(0, i + 1);
        EXPECT_GE(json::Parse(text.substr(0, i + 1) + *rest)->items.size(), size_t(n));
      }
      EXPECT_TRUE(at != Machine::kDead && machine->Accepting(at)) << c.items;
      EXPECT_EQ(machine->undecided(), 0u) << c.items;
      costs[n == 400] = {true, machine->MemoryBytes(), machine->solver_steps()};
    }
    EXPECT_LE(costs[1].frames, 6 * costs[0].frames) << c.items << " in bytes";
    EXPECT_LE(costs[1].steps, 6 * costs[0].steps + 100) << c.items;
  }
}

}  // namespace
}  // namespace pawl::schema
