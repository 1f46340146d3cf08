// PostProcessor: the "post_processor" of a tokenizer.json, which puts tokens such as BOS around the
// text's. Immutable after Load; thread-safe.
#ifndef PAWL_SRC_TEXT_POST_PROCESSOR_H_
#define PAWL_SRC_TEXT_POST_PROCESSOR_H_

#include <vector>

#include "pawl/vocabulary.h"
#include "src/text/json_node.h"

namespace pawl {

class PostProcessor {
 public:
  // TemplateProcessing (its form for one text), ByteLevel (which only moves offsets),
  // RobertaProcessing, BertProcessing, Sequence; anything else is an error. `node` may be null or
  // absent.
  static PostProcessor Load(const JsonNode& node);

  // Appends every token it may add.
  void CollectIds(std::vector<TokenId>& out) const;
  std::vector<TokenId> Apply(std::vector<TokenId> ids) const;

 private:
  struct Template {
    std::vector<TokenId> before, after;
  };
  void Add(const JsonNode& node, int depth);
  void AddTemplate(const JsonNode& node);
  static TokenId LoadId(const JsonNode& node);

  std::vector<Template> templates_;  // innermost first
};

}  // namespace pawl

#endif  // PAWL_SRC_TEXT_POST_PROCESSOR_H_
