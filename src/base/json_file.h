// JSON files as Python writes them.
#ifndef PAWL_SRC_BASE_JSON_FILE_H_
#define PAWL_SRC_BASE_JSON_FILE_H_

#include <string>

#include "pawl/result.h"
#include "src/base/json.h"

namespace pawl {

// A file of settings of a model, such as config.json. Python's Infinity, which is no JSON, becomes
// the largest number of its length. Errors: as ReadRegularFile; kInvalid with the file, and the
// position in it, where it is no JSON object.
Result<json::Value> ReadSettingsFile(const std::string& path);

}  // namespace pawl

#endif  // PAWL_SRC_BASE_JSON_FILE_H_
