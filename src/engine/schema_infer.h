// A JSON Schema that fits records, as a proposal to be read and changed.
//
//   SchemaInference seen;
//   seen.Add(record, text);              // of each example; the text may be empty
//   Print(seen.Schema());
//
// Types are those that occur. A key that each record has is required. Strings that repeat become an
// enum, and those that all have one format get it. Strings that always stand in their text are
// copied from it ("x-pawl-source": "span").
#ifndef PAWL_SRC_ENGINE_SCHEMA_INFER_H_
#define PAWL_SRC_ENGINE_SCHEMA_INFER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/json.h"

namespace pawl {

class SchemaInference {
 public:
  SchemaInference();
  ~SchemaInference();
  SchemaInference(SchemaInference&&) noexcept;
  SchemaInference& operator=(SchemaInference&&) noexcept;

  // `text`: UTF-8, from which the record was made; empty: it is not known.
  void Add(const json::Value& record, std::string_view text);
  // JSON, with line breaks and two spaces for each level.
  std::string Schema() const;

 private:
  struct Shape;
  std::unique_ptr<Shape> root_;
};

// What a schema leaves to the model or makes expensive, by pointer, as lines for a reader: objects
// that may have more keys, strings without an end, keywords that are asked about each value again.
std::vector<std::string> SchemaRemarks(const json::Value& schema);

// JSON with line breaks and two spaces for each level.
std::string PrettyJson(const json::Value& value);

}  // namespace pawl

#endif  // PAWL_SRC_ENGINE_SCHEMA_INFER_H_
