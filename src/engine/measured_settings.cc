// The file of a measured choice is found by what the weights are, not by where they lie: stores of
// models belong to other programs, and nothing is written there. A digest of whole files would take
// seconds for large models, so pieces of them are read. Two models that differ nowhere in them
// would share a choice of prompts, which harms no record.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "src/base/digest.h"
#include "src/base/file.h"
#include "src/base/json.h"
#include "src/base/json_reader.h"
#include "src/engine/extract_settings.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

constexpr uintmax_t kPieces = 16;
constexpr uintmax_t kPieceBytes = uintmax_t{64} << 10;
constexpr size_t kMostSettingsBytes = size_t{4} << 20;

Status AddPieces(const fs::path& file, Digest& digest) {
  std::error_code error;
  const uintmax_t size = fs::file_size(file, error);
  const auto failed = [&] { return Error{ErrorCode::kIo, "cannot be read", file.string()}; };
  if (error) return failed();
  digest.Add(std::to_string(size) + "\n");
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> in(std::fopen(file.string().c_str(), "rb"),
                                                           std::fclose);
  if (in == nullptr) return failed();
  std::string piece;
  for (uintmax_t i = 0; i < kPieces; ++i) {
    const uintmax_t begin = size / kPieces * i;
    piece.resize(static_cast<size_t>(std::min(kPieceBytes, size - begin)));
    const bool read = fseeko(in.get(), static_cast<off_t>(begin), SEEK_SET) == 0 &&
                      std::fread(piece.data(), 1, piece.size(), in.get()) == piece.size();
    if (!read) return failed();
    digest.Add(piece);
  }
  return {};
}

}  // namespace

Result<std::string> WeightsDigest(const std::string& path) {
  std::error_code error;
  std::vector<fs::path> files;
  if (fs::is_directory(path, error)) {
    for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
      if (it->path().extension() == ".safetensors") files.push_back(it->path());
    }
    std::ranges::sort(files);
  } else {
    files.emplace_back(path);
  }
  Digest digest(DigestKind::kSha256);
  for (const fs::path& file : files) {
    if (Status status = AddPieces(file, digest); !status.ok()) return status.error();
  }
  return digest.Hex().substr(0, kSettingsDigits);
}

Result<std::string> MeasuredFile(const std::string& folder, const std::string& path) {
  if (folder.empty()) return std::string();
  const Result<std::string> digest = WeightsDigest(path);
  if (!digest.ok()) return digest.error();
  return folder + "/" + *digest + ".json";
}

Status LoadMeasured(const std::string& folder, const std::string& path, ExtractChoices& choices) {
  std::error_code ignored;
  if (folder.empty() || !fs::is_directory(folder, ignored)) return {};
  const Result<std::string> file = MeasuredFile(folder, path);
  // Weights that cannot be read are told where they are loaded.
  if (!file.ok() || !fs::exists(*file, ignored)) return {};
  const Result<std::string> text = ReadRegularFile(*file, kMostSettingsBytes);
  if (!text.ok()) return text.error();
  const Result<json::Value> root = json::Parse(*text);
  if (!root.ok()) return InFile(*file, root.error());
  const JsonReader in(*root), extract = in["extract"].Object();
  in.OnlyMembers({"extract", "measured", "schema"});
  choices.measured_schema = in["schema"].String("");
  if (extract.present()) extract.OnlyMembers(kExtractSettingNames);
  choices.measured = ReadExtractSettings(extract);
  if (!in.ok()) return InFile(*file, in.error());
  choices.measured_file = *file;
  return {};
}

Status SaveMeasured(const std::string& file, const ExtractSettings& settings,
                    std::string_view schema, std::string_view measured) {
  std::error_code error;
  fs::create_directories(fs::path(file).parent_path(), error);
  if (error) {
    return Error{ErrorCode::kIo, error.message(), fs::path(file).parent_path().string()};
  }
  return WriteFile(file, "{\"extract\":" + JsonOf(settings) +
                             ",\n\"schema\":" + json::Quote(SchemaDigest(schema)) +
                             ",\n\"measured\":" + std::string(measured) + "}\n");
}

}  // namespace pawl
