// A folder of sentence-transformers lists its parts: the transformer, a pooling, perhaps one that
// scales to length 1. Any other part would change the vectors, so it is refused by name. Of GGUF
// files vectors have length 1, as llama.cpp's server makes them.
#include "src/engine/pooling.h"

#include <filesystem>
#include <optional>
#include <utility>

#include "src/base/file.h"
#include "src/base/json_reader.h"
#include "src/model/gguf.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

Error Unknown(std::string what, std::string place) {
  return {ErrorCode::kUnsupported, std::move(what), std::move(place)};
}

Result<json::Value> ReadJson(const std::string& file) {
  const Result<std::string> text = ReadFile(file);
  if (!text.ok()) return text.error();
  Result<json::Value> value = json::Parse(*text);
  if (!value.ok()) return Error{value.error().code, value.error().message, file};
  return value;
}

Result<Pooling::Kind> KindIn(const std::string& file) {
  const Result<json::Value> config = ReadJson(file);
  if (!config.ok()) return config.error();
  const JsonReader in = JsonReader(*config, file + "#").Object();
  std::optional<Pooling::Kind> kind;
  if (const std::string mode = in["pooling_mode"].String(""); !mode.empty()) {
    if (mode == "mean") kind = Pooling::Kind::kMean;
    if (mode == "lasttoken") kind = Pooling::Kind::kLast;
    if (!kind)
      in["pooling_mode"].Unsupported("is " + json::Quote(mode.substr(0, 100)) +
                                     "; there are mean and lasttoken");
  }
  int modes = kind ? 1 : 0;
  for (const json::Member& member : config->members) {
    if (!member.first.starts_with("pooling_mode_") || !in[member.first].Bool(false)) continue;
    ++modes;
    if (member.first == "pooling_mode_mean_tokens") kind = Pooling::Kind::kMean;
    if (member.first == "pooling_mode_lasttoken") kind = Pooling::Kind::kLast;
    if (!kind) in[member.first].Unsupported("is not known here; there are mean and last token");
  }
  if (!in.ok()) return in.error();
  if (modes != 1) return Unknown("must ask for one way of pooling", file);
  return *kind;
}

Result<Pooling> ReadFolder(const std::string& path) {
  const std::string file = (fs::path(path) / "modules.json").string();
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return Unknown("there is no modules.json", path);
  const Result<json::Value> modules = ReadJson(file);
  if (!modules.ok()) return modules.error();
  const JsonReader in = JsonReader(*modules, file + "#").Array();
  Pooling pooling{.normalize = false};
  bool pools = false;
  for (const JsonReader module : in.items()) {
    const std::string type = module["type"].String(), folder = module["path"].String("");
    if (!in.ok()) break;
    const std::string kind = type.substr(type.rfind('.') + 1);
    if (kind == "Transformer") continue;
    if (kind == "Normalize") {
      pooling.normalize = true;
    } else if (kind == "Pooling" && folder.find("..") == std::string::npos) {
      const Result<Pooling::Kind> read = KindIn((fs::path(path) / folder / "config.json").string());
      if (!read.ok()) return read.error();
      pooling.kind = *read;
      pools = true;
    } else {
      module["type"].Unsupported("is " + json::Quote(type.substr(0, 100)) +
                                 "; there are Transformer, Pooling and Normalize");
    }
  }
  if (!in.ok()) return in.error();
  if (!pools) return Unknown("has no part that pools", file);
  return pooling;
}

Result<Pooling> ReadGguf(const std::string& path) {
  Result<GgufFile> file = GgufFile::Open(path);
  if (!file.ok()) return file.error();
  const GgufValue* arch = file->FindValue("general.architecture");
  const std::string key = std::string(arch == nullptr ? "" : arch->text) + ".pooling_type";
  const GgufValue* type = file->FindValue(key);
  if (type == nullptr) return Unknown("there is no " + key, path);
  // enum llama_pooling_type of llama.cpp's llama.h
  const bool whole =
      type->kind == GgufValue::Kind::kUnsigned || type->kind == GgufValue::Kind::kSigned;
  if (whole && type->number == 1) return PoolingOf("mean");
  if (whole && type->number == 3) return PoolingOf("last");
  return Unknown("is not known here; there are 1 (mean) and 3 (last)", path + ": " + key);
}

}  // namespace

Result<Pooling> PoolingOf(std::string_view name) {
  if (name == "mean") return Pooling{.kind = Pooling::Kind::kMean};
  if (name == "last") return Pooling{.kind = Pooling::Kind::kLast};
  return Error{ErrorCode::kInvalid,
               "is " + json::Quote(std::string(name)) + "; there are mean, last", "pooling"};
}

Result<Pooling> ReadPooling(const std::string& path) {
  if (LooksLikeGguf(path)) return ReadGguf(path);
  return ReadFolder(path);
}

}  // namespace pawl
