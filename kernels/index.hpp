// An election's sequences as n-gram ids, and the linear count of votes. No Python in here.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "table.hpp"

namespace rangevote {

enum class Unit { space, words, chars, ids };
enum class Formula { family, bleu, smoothed_bleu, chrf };

// The items (n-grams, or in a bag n-grams with their occurrence number) of many sequences at one order.
struct Items {
    std::vector<Id> ids;             // all sequences, one after the other; known to a candidate
    std::vector<std::size_t> ends;   // where each sequence ends in ids
    std::vector<std::uint32_t> sizes;  // |set_n| or |bag_n|, with the items no candidate has

    std::size_t begin(std::size_t s) const { return s ? ends[s - 1] : 0; }
    std::size_t count() const { return ends.size(); }
};

struct Sequences {
    std::vector<Items> orders;           // one for each requested order
    std::vector<std::uint32_t> lengths;  // in tokens
};

// Bits after the binary point of a tally that is at most the sum of masses (plain.py, unit_bits).
int unit_bits(const double *masses, std::size_t number);

// What is counted of a sequence: the n-grams of some orders, as sets or as bags (plain.py, Index).
struct Features {
    Unit unit;
    std::vector<int> orders;
    bool bag, short_sequences;
};

// size^exponent, which libm takes its time for, once for each small size.
class Powers {
    double exponent_ = 0.0;
    std::vector<double> known_;  // NaN: not yet

public:
    void of(double exponent);
    double operator()(std::uint32_t size);
};

class Index {
public:
    explicit Index(Features features);
    // Empty again, for another election, in the memory of the last.
    void reset(const Features &features);
    std::size_t bytes() const;  // that the tables take

    // Candidates first, all at once; then voters, in as many calls as one likes.
    // A sequence is a text (std::string_view) or token ids (std::vector<std::int64_t>).
    template <class Sequence> void set_candidates(const std::vector<Sequence> &sequences) {
        encode(sequences, candidates_, true);
    }
    template <class Sequence> void add(const std::vector<Sequence> &sequences) { encode(sequences, added_, false); }

    std::size_t candidates() const { return candidates_.lengths.size(); }
    std::size_t voters(bool self_voting) const { return electorate(self_voting).lengths.size(); }

    // Whether two candidates have the same items at every order: no voter can tell them apart.
    bool same_items(std::size_t one, std::size_t other) const;

    // score(c), one for each candidate. `parameter`: the exponent a of the family, beta of chrF.
    void tally(Formula formula, double parameter, const double *weights, bool self_voting, double *scores) const;
    // Grades of all pairs, row by row (voters x candidates).
    void grades(Formula formula, double parameter, bool self_voting, double *out) const;

    Unit unit() const { return features_.unit; }
    std::mutex &mutex() const { return mutex_; }

private:
    struct Seen {
        std::uint32_t sequence;
        std::uint32_t times;
    };
    struct Level {  // n-grams of one n: id = intern(id of the first n - 1 tokens, last token)
        KeyTable grams, extras;  // extras: later occurrences, and sequences shorter than n
        Id next = 0;
        std::vector<Seen> seen;
    };

    template <class Sequence>
    void encode(const std::vector<Sequence> &sequences, Sequences &into, bool candidates);
    void tokenise(std::string_view text);
    void tokenise(const std::vector<std::int64_t> &ids);
    void emit_grams(Level &level, Items &items, Id known);
    void emit_short(Level &level, Items &items, Id known);
    void check() const;
    void tally_family(const double *weights, double a, bool self_voting, double *scores) const;
    template <class Take> void each_grade(Formula formula, double parameter, bool self_voting, Take &&take) const;
    const Sequences &electorate(bool self_voting) const { return self_voting ? candidates_ : added_; }

    Features features_;
    WordTable words_;
    std::vector<Level> levels_;  // levels_[n - 1]; more than are needed after a reset
    std::vector<Id> known_;      // for each order: ids below this belong to a candidate
    Sequences candidates_, added_;
    std::uint32_t sequence_ = 0;          // stamp of the sequence being encoded
    std::vector<Id> tokens_, grams_;      // of that sequence
    std::string spaced_;                  // its words with spaces between
    bool complete_ = true;
    mutable std::mutex mutex_;
    mutable std::vector<std::int64_t> votes_;  // what follows is room that a tally works in
    mutable std::vector<double> masses_;
    mutable Powers mass_, worth_, size_;
};

}  // namespace rangevote
