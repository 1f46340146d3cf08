// Repositories of GGUF files have one file for each type of weights, and the type stands at the end
// of the name. A file of more than one part counts once, under the name of its first part.
#include "src/engine/model_choice.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>

#include "src/base/json.h"
#include "src/base/utf8.h"

namespace pawl {
namespace {

constexpr std::string_view kSuffix = ".gguf";
constexpr size_t kMostListed = 20;
constexpr int kMostParts = 10'000;

std::string Upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return out;
}

bool EndsWithIgnoringCase(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && Upper(text.substr(text.size() - end.size())) == Upper(end);
}

std::string_view FileName(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::optional<int> Digits(std::string_view text) {
  int number = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    number = number * 10 + (c - '0');
  }
  return number;
}

// "a-00002-of-00003.gguf" is part 2 of 3 of the stem "a".
struct Part {
  std::string_view stem;
  int number = 1;
  int count = 1;
};

Part PartOf(std::string_view name) {
  name.remove_suffix(kSuffix.size());
  constexpr std::string_view kForm = "-00001-of-00003";
  if (name.size() <= kForm.size()) return {name};
  const std::string_view end = name.substr(name.size() - kForm.size());
  const std::optional<int> number = Digits(end.substr(1, 5));
  const std::optional<int> count = Digits(end.substr(10, 5));
  const bool split = end[0] == '-' && end.substr(6, 4) == "-of-" && number && count &&
                     *number >= 1 && *number <= *count && *count <= kMostParts;
  if (!split) return {name};
  name.remove_suffix(kForm.size());
  return {name, *number, *count};
}

std::string PartName(const Part& part, int number) {
  const auto five = [](int n) {
    const std::string digits = std::to_string(n);
    return std::string(5 - digits.size(), '0') + digits;
  };
  return std::string(part.stem) + "-" + five(number) + "-of-" + five(part.count) +
         std::string(kSuffix);
}

bool IsGguf(std::string_view name) { return EndsWithIgnoringCase(name, kSuffix); }

// What lies among the models of a repository without being one.
bool IsCompanion(std::string_view name) {
  const std::string file = Upper(FileName(name));
  return file.find("MMPROJ") != std::string::npos || file.find("IMATRIX") != std::string::npos;
}

bool LooksLikeType(std::string_view upper) {
  static constexpr std::array<std::string_view, 6> kWhole = {"F16",  "F32",   "BF16",
                                                             "FP16", "MXFP4", "NVFP4"};
  if (std::ranges::find(kWhole, upper) != kWhole.end()) return true;
  if (upper.starts_with("MXFP4_")) return true;
  if (upper.starts_with("I") || upper.starts_with("T")) upper.remove_prefix(1);
  return upper.size() >= 2 && upper[0] == 'Q' && upper[1] >= '1' && upper[1] <= '9' &&
         std::ranges::all_of(upper, [](char c) {
           return c == '_' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z');
         });
}

std::string List(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kMostListed); ++i) {
    text += (i > 0 ? ", " : "") + names[i];
  }
  if (names.size() > kMostListed) {
    text += " and " + std::to_string(names.size() - kMostListed) + " more";
  }
  return text;
}

// The file with its further parts.
Result<ModelChoice> WithParts(const std::vector<std::string>& names, const std::string& file) {
  const Part part = PartOf(file);
  if (part.number != 1) {
    return Error{ErrorCode::kInvalid,
                 file + " is part " + std::to_string(part.number) + " of " +
                     std::to_string(part.count) + "; the model is named by its first part, " +
                     PartName(part, 1),
                 ""};
  }
  ModelChoice choice;
  choice.gguf.push_back(file);
  for (int number = 2; number <= part.count; ++number) {
    const std::string name = PartName(part, number);
    if (std::ranges::find(names, name) == names.end()) {
      return Error{ErrorCode::kIo, "a part of the model is missing: " + name, ""};
    }
    choice.gguf.push_back(name);
  }
  return choice;
}

bool HasSafetensors(const std::vector<std::string>& names) {
  return std::ranges::any_of(
      names, [](const std::string& name) { return name == kOneShard || name == kShardIndex; });
}

// Those of a type. "Q4_K_XL" also finds "UD-Q4_K_XL", where there is no other one.
std::vector<std::string> OfType(const std::vector<std::string>& models, const std::string& type) {
  std::vector<std::string> exact, dynamic;
  for (const std::string& name : models) {
    const std::string own = TypeInName(name);
    if (own == type) exact.push_back(name);
    if (own == "UD-" + type) dynamic.push_back(name);
  }
  return exact.empty() ? dynamic : exact;
}

Result<std::string> ChooseGguf(const std::vector<std::string>& names,
                               const std::vector<std::string>& models, std::string_view wanted) {
  if (IsGguf(wanted)) {
    if (std::ranges::find(names, wanted) != names.end()) return std::string(wanted);
    return Error{ErrorCode::kIo,
                 "has no file " + std::string(wanted) +
                     (models.empty() ? "; it has no GGUF file" : "; it has " + List(models)),
                 ""};
  }
  if (models.empty()) {
    return Error{ErrorCode::kIo, "has neither a GGUF file nor model.safetensors", ""};
  }
  if (wanted.empty() && models.size() == 1) return models[0];
  std::vector<std::string> types{Upper(wanted)};
  if (wanted.empty()) types = {"Q4_K_M", "Q8_0"};
  for (const std::string& type : types) {
    const std::vector<std::string> fit = OfType(models, type);
    if (fit.size() == 1) return fit[0];
    if (fit.size() > 1) {
      return Error{ErrorCode::kInvalid,
                   "has several files of type " + type + ": " + List(fit) + "; name the file", ""};
    }
  }
  return Error{ErrorCode::kIo,
               wanted.empty() ? "has several models, and none of type Q4_K_M or Q8_0: " +
                                    List(models) + "; name a type or a file"
                              : "has no file of type " + types[0] + "; it has " + List(models),
               ""};
}

}  // namespace

std::string TypeInName(std::string_view file) {
  if (!IsGguf(file)) return "";
  const std::string stem = Upper(FileName(PartOf(file).stem));
  const size_t at = stem.find_last_of("-.");
  const std::string type = at == std::string::npos ? stem : stem.substr(at + 1);
  if (!LooksLikeType(type)) return "";
  const bool dynamic = at != std::string::npos && (std::string_view(stem).substr(0, at) == "UD" ||
                                                   stem.substr(0, at).ends_with("-UD"));
  return (dynamic ? "UD-" : "") + type;
}

std::vector<std::string> GgufModels(const std::vector<std::string>& names) {
  std::vector<std::string> models;
  for (const std::string& name : names) {
    if (IsGguf(name) && !IsCompanion(name) && PartOf(name).number == 1) models.push_back(name);
  }
  std::ranges::sort(models);
  return models;
}

Result<ModelChoice> ChooseModel(const std::vector<std::string>& names, std::string_view wanted) {
  if (Upper(wanted) == "SAFETENSORS" || (wanted.empty() && HasSafetensors(names))) {
    if (HasSafetensors(names)) return ModelChoice{};
    return Error{ErrorCode::kIo, "has no model.safetensors", ""};
  }
  const Result<std::string> file = ChooseGguf(names, GgufModels(names), wanted);
  if (!file.ok()) return file.error();
  return WithParts(names, *file);
}

Result<std::vector<std::string>> ShardsOfIndex(std::string_view index) {
  const Result<json::Value> value = json::Parse(index);
  if (!value.ok()) return value.error();
  const json::Value* map = value->Find("weight_map");
  if (map == nullptr || map->type != json::Type::kObject) {
    return Error{ErrorCode::kInvalid, "must be an object", "#/weight_map"};
  }
  std::set<std::string> shards;
  for (const json::Member& member : map->members) {
    const std::string& name = member.second.text;
    if (member.second.type != json::Type::kString || !IsPlainName(name) ||
        name.find('/') != std::string::npos) {
      return Error{ErrorCode::kInvalid, "must be the name of a file of the folder",
                   json::PointerJoin("#/weight_map", member.first)};
    }
    shards.insert(name);
  }
  return std::vector<std::string>(shards.begin(), shards.end());
}

bool IsPlainName(std::string_view name) {
  constexpr size_t kMostBytes = 512;
  if (name.empty() || name.size() > kMostBytes) return false;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F || c == '\\') return false;
  }
  while (true) {
    const size_t end = name.find('/');
    const std::string_view part = name.substr(0, end);
    if (part.empty() || part == "." || part == "..") return false;
    if (end == std::string_view::npos) return true;
    name.remove_prefix(end + 1);
  }
}

}  // namespace pawl
