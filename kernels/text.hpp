// Pieces between white space, cut exactly where Python's str.split() cuts, and characters of UTF-8 text.
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

constexpr std::uint64_t EACH = 0x0101010101010101ull;  // times a byte: eight of it

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define RANGEVOTE_EIGHT_AT_A_TIME 1

// For eight bytes, the high bit of each below 0x21. Exact up to the first such byte, which is all that is
// asked. Where a text has no byte that can begin wide white space, these are all that can end a word.
inline std::uint64_t ends_of_words(std::uint64_t x) { return (x - 0x21 * EACH) & ~x & 0x80 * EACH; }
inline unsigned first_byte(std::uint64_t mask) { return static_cast<unsigned>(__builtin_ctzll(mask)) >> 3; }
#endif

inline std::uint64_t load8(const unsigned char *p) {
    std::uint64_t x;
    std::memcpy(&x, p, 8);
    return x;
}

// Whether no white space outside ASCII can be in the text: it begins with one of four bytes (space_at).
inline bool only_narrow_spaces(std::string_view text) {
    for (const int lead : {0xC2, 0xE1, 0xE2, 0xE3})
        if (std::memchr(text.data(), lead, text.size())) return false;
    return true;
}

constexpr std::uint64_t MIX = 0x9E3779B97F4A7C15ull;

inline std::uint64_t mixed(std::uint64_t h, std::uint64_t chunk) {
    h = (h ^ chunk) * MIX;
    return h ^ (h >> 32);
}

// A number for a word: up to 8 bytes its bytes, so that number and length are the word; beyond, a hash.
inline std::uint64_t digest(std::string_view word) {
    const char *p = word.data();
    std::size_t n = word.size();
    std::uint64_t h = 0, chunk;
    for (; n > 8; p += 8, n -= 8) {
        std::memcpy(&chunk, p, 8);
        h = mixed(h, chunk);
    }
    chunk = 0;
    std::memcpy(&chunk, p, n);
    return word.size() <= 8 ? chunk : mixed(h, chunk);
}

// Calls f(word, its digest) for the word that begins at p; returns where it ends.
template <class F>
const unsigned char *take_word(const unsigned char *p, const unsigned char *end, F &&f) {
    const auto start = p;
    do ++p;
    while (p < end && !space_at(p, end));
    const std::string_view word(reinterpret_cast<const char *>(start), static_cast<std::size_t>(p - start));
    f(word, digest(word));
    return p;
}

#ifdef RANGEVOTE_EIGHT_AT_A_TIME
// The words from p on while there are 16 bytes to load, for a text with narrow spaces only. The usual word,
// up to 15 bytes and a space, takes two loads, which give its end and its digest, and no loop over its bytes.
template <class F>
const unsigned char *take_words(const unsigned char *p, const unsigned char *stop, const unsigned char *end, F &&f) {
    while (p < stop) {
        const std::uint64_t x = load8(p), y = load8(p + 8);
        const std::uint64_t in_x = ends_of_words(x), in_y = ends_of_words(y);
        const unsigned n = in_x ? first_byte(in_x) : in_y ? 8 + first_byte(in_y) : 0;
        if (n > 0 && p[n] == ' ') {
            const std::uint64_t tail = (n < 8 ? x : y) & ((1ull << (8 * (n & 7))) - 1);
            const std::string_view word(reinterpret_cast<const char *>(p), n);
            f(word, n < 8 ? tail : n == 8 ? x : mixed(mixed(0, x), tail));
            p += n + 1;
        } else if (space_at(p, end)) {
            ++p;
        } else {
            p = take_word(p, end, f);
        }
    }
    return p;
}
#endif

// Calls f(word, its digest) for every word of the text; `narrow`: it has no white space outside ASCII.
template <class F> void each_word(std::string_view text, [[maybe_unused]] bool narrow, F &&f) {
    auto p = reinterpret_cast<const unsigned char *>(text.data());
    auto end = p + text.size();
#ifdef RANGEVOTE_EIGHT_AT_A_TIME
    if (narrow) {
        if (text.size() >= 16) p = take_words(p, end - 15, end, f);
        if (p >= end) return;
        // the last bytes once more, with spaces behind them, so that there are 16 to load from each
        unsigned char tail[32];
        const auto left = static_cast<std::size_t>(end - p);
        std::memset(tail, ' ', sizeof tail);
        std::memcpy(tail, p, left);
        take_words(tail, tail + left, tail + sizeof tail, f);
        return;
    }
#endif
    while (p < end)
        if (const int width = space_at(p, end)) p += width;
        else p = take_word(p, end, f);
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
