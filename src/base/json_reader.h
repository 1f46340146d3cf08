// JsonReader: a value of a JSON document with its place, and typed reads of what it holds.
//
//   JsonReader in(body);
//   int n = 1;
//   in["n"].Read(n, 1, 64);                                  // absent: n stays 1
//   const std::string& type = in["tool"]["type"].String();   // absent: an error
//   if (!in.ok()) return in.error();   // "#/n: must be a whole number from 1 to 64, not 65"
//
// The readers of a document share its first error. Readers made after an error are absent, so one
// mistake has one message and loops over items end. A null counts as absent.
#ifndef PAWL_SRC_BASE_JSON_READER_H_
#define PAWL_SRC_BASE_JSON_READER_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <vector>

#include "pawl/result.h"
#include "src/base/json.h"

namespace pawl {

namespace json {

// The number as a whole one; nullopt where it is none (1.5, 1e30) or no number. 2.0 is 2.
std::optional<int64_t> WholeOf(const Value& value);
// The number as a finite double; nullopt where it is none.
std::optional<double> NumberOf(const Value& value);
// The value as JSON, cut where it is too long for a message.
std::string Shown(const Value& value);

}  // namespace json

class JsonReader {
 public:
  class Items;

  // `value` must outlive its readers. `place`: "#", or "FILE#"; JSON Pointers are appended to it.
  explicit JsonReader(const json::Value& value, std::string place = "#")
      : value_(&value), place_(std::move(place)), shared_(std::make_shared<Shared>()) {}

  // Of the whole document.
  bool ok() const { return !shared_->error.has_value(); }
  const Error& error() const { return *shared_->error; }
  Status status() const { return ok() ? Status() : Status(error()); }

  // At this value. The first error of the document is kept.
  void Fail(std::string message, ErrorCode code = ErrorCode::kInvalid) const {
    Fail(Error{code, std::move(message), place_});
  }
  void Fail(Error error) const {
    if (ok()) shared_->error = std::move(error);
  }
  void Unsupported(std::string message) const { Fail(std::move(message), ErrorCode::kUnsupported); }

  // nullptr where the value is absent.
  const json::Value* value() const { return value_; }
  const std::string& place() const { return place_; }
  // Neither absent nor null.
  bool present() const { return value_ != nullptr && value_->type != json::Type::kNull; }
  bool Is(json::Type type) const { return value_ != nullptr && value_->type == type; }
  bool IsString() const { return Is(json::Type::kString); }
  bool IsObject() const { return Is(json::Type::kObject); }
  bool IsArray() const { return Is(json::Type::kArray); }
  // Number of items or members; 0 for other values.
  size_t size() const { return value_ == nullptr ? 0 : value_->size(); }

  // A member, which counts as read; absent where this is no object. O(members).
  JsonReader operator[](std::string_view name) const;
  JsonReader Item(size_t i) const;
  // for (const JsonReader item : list.items()): none where this is no array.
  Items items() const;

  // This value, or an absent one and an error where it is of another type. The optional ones allow
  // that it is absent.
  JsonReader Object() const { return Expect(json::Type::kObject, "an object", true); }
  JsonReader Array() const { return Expect(json::Type::kArray, "an array", true); }
  JsonReader OptionalObject() const { return Expect(json::Type::kObject, "an object", false); }
  JsonReader OptionalArray() const { return Expect(json::Type::kArray, "an array", false); }

  // An error where the value is absent or wrong; what is returned then is empty, false, or a number
  // within the bounds. With `otherwise` that is what an absent one reads as.
  const std::string& String() const;
  std::string String(std::string_view otherwise) const {
    return present() ? String() : std::string(otherwise);
  }
  bool Bool() const;
  bool Bool(bool otherwise) const { return present() ? Bool() : otherwise; }
  int64_t Whole(int64_t low = std::numeric_limits<int64_t>::min(),
                int64_t high = std::numeric_limits<int64_t>::max()) const;
  int64_t Whole(int64_t low, int64_t high, int64_t otherwise) const {
    return present() ? Whole(low, high) : otherwise;
  }
  // Finite.
  double Number(double low = std::numeric_limits<double>::lowest(),
                double high = std::numeric_limits<double>::max()) const;
  double Positive() const;
  double Positive(double otherwise) const { return present() ? Positive() : otherwise; }

  // Puts the value into `out`. false, with `out` as it was, where it is absent or wrong. `bounds`:
  // of numbers, as above.
  template <typename T, typename... Bounds>
  bool Read(T& out, Bounds... bounds) const {
    if (!present()) return false;
    T read = T();
    if constexpr (std::is_same_v<T, std::string>) {
      read = String();
    } else if constexpr (std::is_same_v<T, bool>) {
      read = Bool();
    } else if constexpr (std::is_integral_v<T>) {
      static_assert(sizeof...(bounds) == 2 || std::is_same_v<T, int64_t>);
      read = static_cast<T>(Whole(bounds...));
    } else {
      read = static_cast<T>(Number(bounds...));
    }
    if (ok()) out = std::move(read);
    return ok();
  }
  // The same of a string, or a list of at most `most`.
  bool ReadStrings(std::vector<std::string>& out, size_t most) const;

  // An error unless this is an object whose members are all among `names`.
  void OnlyMembers(std::span<const std::string_view> names) const;
  void OnlyMembers(std::initializer_list<std::string_view> names) const {
    OnlyMembers(std::span(names.begin(), names.size()));
  }
  // The members that are not null and that nothing has read; the first `most` of them, none after
  // an error. REQUIRES: this value is in no array; what is read of items is not kept.
  std::vector<const json::Member*> Unread(size_t most = std::numeric_limits<size_t>::max()) const;
  // These count as read.
  void Ignore(std::initializer_list<std::string_view> names) const {
    for (const std::string_view name : names) (void)(*this)[name];
  }

 private:
  struct Shared {
    std::optional<Error> error;
    std::unordered_set<const json::Value*> read;
  };

  // A part of `whole`.
  JsonReader(const JsonReader& whole, const json::Value* value, std::string place)
      : value_(value),
        place_(std::move(place)),
        in_array_(whole.in_array_),
        shared_(whole.shared_) {}
  JsonReader Expect(json::Type type, const char* wanted, bool required) const;
  // "must be `wanted`", with what it is. `number`: a number is shown, not only called one.
  void Wrong(const std::string& wanted, bool number = false) const;

  const json::Value* value_;
  std::string place_;
  bool in_array_ = false;
  std::shared_ptr<Shared> shared_;
};

// The items of an array, up to the first error.
class JsonReader::Items {
 public:
  explicit Items(JsonReader list) : list_(std::move(list)) {}
  struct Iterator {
    const JsonReader& list;
    size_t i;
    JsonReader operator*() const { return list.Item(i); }
    void operator++() { ++i; }
    bool operator!=(const Iterator& end) const { return i < end.i && list.ok(); }
  };
  Iterator begin() const { return {list_, 0}; }
  Iterator end() const { return {list_, list_.IsArray() ? list_.size() : 0}; }

 private:
  const JsonReader list_;
};

inline JsonReader::Items JsonReader::items() const { return Items(*this); }

}  // namespace pawl

#endif  // PAWL_SRC_BASE_JSON_READER_H_
