// The list is looked for from the beginning of the body on, up to its first byte and no further:
// what comes before it is read byte by byte, the list itself is compared as a whole. Whether the
// body is JSON is not judged here. Where it is not, neither is the rest without the list.
#include "src/server/known_tools.h"

#include <iterator>
#include <utility>

namespace pawl::server {
namespace {

constexpr size_t kLeastBytes = 4 << 10;  // shorter ones are read about as fast
constexpr size_t kMostLists = 64;        // each is compared with the body

// The place of the quote that ends the string that begins at `at`.
size_t EndOfString(std::string_view text, size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at) {
    if (text[at] == '\\') ++at;
  }
  return at;
}

// Where the value of the object's member "tools" begins; 0: nowhere.
size_t FindList(std::string_view text) {
  int depth = 0;
  std::string_view last;  // string of the object itself
  for (size_t i = 0; i < text.size(); ++i) {
    switch (text[i]) {
      case '"': {
        const size_t end = EndOfString(text, i);
        if (end >= text.size()) return 0;
        last = depth == 1 ? text.substr(i + 1, end - i - 1) : std::string_view();
        i = end;
        break;
      }
      case '{':
      case '[':
        ++depth;
        break;
      case '}':
      case ']':
        --depth;
        last = {};
        break;
      case ':':
        if (depth != 1 || last != "tools") break;
        i = text.find_first_not_of(" \t\r\n", i + 1);
        return i != std::string_view::npos && text[i] == '[' ? i : 0;
      default:
        break;
    }
  }
  return 0;
}

// How long the list is that begins at the beginning of the text; 0: it does not end.
size_t SizeOfList(std::string_view text) {
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') {
      i = EndOfString(text, i);
    } else if (text[i] == '[' || text[i] == '{') {
      ++depth;
    } else if (text[i] == ']' || text[i] == '}') {
      if (--depth == 0) return i + 1;
    }
  }
  return 0;
}

size_t BytesOf(const ConstraintSpec& spec) {
  return spec.text.capacity() + spec.pointer.capacity() + spec.name.capacity();
}

}  // namespace

std::string KnownTools::Match::Rest(std::string_view body) const {
  std::string rest;
  rest.reserve(body.size() - size + 4);
  rest += body.substr(0, begin);
  rest += "null";
  return rest += body.substr(begin + size);
}

KnownTools::Match KnownTools::Find(std::string_view body) {
  Match match;
  if (body.size() < kLeastBytes) return match;
  match.begin = FindList(body);
  if (match.begin == 0) return match;
  const std::string_view list = body.substr(match.begin);
  const std::lock_guard lock(mutex_);
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (!list.starts_with(entry->text)) continue;
    match.size = entry->text.size();
    match.tools = entry->tools;
    entries_.splice(entries_.begin(), entries_, entry);
    break;
  }
  return match;
}

void KnownTools::Keep(std::string_view body, const Match& match,
                      const std::vector<ToolSpec>& tools) {
  if (match.begin == 0 || match.tools != nullptr) return;
  const size_t size = SizeOfList(body.substr(match.begin));
  if (size < kLeastBytes) return;
  Entry entry{.text = std::string(body.substr(match.begin, size)), .tools = nullptr};
  entry.bytes = sizeof(Entry) + entry.text.capacity();
  for (const ToolSpec& tool : tools) {
    entry.bytes += sizeof tool + tool.name.capacity() + tool.description.capacity() +
                   tool.pointer.capacity() + BytesOf(tool.input);
  }
  if (entry.bytes > max_bytes_) return;
  entry.tools = std::make_shared<const std::vector<ToolSpec>>(tools);
  std::list<Entry> gone;  // after the lock
  const std::lock_guard lock(mutex_);
  for (const Entry& known : entries_) {
    if (known.text == entry.text) return;  // two requests at a time
  }
  bytes_ += entry.bytes;
  entries_.push_front(std::move(entry));
  while (bytes_ > max_bytes_ || entries_.size() > kMostLists) {
    bytes_ -= entries_.back().bytes;
    gone.splice(gone.begin(), entries_, std::prev(entries_.end()));
  }
}

size_t KnownTools::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace pawl::server
