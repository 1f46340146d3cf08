#include "schemas/references.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace pawl::schema {
namespace {

struct Uri {
  std::string_view scheme, authority, path, query, fragment;
  bool has_scheme = false, has_authority = false, has_query = false, has_fragment = false;
};

// RFC 3986 appendix B, by hand.
Uri Split(std::string_view text) {
  Uri uri;
  if (const size_t hash = text.find('#'); hash != std::string_view::npos) {
    uri.fragment = text.substr(hash + 1);
    uri.has_fragment = true;
    text = text.substr(0, hash);
  }
  if (const size_t mark = text.find('?'); mark != std::string_view::npos) {
    uri.query = text.substr(mark + 1);
    uri.has_query = true;
    text = text.substr(0, mark);
  }
  const size_t colon = text.find_first_of(":/");
  if (colon != std::string_view::npos && colon > 0 && text[colon] == ':') {
    uri.scheme = text.substr(0, colon);
    uri.has_scheme = true;
    text = text.substr(colon + 1);
  }
  if (text.substr(0, 2) == "//") {
    text = text.substr(2);
    const size_t slash = std::min(text.find('/'), text.size());
    uri.authority = text.substr(0, slash);
    uri.has_authority = true;
    text = text.substr(slash);
  }
  uri.path = text;
  return uri;
}

// RFC 3986 section 5.2.4.
std::string RemoveDots(std::string_view path) {
  std::vector<std::string_view> out;
  const bool absolute = path.substr(0, 1) == "/";
  bool ends_in_folder = false;
  for (size_t i = absolute ? 1 : 0; i <= path.size();) {
    const size_t slash = std::min(path.find('/', i), path.size());
    const std::string_view part = path.substr(i, slash - i);
    const bool last = slash == path.size();
    if (part == "..") {
      if (!out.empty()) out.pop_back();
    } else if (part != ".") {
      if (!last || !part.empty()) out.push_back(part);
    }
    if (last) ends_in_folder = part.empty() || part == "." || part == "..";
    i = slash + 1;
  }
  std::string joined = absolute ? "/" : "";
  for (size_t i = 0; i < out.size(); ++i) {
    if (i > 0) joined += '/';
    joined += out[i];
  }
  if (ends_in_folder && !out.empty()) joined += '/';
  return joined;
}

std::string WithoutFragment(std::string_view uri) {
  return std::string(uri.substr(0, uri.find('#')));
}

std::string PercentDecode(std::string_view text) {
  const auto hex = [](char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
  };
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && hex(text[i + 1]) >= 0 && hex(text[i + 2]) >= 0) {
      out.push_back(static_cast<char>(hex(text[i + 1]) * 16 + hex(text[i + 2])));
      i += 2;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

std::string UnescapePointer(std::string_view token) {
  std::string out;
  for (size_t i = 0; i < token.size(); ++i) {
    if (token[i] == '~' && i + 1 < token.size() && (token[i + 1] == '0' || token[i + 1] == '1')) {
      out.push_back(token[++i] == '0' ? '~' : '/');
    } else {
      out.push_back(token[i]);
    }
  }
  return out;
}

}  // namespace

std::optional<Dialect> DialectOf(std::string_view name) {
  if (!name.empty() && name.back() == '#') name.remove_suffix(1);
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (name.substr(0, scheme.size()) == scheme) name.remove_prefix(scheme.size());
  }
  constexpr std::string_view kHost = "json-schema.org/";
  if (name.substr(0, kHost.size()) == kHost) name.remove_prefix(kHost.size());
  constexpr std::string_view kFolder = "draft/";
  if (name.substr(0, kFolder.size()) == kFolder) name.remove_prefix(kFolder.size());
  constexpr std::string_view kFile = "/schema";
  if (name.size() >= kFile.size() && name.substr(name.size() - kFile.size()) == kFile)
    name.remove_suffix(kFile.size());
  if (name == "draft-04" || name == "draft4") return Dialect::kDraft4;
  if (name == "draft-06" || name == "draft6") return Dialect::kDraft6;
  if (name == "draft-07" || name == "draft7") return Dialect::kDraft7;
  if (name == "2019-09" || name == "draft2019-09") return Dialect::k2019;
  if (name == "2020-12" || name == "draft2020-12") return Dialect::k2020;
  return std::nullopt;
}

std::string ResolveUri(std::string_view base_text, std::string_view reference) {
  const Uri base = Split(base_text), r = Split(reference);
  const Uri* scheme = &r;
  const Uri* authority = &r;
  std::string path;
  std::string_view query = r.query;
  bool has_query = r.has_query;
  if (r.has_scheme || r.has_authority) {
    path = RemoveDots(r.path);
    if (!r.has_scheme) scheme = &base;
    if (r.has_scheme && !r.has_authority) path = std::string(r.path);  // urn:... is opaque
  } else {
    scheme = authority = &base;
    if (r.path.empty()) {
      path = std::string(base.path);
      if (!r.has_query) {
        query = base.query;
        has_query = base.has_query;
      }
    } else if (r.path[0] == '/') {
      path = RemoveDots(r.path);
    } else {
      const size_t slash = base.path.rfind('/');
      std::string merged = slash == std::string_view::npos
                               ? (base.has_authority ? "/" : "") + std::string(r.path)
                               : std::string(base.path.substr(0, slash + 1)) + std::string(r.path);
      path = RemoveDots(merged);
    }
  }
  std::string out;
  if (scheme->has_scheme) out += std::string(scheme->scheme) + ":";
  if (authority->has_authority) out += "//" + std::string(authority->authority);
  out += path;
  if (has_query) out += "?" + std::string(query);
  if (r.has_fragment) out += "#" + std::string(r.fragment);
  return out;
}

References::References(const json::Value& document, Dialect dialect)
    : document_(document), dialect_(dialect) {
  Index(document);
}

std::optional<std::string> References::IdOf(const json::Value& value) const {
  if (value.type != json::Type::kObject) return std::nullopt;
  const bool old = dialect_ < Dialect::k2019;
  // Up to draft 7 nothing beside "$ref" counts.
  if (old && value.Find("$ref") != nullptr) return std::nullopt;
  const json::Value* id = value.Find(dialect_ == Dialect::kDraft4 ? "id" : "$id");
  if (id == nullptr || id->type != json::Type::kString) return std::nullopt;
  return id->text;
}

std::string References::BaseInside(const json::Value& value, std::string_view base) const {
  const std::optional<std::string> id = IdOf(value);
  if (!id || id->substr(0, 1) == "#") return std::string(base);
  return WithoutFragment(ResolveUri(base, *id));
}

void References::Index(const json::Value& root) {
  struct Visit {
    const json::Value* value;
    std::string base, pointer;
  };
  std::vector<Visit> stack = {{&root, "", "#"}};
  resources_.emplace("", Place{&root, "#"});
  while (!stack.empty()) {
    const Visit visit = std::move(stack.back());
    stack.pop_back();
    const json::Value& value = *visit.value;
    std::string base = visit.base;
    if (value.type == json::Type::kObject) {
      if (const std::optional<std::string> id = IdOf(value)) {
        const size_t hash = id->find('#');
        if (hash != 0) {
          base = WithoutFragment(ResolveUri(visit.base, *id));
          resources_.emplace(base, Place{&value, visit.pointer});
        }
        if (dialect_ < Dialect::k2019 && hash != std::string::npos && hash + 1 < id->size()) {
          anchors_.emplace(base + id->substr(hash), Place{&value, visit.pointer});
        }
      }
      if (dialect_ >= Dialect::k2019) {
        for (const char* keyword : {"$anchor", "$dynamicAnchor"}) {
          const json::Value* anchor = value.Find(keyword);
          if (anchor == nullptr || anchor->type != json::Type::kString) continue;
          anchors_.emplace(base + "#" + anchor->text, Place{&value, visit.pointer});
          if (keyword[1] == 'd') ++dynamic_anchors_[anchor->text];
        }
        const json::Value* recursive = value.Find("$recursiveAnchor");
        if (recursive != nullptr && recursive->type == json::Type::kTrue) ++recursive_anchors_;
      }
      for (auto it = value.members.rbegin(); it != value.members.rend(); ++it) {
        const std::string& name = it->first;
        if (name == "enum" || name == "const" || name == "default" || name == "examples") continue;
        stack.push_back({&it->second, base, json::PointerJoin(visit.pointer, name)});
      }
    } else if (value.type == json::Type::kArray) {
      for (size_t i = value.items.size(); i-- > 0;) {
        stack.push_back(
            {&value.items[i], base, json::PointerJoin(visit.pointer, std::to_string(i))});
      }
    }
  }
}

int References::DynamicAnchors(const std::string& name) const {
  const auto it = dynamic_anchors_.find(name);
  return it == dynamic_anchors_.end() ? 0 : it->second;
}

Result<References::Target> References::Resolve(std::string_view base,
                                               std::string_view reference) const {
  const std::string uri = ResolveUri(base, reference);
  const size_t hash = uri.find('#');
  const std::string document = uri.substr(0, hash);
  const std::string fragment =
      hash == std::string::npos ? "" : PercentDecode(std::string_view(uri).substr(hash + 1));
  const auto resource = resources_.find(document);
  if (resource == resources_.end()) {
    return Error{ErrorCode::kUnsupported,
                 "reference to another document, " + json::Quote(uri) + ", which is not available",
                 ""};
  }
  Target target{resource->second.value, document, resource->second.pointer};
  if (fragment.empty()) return target;
  if (fragment[0] != '/') {
    const auto anchor = anchors_.find(document + "#" + fragment);
    if (anchor == anchors_.end())
      return Error{ErrorCode::kInvalid, "there is no anchor " + json::Quote(fragment), ""};
    return Target{anchor->second.value, document, anchor->second.pointer};
  }
  for (size_t i = 1; i <= fragment.size();) {
    const size_t slash = std::min(fragment.find('/', i), fragment.size());
    const std::string token = UnescapePointer(std::string_view(fragment).substr(i, slash - i));
    const json::Value* next = nullptr;
    if (target.value->type == json::Type::kObject) {
      next = target.value->Find(token);
    } else if (target.value->type == json::Type::kArray && !token.empty() && token.size() < 10 &&
               token.find_first_not_of("0123456789") == std::string::npos &&
               (token == "0" || token[0] != '0')) {
      const size_t index = std::stoul(token);
      if (index < target.value->items.size()) next = &target.value->items[index];
    }
    if (next == nullptr) {
      return Error{ErrorCode::kInvalid,
                   "reference to a place that does not exist: " + json::Quote(reference), ""};
    }
    target.pointer = json::PointerJoin(target.pointer, token);
    target.value = next;
    target.base = BaseInside(*next, target.base);
    i = slash + 1;
  }
  return target;
}

}  // namespace pawl::schema
