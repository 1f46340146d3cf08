// The model of a ServerState comes and goes.
#ifndef PAWL_SRC_SERVER_STATE_LIFE_H_
#define PAWL_SRC_SERVER_STATE_LIFE_H_

#include <cstdint>
#include <functional>

#include "pawl/result.h"
#include "src/server/server_state.h"

namespace pawl::server {

struct LoadLimits {
  // Of keys and values, in place of the options' own; 0 and -1: as there.
  int64_t kv_bytes = 0, kept_kv_bytes = -1;
  std::function<void(double fraction)> progress = nullptr;  // as ModelOptions::progress
};

// Loads the model of the options, with all that works on it. Errors: those of loading; the state is
// then as before.
Status LoadState(ServerState& state, const LoadLimits& limits = {});
// The reverse. Errors: those of the history of drafts, which is written then. REQUIRES: no request
// uses the state any more, or its outputs are to end.
Status UnloadState(ServerState& state);

}  // namespace pawl::server

#endif  // PAWL_SRC_SERVER_STATE_LIFE_H_
