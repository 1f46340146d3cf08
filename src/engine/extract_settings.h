// What files say of how a model is asked for records: the choice that a user has measured for its
// weights (DIGEST.json in ModelPaths::settings), and the "extract" of a model's pawl.json.
//
//   {"extract": {"schema_view": "keys", "whitespace": "compact", "instruction": "..."}}
//
//   ExtractChoices choices{measured, own};
//   choices.Apply(input);            // what the request leaves open
//   choices.Apply(schema_options);
//   choices.List();                  // each setting with the file that it is of
#ifndef PAWL_SRC_ENGINE_EXTRACT_SETTINGS_H_
#define PAWL_SRC_ENGINE_EXTRACT_SETTINGS_H_

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/compiler.h"
#include "pawl/engine.h"
#include "pawl/result.h"
#include "src/base/json_reader.h"

namespace pawl {

// Those that are set.
struct ExtractSettings {
  std::optional<SchemaView> schema_view;
  std::optional<JsonSchemaOptions::Whitespace> whitespace;
  std::optional<std::array<std::string, 2>> separators;  // of items, and of keys
  std::optional<JsonSchemaOptions::Keys> keys;
  std::optional<JsonSchemaOptions::Nulls> nulls;
  std::optional<std::string> instruction;
  std::optional<std::vector<ExtractExample>> examples;
  std::optional<double> prefer_text;
};
// The names of the members, in their order.
inline constexpr std::string_view kExtractSettingNames[] = {
    "schema_view", "whitespace",  "separators", "keys",
    "nulls",       "instruction", "examples",   "prefer_text"};

// Members with other names are left to the caller. Errors are those of the reader.
ExtractSettings ReadExtractSettings(const JsonReader& in);
// As a JSON object in a line.
std::string JsonOf(const ExtractSettings& settings);

struct ExtractChoices {
  ExtractSettings measured;
  std::string measured_file;    // empty: there is none
  std::string measured_schema;  // SchemaDigest: instruction and examples are for this one
  ExtractSettings own;          // of pawl.json

  // Fills in what a request leaves open.
  void Apply(ExtractInput& input) const;
  void Apply(JsonSchemaOptions& options) const;
  // All settings for a schema, in the order of their names.
  std::vector<ExtractDefault> List(std::string_view schema = {}) const;

 private:
  // What counts for a schema, first that which counts more.
  std::array<ExtractSettings, 2> For(std::string_view schema) const;
};

// Digits of the digests here.
inline constexpr size_t kSettingsDigits = 40;
// Of compact JSON.
std::string SchemaDigest(std::string_view schema);

// A name for the weights of a model folder or GGUF file, the same wherever the files lie: SHA-256
// of the sizes of the files and of 16 pieces of each, 40 digits of it. Errors: kIo.
Result<std::string> WeightsDigest(const std::string& path);
// The file of the measured choice; empty where `folder` is.
Result<std::string> MeasuredFile(const std::string& folder, const std::string& path);
// Reads it into `choices`, where there is one. Errors name the file and the place.
Status LoadMeasured(const std::string& folder, const std::string& path, ExtractChoices& choices);
// Writes it, and makes the folder. `schema`: what it was measured with, compact JSON. `measured`: a
// JSON object of what was measured. Errors: kIo.
Status SaveMeasured(const std::string& file, const ExtractSettings& settings,
                    std::string_view schema, std::string_view measured);

}  // namespace pawl

#endif  // PAWL_SRC_ENGINE_EXTRACT_SETTINGS_H_
