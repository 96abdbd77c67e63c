// Words and characters of UTF-8 text, split exactly where Python's str.split() splits.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace rangevote {

// Length in bytes of the white-space character at p, or 0. Python's set: the ASCII ones, U+001C to
// U+001F, U+0085, U+00A0, U+1680, U+2000 to U+200A, U+2028, U+2029, U+202F, U+205F, U+3000.
inline int space_at(const unsigned char *p, const unsigned char *end) {
    const unsigned char c = *p;
    if (c == ' ') return 1;
    if (c < 0x80) return ((c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F)) ? 1 : 0;
    if (c == 0xC2) return (end - p >= 2 && (p[1] == 0x85 || p[1] == 0xA0)) ? 2 : 0;
    if (c < 0xE1 || c > 0xE3 || end - p < 3) return 0;
    if (c == 0xE1) return (p[1] == 0x9A && p[2] == 0x80) ? 3 : 0;
    if (c == 0xE3) return (p[1] == 0x80 && p[2] == 0x80) ? 3 : 0;
    if (p[1] == 0x80)
        return (p[2] <= 0x8A || p[2] == 0xA8 || p[2] == 0xA9 || p[2] == 0xAF) ? 3 : 0;
    return (p[1] == 0x81 && p[2] == 0x9F) ? 3 : 0;
}

// The first byte from p that is not 0x21..0x7F, the range that is never white space; eight at a time.
inline const unsigned char *skip_plain(const unsigned char *p, const unsigned char *end) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    constexpr std::uint64_t EACH = 0x0101010101010101ull;
    while (end - p >= 8) {
        std::uint64_t x;
        std::memcpy(&x, p, 8);
        // high bit of each byte below 0x21 (exact up to the first such byte) or above 0x7F
        const std::uint64_t special = ((x - 0x21 * EACH) | x) & 0x80 * EACH;
        if (special) return p + (__builtin_ctzll(special) >> 3);
        p += 8;
    }
#endif
    while (p < end && static_cast<unsigned>(*p) - 0x21u < 0x5Fu) ++p;
    return p;
}

// Calls f(word) for every word of the text.
template <class F> void each_word(std::string_view text, F &&f) {
    auto p = reinterpret_cast<const unsigned char *>(text.data());
    const auto end = p + text.size();
    for (;;) {
        while (p < end)
            if (const int width = space_at(p, end)) p += width;
            else break;
        if (p == end) return;
        const auto start = p;
        do p = skip_plain(p + 1, end);
        while (p < end && !space_at(p, end));
        f(std::string_view(reinterpret_cast<const char *>(start), static_cast<std::size_t>(p - start)));
    }
}

// Calls f(code point) for every character that is not white space. The text is valid UTF-8 (it
// comes from a Python string), so the lead byte tells the width.
template <class F> void each_char(std::string_view text, F &&f) {
    auto p = reinterpret_cast<const unsigned char *>(text.data());
    const auto end = p + text.size();
    while (p < end) {
        if (const int width = space_at(p, end)) {
            p += width;
            continue;
        }
        const unsigned char c = *p;
        const int width = c < 0x80 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
        std::uint64_t point = c;
        for (int i = 1; i < width; ++i) point = point << 8 | p[i];  // the bytes are the identity
        f(point);
        p += width;
    }
}

// Up to 8 bytes as a number, by loads that overlap instead of a loop. Together with its length the
// number is the word: different words of one length give different numbers.
inline std::uint64_t load_upto8(const char *p, std::size_t n) {
    std::uint64_t wide = 0;
    if (n >= 4) {
        std::uint32_t first, last;
        std::memcpy(&first, p, 4);
        std::memcpy(&last, p + n - 4, 4);
        return static_cast<std::uint64_t>(first) << 32 | last;
    }
    const auto byte = [p](std::size_t i) { return static_cast<std::uint64_t>(static_cast<unsigned char>(p[i])); };
    if (n > 0) wide = byte(0) << 16 | byte(n / 2) << 8 | byte(n - 1);
    return wide;
}

constexpr std::uint64_t MIX = 0x9E3779B97F4A7C15ull;

// A number for a word that is the word itself up to 8 bytes, and a hash of it beyond.
inline std::uint64_t digest(std::string_view word) {
    const char *p = word.data();
    std::size_t n = word.size();
    if (n <= 8) return load_upto8(p, n);
    std::uint64_t h = 0, chunk;
    for (; n > 8; p += 8, n -= 8) {
        std::memcpy(&chunk, p, 8);
        h = (h ^ chunk) * MIX;
        h ^= h >> 32;
    }
    return (h ^ load_upto8(p, n)) * MIX;
}

}  // namespace rangevote
