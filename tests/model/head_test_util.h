// What tests of trained heads ask of a model.
#ifndef PAWL_TESTS_MODEL_HEAD_TEST_UTIL_H_
#define PAWL_TESTS_MODEL_HEAD_TEST_UTIL_H_

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "src/model/draft_head.h"
#include "tests/model/model_test_util.h"

namespace pawl {

inline std::string HeadFolder(const std::string& name) { return GoldenFolder("heads/" + name); }

inline std::unique_ptr<Model> LoadWithHead(const std::string& head,
                                           const std::string& target = "target") {
  std::unique_ptr<Model> model = LoadGolden("heads/" + target);
  if (model == nullptr) return nullptr;
  const Status status = AttachDraftHead(model, HeadFolder(head));
  if (!status.ok()) ADD_FAILURE() << status.error().ToString();
  return model;
}

// One row of a head, or several of Medusa's. `state`: in front of it, and behind it afterwards.
inline std::vector<float> AskHead(Model& model, std::vector<Row> rows, std::vector<float>* state,
                                  bool keep_tree, int number = 0) {
  rows.back().output = 0;
  std::vector<float> logits(static_cast<size_t>(model.info().vocabulary_size), NAN);
  const int layers[] = {model.info().layers + number};
  std::vector<float> behind(static_cast<size_t>(model.info().hidden));
  const ModelTap tap[] = {{layers[0] + 1, behind}};
  ModelCall call;
  call.rows = rows;
  call.logits = logits;
  call.layers = layers;
  call.keep_tree = keep_tree;
  if (state != nullptr) {
    call.inputs = *state;
    call.taps = tap;
  }
  const Status status = model.Run(call);
  if (!status.ok()) ADD_FAILURE() << status.error().ToString();
  if (state != nullptr) *state = behind;
  return logits;
}

// The head's logits behind `last`, then behind each of its likeliest tokens.
inline std::vector<std::vector<float>> DraftSteps(Model& model, SequenceId sequence, TokenId last,
                                                  int position, int steps, int number = 0) {
  std::vector<std::vector<float>> logits;
  const bool parallel = model.info().draft_heads[static_cast<size_t>(number)].steps > 0;
  std::vector<Row> rows = {{.token = last, .position = position, .sequence = sequence}};
  std::vector<float> state;
  for (int i = 0; i < steps; ++i) {
    if (parallel) {
      logits.push_back(AskHead(model, rows, nullptr, false, number));
      rows.push_back(
          {.token = Argmax(logits.back()), .position = position + i + 1, .sequence = sequence});
      continue;
    }
    logits.push_back(AskHead(model, rows, &state, i > 0, number));
    rows = {{.token = Argmax(logits.back()),
             .position = position + i + 1,
             .sequence = sequence,
             .ancestors = (uint64_t{1} << (i + 1)) - 1}};
  }
  return logits;
}

inline void RunPrompt(Model& model, SequenceId sequence, std::span<const TokenId> tokens,
                      int from = 0, int chunk = 1000) {
  for (int at = from; at < std::ssize(tokens); at += chunk) {
    const int end = std::min<int>(at + chunk, static_cast<int>(tokens.size()));
    std::vector<Row> rows;
    for (int i = at; i < end; ++i) {
      rows.push_back(
          {.token = tokens[static_cast<size_t>(i)], .position = i, .sequence = sequence});
    }
    rows.back().output = 0;
    RunRows(model, rows);
  }
}

// Runs `count` tokens from `from` on as a tree, each next to a wrong one, and commits their branch.
inline void CommitBranch(Model& model, SequenceId sequence, const std::vector<TokenId>& tokens,
                         int from, int count) {
  std::vector<Row> rows = {{.token = tokens[static_cast<size_t>(from)],
                            .position = from,
                            .sequence = sequence,
                            .output = 0}};
  uint64_t path = 1;
  for (int i = 1; i < count; ++i) {
    rows.push_back({.token = 5, .position = from + i, .sequence = sequence, .ancestors = path});
    const auto wrong = rows.size() - 1;
    rows.back().output = static_cast<int32_t>(wrong);
    rows.push_back({.token = tokens[static_cast<size_t>(from + i)],
                    .position = from + i,
                    .sequence = sequence,
                    .ancestors = path,
                    .output = static_cast<int32_t>(wrong + 1)});
    path |= uint64_t{1} << (wrong + 1);
  }
  RunRows(model, rows);
  ASSERT_TRUE(model.CommitTree(sequence, static_cast<int>(rows.size()) - 1).ok());
}

}  // namespace pawl

#endif  // PAWL_TESTS_MODEL_HEAD_TEST_UTIL_H_
