// Sixteen-bit floats: to fp32 and back, rounded to the nearest, ties to even.
#pragma once

#include <cstdint>
#include <cstring>

template <class To, class From>
To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

struct BFloat16 {
  uint16_t bits;

  float widened() const { return bits_as<float>(static_cast<uint32_t>(bits) << 16); }

  static BFloat16 rounded(float value) {
    const auto wide = bits_as<uint32_t>(value);
    if (value != value) return {static_cast<uint16_t>((wide >> 16) | 0x40)};  // a NaN stays one
    return {static_cast<uint16_t>((wide + 0x7fff + ((wide >> 16) & 1)) >> 16)};
  }
};

struct Float16 {
  uint16_t bits;

  float widened() const {
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
    const uint32_t exponent = bits >> 10 & 0x1f, mantissa = bits & 0x3ff;
    if (exponent == 0x1f) return bits_as<float>(sign | 0x7f800000 | mantissa << 13);
    if (exponent) return bits_as<float>(sign | (exponent + 112) << 23 | mantissa << 13);
    const float small = static_cast<float>(mantissa) * 0x1p-24f;  // subnormal: exact in fp32
    return bits_as<float>(sign | bits_as<uint32_t>(small));
  }

  static Float16 rounded(float value) {
    const auto wide = bits_as<uint32_t>(value);
    const uint32_t sign = wide >> 16 & 0x8000, magnitude = wide & 0x7fffffff;
    uint32_t half;
    if (magnitude > 0x7f800000) {
      half = 0x7e00 | (magnitude >> 13 & 0x3ff);  // a NaN stays one
    } else if (magnitude >= 0x477ff000) {
      half = 0x7c00;  // 65520 and more round to infinity
    } else if (magnitude >= 0x38800000) {
      const uint32_t down = magnitude - (112u << 23);
      half = (down + 0xfff + (down >> 13 & 1)) >> 13;
    } else {
      // Subnormal: adding 1/2 leaves the rounded multiple of 2^-24 in the low bits.
      half = bits_as<uint32_t>(bits_as<float>(magnitude) + 0.5f) - bits_as<uint32_t>(0.5f);
    }
    return {static_cast<uint16_t>(sign | half)};
  }
};
