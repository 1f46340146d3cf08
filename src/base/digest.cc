// Both digests cut the text into blocks of 64 bytes, end it with a one, zeros and its length in
// bits, and mix each block into a few words. The standard has the constants: the first bits of the
// square and cube roots of primes.
#include "src/base/digest.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace pawl {
namespace {

constexpr std::array<uint32_t, 8> kStart1 = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476,
                                             0xc3d2e1f0, 0,          0,          0};
constexpr std::array<uint32_t, 8> kStart256 = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                               0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
constexpr std::array<uint32_t, 64> kRound256 = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t BigEndian(const unsigned char* bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | bytes[3];
}

void Mix1(std::array<uint32_t, 8>& state, const unsigned char* block) {
  std::array<uint32_t, 80> w;
  for (size_t i = 0; i < 16; ++i) w[i] = BigEndian(block + 4 * i);
  for (size_t i = 16; i < 80; ++i) {
    w[i] = std::rotl(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
  }
  auto [a, b, c, d, e, unused1, unused2, unused3] = state;
  for (size_t i = 0; i < 80; ++i) {
    uint32_t f = b ^ c ^ d, k = 0x6ed9eba1;
    if (i < 20) {
      f = (b & c) | (~b & d);
      k = 0x5a827999;
    } else if (i >= 60) {
      k = 0xca62c1d6;
    } else if (i >= 40) {
      f = (b & c) | (b & d) | (c & d);
      k = 0x8f1bbcdc;
    }
    const uint32_t next = std::rotl(a, 5) + f + e + k + w[i];
    e = d;
    d = c;
    c = std::rotl(b, 30);
    b = a;
    a = next;
  }
  state[0] += a;
  state[1] += b;
  state[2] += c;
  state[3] += d;
  state[4] += e;
}

void Mix256(std::array<uint32_t, 8>& state, const unsigned char* block) {
  std::array<uint32_t, 64> w;
  for (size_t i = 0; i < 16; ++i) w[i] = BigEndian(block + 4 * i);
  for (size_t i = 16; i < 64; ++i) {
    const uint32_t low = w[i - 15], high = w[i - 2];
    const uint32_t s0 = std::rotr(low, 7) ^ std::rotr(low, 18) ^ (low >> 3);
    const uint32_t s1 = std::rotr(high, 17) ^ std::rotr(high, 19) ^ (high >> 10);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (size_t i = 0; i < 64; ++i) {
    const uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const uint32_t first = h + s1 + ((e & f) ^ (~e & g)) + kRound256[i] + w[i];
    const uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const uint32_t second = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + first;
    d = c;
    c = b;
    b = a;
    a = first + second;
  }
  const std::array<uint32_t, 8> mixed = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < 8; ++i) state[i] += mixed[i];
}

}  // namespace

Digest::Digest(DigestKind kind)
    : kind_(kind), state_(kind == DigestKind::kSha1 ? kStart1 : kStart256) {}

void Digest::AddBlock(const unsigned char* block) {
  if (kind_ == DigestKind::kSha1) {
    Mix1(state_, block);
  } else {
    Mix256(state_, block);
  }
}

void Digest::Add(std::string_view bytes) {
  bytes_ += bytes.size();
  const auto* at = reinterpret_cast<const unsigned char*>(bytes.data());
  size_t left = bytes.size();
  if (filled_ > 0) {
    const size_t taken = std::min(left, block_.size() - filled_);
    std::memcpy(block_.data() + filled_, at, taken);
    filled_ += taken;
    at += taken;
    left -= taken;
    if (filled_ < block_.size()) return;
    AddBlock(block_.data());
    filled_ = 0;
  }
  for (; left >= block_.size(); at += block_.size(), left -= block_.size()) AddBlock(at);
  if (left > 0) std::memcpy(block_.data(), at, left);
  filled_ = left;
}

std::string Digest::Hex() const {
  Digest end = *this;
  const uint64_t bits = bytes_ * 8;
  std::string tail(1, '\x80');
  while ((bytes_ + tail.size()) % 64 != 56) tail += '\0';
  for (int shift = 56; shift >= 0; shift -= 8) tail += static_cast<char>(bits >> shift);
  end.Add(tail);
  std::string hex;
  const size_t words = kind_ == DigestKind::kSha1 ? 5 : 8;
  for (size_t i = 0; i < words; ++i) {
    for (int shift = 28; shift >= 0; shift -= 4) {
      hex += "0123456789abcdef"[(end.state_[i] >> shift) & 15];
    }
  }
  return hex;
}

}  // namespace pawl
