// The file comes from outside. A cursor hands out bytes only after comparing with what is left; a
// count of things is accepted only when that many of the smallest thing would still fit, so that no
// memory is asked for that the file does not back. Offsets of tensors are relative to the end of
// the header, rounded up to the alignment, which must be a power of two.
#include "src/model/gguf.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>

#include "src/base/json.h"
#include "src/base/os/files.h"
#include "src/base/pages.h"

namespace pawl {
namespace {

constexpr uint64_t kMaxKey = 65535;
constexpr uint32_t kMaxRank = 4;
constexpr uint64_t kMaxAlignment = 1 << 20;
constexpr std::string_view kMagic = "GGUF";

enum ValueType : uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64  // NOLINT
};

constexpr GgufType kTensorTypes[] = {
    {0, "F32", 1, 4},         {1, "F16", 1, 2},         {2, "Q4_0", 32, 18},
    {3, "Q4_1", 32, 20},      {6, "Q5_0", 32, 22},      {7, "Q5_1", 32, 24},
    {8, "Q8_0", 32, 34},      {9, "Q8_1", 32, 36},      {10, "Q2_K", 256, 84},
    {11, "Q3_K", 256, 110},   {12, "Q4_K", 256, 144},   {13, "Q5_K", 256, 176},
    {14, "Q6_K", 256, 210},   {15, "Q8_K", 256, 292},   {16, "IQ2_XXS", 256, 66},
    {17, "IQ2_XS", 256, 74},  {18, "IQ3_XXS", 256, 98}, {19, "IQ1_S", 256, 50},
    {20, "IQ4_NL", 32, 18},   {21, "IQ3_S", 256, 110},  {22, "IQ2_S", 256, 82},
    {23, "IQ4_XS", 256, 136}, {24, "I8", 1, 1},         {25, "I16", 1, 2},
    {26, "I32", 1, 4},        {27, "I64", 1, 8},        {28, "F64", 1, 8},
    {29, "IQ1_M", 256, 56},   {30, "BF16", 1, 2},       {34, "TQ1_0", 256, 54},
    {35, "TQ2_0", 256, 66},   {39, "MXFP4", 32, 17},    {40, "NVFP4", 64, 36},
    {41, "Q1_0", 128, 18},    {42, "Q2_0", 64, 18}};

const GgufType* FindType(uint32_t id) {
  for (const GgufType& type : kTensorTypes) {
    if (type.id == id) return &type;
  }
  return nullptr;
}

// Bytes that a value of a type takes at least.
uint64_t LeastBytes(uint32_t type) {
  switch (type) {
    case kU8:
    case kI8:
    case kBool:
      return 1;
    case kU16:
    case kI16:
      return 2;
    case kU32:
    case kI32:
    case kF32:
      return 4;
    default:
      return 8;
  }
}

class Cursor {
 public:
  Cursor(std::span<const std::byte> bytes, std::string name)
      : bytes_(bytes), name_(std::move(name)) {}

  uint64_t at() const { return at_; }
  std::string_view Between(uint64_t begin, uint64_t end) const {
    return {reinterpret_cast<const char*>(bytes_.data()) + begin, static_cast<size_t>(end - begin)};
  }
  uint64_t left() const { return bytes_.size() - at_; }
  bool failed() const { return error_.has_value(); }
  const Error& error() const { return *error_; }

  void Fail(ErrorCode code, uint64_t at, std::string message) {
    if (!error_) error_ = Error{code, std::move(message), name_ + ": byte " + std::to_string(at)};
  }

  template <typename T>
  T Number(const char* what) {
    T value{};
    if (failed()) return value;
    if (left() < sizeof value) {
      Fail(ErrorCode::kInvalid, at_,
           std::string("the file ends within ") + what + ": truncated, or not a GGUF file");
      return value;
    }
    static_assert(std::endian::native == std::endian::little, "GGUF files are little-endian");
    std::memcpy(&value, bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }

  // A count of things that take `least` bytes each.
  uint64_t Count(const char* what, uint64_t least) {
    const uint64_t begin = at_;
    const auto count = Number<uint64_t>(what);
    if (failed()) return 0;
    if (count > left() / least) {
      Fail(ErrorCode::kInvalid, begin,
           std::string(what) + " is " + std::to_string(count) + ", more than the " +
               std::to_string(left()) + " bytes that follow can hold");
      return 0;
    }
    return count;
  }

  std::string_view String(const char* what, uint64_t limit) {
    const uint64_t begin = at_;
    const uint64_t length = Count(what, 1);
    if (failed()) return {};
    if (length > limit) {
      Fail(ErrorCode::kLimit, begin,
           std::string(what) + " has " + std::to_string(length) + " bytes; the limit is " +
               std::to_string(limit));
      return {};
    }
    const std::string_view text(reinterpret_cast<const char*>(bytes_.data()) + at_, length);
    at_ += length;
    return text;
  }

 private:
  std::span<const std::byte> bytes_;
  std::string name_;
  uint64_t at_ = 0;
  std::optional<Error> error_;
};

// One number of a type that is neither string nor array.
GgufValue ReadScalar(Cursor& cursor, uint32_t type) {
  GgufValue value;
  using Kind = GgufValue::Kind;
  const auto integer = [&](auto zero) {
    const auto number = cursor.Number<decltype(zero)>("a value");
    value.kind = std::numeric_limits<decltype(zero)>::is_signed ? Kind::kSigned : Kind::kUnsigned;
    value.number = static_cast<uint64_t>(static_cast<int64_t>(number));
  };
  switch (type) {
    case kU8:
      integer(uint8_t{});
      break;
    case kI8:
      integer(int8_t{});
      break;
    case kU16:
      integer(uint16_t{});
      break;
    case kI16:
      integer(int16_t{});
      break;
    case kU32:
      integer(uint32_t{});
      break;
    case kI32:
      integer(int32_t{});
      break;
    case kU64:
      integer(uint64_t{});
      break;
    case kI64:
      integer(int64_t{});
      break;
    case kF32:
      value.kind = Kind::kFloat;
      value.real = static_cast<double>(cursor.Number<float>("a value"));
      break;
    case kF64:
      value.kind = Kind::kFloat;
      value.real = cursor.Number<double>("a value");
      break;
    default: {
      value.kind = Kind::kBool;
      const uint64_t at = cursor.at();
      value.number = cursor.Number<uint8_t>("a value");
      if (value.number > 1) {
        cursor.Fail(ErrorCode::kInvalid, at,
                    "a bool is " + std::to_string(value.number) + "; expected 0 or 1");
      }
    }
  }
  return value;
}

GgufValue ReadValue(Cursor& cursor) {
  const uint64_t type_at = cursor.at();
  const auto type = cursor.Number<uint32_t>("a value's type");
  const uint64_t offset = cursor.at();
  GgufValue value;
  if (type > kF64) {
    cursor.Fail(ErrorCode::kInvalid, type_at,
                "value type " + std::to_string(type) + "; expected 0 to 12");
  } else if (type == kString) {
    value.kind = GgufValue::Kind::kString;
    value.text = cursor.String("a string's length", std::numeric_limits<uint64_t>::max());
  } else if (type == kArray) {
    const auto element = cursor.Number<uint32_t>("an array's element type");
    if (element == kArray || element > kF64) {
      cursor.Fail(ErrorCode::kUnsupported, offset,
                  "array of type " + std::to_string(element) +
                      "; arrays of numbers, bools and strings are supported");
    }
    const uint64_t count = cursor.Count("an array's length", LeastBytes(element));
    value.kind = GgufValue::Kind::kArray;
    value.element = GgufValue::Kind::kString;
    for (uint64_t i = 0; i < count && !cursor.failed(); ++i) {
      if (element == kString) {
        value.strings.push_back(
            cursor.String("a string's length", std::numeric_limits<uint64_t>::max()));
        continue;
      }
      const GgufValue item = ReadScalar(cursor, element);
      value.element = item.kind;
      if (item.kind == GgufValue::Kind::kFloat) {
        value.reals.push_back(static_cast<float>(item.real));
      } else {
        value.integers.push_back(static_cast<int64_t>(item.number));
      }
    }
  } else {
    value = ReadScalar(cursor, type);
  }
  value.offset = offset;
  value.raw = cursor.Between(type_at, cursor.at());
  return value;
}

// A model in several files: each has its number, from 0 on, and how many there are.
constexpr const char* kSplitNumber = "split.no";
constexpr const char* kSplitCount = "split.count";
constexpr const char* kSplitTensors = "split.tensors.count";

std::optional<uint64_t> NumberAt(const GgufFile& file, std::string_view key) {
  const GgufValue* value = file.FindValue(key);
  if (value == nullptr ||
      (value->kind != GgufValue::Kind::kUnsigned && value->kind != GgufValue::Kind::kSigned)) {
    return std::nullopt;
  }
  return value->number;
}

// "-00002-of-00003.gguf" for part 1 of 3.
std::string PartName(uint64_t part, uint64_t count) {
  const auto five = [](uint64_t number) {
    const std::string digits = std::to_string(number);
    return std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0') + digits;
  };
  return "-" + five(part + 1) + "-of-" + five(count) + ".gguf";
}

std::string ShownName(std::string_view name) { return json::Quote(name.substr(0, 200)); }

// A tensor whose `data` is not known yet; its offset within the data goes to `offset`.
TensorView ReadTensor(Cursor& cursor, uint64_t alignment, uint64_t& offset) {
  TensorView tensor;
  const uint64_t rank_at = cursor.at();
  const auto rank = cursor.Number<uint32_t>("a tensor's rank");
  if (!cursor.failed() && rank > kMaxRank) {
    cursor.Fail(ErrorCode::kLimit, rank_at,
                "a tensor of " + std::to_string(rank) + " dimensions; the limit is " +
                    std::to_string(kMaxRank));
  }
  std::optional<int64_t> elements = 1;
  const uint64_t dims_at = cursor.at();
  for (uint32_t d = 0; d < rank && !cursor.failed(); ++d) {
    const auto size = cursor.Number<uint64_t>("a tensor's dimensions");
    int64_t product = 0;
    if (size > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) ||
        __builtin_mul_overflow(*elements, static_cast<int64_t>(size), &product)) {
      cursor.Fail(ErrorCode::kInvalid, dims_at, "the tensor's shape overflows 63 bits");
      break;
    }
    elements = product;
    tensor.shape.insert(tensor.shape.begin(), static_cast<int64_t>(size));
  }
  const uint64_t type_at = cursor.at();
  const auto type_id = cursor.Number<uint32_t>("a tensor's type");
  const uint64_t offset_at = cursor.at();
  offset = cursor.Number<uint64_t>("a tensor's offset");
  if (cursor.failed()) return tensor;
  const GgufType* type = FindType(type_id);
  if (type == nullptr) {
    cursor.Fail(ErrorCode::kUnsupported, type_at,
                "tensor type " + std::to_string(type_id) + " is not known");
    return tensor;
  }
  tensor.dtype = type->name;
  if (!tensor.shape.empty() && tensor.shape.back() % type->elements != 0) {
    cursor.Fail(ErrorCode::kInvalid, dims_at,
                std::string("rows of ") + type->name + " must be a multiple of " +
                    std::to_string(type->elements) + " long, not " +
                    std::to_string(tensor.shape.back()));
  }
  if (__builtin_mul_overflow(*elements / type->elements, type->bytes, &tensor.bytes)) {
    cursor.Fail(ErrorCode::kInvalid, dims_at, "the tensor's size overflows 63 bits");
  }
  if (offset % alignment != 0) {
    cursor.Fail(ErrorCode::kInvalid, offset_at,
                "the tensor's offset " + std::to_string(offset) +
                    " is no multiple of the alignment " + std::to_string(alignment));
  }
  return tensor;
}

}  // namespace

const GgufType* FindGgufType(std::string_view name) {
  for (const GgufType& type : kTensorTypes) {
    if (name == type.name) return &type;
  }
  return nullptr;
}

Result<GgufFile> GgufFile::OpenOne(const std::string& path) {
  Result<MappedFile> mapped = MappedFile::Open(path);
  if (!mapped.ok()) return mapped.error();
  Result<GgufFile> file = Parse({mapped->data(), mapped->size()}, path);
  if (file.ok()) file->files_.push_back(*std::move(mapped));
  return file;
}

Result<GgufFile> GgufFile::Open(const std::string& path) {
  Result<GgufFile> file = OpenOne(path);
  if (!file.ok()) return file.error();
  const uint64_t count = NumberAt(*file, kSplitCount).value_or(1);
  if (count <= 1) return file;
  const uint64_t number = NumberAt(*file, kSplitNumber).value_or(0);
  if (number != 0) {
    return Error{ErrorCode::kInvalid,
                 "is part " + std::to_string(number + 1) + " of " + std::to_string(count) +
                     "; the model is named by its first part",
                 path};
  }
  if (Status status = file->AddParts(count); !status.ok()) return status.error();
  return file;
}

// The tensors of the further parts, of `count` in all.
Status GgufFile::AddParts(uint64_t count) {
  const std::string end = PartName(0, count);
  if (!path_.ends_with(end)) {
    return Error{ErrorCode::kInvalid,
                 "is the first of " + std::to_string(count) +
                     " parts; the others are found where its name ends in " + end,
                 path_};
  }
  const std::string stem = path_.substr(0, path_.size() - end.size());
  for (uint64_t i = 1; i < count; ++i) {
    const std::string path = stem + PartName(i, count);
    Result<GgufFile> part = OpenOne(path);
    if (!part.ok()) {
      Error error = part.error();
      error.message =
          "part " + std::to_string(i + 1) + " of " + std::to_string(count) + ": " + error.message;
      return error;
    }
    if (NumberAt(*part, kSplitNumber) != i || NumberAt(*part, kSplitCount) != count) {
      return Error{ErrorCode::kInvalid,
                   "is not part " + std::to_string(i + 1) + " of " + std::to_string(count) +
                       " of a split model",
                   path + ": " + kSplitNumber};
    }
    for (auto& [name, tensor] : part->tensors_) {
      if (!tensors_.emplace(name, std::move(tensor)).second) {
        return Error{ErrorCode::kInvalid,
                     "the tensor " + ShownName(name) + " is in an earlier part too", path};
      }
      part_of_.emplace(name, parts_.size());
    }
    parts_.push_back(path);
    size_ += part->size_;
    files_.push_back(std::move(part->files_[0]));
  }
  const std::optional<uint64_t> stated = NumberAt(*this, kSplitTensors);
  if (stated && *stated != tensors_.size()) {
    return Error{ErrorCode::kInvalid,
                 "is " + std::to_string(*stated) + "; the parts have " +
                     std::to_string(tensors_.size()) + " tensors",
                 path_ + ": " + kSplitTensors};
  }
  return {};
}

const std::string& GgufFile::PathOf(std::string_view name) const {
  const auto found = part_of_.find(std::string(name));
  return found == part_of_.end() ? path_ : parts_[found->second];
}

void GgufFile::Release(const std::byte* data, int64_t bytes) const {
  if (!files_.empty()) DropPages(data, bytes);
  if (other_ == nullptr || data == reinterpret_cast<const std::byte*>(other_->numbers.data()))
    return;
  other_->source->Release(data, bytes);
}

Result<GgufFile> GgufFile::Of(std::string header, const std::string& path,
                              std::shared_ptr<const TensorSource> source,
                              std::vector<Tensor> tensors, std::vector<float> numbers) {
  Other other = {std::move(header), std::move(source), std::move(numbers), {}};
  for (const Tensor& tensor : tensors) {
    if (tensor.paired > 0) other.paired.emplace(tensor.name, tensor.paired);
  }
  const auto kept = std::make_shared<const Other>(std::move(other));
  Result<GgufFile> file = Parse(std::as_bytes(std::span(kept->header)), path);
  if (!file.ok()) return file;
  file->other_ = kept;
  file->size_ = static_cast<size_t>(kept->source->bytes());
  for (Tensor& tensor : tensors) {
    if (tensor.view.data == nullptr) {
      tensor.view.data = reinterpret_cast<const std::byte*>(kept->numbers.data());
    }
    auto part = std::find(file->parts_.begin(), file->parts_.end(), tensor.path);
    file->part_of_.emplace(tensor.name, static_cast<size_t>(part - file->parts_.begin()));
    if (part == file->parts_.end()) file->parts_.push_back(std::move(tensor.path));
    file->tensors_.emplace(std::move(tensor.name), std::move(tensor.view));
  }
  return file;
}

int GgufFile::PairedRows(const std::string& name) const {
  if (other_ == nullptr) return 0;
  const auto found = other_->paired.find(name);
  return found == other_->paired.end() ? 0 : found->second;
}

Result<GgufFile> GgufFile::Parse(std::span<const std::byte> bytes, const std::string& name) {
  Cursor cursor(bytes, name);
  GgufFile file;
  file.path_ = name;
  file.size_ = bytes.size();
  if (bytes.size() < 4 || std::memcmp(bytes.data(), kMagic.data(), 4) != 0) {
    return Error{ErrorCode::kInvalid, "not a GGUF file: the first bytes are not \"GGUF\"",
                 name + ": byte 0"};
  }
  cursor.Number<uint32_t>("the magic");
  const auto version = cursor.Number<uint32_t>("the version");
  // Version 3 is 2 with big-endian files, which have version 3 << 24.
  if (!cursor.failed() && version != 2 && version != 3) {
    cursor.Fail(ErrorCode::kUnsupported, 4,
                "GGUF version " + std::to_string(version) + "; expected 2 or 3, little-endian");
  }
  // The least: name length, rank, type, offset; key length, type, a byte.
  const uint64_t tensor_count = cursor.Count("the number of tensors", 24);
  const uint64_t value_count = cursor.Count("the number of metadata values", 13);
  for (uint64_t i = 0; i < value_count && !cursor.failed(); ++i) {
    const uint64_t at = cursor.at();
    const std::string_view key = cursor.String("a key's length", kMaxKey);
    GgufValue value = ReadValue(cursor);
    if (cursor.failed()) break;
    if (!file.values_.emplace(std::string(key), std::move(value)).second) {
      cursor.Fail(ErrorCode::kInvalid, at, "the key " + ShownName(key) + " is there twice");
    }
  }
  uint64_t alignment = 32;
  if (const GgufValue* value = file.FindValue("general.alignment")) {
    alignment = value->number;
    if (value->kind != GgufValue::Kind::kUnsigned || !std::has_single_bit(alignment) ||
        alignment < 8 || alignment > kMaxAlignment) {
      cursor.Fail(ErrorCode::kInvalid, value->offset,
                  "general.alignment must be a power of two from 8 to 1048576");
    }
  }
  struct Placed {
    TensorView* tensor;
    std::string_view name;
    uint64_t offset, at;
  };
  std::vector<Placed> placed;
  for (uint64_t i = 0; i < tensor_count && !cursor.failed(); ++i) {
    const uint64_t at = cursor.at();
    const std::string_view tensor_name = cursor.String("a tensor name's length", kMaxKey);
    if (cursor.failed()) break;
    uint64_t offset = 0;
    TensorView tensor = ReadTensor(cursor, alignment, offset);
    if (cursor.failed()) {
      Error error = cursor.error();
      error.message = "tensor " + ShownName(tensor_name) + ": " + error.message;
      return error;
    }
    const auto [found, added] = file.tensors_.emplace(std::string(tensor_name), std::move(tensor));
    if (!added) {
      cursor.Fail(ErrorCode::kInvalid, at,
                  "the tensor " + ShownName(tensor_name) + " is there twice");
    }
    placed.push_back({&found->second, tensor_name, offset, at});
  }
  if (cursor.failed()) return cursor.error();
  // A file without tensors may end right behind its header.
  const uint64_t begin =
      std::min<uint64_t>((cursor.at() + alignment - 1) / alignment * alignment, bytes.size());
  const uint64_t data_bytes = bytes.size() - begin;
  for (const Placed& p : placed) {
    const auto size = static_cast<uint64_t>(p.tensor->bytes);
    if (p.offset > data_bytes || size > data_bytes - p.offset) {
      cursor.Fail(ErrorCode::kInvalid, p.at,
                  "the tensor " + ShownName(p.name) + " ends " + std::to_string(p.offset) + " + " +
                      std::to_string(size) + " bytes into the data, of which the file has " +
                      std::to_string(data_bytes) + ": truncated file?");
      return cursor.error();
    }
    p.tensor->data = bytes.data() + begin + p.offset;
  }
  std::sort(placed.begin(), placed.end(), [](const Placed& a, const Placed& b) {
    return a.offset != b.offset ? a.offset < b.offset : a.tensor->bytes < b.tensor->bytes;
  });
  uint64_t expected = 0;
  for (const Placed& p : placed) {
    if (p.offset != expected) {
      cursor.Fail(ErrorCode::kInvalid, p.at,
                  "the tensor " + ShownName(p.name) + " begins " + std::to_string(p.offset) +
                      " bytes into the data where " + std::to_string(expected) +
                      " was expected: tensors overlap or leave a hole");
      return cursor.error();
    }
    const uint64_t end = p.offset + static_cast<uint64_t>(p.tensor->bytes);
    expected = (end + alignment - 1) / alignment * alignment;
  }
  return file;
}

const GgufValue* GgufFile::FindValue(std::string_view key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

const TensorView* GgufFile::Find(std::string_view name) const {
  const auto found = tensors_.find(std::string(name));
  return found == tensors_.end() ? nullptr : &found->second;
}

std::vector<std::string> GgufFile::Names() const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors_) names.push_back(name);
  return names;
}

bool LooksLikeGguf(const std::string& path) {
  // Opening a pipe would wait for its writer.
  const std::optional<os::FileInfo> info = os::InfoOf(path);
  if (!info || info->kind != os::FileKind::kRegular) return false;
  const int file = os::OpenFile(path, os::Access::kReadNoWait);
  if (file < 0) return false;
  char magic[4] = {};
  size_t size = 0;
  for (int64_t got = 1; got > 0 && size < sizeof magic; size += static_cast<size_t>(got)) {
    got = std::max<int64_t>(os::Read(file, magic + size, sizeof magic - size), 0);
  }
  os::CloseFile(file);
  return std::string_view(magic, size) == kMagic;
}

}  // namespace pawl
