// Pieces are found by bisection. A span of the text is in the file from the place of its first byte
// to that behind its last one.
#include "src/input/input_text.h"

#include <algorithm>
#include <cstdio>

#include "src/base/json.h"

namespace pawl {

void InputText::Append(std::string_view part, size_t file_begin) {
  if (part.empty()) return;
  const bool goes_on =
      !pieces.empty() && pieces.back().linear && pieces.back().file_end == file_begin;
  if (goes_on) {
    pieces.back().file_end += part.size();
  } else {
    pieces.push_back({text.size(), file_begin, file_begin + part.size(), true});
  }
  text += part;
}

void InputText::AppendAs(std::string_view part, size_t file_begin, size_t file_end) {
  if (part.empty()) return;
  pieces.push_back({text.size(), file_begin, file_end, false});
  text += part;
}

std::pair<size_t, size_t> InputText::InFile(size_t begin, size_t end) const {
  if (pieces.empty()) return {begin, end};
  const auto at = [&](size_t byte) {
    return std::ranges::upper_bound(pieces, byte, {}, &Piece::begin) - pieces.begin() - 1;
  };
  const Piece& first = pieces[static_cast<size_t>(at(begin))];
  const Piece& last = pieces[static_cast<size_t>(at(end - 1))];
  return {first.linear ? first.file_begin + (begin - first.begin) : first.file_begin,
          last.linear ? last.file_begin + (end - last.begin) : last.file_end};
}

std::vector<std::string> InputText::PlacesJson(std::span<const ValueDetails> details) const {
  std::string spans, places;
  for (const ValueDetails& value : details) {
    if (!value.span) continue;
    const auto begin = static_cast<size_t>(value.span->begin_byte);
    const auto end = static_cast<size_t>(value.span->end_byte);
    const std::string key = json::Quote(value.pointer) + ":";
    if (!pieces.empty() && boxes.empty()) {
      const auto [from, to] = InFile(begin, end);
      spans += (spans.empty() ? "" : ",") + key + "[" + std::to_string(from) + "," +
               std::to_string(to) + "]";
    }
    std::string list;
    auto box = std::ranges::upper_bound(boxes, begin, {}, &Box::end);
    while (box != boxes.end() && box->begin < end) {
      Box all = *box;  // of the words of a line
      for (++box; box != boxes.end() && box->begin < end && box->line == all.line; ++box) {
        all.x0 = std::min(all.x0, box->x0);
        all.y0 = std::min(all.y0, box->y0);
        all.x1 = std::max(all.x1, box->x1);
        all.y1 = std::max(all.y1, box->y1);
      }
      char one[160];
      std::snprintf(one, sizeof one, "%s{\"page\":%d,\"box\":[%.2f,%.2f,%.2f,%.2f]}",
                    list.empty() ? "" : ",", all.page, all.x0, all.y0, all.x1, all.y1);
      list += one;
    }
    if (!list.empty()) places += (places.empty() ? "" : ",") + key + "[" + list + "]";
  }
  std::vector<std::string> out;
  if (!pieces.empty() && boxes.empty()) out.push_back("\"file_spans\":{" + spans + "}");
  if (!boxes.empty()) out.push_back("\"boxes\":{" + places + "}");
  return out;
}

}  // namespace pawl
