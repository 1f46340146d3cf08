// Fetches a model from a hub into the cache in which ResolveModel finds it.
//
//   Result<std::string> path = PullModel("org/name:Q8_0", client, {});
#ifndef PAWL_SRC_ENGINE_HUB_PULL_H_
#define PAWL_SRC_ENGINE_HUB_PULL_H_

#include <cstdint>
#include <functional>
#include <string>

#include "pawl/result.h"
#include "src/engine/hub_client.h"

namespace pawl {

struct PullProgress {
  std::string file;
  uint64_t done = 0, size = 0;          // bytes of the file
  uint64_t all_done = 0, all_size = 0;  // bytes of all files, those that were there counted
};

struct PullOptions {
  std::function<void(const PullProgress&)> progress;
  // One line about what a reader may want to know: a download that goes on, one that is waited for.
  std::function<void(const std::string&)> note;
  HubTries::Pause pause;  // nullptr: sleeps
};

// `name`: ORG/NAME[@REVISION][:FILE or TYPE]; the choice among several files is that of
// ResolveModel. A folder of safetensors files is fetched with all of its .json, .jinja and .txt
// files. What is there already is not fetched, and a file that was cut goes on where it ended.
// Returns the path of the model folder or the GGUF file. It is there when all files are whole and
// have their checksums; before, no name leads to them.
// Errors: kInvalid for a name, an answer or a checksum that is wrong; kIo for what the hub refuses,
// for a connection that fails again and again, and for a disk that is full. `name` is the place.
Result<std::string> PullModel(const std::string& name, const HubClient& client,
                              const PullOptions& options);

}  // namespace pawl

#endif  // PAWL_SRC_ENGINE_HUB_PULL_H_
