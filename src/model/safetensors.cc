// The safetensors format (github.com/huggingface/safetensors, "Format"): 8 bytes little-endian
// header length, a JSON object {name: {dtype, shape, data_offsets}}, then the data, which the
// tensors cover without holes or overlaps.
//
// The header comes from outside, so nothing of it is used before it is checked: its length against
// the file, every product of dimensions against overflow, every range against the data. What
// remains trusted is that the file keeps its length while it is mapped; the operating system
// answers a read past a shortened end with a signal.
#include "src/model/safetensors.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

#include "src/base/json_reader.h"
#include "src/base/os/files.h"
#include "src/base/pages.h"

namespace pawl {
namespace {

// The limits of the reference implementation, and one on rank.
constexpr uint64_t kMaxHeaderBytes = 100'000'000;
constexpr size_t kMostDimensions = 8;

constexpr std::pair<std::string_view, int> kBits[] = {
    {"F64", 64}, {"I64", 64},    {"U64", 64},    {"F32", 32},   {"I32", 32}, {"U32", 32},
    {"F16", 16}, {"BF16", 16},   {"I16", 16},    {"U16", 16},   {"I8", 8},   {"U8", 8},
    {"BOOL", 8}, {"F8_E4M3", 8}, {"F8_E5M2", 8}, {"F8_E8M0", 8}};

std::string KnownDtypes() {
  std::string names;
  for (const auto& [name, bits] : kBits) names += (names.empty() ? "" : ", ") + std::string(name);
  return names;
}

std::optional<int64_t> DtypeBits(std::string_view dtype) {
  for (const auto& [name, bits] : kBits) {
    if (name == dtype) return bits;
  }
  return std::nullopt;
}

std::string TensorPlace(const std::string& path, std::string_view name) {
  // Names are the file's own text: keep messages short.
  return path + ": tensor " + json::Quote(name.substr(0, 200));
}

std::optional<int64_t> Product(int64_t a, int64_t b) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

// A number of digits alone: the format has no 1.0.
std::optional<int64_t> SizeOf(const json::Value& value) {
  const bool digits = value.text.find_first_not_of("0123456789") == std::string::npos;
  return digits ? json::WholeOf(value) : std::nullopt;
}

Result<TensorView> ParseTensor(const json::Value& entry, const std::string& place,
                               const std::byte* data, int64_t data_bytes) {
  const auto invalid = [&place](std::string message) {
    return Error{ErrorCode::kInvalid, std::move(message), place};
  };
  const json::Value* dtype = entry.Find("dtype");
  const json::Value* shape = entry.Find("shape");
  const json::Value* offsets = entry.Find("data_offsets");
  if (dtype == nullptr || dtype->type != json::Type::kString) return invalid("has no dtype");
  if (shape == nullptr || shape->type != json::Type::kArray) return invalid("has no shape");
  if (offsets == nullptr || offsets->type != json::Type::kArray || offsets->items.size() != 2) {
    return invalid("has no data_offsets [begin, end]");
  }
  TensorView tensor;
  tensor.dtype = dtype->text;
  const std::optional<int64_t> bits = DtypeBits(dtype->text);
  if (!bits)
    return invalid("unknown dtype " + json::Quote(dtype->text.substr(0, 50)) +
                   "; expected one of " + KnownDtypes());
  if (shape->items.size() > kMostDimensions) return invalid("has more than 8 dimensions");
  std::optional<int64_t> bytes = *bits / 8;
  for (const json::Value& item : shape->items) {
    const std::optional<int64_t> size = SizeOf(item);
    if (!size) {
      return invalid("shape holds something other than sizes: " + json::Shown(item));
    }
    bytes = Product(*bytes, *size);
    if (!bytes) return invalid("shape overflows 63 bits");
    tensor.shape.push_back(*size);
  }
  const std::optional<int64_t> begin = SizeOf(offsets->items[0]);
  const std::optional<int64_t> end = SizeOf(offsets->items[1]);
  if (!begin || !end || *end < *begin) {
    return invalid("data_offsets are no range: " + json::Shown(offsets->items[0]) + " to " +
                   json::Shown(offsets->items[1]));
  }
  if (*end > data_bytes) {
    return invalid("data_offsets end at " + std::to_string(*end) + ", the file's data at " +
                   std::to_string(data_bytes) + ": truncated file?");
  }
  if (*end - *begin != *bytes) {
    return invalid("data_offsets span " + std::to_string(*end - *begin) + " bytes, " +
                   tensor.dtype + " " + ShapeToString(tensor.shape) + " needs " +
                   std::to_string(*bytes));
  }
  tensor.data = data + *begin;
  tensor.bytes = *bytes;
  return tensor;
}

}  // namespace

std::string ShapeToString(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  }
  return text + "]";
}

Result<SafetensorsFile> SafetensorsFile::Open(const std::string& path) {
  Result<MappedFile> mapped = MappedFile::Open(path);
  if (!mapped.ok()) return mapped.error();
  Result<SafetensorsFile> file = Parse({mapped->data(), mapped->size()}, path);
  if (file.ok()) file->file_ = *std::move(mapped);
  return file;
}

Result<SafetensorsFile> SafetensorsFile::Parse(std::span<const std::byte> content,
                                               const std::string& path) {
  SafetensorsFile file;
  file.path_ = path;
  const std::byte* bytes = content.data();
  const uint64_t size = content.size();
  file.size_ = static_cast<int64_t>(size);
  if (size < 8) {
    return Error{
        ErrorCode::kInvalid,
        "not a safetensors file: " + std::to_string(size) + " bytes, the header length needs 8",
        path};
  }
  uint64_t header_bytes = 0;
  for (int i = 7; i >= 0; --i) header_bytes = header_bytes << 8 | static_cast<uint64_t>(bytes[i]);
  if (header_bytes > size - 8) {
    return Error{ErrorCode::kInvalid,
                 "header length " + std::to_string(header_bytes) +
                     " at byte 0 exceeds the file's " + std::to_string(size) +
                     " bytes: truncated, or not a safetensors file",
                 path};
  }
  if (header_bytes > kMaxHeaderBytes) {
    return Error{ErrorCode::kLimit,
                 "header of " + std::to_string(header_bytes) + " bytes; the limit is " +
                     std::to_string(kMaxHeaderBytes),
                 path};
  }
  const std::string_view header(reinterpret_cast<const char*>(bytes) + 8, header_bytes);
  if (Status status = file.ParseHeader(header, bytes + 8 + header_bytes,
                                       static_cast<int64_t>(size - 8 - header_bytes));
      !status.ok()) {
    return status.error();
  }
  return file;
}

Status SafetensorsFile::ParseHeader(std::string_view header, const std::byte* data,
                                    int64_t data_bytes) {
  json::ParseLimits limits;
  limits.max_bytes = kMaxHeaderBytes;
  limits.max_depth = 8;
  // The header may be padded with spaces, which JSON allows.
  Result<json::Value> root = json::Parse(header, limits);
  if (!root.ok()) {
    return Error{root.error().code, "bad header: " + root.error().ToString(), path_};
  }
  if (root->type != json::Type::kObject) {
    return Error{ErrorCode::kInvalid, "bad header: not a JSON object", path_};
  }
  struct Range {
    int64_t begin, end;
    std::string_view name;
  };
  std::vector<Range> ranges;
  for (const auto& [name, entry] : root->members) {
    if (name == "__metadata__") continue;
    const std::string place = TensorPlace(path_, name);
    Result<TensorView> tensor = ParseTensor(entry, place, data, data_bytes);
    if (!tensor.ok()) return tensor.error();
    ranges.push_back({tensor->data - data, tensor->data - data + tensor->bytes, name});
    tensors_.emplace(name, *std::move(tensor));
  }
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  int64_t covered = 0;
  for (const Range& range : ranges) {
    if (range.begin != covered) {
      return Error{ErrorCode::kInvalid,
                   "data_offsets begin at " + std::to_string(range.begin) + " where " +
                       std::to_string(covered) + " was expected: tensors overlap or leave a hole",
                   TensorPlace(path_, range.name)};
    }
    covered = range.end;
  }
  if (covered != data_bytes) {
    return Error{ErrorCode::kInvalid,
                 "the file holds " + std::to_string(data_bytes) +
                     " bytes of data, its tensors need " + std::to_string(covered),
                 path_};
  }
  return {};
}

const TensorView* SafetensorsFile::Find(std::string_view name) const {
  const auto found = tensors_.find(std::string(name));
  return found == tensors_.end() ? nullptr : &found->second;
}

namespace {

// A name in the folder itself: an index must not reach into other places.
bool IsPlainFileName(const std::string& name) {
  return !name.empty() && name.size() <= 255 && name != "." && name != ".." &&
         name.find('/') == std::string::npos && name.find('\0') == std::string::npos;
}

}  // namespace

Result<Checkpoint> Checkpoint::Open(const std::string& folder) {
  Checkpoint checkpoint;
  const std::string single = folder + "/model.safetensors";
  const std::string index = folder + "/model.safetensors.index.json";
  if (os::Exists(single) || !os::Exists(index)) {
    if (!os::Exists(single)) {
      return Error{ErrorCode::kIo,
                   "found neither model.safetensors nor model.safetensors.index.json", folder};
    }
    Result<SafetensorsFile> file = SafetensorsFile::Open(single);
    if (!file.ok()) return file.error();
    checkpoint.files_.push_back(*std::move(file));
    return checkpoint;
  }
  checkpoint.index_path_ = index;
  Result<std::string> text = ReadRegularFile(index);
  if (!text.ok()) return text.error();
  Result<json::Value> root = json::Parse(*text);
  if (!root.ok()) return Error{root.error().code, root.error().ToString(), index};
  const json::Value* map = root->Find("weight_map");
  if (map == nullptr || map->type != json::Type::kObject) {
    return Error{ErrorCode::kInvalid, "has no object weight_map", index};
  }
  std::unordered_map<std::string, size_t> shard_of_file;
  for (const auto& [tensor, shard] : map->members) {
    if (shard.type != json::Type::kString || !IsPlainFileName(shard.text)) {
      return Error{ErrorCode::kInvalid, "must name a file in this folder",
                   index + "#/weight_map" + json::PointerJoin("", tensor)};
    }
    auto [found, added] = shard_of_file.emplace(shard.text, checkpoint.files_.size());
    if (added) {
      Result<SafetensorsFile> file = SafetensorsFile::Open(folder + "/" + shard.text);
      if (!file.ok()) {
        Error error = file.error();
        if (error.code == ErrorCode::kIo) error.message += " (" + index + " names it)";
        return error;
      }
      checkpoint.files_.push_back(*std::move(file));
    }
    const SafetensorsFile& file = checkpoint.files_[found->second];
    if (file.Find(tensor) == nullptr) {
      return Error{ErrorCode::kInvalid, "the index places this tensor here, the file lacks it",
                   TensorPlace(file.path(), tensor)};
    }
    checkpoint.shard_of_.emplace(tensor, found->second);
  }
  return checkpoint;
}

const TensorView* Checkpoint::Find(std::string_view name) const {
  if (index_path_.empty()) return files_[0].Find(name);
  const auto found = shard_of_.find(std::string(name));
  return found == shard_of_.end() ? nullptr : files_[found->second].Find(name);
}

std::vector<std::string> Checkpoint::Names() const {
  std::vector<std::string> names;
  for (const SafetensorsFile& file : files_) {
    for (const auto& [name, tensor] : file.tensors()) names.push_back(name);
  }
  return names;
}

void Checkpoint::Release(const std::byte* data, int64_t bytes) const { DropPages(data, bytes); }

int64_t Checkpoint::bytes() const {
  int64_t total = 0;
  for (const SafetensorsFile& file : files_) total += file.bytes();
  return total;
}

const std::string& Checkpoint::PathOf(std::string_view name) const {
  if (index_path_.empty()) return files_[0].path();
  const auto found = shard_of_.find(std::string(name));
  return found == shard_of_.end() ? index_path_ : files_[found->second].path();
}

}  // namespace pawl
