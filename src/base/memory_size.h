// HeapBytes: how much of the heap the containers of an object hold, by a walk over them.
//
//   size_t MemoryBytes() const { return HeapBytes(nodes_, index_, names_); }
//
// Counts what the standard library of GCC asks for, with 16 bytes for each piece that the allocator
// keeps for itself. Pointers that own something, and classes with a member function MemoryBytes(),
// are followed; shared ones too, so that what several objects share counts in each.
#ifndef PAWL_SRC_BASE_MEMORY_SIZE_H_
#define PAWL_SRC_BASE_MEMORY_SIZE_H_

#include <array>
#include <concepts>
#include <cstddef>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

namespace pawl {
namespace memory_size {

constexpr size_t kPiece = 16;

template <typename T>
concept Measured = requires(const T& value) {
  { value.MemoryBytes() } -> std::convertible_to<size_t>;
};

template <typename T>
size_t Of(const T& value);

// Of the elements of a range, which lie in its memory.
template <typename Range>
size_t OfEach(const Range& range) {
  using T = typename Range::value_type;
  if constexpr (std::is_trivially_destructible_v<T>) {
    return 0;
  } else {
    size_t sum = 0;
    for (const auto& element : range) sum += Of(element);
    return sum;
  }
}

template <typename T>
struct Bytes {
  static size_t In(const T& value) {
    static_assert(Measured<T> || std::is_trivially_destructible_v<T>,
                  "what owns memory has to say how much");
    if constexpr (Measured<T>) {
      return value.MemoryBytes();
    } else {
      return 0;
    }
  }
};
template <typename T>
struct Bytes<std::vector<T>> {
  static size_t In(const std::vector<T>& v) {
    return v.capacity() == 0 ? 0 : v.capacity() * sizeof(T) + kPiece + OfEach(v);
  }
};
template <>
struct Bytes<std::vector<bool>> {
  static size_t In(const std::vector<bool>& v) {
    return v.capacity() == 0 ? 0 : v.capacity() / 8 + kPiece;
  }
};
template <typename C>
struct Bytes<std::basic_string<C>> {
  static size_t In(const std::basic_string<C>& s) {
    return s.capacity() < 16 / sizeof(C) ? 0 : (s.capacity() + 1) * sizeof(C) + kPiece;
  }
};
template <typename T>
struct Bytes<std::deque<T>> {
  static size_t In(const std::deque<T>& d) {
    return 576 + kPiece + d.size() * (sizeof(T) + sizeof(T) * 8 / 512) + OfEach(d);
  }
};
template <typename T>
struct Bytes<std::list<T>> {
  static size_t In(const std::list<T>& l) {
    return l.size() * (sizeof(T) + 16 + kPiece) + OfEach(l);
  }
};
template <typename T, size_t kSize>
struct Bytes<std::array<T, kSize>> {
  static size_t In(const std::array<T, kSize>& a) { return OfEach(a); }
};
template <typename A, typename B>
struct Bytes<std::pair<A, B>> {
  static size_t In(const std::pair<A, B>& p) { return Of(p.first) + Of(p.second); }
};
template <typename... Ts>
struct Bytes<std::tuple<Ts...>> {
  static size_t In(const std::tuple<Ts...>& t) {
    return std::apply([](const Ts&... parts) { return (size_t{0} + ... + Of(parts)); }, t);
  }
};
template <typename T>
struct Bytes<std::optional<T>> {
  static size_t In(const std::optional<T>& o) { return o ? Of(*o) : 0; }
};
template <typename... Ts>
struct Bytes<std::variant<Ts...>> {
  static size_t In(const std::variant<Ts...>& v) {
    return std::visit([](const auto& held) { return Of(held); }, v);
  }
};
template <typename T>
struct Bytes<std::unique_ptr<T>> {
  static size_t In(const std::unique_ptr<T>& p) {
    return p == nullptr ? 0 : sizeof(T) + kPiece + Of(*p);
  }
};
template <typename T>
struct Bytes<std::shared_ptr<T>> {
  static size_t In(const std::shared_ptr<T>& p) {
    return p == nullptr ? 0 : sizeof(T) + 16 + kPiece + Of(*p);
  }
};
template <typename Tree>
size_t OfTree(const Tree& tree) {
  return tree.size() * (sizeof(typename Tree::value_type) + 32 + kPiece / 2) + OfEach(tree);
}
template <typename K, typename V, typename C>
struct Bytes<std::map<K, V, C>> {
  static size_t In(const std::map<K, V, C>& m) { return OfTree(m); }
};
template <typename K, typename C>
struct Bytes<std::set<K, C>> {
  static size_t In(const std::set<K, C>& s) { return OfTree(s); }
};
template <typename Table>
size_t OfTable(const Table& table) {
  return table.bucket_count() * 8 +
         table.size() * (sizeof(typename Table::value_type) + 8 + kPiece / 2) + OfEach(table);
}
template <typename K, typename V, typename H>
struct Bytes<std::unordered_map<K, V, H>> {
  static size_t In(const std::unordered_map<K, V, H>& m) { return OfTable(m); }
};
template <typename K, typename V, typename H>
struct Bytes<std::unordered_multimap<K, V, H>> {
  static size_t In(const std::unordered_multimap<K, V, H>& m) { return OfTable(m); }
};
template <typename K, typename H>
struct Bytes<std::unordered_set<K, H>> {
  static size_t In(const std::unordered_set<K, H>& s) { return OfTable(s); }
};

template <typename T>
size_t Of(const T& value) {
  return Bytes<std::remove_cv_t<T>>::In(value);
}

}  // namespace memory_size

template <typename... Ts>
size_t HeapBytes(const Ts&... values) {
  return (size_t{0} + ... + memory_size::Of(values));
}

}  // namespace pawl

#endif  // PAWL_SRC_BASE_MEMORY_SIZE_H_
