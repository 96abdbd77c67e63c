// What sequences are made of: pieces between white space, the unit "words", and characters. A text is valid UTF-8 (it
// comes from a Python string), so a lead byte tells the width of its character.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
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
constexpr std::uint64_t HIGH = 0x80 * EACH;

// Eight bytes as a number, the first one lowest. Compilers make one load of it, and one store.
inline std::uint64_t load8(const unsigned char *p) {
    std::uint64_t x = 0;
    for (int i = 0; i < 8; ++i) x |= static_cast<std::uint64_t>(p[i]) << 8 * i;
    return x;
}
inline void store8(char *to, std::uint64_t x) {
    for (int i = 0; i < 8; ++i) to[i] = static_cast<char>(x >> 8 * i);
}

// Of a mask that has some of the eight high bits: the first byte that has one.
inline unsigned first_byte(std::uint64_t mask) {
#if defined(__GNUC__)
    return static_cast<unsigned>(__builtin_ctzll(mask)) >> 3;
#else
    return static_cast<unsigned>((((mask & (0 - mask)) - 1) & EACH) * EACH >> 56) - 1;
#endif
}

// For eight bytes, the high bit of each that is 0; exact up to the first of them, which is all that is asked.
inline std::uint64_t zeros(std::uint64_t x) { return (x - EACH) & ~x & HIGH; }

constexpr std::uint64_t MIX = 0x9E3779B97F4A7C15ull;

inline std::uint64_t mixed(std::uint64_t h, std::uint64_t chunk) {
    h = (h ^ chunk) * MIX;
    return h ^ (h >> 32);
}

// Calls f(word, its digest) for every piece between the spaces of a text behind which eight more spaces stand.
// Number and length are the word up to 8 bytes; beyond, the number is a hash.
template <class F> void each_word(std::string_view text, F &&f) {
    auto p = reinterpret_cast<const unsigned char *>(text.data());
    const auto end = p + text.size();
    for (; p < end; ++p) {
        if (*p == ' ') continue;
        const auto start = p;
        std::uint64_t x = load8(p), spaces = zeros(x ^ ' ' * EACH), digest = 0;
        for (; !spaces; spaces = zeros(x ^ ' ' * EACH)) {
            digest = mixed(digest, x);
            x = load8(p += 8);
        }
        const unsigned n = first_byte(spaces);
        x &= (1ull << 8 * n) - 1;
        digest = p == start ? x : n ? mixed(digest, x) : digest;
        p += n;
        f(std::string_view(reinterpret_cast<const char *>(start), static_cast<std::size_t>(p - start)), digest);
    }
}

constexpr std::size_t PADDING = 24;  // room behind what is written, for spaces that each_word and the next loop read

// The text with ' ' for every white space, in `out`, for each_word.
inline std::string_view plainly_spaced(std::string_view text, std::string &out) {
    if (out.size() < text.size() + PADDING) out.resize(text.size() + PADDING);
    auto p = reinterpret_cast<unsigned char *>(out.data());
    const auto end = p + text.size();
    std::memcpy(p, text.data(), text.size());
    std::memset(end, ' ', PADDING);
    std::uint8_t others[16] = {};  // whether there may be white space of another kind; sixteen bytes at a time
    for (auto q = p; q < end; q += 16)
        for (int i = 0; i < 16; ++i) {
            const auto control = static_cast<std::uint8_t>(q[i] - 0x09), wide = static_cast<std::uint8_t>(q[i] - 0xE1);
            others[i] |= (control < 0x17) | (wide < 3) | (q[i] == 0xC2);
        }
    if (load8(others) | load8(others + 8))
        while (p < end) {
            const int width = space_at(p, end);
            if (width) std::memset(p, ' ', static_cast<std::size_t>(width));
            p += width ? width : 1;
        }
    return {out.data(), text.size()};
}

enum class Kind { space, skip, word, mark, alone };

struct Characters {  // the characters from `first` to the next row
    std::uint32_t first;
    int kind, shift;  // how far on their lower case is

    static constexpr int EVEN = 1 << 21;  // that of even characters is the next; EVEN + 1: of odd ones
    std::uint32_t lower(std::uint32_t point) const {
        if (shift < EVEN) return point + static_cast<std::uint32_t>(shift);
        return point + (point % 2 == static_cast<std::uint32_t>(shift - EVEN));
    }
};

inline constexpr Characters CHARACTERS[] = {
#include "../src/rangevote/kernel/characters.inc"
};
inline constexpr std::size_t ROWS = sizeof CHARACTERS / sizeof *CHARACTERS;

// The row of the first character of every 256: the row of any other is not far behind.
inline const std::array<std::uint16_t, 0x1100> PAGES = [] {
    std::array<std::uint16_t, 0x1100> pages{};
    std::size_t row = 0;
    for (std::uint32_t page = 0; page < pages.size(); ++page) {
        while (row + 1 < ROWS && CHARACTERS[row + 1].first <= page << 8) ++row;
        pages[page] = static_cast<std::uint16_t>(row);
    }
    return pages;
}();

inline const Characters &characters_of(std::uint32_t point) {
    std::size_t row = PAGES[point >> 8];
    while (row + 1 < ROWS && CHARACTERS[row + 1].first <= point) ++row;
    return CHARACTERS[row];
}

inline const std::array<Characters, 128> ASCII = [] {  // as the others, but that `first` is the lower case
    std::array<Characters, 128> rows{};
    for (std::uint32_t point = 0; point < rows.size(); ++point) {
        const Characters &row = characters_of(point);
        rows[point] = Characters{row.lower(point), row.kind, 0};
    }
    return rows;
}();

// For eight ASCII characters, the high bit of each from `low` to `high`.
inline std::uint64_t between(std::uint64_t x, unsigned low, unsigned high) {
    return (x + (0x80 - low) * EACH) & ~(x + (0x7F - high) * EACH) & HIGH;
}

// The unit "words" (kernel/plain.py, which gives the same): the text in lower case with spaces between its words, in
// `out`, for each_word. Nothing that is written is longer than twice what was read.
inline std::string_view spaced(std::string_view text, std::string &out) {
    if (out.size() < 2 * text.size() + PADDING) out.resize(2 * text.size() + PADDING);
    auto p = reinterpret_cast<const unsigned char *>(text.data());
    const auto end = p + text.size();
    char *to = out.data();
    bool alone = false;  // what was written last is a word by itself
    while (p < end) {
        if (end - p >= 8) {  // the letters, digits and spaces up to the next other character, at most eight
            std::uint64_t x = load8(p);
            const std::uint64_t wide = x & HIGH;
            x ^= wide;
            x += between(x, 'A', 'Z') >> 2;  // 0x20, the way to lower case
            const std::uint64_t plain = (between(x, 'a', 'z') | between(x, '0', '9') | between(x, ' ', ' ')) & ~wide;
            const std::uint64_t other = plain ^ HIGH;
            if (const unsigned n = other ? first_byte(other) : 8) {
                if (alone) *to++ = ' ';
                alone = false;
                store8(to, x);
                to += n;
                p += n;
                if (n == 8) continue;
            }
        }
        std::uint32_t point = *p++, lower;
        Kind kind;
        if (point < 0x80) {
            lower = ASCII[point].first;
            kind = static_cast<Kind>(ASCII[point].kind);
        } else {
            const int more = point < 0xE0 ? 1 : point < 0xF0 ? 2 : 3;
            point &= 0x3Fu >> more;
            for (int i = 0; i < more; ++i) point = point << 6 | (*p++ & 0x3Fu);
            const Characters &row = characters_of(point);
            lower = row.lower(point);
            kind = static_cast<Kind>(row.kind);
        }
        if (kind == Kind::skip) continue;
        if (kind == Kind::space || kind == Kind::alone || (kind == Kind::word && alone)) *to++ = ' ';
        alone = kind == Kind::alone || (kind == Kind::mark && alone);
        if (kind == Kind::space) continue;
        if (lower < 0x80) {
            *to++ = static_cast<char>(lower);
            continue;
        }
        const int more = lower < 0x800 ? 1 : lower < 0x10000 ? 2 : 3;
        *to++ = static_cast<char>(~(0x7Fu >> more) | lower >> (6 * more));
        for (int i = more - 1; i >= 0; --i) *to++ = static_cast<char>(0x80u | (lower >> (6 * i) & 0x3Fu));
    }
    std::memset(to, ' ', 8);
    return {out.data(), static_cast<std::size_t>(to - out.data())};
}

// Calls f(code point) for every character that is not white space.
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
