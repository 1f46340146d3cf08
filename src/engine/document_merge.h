// One record out of the records of a document's chunks.
//
//   DocumentMerge merge(schema);
//   merge.Add({.record = ..., .details = ..., .begin = 0, .end = 812});     // in order
//   merge.Add({.record = ..., .details = ..., .begin = 730, .end = 1560});
//   MergedRecord merged = merge.Take();
//
// Objects are merged key by key. A list has the items of all chunks: two items of different chunks
// are one where they are equal and stand at the same place. Of other values the most probable one
// stays, and null gives way to any. docs/extraction.md has the rules.
#ifndef PAWL_SRC_ENGINE_DOCUMENT_MERGE_H_
#define PAWL_SRC_ENGINE_DOCUMENT_MERGE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/generation.h"
#include "src/base/json.h"

namespace pawl {

// The record of a chunk. Spans and the chunk's own place are those of the document.
struct DocumentPart {
  json::Value record;
  std::vector<ValueDetails> details = {};  // of the record, in its order
  int64_t begin = 0, end = 0;              // of the chunk, in characters
};

struct MergedRecord {
  json::Value record;
  std::vector<ValueDetails> details;
  std::vector<ValueConflict> conflicts;
};

class DocumentMerge {
 public:
  // `schema`: JSON; what it says of `maxItems` and `uniqueItems` holds of merged lists.
  explicit DocumentMerge(std::string_view schema);
  ~DocumentMerge();
  DocumentMerge(DocumentMerge&&) noexcept;
  DocumentMerge& operator=(DocumentMerge&&) noexcept;

  void Add(DocumentPart part);
  bool empty() const { return parts_ == 0; }
  // REQUIRES: not empty.
  MergedRecord Take();

 private:
  struct Node;
  class Merger;
  json::Value schema_;
  std::unique_ptr<Node> root_;
  size_t parts_ = 0;
};

// What a schema says of the list to which a pointer leads through its keys.
struct ListRules {
  size_t most = SIZE_MAX;
  bool unique = false;
};
ListRules ListRulesAt(const json::Value& schema, std::string_view pointer);

// A text that is the same for equal values: members in the order of their names, numbers by value.
std::string CanonicalJson(const json::Value& value);

}  // namespace pawl

#endif  // PAWL_SRC_ENGINE_DOCUMENT_MERGE_H_
