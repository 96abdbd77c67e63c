// Tables that give the same small number to the same thing. Whole keys are compared, never only
// their hashes, so a collision costs time and can change no result.
#pragma once

#include <algorithm>
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

constexpr std::size_t FIRST = 256;  // slots of a table that is used at all

// Open addressing, at most half full. A slot counts if it bears the stamp of the election under way, so a table
// is emptied for the next one by another stamp, whatever its size.
template <class Slot> class Slots {
    std::vector<Slot> slots_ = std::vector<Slot>(1);  // grows at the first key
    std::size_t mask_ = 0, used_ = 0;
    std::uint32_t stamp_ = 1;

    void grow() {
        std::vector<Slot> old;
        for (std::size_t i = 0; i <= mask_; ++i)
            if (slots_[i].stamp == stamp_) old.push_back(slots_[i]);
        const std::size_t size = mask_ + 1 < FIRST ? FIRST : 2 * (mask_ + 1);
        if (slots_.size() < size) slots_ = std::vector<Slot>(size);
        mask_ = size - 1;
        next_stamp();
        for (Slot &slot : old) {
            std::size_t i = slot.hash() & mask_;
            while (slots_[i].stamp == stamp_) i = (i + 1) & mask_;
            slot.stamp = stamp_;
            slots_[i] = slot;
        }
    }

    void next_stamp() {
        if (++stamp_ != 0) return;
        std::fill(slots_.begin(), slots_.end(), Slot{});
        stamp_ = 1;
    }

public:
    void clear() {
        used_ = 0;
        mask_ = std::min(slots_.size(), FIRST) - 1;
        next_stamp();
    }
    std::size_t bytes() const { return slots_.size() * sizeof(Slot); }

    // The id of what `same` knows again among the slots of this hash; what is new is put by `fill`.
    template <class Same, class Fill> Id intern(std::size_t hash, Same &&same, Fill &&fill) {
        std::size_t i = hash & mask_;
        for (; slots_[i].stamp == stamp_; i = (i + 1) & mask_)
            if (same(slots_[i])) return slots_[i].id;
        if (2 * ++used_ > mask_ + 1) {
            grow();
            for (i = hash & mask_; slots_[i].stamp == stamp_;) i = (i + 1) & mask_;
        }
        slots_[i] = fill();
        slots_[i].stamp = stamp_;
        return slots_[i].id;
    }
};

// 64-bit keys -> ids.
class KeyTable {
    struct Slot {
        std::uint64_t key = 0;
        Id id = 0;
        std::uint32_t stamp = 0;
        std::size_t hash() const { return KeyTable::hash(key); }
    };
    Slots<Slot> slots_;

    static std::size_t hash(std::uint64_t key) {
        key ^= key >> 32;
        key *= 0xD6E8FEB86659FD93ull;
        return static_cast<std::size_t>(key ^ (key >> 32));
    }

public:
    // The id of the key; a new key takes the next one.
    Id intern(std::uint64_t key, Id &next) {
        return slots_.intern(
            hash(key), [&](const Slot &slot) { return slot.key == key; }, [&] { return Slot{key, take(next), 0}; });
    }
    void clear() { slots_.clear(); }
    std::size_t bytes() const { return slots_.bytes(); }
};

// Words -> ids. A word of up to 8 bytes is its digest; of longer ones the bytes are kept and compared.
class WordTable {
    struct Slot {
        std::uint64_t digest = 0;
        std::size_t offset = 0;
        std::uint32_t size = 0;
        Id id = 0;
        std::uint32_t stamp = 0;
        std::size_t hash() const { return WordTable::hash(digest, size); }
    };
    Slots<Slot> slots_;
    std::string bytes_;

    static std::size_t hash(std::uint64_t digest, std::size_t size) {
        const std::uint64_t h = (digest + size) * MIX;
        return static_cast<std::size_t>(h ^ (h >> 32));
    }

    bool same(const Slot &slot, std::uint64_t digest, std::string_view word) const {
        return slot.digest == digest && slot.size == word.size() &&
               (word.size() <= 8 || std::memcmp(bytes_.data() + slot.offset, word.data(), word.size()) == 0);
    }

public:
    Id intern(std::string_view word, std::uint64_t key, Id &next) {
        if (word.size() >= NONE) throw std::length_error("a word of more than 4 GiB");
        return slots_.intern(
            hash(key, word.size()), [&](const Slot &slot) { return same(slot, key, word); },
            [&] {
                const Slot slot{key, bytes_.size(), static_cast<std::uint32_t>(word.size()), take(next), 0};
                if (word.size() > 8) bytes_.append(word);
                return slot;
            });
    }
    void clear() {
        slots_.clear();
        bytes_.clear();
    }
    std::size_t bytes() const { return slots_.bytes() + bytes_.capacity(); }
};

}  // namespace rangevote
