// `pawl serve --models FILE|DIR`: which models a server has, and with what options.
#ifndef PAWL_SRC_CLI_SERVE_MODELS_H_
#define PAWL_SRC_CLI_SERVE_MODELS_H_

#include <string>
#include <vector>

#include "pawl/result.h"
#include "src/server/server.h"

namespace pawl::cli {

// Of a folder: each model folder and each GGUF file in it, by name. Of a JSON file: what it lists
// (docs/server.md). `defaults`: what the file does not say of a model. Errors name the place in the
// file.
Result<std::vector<server::ModelOfServer>> ReadServedModels(const std::string& path,
                                                            const server::ModelOfServer& defaults);

}  // namespace pawl::cli

#endif  // PAWL_SRC_CLI_SERVE_MODELS_H_
