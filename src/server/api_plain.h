// The routes that are answered without an output of the model.
#ifndef PAWL_SRC_SERVER_API_PLAIN_H_
#define PAWL_SRC_SERVER_API_PLAIN_H_

#include <atomic>
#include <memory>

#include "pawl/result.h"
#include "src/base/json.h"
#include "src/server/http.h"
#include "src/server/server_state.h"

namespace pawl::server {

struct PlainRequest {
  const HttpRequest& http;
  const json::Value* body = nullptr;  // of a POST
  // Of what a worker does: the client has gone, or the time is over. The first is for what
  // compiles, the second for tokenizing.
  std::shared_ptr<StopFlag> stop = nullptr;
  const std::atomic<bool>* halt = nullptr;
  int key = 0;  // which of the API keys, from 1
};

// Errors: as of the routes in api.h.
using PlainAnswer = Result<HttpReply> (*)(ServerState& server, const PlainRequest& request);

// May be asked before the model is there.
Result<HttpReply> Health(ServerState& server, const PlainRequest& request);
Result<HttpReply> MetricsPage(ServerState& server, const PlainRequest& request);
Result<HttpReply> Playground(ServerState& server, const PlainRequest& request);

Result<HttpReply> Models(ServerState& server, const PlainRequest& request);
Result<HttpReply> OneModel(ServerState& server, const PlainRequest& request);
Result<HttpReply> TokenizerInfo(ServerState& server, const PlainRequest& request);
Result<HttpReply> Version(ServerState& server, const PlainRequest& request);
Result<HttpReply> OllamaTags(ServerState& server, const PlainRequest& request);
Result<HttpReply> OllamaRunning(ServerState& server, const PlainRequest& request);
Result<HttpReply> OllamaShow(ServerState& server, const PlainRequest& request);
Result<HttpReply> Props(ServerState& server, const PlainRequest& request);
// vLLM's {"prompt"} or {"messages"}, llama.cpp's {"content"}.
Result<HttpReply> Tokenize(ServerState& server, const PlainRequest& request);
Result<HttpReply> Detokenize(ServerState& server, const PlainRequest& request);
// A response that is stored (api_responses.cc): its body, and its end.
Result<HttpReply> StoredResponse(ServerState& server, const PlainRequest& request);
Result<HttpReply> DeleteResponse(ServerState& server, const PlainRequest& request);
// A constraint tried without a model. May take long.
Result<HttpReply> CompileOnly(ServerState& server, const PlainRequest& request);

}  // namespace pawl::server

#endif  // PAWL_SRC_SERVER_API_PLAIN_H_
