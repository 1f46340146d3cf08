// The texts of an evaluation, with the records that are right.
//
//   Result<std::vector<EvalText>> texts = ReadEvalTexts(file_text, {.where = {{"split", "kept"}}});
//
// A line is {"text": ..., "record": ...}. "expected" and "output" are other names of "record". A
// "schema" in the line is the schema of this text. "id" and further members may stand there.
#ifndef PAWL_SRC_EVAL_EVAL_DATA_H_
#define PAWL_SRC_EVAL_EVAL_DATA_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pawl/result.h"
#include "src/base/json.h"

namespace pawl::eval {

struct EvalText {
  int line = 0;
  std::string id;  // empty: none
  std::string text;
  std::string schema;  // compact JSON; empty: that of the evaluation
  json::Value record;
};

struct EvalFilter {
  // Members of a line and what they must be, as text.
  std::vector<std::pair<std::string, std::string>> where;
  size_t most = 0;  // texts; 0: all
};

// Errors: kInvalid with "line N" as place; kInvalid where no text is left.
Result<std::vector<EvalText>> ReadEvalTexts(std::string_view lines, const EvalFilter& filter);

// Every third text is held out: settings are chosen on the others, and judged on these.
bool HeldOut(size_t index);

}  // namespace pawl::eval

#endif  // PAWL_SRC_EVAL_EVAL_DATA_H_
