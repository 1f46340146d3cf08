// Keys that do not depend on each other: what is calculated of them, against what the solver says
// of each key when the frame with it pending is asked.
#include "schemas/solve/plain_keys.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "schemas/read/schema_reader.h"
#include "src/base/utf8.h"

namespace pawl::schema {
namespace {

// An object over keys that share beginnings, some of which can have no value.
std::string RandomSchema(std::mt19937& random) {
  static constexpr const char* kKeys[] = {"a", "ab", "abc", "b", "ba", "é", "éa", ""};
  static constexpr const char* kValues[] = {"{}", "false", R"({"type": "null"})", R"({"enum": []})",
                                            R"({"minimum": 3, "maximum": 2, "type": "number"})"};
  std::string properties, required;
  for (const char* key : kKeys) {
    const std::string quoted = json::Quote(key);
    if (random() % 3 > 0) {
      // Mostly something that is possible.
      const char* value = kValues[random() % 2 == 0 ? 0 : random() % std::size(kValues)];
      properties += (properties.empty() ? "" : ",") + quoted + ":" + value;
    }
    if (random() % 5 == 0) required += (required.empty() ? "" : ",") + quoted;
  }
  return "{\"type\": \"object\", \"properties\": {" + properties + "}, \"required\": [" + required +
         "], \"additionalProperties\": " + kValues[random() % std::size(kValues)] + "}";
}

TEST(PlainKeysTest, EachKeyIsWhatTheSolverSaysOfIt) {
  std::mt19937 random(5);
  int yes = 0, no = 0, frames_seen = 0;
  for (int round = 0; round < 400; ++round) {
    const std::string schema = RandomSchema(random);
    JsonSchemaOptions options;
    options.order =
        round % 2 == 0 ? JsonSchemaOptions::Order::kSchema : JsonSchemaOptions::Order::kAny;
    auto read = ReadJsonSchema(*json::Parse(schema), options);
    if (!read.ok()) continue;  // `enum: []` in some dialects
    SchemaTable& table = *read->table;
    Frames frames(table, options);
    Solver solver(frames, options);
    FrameId frame = frames.Open(kObjectValue, {table.root, {}, kNoFrame});
    if (frame == kNoFrame || !solver.Live(frame)) continue;
    if (!PlainKeys::Fits(frames, options, frames[frame])) continue;
    FormulaId must = frames[frame].must;
    auto plain = std::make_unique<PlainKeys>(frames, solver, options, frames[frame]);
    const ObjectLayout& layout = frames.layout(frames[frame].layout);
    StringProgram& program = *layout.program;
    const auto pending = [&](int rank) {
      const std::string name = rank < 0 ? "other" : layout.names[static_cast<size_t>(rank)];
      return frames.WithKey(frame, program, program.After(DecodeCodepoints(name)), rank,
                            rank < 0 ? kAnyName : frames.InternName(name));
    };
    const auto allowed = [&](int rank) {
      if (rank >= 0 && frames.Seen(frames[frame], layout.name_ids[static_cast<size_t>(rank)]))
        return false;
      const FrameId after = pending(rank);
      return after != kNoFrame && solver.LivePending(after);
    };
    for (int step = 0; step < 6; ++step) {
      ++frames_seen;
      std::vector<int> keys;
      for (int rank = 0; rank < static_cast<int>(layout.names.size()); ++rank) {
        const bool expected = allowed(rank);
        ++(expected ? yes : no);
        EXPECT_EQ(plain->NameAllowed(frame, rank), expected)
            << schema << " " << layout.names[static_cast<size_t>(rank)];
        if (expected) keys.push_back(rank);
      }
      const bool others = allowed(-1);
      EXPECT_EQ(plain->OthersAllowed(frame), others) << schema;
      // What begins a key is live where some key that begins so may come.
      for (const std::string& name : layout.names) {
        const std::u32string text = DecodeCodepoints(name);
        for (size_t length = 0; length <= text.size(); ++length) {
          const std::u32string begin = text.substr(0, length);
          bool expected = others;
          for (const int rank : keys) {
            expected |=
                DecodeCodepoints(layout.names[static_cast<size_t>(rank)]).starts_with(begin);
          }
          EXPECT_EQ(plain->Live(frame, program.After(begin)), expected) << schema << " " << name;
        }
      }
      if (keys.empty()) break;
      frame = frames.AfterValue(pending(keys[random() % keys.size()]), {});
      ASSERT_NE(frame, kNoFrame);
      // What is calculated holds for one conjunction.
      if (frames[frame].must != must) {
        must = frames[frame].must;
        if (!PlainKeys::Fits(frames, options, frames[frame])) break;
        plain = std::make_unique<PlainKeys>(frames, solver, options, frames[frame]);
      }
    }
  }
  EXPECT_GE(frames_seen, 500);
  EXPECT_GE(yes, 500);
  EXPECT_GE(no, 500);
}

}  // namespace
}  // namespace pawl::schema
