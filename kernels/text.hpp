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

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define RANGEVOTE_EIGHT_AT_A_TIME 1
constexpr std::uint64_t EACH = 0x0101010101010101ull;

// For eight bytes, the high bit of each that is not 0x21..0x7F, the range that is never white space.
// Exact up to the first such byte, which is all that is asked.
inline std::uint64_t special_bytes(std::uint64_t x) { return ((x - 0x21 * EACH) | x) & 0x80 * EACH; }
#endif

inline std::uint64_t load8(const unsigned char *p) {
    std::uint64_t x;
    std::memcpy(&x, p, 8);
    return x;
}

// The first byte from p that may be white space.
inline const unsigned char *skip_plain(const unsigned char *p, const unsigned char *end) {
#ifdef RANGEVOTE_EIGHT_AT_A_TIME
    for (; end - p >= 8; p += 8)
        if (const std::uint64_t special = special_bytes(load8(p))) return p + (__builtin_ctzll(special) >> 3);
#endif
    while (p < end && static_cast<unsigned>(*p) - 0x21u < 0x5Fu) ++p;
    return p;
}

constexpr std::uint64_t MIX = 0x9E3779B97F4A7C15ull;

// A number for a word: up to 8 bytes its bytes, so that number and length are the word; beyond, a hash.
inline std::uint64_t digest(std::string_view word) {
    const char *p = word.data();
    std::size_t n = word.size();
    std::uint64_t h = 0, chunk;
    for (; n > 8; p += 8, n -= 8) {
        std::memcpy(&chunk, p, 8);
        h = (h ^ chunk) * MIX;
        h ^= h >> 32;
    }
    chunk = 0;
    std::memcpy(&chunk, p, n);
    return word.size() <= 8 ? chunk : (h ^ chunk) * MIX;
}

// Calls f(word, its digest) for every word of the text.
template <class F> void each_word(std::string_view text, F &&f) {
    auto p = reinterpret_cast<const unsigned char *>(text.data());
    const auto end = p + text.size();
    const auto view = [](const unsigned char *from, const unsigned char *to) {
        return std::string_view(reinterpret_cast<const char *>(from), static_cast<std::size_t>(to - from));
    };
    while (p < end) {
#ifdef RANGEVOTE_EIGHT_AT_A_TIME
        // The usual word, up to 7 plain bytes and a space: one load gives its end and its digest.
        if (end - p >= 8) {
            const std::uint64_t x = load8(p), special = special_bytes(x);
            const int n = special ? __builtin_ctzll(special) >> 3 : 0;
            if (n > 0 && p[n] == ' ') {
                f(view(p, p + n), x & ((1ull << (8 * n)) - 1));
                p += n + 1;
                continue;
            }
        }
#endif
        if (const int width = space_at(p, end)) {
            p += width;
            continue;
        }
        const auto start = p;
        do p = skip_plain(p + 1, end);
        while (p < end && !space_at(p, end));
        f(view(start, p), digest(view(start, p)));
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

}  // namespace rangevote
