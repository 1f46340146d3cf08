// Files are looked at as far as their names: what is wrong with a model is told to those who ask
// for it, and the other models are served.
#include "src/cli/serve_models.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "grammar/tags/formats/chat_format.h"
#include "src/base/file.h"
#include "src/base/json_reader.h"
#include "src/cli/engine.h"
#include "src/engine/model_files.h"
#include "src/server/model_choice.h"

namespace pawl::cli {
namespace {

namespace fs = std::filesystem;
using server::ModelOfServer;

constexpr int64_t kMostMb = int64_t{1} << 30;

bool IsGgufName(const std::string& name) {
  if (!name.ends_with(".gguf")) return false;
  // Of a file in parts the first one stands for all.
  const size_t of = name.rfind("-of-");
  return of == std::string::npos || of < 6 || name.substr(of - 6, 6) == "-00001";
}

bool IsModelFolder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored) && fs::exists(path / "config.json", ignored);
}

Result<std::vector<ModelOfServer>> OfFolder(const std::string& folder,
                                            const ModelOfServer& defaults) {
  std::error_code error;
  std::vector<std::string> names;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name.starts_with('.')) continue;
    if (IsGgufName(name) || IsModelFolder(at->path())) names.push_back(name);
  }
  if (error) return Error{ErrorCode::kIo, error.message(), folder};
  if (names.empty()) {
    return Error{ErrorCode::kInvalid, "has no model folder and no GGUF file", folder};
  }
  std::ranges::sort(names);
  std::vector<ModelOfServer> models;
  for (const std::string& name : names) {
    ModelOfServer model = defaults;
    model.path = (fs::path(folder) / name).string();
    model.model.name = name;
    models.push_back(std::move(model));
  }
  return models;
}

// The path of a model that a file in `folder` names.
Result<std::string> PathOf(const std::string& given, const fs::path& folder) {
  std::error_code ignored;
  const fs::path near = folder / given;
  if (!given.empty() && fs::path(given).is_relative() && fs::exists(near, ignored)) {
    if (Status status = CheckModelPath(near.string()); !status.ok()) return status.error();
    return near.string();
  }
  if (given.empty()) return Error{ErrorCode::kInvalid, "must not be empty", ""};
  return FindModelFolder(given);
}

void ReadTextOptions(const JsonReader& in, const fs::path& folder, ModelOfServer& model) {
  if (std::string file; in["chat_template"].Read(file)) {
    const fs::path path = fs::path(file).is_relative() ? folder / file : fs::path(file);
    Result<std::string> text = ReadFile(path.string());
    if (!text.ok()) return in["chat_template"].Fail(text.error().ToString());
    model.model.chat_template = *std::move(text);
  }
  if (in["tool_syntax"].Read(model.model.tool_syntax) &&
      ChatFormatNamed(model.model.tool_syntax) == nullptr) {
    return in["tool_syntax"].Fail("is not known");
  }
  if (in["pooling"].Read(model.model.pooling) && model.model.pooling != "mean" &&
      model.model.pooling != "last") {
    return in["pooling"].Fail("must be mean or last");
  }
  if (const JsonReader marks = in["reasoning_marks"].OptionalArray(); marks.present()) {
    if (marks.size() != 2) return marks.Fail("must be a list of two texts");
    model.model.think_open = marks.Item(0).String();
    model.model.think_close = marks.Item(1).String();
  }
}

ModelOfServer ReadOne(const JsonReader& in, const fs::path& folder, const ModelOfServer& defaults) {
  ModelOfServer model = defaults;
  in.Object().OnlyMembers({"name", "path", "dtype", "threads", "batch", "queue", "max_tokens",
                           "kv_mb", "keep_alive", "chat_template", "tool_syntax", "pooling",
                           "reasoning_marks"});
  const std::string given = in["path"].String();
  if (!in.ok()) return model;
  const Result<std::string> path = PathOf(given, folder);
  if (!path.ok()) {
    in["path"].Fail(path.error().ToString());
    return model;
  }
  model.path = *path;
  model.model.name = LabelOf(given);
  if (model.model.name.empty()) {
    fs::path file = fs::path(model.path).lexically_normal();
    if (!file.has_filename()) file = file.parent_path();
    model.model.name = file.filename().string();
  }
  if (in["name"].Read(model.model.name) && model.model.name.empty()) {
    in["name"].Fail("must not be empty");
  }
  if (std::string dtype; in["dtype"].Read(dtype)) {
    if (std::ranges::find(DtypeNames(), dtype) == DtypeNames().end()) {
      in["dtype"].Fail("is not known");
    } else {
      model.model.model.dtype = DtypeNamed(dtype);
    }
  }
  in["threads"].Read(model.model.model.threads, 0, 1024);
  in["batch"].Read(model.max_batch, 1, 1024);
  in["queue"].Read(model.max_queue, 1, 1 << 20);
  in["max_tokens"].Read(model.max_tokens, 1, 1 << 24);
  if (int64_t mb = 0; in["kv_mb"].Read(mb, int64_t{1}, kMostMb)) model.kv_bytes = mb << 20;
  if (const JsonReader keep = in["keep_alive"]; keep.present()) {
    const std::optional<double> seconds = server::KeepAliveOf(*keep.value());
    if (seconds) {
      model.keep_alive = *seconds;
    } else {
      keep.Fail(R"(must be seconds, or a text such as "5m"; -1 for ever)");
    }
  }
  ReadTextOptions(in, folder, model);
  return model;
}

Result<std::vector<ModelOfServer>> OfFile(const std::string& file, const ModelOfServer& defaults) {
  Result<std::string> text = ReadFile(file);
  if (!text.ok()) return text.error();
  Result<json::Value> value = json::Parse(*text);
  if (!value.ok()) {
    Error error = value.error();
    error.place = error.place.empty() ? file : file + ": " + error.place;
    return error;
  }
  const JsonReader in = JsonReader(*value, file + "#").Object();
  in.OnlyMembers({"models"});
  const JsonReader list = in["models"].Array();
  if (list.ok() && list.size() == 0) list.Fail("must name at least one model");
  std::vector<ModelOfServer> models;
  std::map<std::string, std::string> places;
  for (const JsonReader one : list.items()) {
    models.push_back(ReadOne(one, fs::path(file).parent_path(), defaults));
    if (!in.ok()) return in.error();
    const auto [at, is_new] = places.emplace(models.back().model.name, one.place());
    if (!is_new) {
      const JsonReader name = one["name"];
      (name.present() ? name : one)
          .Fail("the name " + json::Quote(at->first) + " is that of " + at->second);
    }
  }
  if (!in.ok()) return in.error();
  return models;
}

}  // namespace

Result<std::vector<ModelOfServer>> ReadServedModels(const std::string& path,
                                                    const ModelOfServer& defaults) {
  std::error_code ignored;
  return fs::is_directory(path, ignored) ? OfFolder(path, defaults) : OfFile(path, defaults);
}

}  // namespace pawl::cli
