// Stop strings in outputs that grow: at random cuts, against a twin that reads byte by byte.
#include "src/decode/stop_strings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace pawl {
namespace {

std::string RandomText(std::mt19937& random, size_t least, size_t most) {
  std::string text(least + random() % (most - least + 1), 'a');
  for (char& c : text) c = static_cast<char>('a' + random() % 2);
  return text;
}

// The text before the stop string that ends first, the longest of those that end there.
std::string Twin(const std::vector<std::string>& stops, const std::string& text) {
  for (size_t end = 1; end <= text.size(); ++end) {
    size_t cut = std::string::npos;
    for (const std::string& stop : stops) {
      if (text.substr(0, end).ends_with(stop)) cut = std::min(cut, end - stop.size());
    }
    if (cut != std::string::npos) return text.substr(0, cut);
  }
  return text;
}

TEST(StopStringsTest, AnOutputDoesNotDependOnTheCuts) {
  std::mt19937 random(5);
  int stopped = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::string> stops(random() % 4);
    for (std::string& stop : stops) stop = RandomText(random, 1, 6);
    const std::string text = RandomText(random, 0, 24);
    const std::string expected = Twin(stops, text);
    const bool include = random() % 2 == 1;
    StopStrings found(stops, include);
    std::string output, shown;
    for (size_t at = 0; at < text.size();) {
      const size_t size = std::min<size_t>(random() % 5, text.size() - at);
      output += text.substr(at, size);
      const bool goes_on = found.Feed(std::string_view(text).substr(at, size));
      at += size;
      ASSERT_LE(shown.size(), found.safe()) << "bytes were shown that a stop string takes back";
      ASSERT_LE(found.safe(), found.size());
      ASSERT_LE(found.size(), output.size());
      shown = output.substr(0, found.safe());
      ASSERT_TRUE(goes_on || !found.found().empty());
      if (goes_on) {
        ASSERT_TRUE(found.found().empty());
        ASSERT_EQ(found.size(), output.size());
        ASSERT_TRUE(expected.starts_with(shown));
        continue;
      }
      output.resize(found.size());
      if (include) {
        ASSERT_TRUE(output.ends_with(found.found()));
        output.resize(output.size() - found.found().size());
      }
      ++stopped;
      break;
    }
    ASSERT_EQ(output, expected) << text;
  }
  EXPECT_GT(stopped, 5000);
}

// What is held back is no more than what may begin a stop string.
TEST(StopStringsTest, AllThatIsSafeIsShown) {
  const std::vector<std::string> stops = {"END", "\n\n"};
  const auto safe = [&](const char* text) {
    StopStrings found(stops);
    EXPECT_TRUE(found.Feed(text));
    return found.safe();
  };
  EXPECT_EQ(safe("some EN"), 5u);
  EXPECT_EQ(safe("some ENd"), 8u);
  EXPECT_EQ(safe("some\n"), 4u);
  StopStrings none;
  EXPECT_TRUE(none.Feed("some"));
  EXPECT_EQ(none.safe(), 4u);
  StopStrings found(stops);
  EXPECT_FALSE(found.Feed("a\n\nEND"));
  EXPECT_EQ(found.found(), "\n\n");
  EXPECT_EQ(found.size(), 1u);
}

}  // namespace
}  // namespace pawl
