// What an evaluation found, as a table and as JSON.
#ifndef PAWL_SRC_EVAL_EVAL_REPORT_H_
#define PAWL_SRC_EVAL_EVAL_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "src/eval/field_scores.h"
#include "src/eval/paired_test.h"

namespace pawl::eval {

// One setting over all texts.
struct EvalRun {
  std::string name;  // of the setting
  EvalScores scores;
  double seconds = 0;
  int64_t output_tokens = 0, prompt_tokens = 0;
  double mask_surprise = 0;            // the sum over the texts
  std::vector<int64_t> right_by_text;  // fields right, for PairedTest
  int64_t misfits = 0;                 // right records that do not fit the schema
};

// The table of a run; with several the first table is followed by the comparisons with it.
std::string TableOf(const std::vector<EvalRun>& runs);
// The same as a JSON object in a line.
std::string JsonOf(const std::vector<EvalRun>& runs);

}  // namespace pawl::eval

#endif  // PAWL_SRC_EVAL_EVAL_REPORT_H_
