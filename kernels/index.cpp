#include "index.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <stdexcept>

namespace rangevote {

Index::Index(Unit unit, std::vector<int> orders, bool bag, bool short_sequences)
    : unit_(unit), orders_(std::move(orders)), bag_(bag), short_(short_sequences) {
    if (orders_.empty() || orders_.front() < 1 ||
        std::adjacent_find(orders_.begin(), orders_.end(), std::greater_equal<int>()) != orders_.end())
        throw std::invalid_argument("orders must be ascending numbers from 1");
    levels_.resize(static_cast<std::size_t>(orders_.back()));
    candidates_.orders.resize(orders_.size());
    added_.orders.resize(orders_.size());
}

void Index::set_candidates(const std::vector<std::string_view> &texts) {
    encode(texts, candidates_, true);
}
void Index::set_candidates(const std::vector<std::vector<std::int64_t>> &ids) {
    encode(ids, candidates_, true);
}
void Index::add(const std::vector<std::string_view> &texts) { encode(texts, added_, false); }
void Index::add(const std::vector<std::vector<std::int64_t>> &ids) { encode(ids, added_, false); }

void Index::tokenise(std::string_view text) {
    Level &first = levels_[0];
    if (unit_ == Unit::words)
        each_word(text, [&](std::string_view word, std::uint64_t digest) {
            tokens_.push_back(words_.intern(word, digest, first.next));
        });
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
        for (std::size_t n = 1; n <= levels_.size(); ++n) {
            Level &level = levels_[n - 1];
            if (n > 1 && length >= n) {
                grams_.resize(length - n + 1);
                for (std::size_t i = 0; i < grams_.size(); ++i)
                    grams_[i] = level.grams.intern(
                        static_cast<std::uint64_t>(grams_[i]) << 32 | tokens_[i + n - 1], level.next);
            }
            if (static_cast<std::size_t>(orders_[wanted]) != n) continue;
            const Id known = candidates ? NONE : known_[wanted];
            Items &items = into.orders[wanted++];
            if (length >= n)
                emit_grams(level, items, known);
            else if (short_ && length > 0)
                emit_short(level, items, known);
            else
                items.sizes.push_back(0);
            items.ends.push_back(items.ids.size());
        }
    }
    complete_ = true;
    if (!candidates) return;
    known_.clear();
    for (const int n : orders_) known_.push_back(levels_[static_cast<std::size_t>(n) - 1].next);
}

// The item of this occurrence of a gram; fresh is false for a repetition that a set ignores.
Id Index::occurrence(Level &level, Id gram, bool &fresh) {
    if (gram >= level.seen.size()) level.seen.resize(std::max<std::size_t>(level.next, 2 * gram), Seen{0, 0});
    Seen &seen = level.seen[gram];
    if (seen.sequence != sequence_) {
        seen = Seen{sequence_, 0};
        fresh = true;
        return gram;
    }
    fresh = bag_;
    if (!bag_) return gram;
    ++seen.times;
    return level.extras.intern(static_cast<std::uint64_t>(gram) << 32 | seen.times, level.next);
}

void Index::emit_grams(Level &level, Items &items, Id known) {
    std::uint32_t size = 0;
    for (const Id gram : grams_) {
        bool fresh;
        const Id item = occurrence(level, gram, fresh);
        if (!fresh) continue;
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

int unit_bits(const std::vector<double> &masses) {
    std::int64_t whole = 0;
    for (const double mass : masses) whole += std::llrint(std::ldexp(mass, 20));
    int length = 0;
    for (; whole > 0; whole >>= 1) ++length;
    return 60 - std::max(0, length - 21);
}

void Index::tally(const double *weights, double a, bool own, double *scores) const {
    check();
    const Sequences &voters = electorate(own);
    std::fill(scores, scores + candidates(), 0.0);
    std::vector<std::int64_t> votes;
    std::vector<double> masses(voters.lengths.size());
    for (std::size_t order = 0; order < orders_.size(); ++order) {
        const Items &from = voters.orders[order], &to = candidates_.orders[order];
        for (std::size_t v = 0; v < from.count(); ++v)
            masses[v] = a == 0 ? weights[v] : weights[v] * std::pow(static_cast<double>(from.sizes[v]), a);
        const int bits = unit_bits(masses);
        votes.assign(known_[order], 0);
        for (std::size_t v = 0; v < from.count(); ++v) {
            if (from.sizes[v] == 0) continue;
            const double scaled = std::ldexp(weights[v], bits), size = from.sizes[v];
            const std::int64_t worth =
                std::llrint(a == 0 ? scaled / size : scaled * std::pow(size, a - 1.0));
            for (std::size_t i = from.begin(v); i < from.ends[v]; ++i) votes[from.ids[i]] += worth;
        }
        for (std::size_t c = 0; c < to.count(); ++c) {
            if (to.sizes[c] == 0) continue;
            std::int64_t won = 0;
            for (std::size_t i = to.begin(c); i < to.ends[c]; ++i) won += votes[to.ids[i]];
            const double score = std::ldexp(static_cast<double>(won), -bits);
            scores[c] += a == 0 ? score : score * std::pow(static_cast<double>(to.sizes[c]), -a);
        }
    }
    for (std::size_t c = 0; c < candidates(); ++c) scores[c] /= static_cast<double>(orders_.size());
}

}  // namespace rangevote
