// Infinity is replaced in the text, outside of strings: no place of an error moves.
#include "src/base/json_file.h"

#include "src/base/file.h"

namespace pawl {
namespace {

void BoundInfinities(std::string& text) {
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') in_string = !in_string;
    if (in_string && text[i] == '\\') ++i;
    if (!in_string && text.compare(i, 8, "Infinity") == 0) text.replace(i, 8, "9999e300");
  }
}

}  // namespace

Result<json::Value> ReadSettingsFile(const std::string& path) {
  Result<std::string> text = ReadRegularFile(path);
  if (!text.ok()) return text.error();
  BoundInfinities(*text);
  Result<json::Value> root = json::Parse(*text);
  if (!root.ok()) return InFile(path, root.error());
  if (root->type != json::Type::kObject) {
    return Error{ErrorCode::kInvalid, "must be a JSON object", path};
  }
  return root;
}

}  // namespace pawl
