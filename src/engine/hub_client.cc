// Redirects are followed here and not by what moves the bytes, so that one rule decides where the
// token goes: to the scheme, host and port of the endpoint, and to none behind a redirect that has
// once left them.
#include "src/engine/hub_client.h"

#include <algorithm>

#include "src/base/file.h"
#include "src/base/utf8.h"

namespace pawl {
namespace {

constexpr const char* kEndpoint = "https://huggingface.co";
constexpr int kMostHops = 10;
constexpr int kMostFruitless = 5;
constexpr int kMostTries = 200;
constexpr size_t kMostText = size_t{64} << 20;
constexpr size_t kMostTokenBytes = 4096;

std::string Lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

bool IsTrue(std::string_view value) {
  const std::string text = Lower(value);
  return text == "1" || text == "true" || text == "yes" || text == "on";
}

bool IsVisible(char c) { return c > 0x20 && c < 0x7F; }

bool IsRedirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

// Where `location` leads from `base`; nullopt: nowhere that may be asked.
std::optional<HubUrl> Joined(const HubUrl& base, const std::string& location) {
  if (location.starts_with("//")) return ParseUrl(base.scheme + ":" + location);
  if (location.find("://") != std::string::npos &&
      location.find("://") < location.find_first_of("/?#")) {
    return ParseUrl(location);
  }
  HubUrl root = base;
  root.rest.clear();
  if (location.starts_with("/")) return ParseUrl(root.Text() + location);
  const std::string path = base.rest.substr(0, base.rest.find_first_of("?#"));
  const size_t slash = path.rfind('/');
  return ParseUrl(root.Text() + (slash == std::string::npos ? "/" : path.substr(0, slash + 1)) +
                  location);
}

Result<std::string> TokenOf(const Variable& variable) {
  if (IsTrue(variable("HF_HUB_DISABLE_IMPLICIT_TOKEN"))) return std::string();
  std::string token = variable("HF_TOKEN");
  std::string place = "HF_TOKEN";
  if (token.empty()) {
    std::string file = variable("HF_TOKEN_PATH");
    if (file.empty()) {
      std::string home = variable("HF_HOME");
      const std::string cache = variable("XDG_CACHE_HOME");
      if (home.empty() && !cache.empty()) home = cache + "/huggingface";
      file = (home.empty() ? "~/.cache/huggingface" : home) + "/token";
    }
    place = WithHome(file, variable);
    Result<std::string> read = ReadRegularFile(place, kMostTokenBytes);
    if (!read.ok()) return std::string();
    token = *std::move(read);
  }
  while (!token.empty() && !IsVisible(token.back())) token.pop_back();
  token.erase(0, std::min(token.find_first_not_of(" \t\r\n"), token.size()));
  if (!std::ranges::all_of(token, IsVisible)) {
    return Error{ErrorCode::kInvalid, "is no token: it has other bytes than visible ASCII", place};
  }
  return token;
}

}  // namespace

std::string HubAnswer::Header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (Lower(key) == Lower(name)) return value;
  }
  return "";
}

Result<HubSettings> HubSettingsOf(const Variable& variable) {
  HubSettings settings;
  settings.endpoint = variable("HF_ENDPOINT");
  if (settings.endpoint.empty()) settings.endpoint = kEndpoint;
  while (settings.endpoint.ends_with('/')) settings.endpoint.pop_back();
  if (!ParseUrl(settings.endpoint) || settings.endpoint.find_first_of("?#") != std::string::npos) {
    return Error{ErrorCode::kInvalid, "must be a URL, http://HOST or https://HOST", "HF_ENDPOINT"};
  }
  Result<std::string> token = TokenOf(variable);
  if (!token.ok()) return token.error();
  settings.token = *std::move(token);
  const ModelPaths paths = ModelPathsOf(variable);
  if (paths.hub.empty()) {
    return Error{ErrorCode::kInvalid, "is not set, and no other variable names a cache",
                 "HF_HUB_CACHE"};
  }
  settings.cache = paths.hub[0];
  settings.offline = IsTrue(variable("HF_HUB_OFFLINE"));
  return settings;
}

std::string HubUrl::Text() const {
  return scheme + "://" + host + (port.empty() ? "" : ":" + port) + rest;
}

std::optional<HubUrl> ParseUrl(std::string_view url) {
  const bool clean = std::ranges::all_of(
      url, [](char c) { return IsVisible(c) && c != '"' && c != '\\' && c != '<' && c != '>'; });
  const size_t colon = url.find("://");
  if (!clean || colon == std::string_view::npos) return std::nullopt;
  HubUrl out;
  out.scheme = Lower(url.substr(0, colon));
  if (out.scheme != "http" && out.scheme != "https") return std::nullopt;
  url.remove_prefix(colon + 3);
  const size_t end = std::min(url.find_first_of("/?#"), url.size());
  std::string_view authority = url.substr(0, end);
  out.rest = url.substr(end);
  if (authority.find('@') != std::string_view::npos) return std::nullopt;
  const size_t bracket = authority.rfind(']');
  const size_t port = authority.find(':', bracket == std::string_view::npos ? 0 : bracket);
  if (port != std::string_view::npos) {
    out.port = authority.substr(port + 1);
    authority = authority.substr(0, port);
    if (out.port.empty() || out.port.size() > 5 || !std::ranges::all_of(out.port, IsDigit)) {
      return std::nullopt;
    }
  }
  out.host = Lower(authority);
  if (out.port == (out.scheme == "https" ? "443" : "80")) out.port.clear();
  if (out.host.empty()) return std::nullopt;
  return out;
}

std::string UrlEncoded(std::string_view text, bool keep_slashes) {
  std::string out;
  for (const char c : text) {
    if (IsLetter(c) || IsDigit(c) || c == '-' || c == '_' || c == '.' || c == '~' ||
        (keep_slashes && c == '/')) {
      out += c;
    } else {
      constexpr const char* kHex = "0123456789ABCDEF";
      const auto byte = static_cast<unsigned char>(c);
      out += '%';
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    }
  }
  return out;
}

Error ErrorOfStatus(const HubAnswer& answer, bool token) {
  std::string text;
  if (answer.status == 401) {
    text = token ? "the hub does not accept the token"
                 : "the hub asks for a token: the repository is private or gated, or does not "
                   "exist; HF_TOKEN may have a token";
  } else if (answer.status == 403) {
    text = "the hub refuses access";
  } else if (answer.status == 404) {
    text = "the hub has no such repository, revision or file";
  } else {
    text = "the hub cannot answer now or not so";
  }
  text += " (status " + std::to_string(answer.status);
  std::string said = answer.Header("X-Error-Message").substr(0, 200);
  std::erase_if(said, [](char c) { return c < 0x20 || c == 0x7F; });
  return {ErrorCode::kIo, text + (said.empty() ? "" : ": " + said) + ")", ""};
}

bool HubTries::Again(bool progress) {
  fruitless_ = progress ? 0 : fruitless_ + 1;
  if (++all_ >= kMostTries || fruitless_ >= kMostFruitless) return false;
  if (!progress) pause_(std::chrono::milliseconds(250 << (fruitless_ - 1)));
  return true;
}

Status HubClient::Get(const std::string& url, uint64_t from, const HubReceiver& receiver) const {
  const std::optional<HubUrl> home = ParseUrl(settings_.endpoint);
  std::optional<HubUrl> at = ParseUrl(url);
  if (!home || !at) return Error{ErrorCode::kInvalid, "is no URL", url};
  bool trusted = true;
  for (int hop = 0; hop <= kMostHops; ++hop) {
    trusted = trusted && at->SameOrigin(*home);
    HubRequest request{at->Text(), {}};
    if (trusted && has_token()) {
      request.headers.emplace_back("Authorization", "Bearer " + settings_.token);
    }
    if (from > 0) request.headers.emplace_back("Range", "bytes=" + std::to_string(from) + "-");
    std::optional<std::string> location;
    HubReceiver here = receiver;
    here.head = [&](const HubAnswer& answer) {
      if (!IsRedirect(answer.status)) return receiver.head(answer);
      location = answer.Header("Location");
      return false;
    };
    Status status = get_(request, here);
    if (!location) return status;
    const std::optional<HubUrl> next = Joined(*at, *location);
    if (!next || (at->scheme == "https" && next->scheme == "http")) {
      return Error{ErrorCode::kInvalid,
                   "the hub redirects to a place that is not followed: " + location->substr(0, 200),
                   ""};
    }
    at = next;
  }
  return Error{ErrorCode::kInvalid,
               "the hub redirects more than " + std::to_string(kMostHops) + " times", ""};
}

Result<std::string> HubClient::GetText(const std::string& url, const HubTries::Pause& pause) const {
  HubTries tries(pause);
  while (true) {
    std::string text;
    std::optional<Error> error;
    HubAnswer answer;
    std::optional<size_t> length;
    const HubReceiver receiver{
        [&](const HubAnswer& got) {
          answer = got;
          if (const std::string said = got.Header("Content-Length");
              !said.empty() && said.size() < 18 && std::ranges::all_of(said, IsDigit)) {
            length = std::stoull(said);
          }
          return got.status == 200;
        },
        [&](std::string_view bytes) {
          if (bytes.size() > kMostText - text.size()) {
            error = Error{ErrorCode::kLimit, "the hub's answer is too long", ""};
            return false;
          }
          text += bytes;
          return true;
        }};
    Status status = Get(url, 0, receiver);
    if (error) return *error;
    if (!status.ok() && status.error().code != ErrorCode::kIo) return status.error();
    if (answer.status == 200 && status.ok() && (!length || *length == text.size())) return text;
    const bool refused = answer.status != 0 && answer.status != 200;
    if (refused && !IsPassing(answer.status)) return ErrorOfStatus(answer, has_token());
    if (tries.Again(false)) continue;
    if (refused) return ErrorOfStatus(answer, has_token());
    return status.ok() ? Error{ErrorCode::kIo, "the connection was cut", ""} : status.error();
  }
}

}  // namespace pawl
