// PostProcessor: the "post_processor" of a tokenizer.json, which puts tokens such as BOS around the
// text's. Immutable after Load; thread-safe.
#ifndef PAWL_SRC_TEXT_POST_PROCESSOR_H_
#define PAWL_SRC_TEXT_POST_PROCESSOR_H_

#include <string>
#include <vector>

#include "pawl/vocabulary.h"
#include "src/base/json_reader.h"

namespace pawl {

class PostProcessor {
 public:
  // TemplateProcessing (its form for one text), ByteLevel (which only moves offsets),
  // RobertaProcessing, BertProcessing, Sequence; anything else is an error. `node` may be null or
  // absent.
  static PostProcessor Load(const JsonReader& node);

  // Appends every token it may add.
  void CollectIds(std::vector<TokenId>& out) const;
  std::vector<TokenId> Apply(std::vector<TokenId> ids) const;

 private:
  struct Template {
    std::vector<TokenId> before, after;
  };
  void Add(const JsonReader& node, const std::string& type);
  void AddTemplate(const JsonReader& node);
  static TokenId LoadId(const JsonReader& node);

  std::vector<Template> templates_;  // innermost first
};

}  // namespace pawl

#endif  // PAWL_SRC_TEXT_POST_PROCESSOR_H_
