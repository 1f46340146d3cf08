// Requests to a hub of models: one GET after another, redirects followed, the token sent to the
// hub's own host only. What moves the bytes is the caller's: the command runs curl, Python has its
// own TLS.
//
//   HubClient client(settings, get);
//   Result<std::string> text = client.GetText(url);
#ifndef PAWL_SRC_ENGINE_HUB_CLIENT_H_
#define PAWL_SRC_ENGINE_HUB_CLIENT_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pawl/result.h"
#include "src/engine/model_paths.h"

namespace pawl {

using HubHeaders = std::vector<std::pair<std::string, std::string>>;

struct HubRequest {
  std::string url;  // printable ASCII, http or https
  HubHeaders headers;
};

struct HubAnswer {
  int status = 0;
  HubHeaders headers;
  // The value of the first header of this name in any case; empty without one.
  std::string Header(std::string_view name) const;
};

struct HubReceiver {
  // Called once, then `body` for each piece. false ends the request.
  std::function<bool(const HubAnswer& answer)> head;
  std::function<bool(std::string_view bytes)> body;
};

// One GET request that follows no redirect. Errors: kIo where the connection was not made or was
// cut. No error where the receiver ended the request.
using HubGet = std::function<Status(const HubRequest& request, const HubReceiver& receiver)>;

struct HubSettings {
  std::string endpoint;  // "https://host", without a slash at the end
  std::string token;     // empty: none
  std::string cache;     // the folder with models--ORG--NAME
  bool offline = false;
};
// HF_ENDPOINT, HF_TOKEN, HF_TOKEN_PATH, HF_HUB_OFFLINE and those of ModelPathsOf. Errors: kInvalid
// with the variable as place.
Result<HubSettings> HubSettingsOf(const Variable& variable);

// An absolute URL in parts. `rest` begins with "/" or "?", or is empty.
struct HubUrl {
  std::string scheme, host, port, rest;
  bool SameOrigin(const HubUrl& other) const {
    return scheme == other.scheme && host == other.host && port == other.port;
  }
  std::string Text() const;
};
// nullopt for what is not http or https, has a user's name in it, or bytes that a URL may not have.
std::optional<HubUrl> ParseUrl(std::string_view url);
// A text as a part of a URL's path; slashes stay.
std::string UrlEncoded(std::string_view text, bool keep_slashes);

// What a status of a hub other than success means. `token`: one was sent.
Error ErrorOfStatus(const HubAnswer& answer, bool token);
// Whether the same request may succeed later.
inline bool IsPassing(int status) { return status == 408 || status == 429 || status >= 500; }

// How often a request is made again: again and again while bytes come, a few times while none come.
class HubTries {
 public:
  using Pause = std::function<void(std::chrono::milliseconds)>;
  explicit HubTries(Pause pause) : pause_(std::move(pause)) {}
  // After a request that failed; waits where nothing came. false: that was the last one.
  bool Again(bool progress);

 private:
  Pause pause_;
  int fruitless_ = 0;
  int all_ = 0;
};

class HubClient {
 public:
  HubClient(HubSettings settings, HubGet get)
      : settings_(std::move(settings)), get_(std::move(get)) {}

  const HubSettings& settings() const { return settings_; }
  bool has_token() const { return !settings_.token.empty(); }
  // Follows redirects; the receiver sees the last answer. `from`: the first byte that is asked for.
  // Errors: those of HubGet; kInvalid for a redirect that is not followed.
  Status Get(const std::string& url, uint64_t from, const HubReceiver& receiver) const;
  // The body of an answer with status 200. Errors: kIo, kLimit.
  Result<std::string> GetText(const std::string& url, const HubTries::Pause& pause) const;

 private:
  HubSettings settings_;
  HubGet get_;
};

}  // namespace pawl

#endif  // PAWL_SRC_ENGINE_HUB_CLIENT_H_
