// The examples of FIPS 180-4, and every length around the blocks cut in every place.
#include "src/base/digest.h"

#include <gtest/gtest.h>

namespace pawl {
namespace {

std::string Of(DigestKind kind, std::string_view text) {
  Digest digest(kind);
  digest.Add(text);
  return digest.Hex();
}

TEST(DigestTest, ExamplesOfTheStandard) {
  const std::string two = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
  const std::string million(1'000'000, 'a');
  EXPECT_EQ(Of(DigestKind::kSha1, ""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
  EXPECT_EQ(Of(DigestKind::kSha1, "abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
  EXPECT_EQ(Of(DigestKind::kSha1, two), "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
  EXPECT_EQ(Of(DigestKind::kSha1, million), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
  EXPECT_EQ(Of(DigestKind::kSha256, ""),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Of(DigestKind::kSha256, "abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Of(DigestKind::kSha256, two),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(Of(DigestKind::kSha256, million),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(DigestTest, CutsChangeNothing) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += static_cast<char>(i * 7);
  for (const DigestKind kind : {DigestKind::kSha1, DigestKind::kSha256}) {
    for (size_t length = 0; length <= text.size(); ++length) {
      const std::string_view part = std::string_view(text).substr(0, length);
      const std::string whole = Of(kind, part);
      for (size_t cut = 0; cut <= length; cut += 13) {
        Digest digest(kind);
        digest.Add(part.substr(0, cut));
        EXPECT_EQ(digest.Hex(), Of(kind, part.substr(0, cut)));
        digest.Add(part.substr(cut));
        ASSERT_EQ(digest.Hex(), whole) << length << " cut at " << cut;
      }
    }
  }
}

}  // namespace
}  // namespace pawl
