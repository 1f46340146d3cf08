// Resolution as RFC 3986 section 5.2 spells it: split both into components (the regular expression
// of appendix B), take what the reference has, the rest from the base, and remove dot segments.
#include "tests/oracle/uri.h"

#include <cstdlib>
#include <optional>

namespace pawl::oracle {
namespace {

struct Parts {
  std::optional<std::string> scheme, authority, query, fragment;
  std::string path;
};

Parts Split(std::string_view uri) {
  Parts parts;
  const size_t hash = uri.find('#');
  if (hash != uri.npos) {
    parts.fragment = std::string(uri.substr(hash + 1));
    uri = uri.substr(0, hash);
  }
  const size_t question = uri.find('?');
  if (question != uri.npos) {
    parts.query = std::string(uri.substr(question + 1));
    uri = uri.substr(0, question);
  }
  const size_t colon = uri.find(':');
  if (colon != uri.npos && colon > 0 && uri.substr(0, colon).find('/') == uri.npos) {
    parts.scheme = std::string(uri.substr(0, colon));
    uri = uri.substr(colon + 1);
  }
  if (uri.substr(0, 2) == "//") {
    const size_t end = uri.find('/', 2);
    parts.authority = std::string(uri.substr(2, end == uri.npos ? uri.npos : end - 2));
    uri = end == uri.npos ? std::string_view() : uri.substr(end);
  }
  parts.path = std::string(uri);
  return parts;
}

std::string RemoveDotSegments(std::string_view in) {
  std::string out;
  const auto starts = [&in](std::string_view prefix) {
    return in.substr(0, prefix.size()) == prefix;
  };
  const auto drop_segment = [&out] {
    const size_t slash = out.rfind('/');
    out.resize(slash == std::string::npos ? 0 : slash);
  };
  while (!in.empty()) {
    if (starts("../")) {
      in.remove_prefix(3);
    } else if (starts("./") || starts("/./")) {
      in.remove_prefix(2);
    } else if (in == "/.") {
      in = "/";
    } else if (starts("/../")) {
      in.remove_prefix(3);
      drop_segment();
    } else if (in == "/..") {
      in = "/";
      drop_segment();
    } else if (in == "." || in == "..") {
      in = {};
    } else {
      const size_t end = in.find('/', in[0] == '/' ? 1 : 0);
      out += in.substr(0, end);
      in = end == in.npos ? std::string_view() : in.substr(end);
    }
  }
  return out;
}

}  // namespace

std::string ResolveUri(std::string_view base_text, std::string_view reference) {
  const Parts base = Split(base_text);
  Parts target = Split(reference);
  if (!target.scheme) {
    target.scheme = base.scheme;
    if (!target.authority) {
      target.authority = base.authority;
      if (target.path.empty()) {
        target.path = base.path;
        if (!target.query) target.query = base.query;
      } else if (target.path[0] != '/') {
        const size_t slash = base.path.rfind('/');
        if (base.authority && base.path.empty()) {
          target.path.insert(0, 1, '/');
        } else if (slash != std::string::npos) {
          target.path = base.path.substr(0, slash + 1) + target.path;
        }
        target.path = RemoveDotSegments(target.path);
      } else {
        target.path = RemoveDotSegments(target.path);
      }
    } else {
      target.path = RemoveDotSegments(target.path);
    }
  } else {
    target.path = RemoveDotSegments(target.path);
  }
  std::string out;
  if (target.scheme) out.append(*target.scheme).append(":");
  if (target.authority) out.append("//").append(*target.authority);
  out += target.path;
  if (target.query) out.append("?").append(*target.query);
  if (target.fragment) out.append("#").append(*target.fragment);
  return out;
}

std::string WithoutFragment(std::string_view uri) {
  return std::string(uri.substr(0, uri.find('#')));
}

std::string FragmentOf(std::string_view uri) {
  const size_t hash = uri.find('#');
  return hash == uri.npos ? std::string() : std::string(uri.substr(hash + 1));
}

std::string PercentDecode(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      const std::string hex(text.substr(i + 1, 2));
      char* end = nullptr;
      const long byte = std::strtol(hex.c_str(), &end, 16);
      if (end == hex.c_str() + 2) {
        out += static_cast<char>(byte);
        i += 2;
        continue;
      }
    }
    out += text[i];
  }
  return out;
}

}  // namespace pawl::oracle
