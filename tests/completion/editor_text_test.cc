// Positions of editors against a slow reading of the protocol: the text as code points, the lines
// told one by one.
#include "src/completion/editor_text.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

namespace pawl::completion {
namespace {

// Every place between two characters, with the byte and the position that it has. Between "\r" and
// "\n" there is none.
struct Spot {
  size_t byte;
  EditorPosition position;
};

std::vector<Spot> SpotsOf(const std::vector<std::string>& characters, ColumnUnit unit) {
  std::vector<Spot> spots = {{0, {}}};
  EditorPosition at;
  size_t byte = 0;
  for (size_t i = 0; i < characters.size(); ++i) {
    const std::string& c = characters[i];
    byte += c.size();
    if (c == "\n" || (c == "\r" && (i + 1 == characters.size() || characters[i + 1] != "\n"))) {
      ++at.line;
      at.character = 0;
    } else if (c == "\r") {
      continue;
    } else if (unit == ColumnUnit::kUtf8) {
      at.character += static_cast<int64_t>(c.size());
    } else {
      at.character += unit == ColumnUnit::kUtf16 && c.size() == 4 ? 2 : 1;
    }
    spots.push_back({byte, at});
  }
  return spots;
}

std::vector<std::string> Characters(std::mt19937& random, size_t most) {
  static const std::vector<std::string> kinds = {
      "a", "b", " ", "\n", "\r\n", "\r", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "\t"};
  std::vector<std::string> out;
  for (size_t n = random() % (most + 1); n > 0; --n) {
    const std::string& kind = kinds[random() % kinds.size()];
    if (kind == "\r\n") {
      out.insert(out.end(), {"\r", "\n"});
    } else {
      out.push_back(kind);
    }
  }
  return out;
}

std::string Joined(const std::vector<std::string>& characters) {
  std::string out;
  for (const std::string& c : characters) out += c;
  return out;
}

TEST(EditorTextTest, PositionsAreThoseOfASlowReading) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    const std::vector<std::string> characters = Characters(random, 60);
    const std::string text = Joined(characters);
    for (const ColumnUnit unit : {ColumnUnit::kUtf8, ColumnUnit::kUtf16, ColumnUnit::kUtf32}) {
      for (const Spot& spot : SpotsOf(characters, unit)) {
        EXPECT_EQ(ByteAt(text, spot.position, unit), spot.byte);
        EXPECT_EQ(PositionAt(text, spot.byte, unit), spot.position);
      }
    }
  }
}

// A random sequence of edits, each a replaced range, gives the text that the list of characters
// gives; the next edit counts on it.
TEST(EditorTextTest, EditsInARowEqualTheWholeText) {
  for (const ColumnUnit unit : {ColumnUnit::kUtf8, ColumnUnit::kUtf16, ColumnUnit::kUtf32}) {
    std::mt19937 random(static_cast<unsigned>(unit) + 7);
    std::vector<std::string> characters = Characters(random, 80);
    std::string text = Joined(characters);
    for (int edit = 0; edit < 400; ++edit) {
      const std::vector<Spot> spots = SpotsOf(characters, unit);
      size_t from = random() % spots.size();
      size_t to = std::min(spots.size() - 1, from + random() % 12);
      const std::vector<std::string> with = Characters(random, characters.size() > 200 ? 2 : 10);
      const size_t first = ByteAt(text, spots[from].position, unit);
      const size_t last = ByteAt(text, spots[to].position, unit);
      text.replace(first, last - first, Joined(with));
      std::vector<std::string> next;
      size_t byte = 0;
      for (const std::string& c : characters) {
        if (byte == spots[from].byte) next.insert(next.end(), with.begin(), with.end());
        if (byte < spots[from].byte || byte >= spots[to].byte) next.push_back(c);
        byte += c.size();
      }
      if (byte == spots[from].byte) next.insert(next.end(), with.begin(), with.end());
      characters = std::move(next);
      ASSERT_EQ(text, Joined(characters));
    }
  }
}

TEST(EditorTextTest, WhatIsNoPlaceIsTheNearestOneBefore) {
  const std::string text = "a\xF0\x9F\x98\x80z\r\nb";
  EXPECT_EQ(ByteAt(text, {0, 2}, ColumnUnit::kUtf16), 1U);  // in the middle of the pair
  EXPECT_EQ(ByteAt(text, {0, 3}, ColumnUnit::kUtf16), 5U);
  EXPECT_EQ(ByteAt(text, {0, 99}, ColumnUnit::kUtf16), 6U);  // before the "\r"
  EXPECT_EQ(ByteAt(text, {1, 99}, ColumnUnit::kUtf32), text.size());
  EXPECT_EQ(ByteAt(text, {99, 0}, ColumnUnit::kUtf8), text.size());
  EXPECT_EQ(ByteAt("\x80\xFF", {0, 1}, ColumnUnit::kUtf16), 1U);  // no UTF-8: byte by byte
}

}  // namespace
}  // namespace pawl::completion
