// SHA-256 and SHA-1 (FIPS 180-4), for the checksums by which hubs name their files. SHA-1 is what
// git names blobs by; it is no protection against an enemy.
//
//   Digest digest(DigestKind::kSha256);
//   digest.Add("abc");
//   digest.Hex();                      // "ba7816bf..."
#ifndef PAWL_SRC_BASE_DIGEST_H_
#define PAWL_SRC_BASE_DIGEST_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace pawl {

enum class DigestKind { kSha1, kSha256 };

class Digest {
 public:
  explicit Digest(DigestKind kind);
  void Add(std::string_view bytes);
  // Of all bytes so far, in lower case. More bytes may follow.
  std::string Hex() const;

 private:
  void AddBlock(const unsigned char* block);

  DigestKind kind_;
  std::array<uint32_t, 8> state_;
  std::array<unsigned char, 64> block_{};
  size_t filled_ = 0;  // bytes of block_
  uint64_t bytes_ = 0;
};

}  // namespace pawl

#endif  // PAWL_SRC_BASE_DIGEST_H_
