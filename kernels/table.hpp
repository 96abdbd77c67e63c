// Tables that give the same small number to the same thing. Whole keys are compared, never only
// their hashes, so a collision costs time and can change no result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "text.hpp"

namespace rangevote {

using Id = std::uint32_t;
constexpr Id NONE = 0xFFFFFFFFu;
constexpr Id ID_LIMIT = 0x80000000u;  // the top bit marks short sequences in keys (index.cpp)

inline Id take(Id &next) {
    if (next >= ID_LIMIT) throw std::length_error("more than 2^31 distinct n-grams in one election");
    return next++;
}

constexpr std::size_t FIRST = 512;  // slots of a table that is used at all

// 64-bit keys -> ids; open addressing, at most half full.
class KeyTable {
    struct Slot {
        std::uint64_t key;
        Id id;
    };
    std::vector<Slot> slots_ = std::vector<Slot>(1, Slot{0, NONE});  // grows at the first key
    std::size_t used_ = 0;

    static std::size_t hash(std::uint64_t key) {
        key ^= key >> 32;
        key *= 0xD6E8FEB86659FD93ull;
        return static_cast<std::size_t>(key ^ (key >> 32));
    }

    void grow() {
        std::vector<Slot> old(slots_.size() < FIRST ? FIRST : slots_.size() * 2, Slot{0, NONE});
        old.swap(slots_);
        for (const Slot &slot : old)
            if (slot.id != NONE) slots_[place(slot.key)] = slot;
    }

    std::size_t place(std::uint64_t key) const {
        const std::size_t mask = slots_.size() - 1;
        std::size_t i = hash(key) & mask;
        while (slots_[i].id != NONE && slots_[i].key != key) i = (i + 1) & mask;
        return i;
    }

public:
    // The id of the key; a new key takes the next one.
    Id intern(std::uint64_t key, Id &next) {
        std::size_t i = place(key);
        if (slots_[i].id != NONE) return slots_[i].id;
        if (2 * ++used_ > slots_.size()) {
            grow();
            i = place(key);
        }
        slots_[i] = Slot{key, take(next)};
        return slots_[i].id;
    }
};

// Words -> ids. A word of up to 8 bytes is its digest; of longer ones the bytes are kept and compared.
class WordTable {
    struct Slot {
        std::uint64_t digest;
        std::size_t offset;
        std::uint32_t size;
        Id id;
    };
    std::vector<Slot> slots_ = std::vector<Slot>(256, Slot{0, 0, 0, NONE});
    std::size_t used_ = 0;
    std::string bytes_;

    static std::size_t hash(std::uint64_t digest, std::size_t size) {
        const std::uint64_t h = (digest + size) * MIX;
        return static_cast<std::size_t>(h ^ (h >> 32));
    }

    bool same(const Slot &slot, std::uint64_t digest, std::string_view word) const {
        return slot.digest == digest && slot.size == word.size() &&
               (word.size() <= 8 || std::memcmp(bytes_.data() + slot.offset, word.data(), word.size()) == 0);
    }

    void grow() {
        std::vector<Slot> old(slots_.size() * 2, Slot{0, 0, 0, NONE});
        old.swap(slots_);
        const std::size_t mask = slots_.size() - 1;
        for (const Slot &slot : old) {
            if (slot.id == NONE) continue;
            std::size_t i = hash(slot.digest, slot.size) & mask;
            while (slots_[i].id != NONE) i = (i + 1) & mask;
            slots_[i] = slot;
        }
    }

public:
    Id intern(std::string_view word, std::uint64_t key, Id &next) {
        if (word.size() >= NONE) throw std::length_error("a word of more than 4 GiB");
        std::size_t mask = slots_.size() - 1, i = hash(key, word.size()) & mask;
        for (; slots_[i].id != NONE; i = (i + 1) & mask)
            if (same(slots_[i], key, word)) return slots_[i].id;
        if (2 * ++used_ > slots_.size()) {
            grow();
            mask = slots_.size() - 1;
            for (i = hash(key, word.size()) & mask; slots_[i].id != NONE;) i = (i + 1) & mask;
        }
        slots_[i] = Slot{key, bytes_.size(), static_cast<std::uint32_t>(word.size()), take(next)};
        if (word.size() > 8) bytes_.append(word);
        return slots_[i].id;
    }
};

}  // namespace rangevote
