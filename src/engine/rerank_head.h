// The head of a model that classifies texts with one label: a number for how well a document
// answers a query, from the state of the last token.
//
//   const Result<RerankHead> head = ReadRerankHead(folder, model.info());
//   const double logit = head->Logit(states);
#ifndef PAWL_SRC_ENGINE_RERANK_HEAD_H_
#define PAWL_SRC_ENGINE_RERANK_HEAD_H_

#include <span>
#include <string>
#include <vector>

#include "pawl/result.h"
#include "src/model/model.h"

namespace pawl {

struct RerankHead {
  std::vector<float> weights;  // [hidden]
  // What the tokenizer's post-processor puts around query and document.
  std::vector<TokenId> before, between, after;

  double Logit(std::span<const float> state) const;
};

// `path`: of the model. Errors: kUnsupported where it does not classify, or has several labels;
// those of files.
Result<RerankHead> ReadRerankHead(const std::string& path, const ModelInfo& info);

}  // namespace pawl

#endif  // PAWL_SRC_ENGINE_RERANK_HEAD_H_
