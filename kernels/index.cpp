#include "index.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <stdexcept>

namespace rangevote {

void Powers::of(double exponent) {
    if (exponent == exponent_ && !known_.empty()) return;
    exponent_ = exponent;
    known_.assign(64, std::nan(""));
}

double Powers::operator()(std::uint32_t size) {
    if (size >= known_.size()) return std::pow(static_cast<double>(size), exponent_);
    double &power = known_[size];
    if (std::isnan(power)) power = std::pow(static_cast<double>(size), exponent_);
    return power;
}

Index::Index(Features features) { reset(features); }

void Index::reset(const Features &features) {
    const std::vector<int> &orders = features.orders;
    if (orders.empty() || orders.front() < 1 ||
        std::adjacent_find(orders.begin(), orders.end(), std::greater_equal<int>()) != orders.end())
        throw std::invalid_argument("orders must be ascending numbers from 1");
    features_ = features;
    const auto highest = static_cast<std::size_t>(orders.back());
    if (levels_.size() < highest) levels_.resize(highest);
    for (Level &level : levels_) {
        level.grams.clear();
        level.extras.clear();
        level.next = 0;
        if (sequence_ >= ID_LIMIT) level.seen.clear();
    }
    if (sequence_ >= ID_LIMIT) sequence_ = 0;  // else it goes on: what earlier elections saw counts as not seen
    words_.clear();
    known_.clear();
    complete_ = true;
    for (Sequences *sequences : {&candidates_, &added_}) {
        sequences->lengths.clear();
        sequences->orders.resize(orders.size());
        for (Items &items : sequences->orders) {
            items.ids.clear();
            items.ends.clear();
            items.sizes.clear();
        }
    }
}

std::size_t Index::bytes() const {
    std::size_t sum = words_.bytes();
    for (const Level &level : levels_)
        sum += level.grams.bytes() + level.extras.bytes() + level.seen.capacity() * sizeof(Seen);
    for (const Sequences *sequences : {&candidates_, &added_})
        for (const Items &items : sequences->orders) sum += items.ids.capacity() * sizeof(Id);
    return sum;
}

bool Index::same_items(std::size_t one, std::size_t other) const {
    for (const Items &items : candidates_.orders)
        if (items.sizes[one] != items.sizes[other]) return false;
    std::vector<Id> first, second;
    for (const Items &items : candidates_.orders) {
        const Id *ids = items.ids.data();
        first.assign(ids + items.begin(one), ids + items.ends[one]);
        second.assign(ids + items.begin(other), ids + items.ends[other]);
        std::sort(first.begin(), first.end());
        std::sort(second.begin(), second.end());
        if (first != second) return false;
    }
    return true;
}

void Index::tokenise(std::string_view text) {
    Level &first = levels_[0];
    const auto take = [&](std::string_view word, std::uint64_t digest) {
        tokens_.push_back(words_.intern(word, digest, first.next));
    };
    if (features_.unit == Unit::space)
        each_word(plainly_spaced(text, spaced_), take);
    else if (features_.unit == Unit::words)
        each_word(spaced(text, spaced_), take);
    else
        each_char(text, [&](std::uint64_t c) { tokens_.push_back(first.grams.intern(c, first.next)); });
}

void Index::tokenise(const std::vector<std::int64_t> &ids) {
    Level &first = levels_[0];
    for (const std::int64_t id : ids)
        tokens_.push_back(first.grams.intern(static_cast<std::uint64_t>(id), first.next));
}

void Index::check() const {
    if (!complete_) throw std::runtime_error("an earlier call ran out of memory; start a new election");
}

// Each sequence: tokens, then for n = 1, 2, ... the ids of its n-grams, each made from the id of the
// (n-1)-gram that starts at the same place and the token that follows it. Keys are exact.
template <class Sequence>
void Index::encode(const std::vector<Sequence> &sequences, Sequences &into, bool candidates) {
    check();
    const auto highest = static_cast<std::size_t>(features_.orders.back());
    complete_ = false;  // until the end: memory may run out half-way
    for (const Sequence &sequence : sequences) {
        ++sequence_;
        tokens_.clear();
        tokenise(sequence);
        const std::size_t length = tokens_.size();
        if (length >= ID_LIMIT) throw std::length_error("a sequence of more than 2^31 tokens");
        into.lengths.push_back(static_cast<std::uint32_t>(length));
        grams_ = tokens_;
        std::size_t wanted = 0;
        for (std::size_t n = 1; n <= highest; ++n) {
            Level &level = levels_[n - 1];
            if (n > 1 && length >= n) {
                grams_.resize(length - n + 1);
                for (std::size_t i = 0; i < grams_.size(); ++i)
                    grams_[i] = level.grams.intern(
                        static_cast<std::uint64_t>(grams_[i]) << 32 | tokens_[i + n - 1], level.next);
            }
            if (static_cast<std::size_t>(features_.orders[wanted]) != n) continue;
            const Id known = candidates ? NONE : known_[wanted];
            Items &items = into.orders[wanted++];
            if (length >= n)
                emit_grams(level, items, known);
            else if (features_.short_sequences && length > 0)
                emit_short(level, items, known);
            else
                items.sizes.push_back(0);
            items.ends.push_back(items.ids.size());
        }
    }
    complete_ = true;
    if (!candidates) return;
    known_.clear();
    for (const int n : features_.orders) known_.push_back(levels_[static_cast<std::size_t>(n) - 1].next);
}

template void Index::encode(const std::vector<std::string_view> &, Sequences &, bool);
template void Index::encode(const std::vector<std::vector<std::int64_t>> &, Sequences &, bool);

// The first occurrence of a gram is the gram; a set ignores later ones, and a bag numbers them.
void Index::emit_grams(Level &level, Items &items, Id known) {
    std::uint32_t size = 0;
    for (const Id gram : grams_) {
        if (gram >= level.seen.size()) level.seen.resize(std::max<std::size_t>(level.next, 2 * gram), Seen{0, 0});
        Seen &seen = level.seen[gram];
        Id item = gram;
        if (seen.sequence != sequence_) seen = Seen{sequence_, 0};
        else if (!features_.bag) continue;
        else item = level.extras.intern(static_cast<std::uint64_t>(gram) << 32 | ++seen.times, level.next);
        ++size;
        if (item < known) items.ids.push_back(item);
    }
    items.sizes.push_back(size);
}

// A sequence shorter than n is its own only n-gram: its key has the top bit, its length and its id.
void Index::emit_short(Level &level, Items &items, Id known) {
    const std::uint64_t length = tokens_.size();
    const Id item = level.extras.intern((length | ID_LIMIT) << 32 | grams_[0], level.next);
    if (item < known) items.ids.push_back(item);
    items.sizes.push_back(1);
}

int unit_bits(const double *masses, std::size_t number) {
    std::int64_t whole = 0;
    for (std::size_t i = 0; i < number; ++i) whole += std::llrint(masses[i] * 1048576.0);
    int length = 0;
    for (; whole > 0; whole >>= 1) ++length;
    return 60 - std::max(0, length - 21);
}

// plain.py, Index.tally
void Index::tally_family(const double *weights, double a, bool self_voting, double *scores) const {
    check();
    const Sequences &voters = electorate(self_voting);
    std::fill(scores, scores + candidates(), 0.0);
    mass_.of(a);
    worth_.of(a - 1.0);
    size_.of(-a);
    masses_.resize(voters.lengths.size());
    for (std::size_t order = 0; order < features_.orders.size(); ++order) {
        const Items &from = voters.orders[order], &to = candidates_.orders[order];
        for (std::size_t v = 0; v < from.count(); ++v)
            masses_[v] = a == 0 ? weights[v] : weights[v] * mass_(from.sizes[v]);
        const int bits = unit_bits(masses_.data(), masses_.size());
        const double unit = std::ldexp(1.0, bits), one = std::ldexp(1.0, -bits);  // powers of two scale exactly
        votes_.assign(known_[order], 0);
        for (std::size_t v = 0; v < from.count(); ++v) {
            if (from.sizes[v] == 0) continue;
            const double scaled = weights[v] * unit;
            const std::int64_t worth = std::llrint(a == 0 ? scaled / from.sizes[v] : scaled * worth_(from.sizes[v]));
            for (std::size_t i = from.begin(v); i < from.ends[v]; ++i) votes_[from.ids[i]] += worth;
        }
        for (std::size_t c = 0; c < to.count(); ++c) {
            if (to.sizes[c] == 0) continue;
            std::int64_t won = 0;
            for (std::size_t i = to.begin(c); i < to.ends[c]; ++i) won += votes_[to.ids[i]];
            const double score = static_cast<double>(won) * one;
            scores[c] += a == 0 ? score : score * size_(to.sizes[c]);
        }
    }
    for (std::size_t c = 0; c < candidates(); ++c) scores[c] /= static_cast<double>(features_.orders.size());
}

}  // namespace rangevote
