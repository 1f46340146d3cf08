// Texts that a model could have written: the valid instances of MaskBench with their schemas, as
// `pawl bench draft` replays them.
#ifndef PAWL_SRC_CLI_MEASURE_REPLAY_TEXTS_H_
#define PAWL_SRC_CLI_MEASURE_REPLAY_TEXTS_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/compiler.h"
#include "pawl/grammar.h"
#include "pawl/result.h"
#include "src/base/json.h"
#include "src/cli/engine.h"

namespace pawl::cli {

// What a token of a text belongs to.
enum class TextKind : uint8_t {
  kObjects,  // keys and the marks of objects
  kEnums,    // values that the schema lists, true, false, null
  kFree,     // other strings
  kCopied,   // strings that the prompt has
  kNumbers,
  kArrays,  // the marks of arrays
  kTools,   // anything in the arguments of a tool call
};
inline constexpr size_t kTextKinds = 7;
inline constexpr std::array<const char*, kTextKinds> kTextKindNames = {
    "nested objects", "enums", "free strings", "copied strings", "numbers", "arrays", "tool calls"};

struct ReplayText {
  Grammar grammar;
  std::vector<TokenId> tokens;
  std::vector<TextKind> kinds;  // of the tokens
};
struct ReplayFile {
  std::string name;
  std::vector<TokenId> prompt;  // the schema's text
  std::vector<ReplayText> texts;
  int skipped = 0;       // valid instances that the masks refuse
  bool is_tool = false;  // the texts are arguments of a tool
  std::string tool;      // the schema without its annotations: equal for files of one tool
};

// The files of a folder, by name; at most `limit` of them, spread evenly, unless 0.
Result<std::vector<std::string>> ReplayFiles(const std::string& folder, int limit);
// Whether its texts are arguments of a tool, by its name.
bool IsToolFile(const std::string& path);
// nullopt where the schema is refused or there are no valid instances. Errors: kIo, kInvalid.
Result<std::optional<ReplayFile>> ReadReplayFile(const std::string& path, const ModelText& text);

// Which part of the text each byte belongs to. For tests.
std::vector<TextKind> KindsOfBytes(std::string_view text, const json::Value& schema,
                                   std::string_view prompt, bool tool);

}  // namespace pawl::cli

#endif  // PAWL_SRC_CLI_MEASURE_REPLAY_TEXTS_H_
