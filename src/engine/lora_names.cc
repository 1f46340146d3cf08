// A folder's name may have an equals sign, so it is looked for before the text is taken apart.
#include "src/engine/lora_names.h"

#include <filesystem>
#include <system_error>
#include <utility>

namespace pawl {

Result<LoraAdapter> ParseLoraAdapter(const std::string& given) {
  namespace fs = std::filesystem;
  LoraAdapter out;
  std::error_code ignored;
  const size_t at = given.find('=');
  if (at == std::string::npos || fs::is_directory(given, ignored)) {
    fs::path folder = fs::path(given).lexically_normal();
    if (!folder.has_filename()) folder = folder.parent_path();
    out = {folder.filename().string(), given};
  } else {
    out = {given.substr(0, at), given.substr(at + 1)};
  }
  if (out.name.empty() || out.path.empty()) {
    return Error{ErrorCode::kInvalid, "must be DIR or NAME=DIR", "lora"};
  }
  return out;
}

Result<std::vector<LoraAdapter>> ParseLoraAdapters(const std::vector<std::string>& given) {
  std::vector<LoraAdapter> out;
  for (const std::string& one : given) {
    Result<LoraAdapter> adapter = ParseLoraAdapter(one);
    if (!adapter.ok()) return adapter.error();
    out.push_back(*std::move(adapter));
  }
  return out;
}

}  // namespace pawl
