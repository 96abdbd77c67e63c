// The unit "words" (kernel/plain.py, which gives the same): a text in lower case with spaces between its words.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "text.hpp"

namespace rangevote {

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
    return (x + (0x80 - low) * EACH) & ~(x + (0x7F - high) * EACH) & 0x80 * EACH;
}

// Writes the text into `out` and returns it. The text is valid UTF-8, so the lead byte tells the width. Nothing that
// is written is longer than twice what was read.
inline std::string_view spaced(std::string_view text, std::string &out) {
    if (out.size() < 2 * text.size() + 16) out.resize(2 * text.size() + 16);
    auto p = reinterpret_cast<const unsigned char *>(text.data());
    const auto end = p + text.size();
    char *to = out.data();
    bool alone = false;  // what was written last is a word by itself
    while (p < end) {
#ifdef RANGEVOTE_EIGHT_AT_A_TIME
        if (end - p >= 8) {  // the letters, digits and spaces up to the next other character, at most eight
            std::uint64_t x = load8(p);
            const std::uint64_t wide = x & 0x80 * EACH;
            x ^= wide;
            x += between(x, 'A', 'Z') >> 2;  // 0x20, the way to lower case
            const std::uint64_t plain = (between(x, 'a', 'z') | between(x, '0', '9') | between(x, ' ', ' ')) & ~wide;
            const std::uint64_t other = plain ^ 0x80 * EACH;
            if (const unsigned n = other ? first_byte(other) : 8) {
                if (alone) *to++ = ' ';
                alone = false;
                std::memcpy(to, &x, 8);
                to += n;
                p += n;
                if (n == 8) continue;
            }
        }
#endif
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
    return {out.data(), static_cast<std::size_t>(to - out.data())};
}

}  // namespace rangevote
