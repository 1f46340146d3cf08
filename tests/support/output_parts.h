// The parts of an output, joined from the deltas of an OutputParser.
#ifndef PAWL_TESTS_SUPPORT_OUTPUT_PARTS_H_
#define PAWL_TESTS_SUPPORT_OUTPUT_PARTS_H_

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "src/engine/output_parser.h"

namespace pawl {

struct OutputParts {
  std::string reasoning, content;
  std::vector<std::string> names, arguments;
  int begun = 0, ended = 0;
  friend bool operator==(const OutputParts&, const OutputParts&) = default;
};

inline void AddDeltas(const std::vector<Delta>& deltas, OutputParts& parts) {
  for (const Delta& delta : deltas) {
    switch (delta.kind) {
      case Delta::Kind::kReasoning:
        parts.reasoning += delta.text;
        break;
      case Delta::Kind::kContent:
        parts.content += delta.text;
        break;
      case Delta::Kind::kCallBegin:
        EXPECT_EQ(delta.call, parts.begun);
        ++parts.begun;
        parts.names.push_back(delta.text);
        parts.arguments.emplace_back();
        break;
      case Delta::Kind::kArguments:
        ASSERT_EQ(delta.call, parts.begun - 1);
        parts.arguments.back() += delta.text;
        break;
      case Delta::Kind::kCallEnd:
        ++parts.ended;
        break;
    }
  }
}

}  // namespace pawl

#endif  // PAWL_TESTS_SUPPORT_OUTPUT_PARTS_H_
