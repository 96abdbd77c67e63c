// Measures that need every pair: how many items each voter shares with each candidate, then a formula.
//
// Candidates are taken in blocks of 64. Within a block every item has a row of 64 bytes, 1 where the
// candidate has the item, so a voter's matches with 64 candidates are a sum of short rows: four
// 16-byte additions an item, and the rows of one block stay in the cache while all voters pass.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "index.hpp"

namespace rangevote {
namespace {

constexpr std::size_t BLOCK = 64;
constexpr std::size_t BYTE_FULL = 255;  // additions of 0 or 1 before a byte could overflow

#if defined(__GNUC__)
typedef std::uint8_t Bytes __attribute__((vector_size(16)));  // one register; lowered on any target
#else
struct Bytes {
    std::uint8_t b[16];
    Bytes &operator+=(const Bytes &other) {
        for (int i = 0; i < 16; ++i) b[i] = static_cast<std::uint8_t>(b[i] + other.b[i]);
        return *this;
    }
};
#endif
struct Row {
    Bytes part[BLOCK / 16];
};

using Matches = std::int32_t[BLOCK];  // of one voter with the candidates of a block, at one order

// The items of one block of candidates at one order, as rows.
class BlockRows {
    std::vector<Row> rows_;         // rows_[0] is empty: items that no candidate of the block has
    std::vector<std::uint32_t> row_of_;
    std::vector<Id> used_;

public:
    explicit BlockRows(std::size_t known) : rows_(1), row_of_(known, 0) {}

    void load(const Items &items, std::size_t first, std::size_t last) {
        for (const Id id : used_) row_of_[id] = 0;
        used_.clear();
        rows_.resize(1);
        for (std::size_t c = first; c < last; ++c)
            for (std::size_t i = items.begin(c); i < items.ends[c]; ++i) {
                const Id id = items.ids[i];
                if (row_of_[id] == 0) {
                    row_of_[id] = static_cast<std::uint32_t>(rows_.size());
                    used_.push_back(id);
                    rows_.emplace_back();
                }
                reinterpret_cast<unsigned char *>(&rows_[row_of_[id]])[c - first] = 1;
            }
    }

    void count(const Items &voters, std::size_t v, Matches &matches) const {
        std::memset(matches, 0, sizeof matches);
        const std::size_t end = voters.ends[v];
        for (std::size_t i = voters.begin(v); i < end;) {
            const std::size_t stop = std::min(i + BYTE_FULL, end);
            Row sum = {};
            for (; i < stop; ++i) {
                const Row &row = rows_[row_of_[voters.ids[i]]];
                for (std::size_t j = 0; j < BLOCK / 16; ++j) sum.part[j] += row.part[j];
            }
            std::uint8_t bytes[BLOCK];
            std::memcpy(bytes, &sum, BLOCK);
            for (std::size_t j = 0; j < BLOCK; ++j) matches[j] += bytes[j];
        }
    }
};

double root(double x, std::size_t n) {
    if (n == 1) return x;
    if (n == 2) return std::sqrt(x);
    return n == 4 ? std::sqrt(std::sqrt(x)) : std::pow(x, 1.0 / static_cast<double>(n));
}

// A formula: load() is called for every block of candidates, and then grade() for each voter, which writes its grades
// of all 64; those past the last candidate are ignored.
struct Grader {
    const Sequences &candidates, &voters;
    const std::size_t orders = candidates.orders.size();
    std::size_t first = 0, last = 0;  // of the block

    Grader(const Sequences &candidates, const Sequences &voters) : candidates(candidates), voters(voters) {}
    virtual ~Grader() = default;
    virtual void load() {}
    virtual void grade(const Matches *matches, std::size_t v, double *out) = 0;
};

// sim(v, c) = mean over orders of |v and c| / (|v|^(1-a) |c|^a).
struct Family : Grader {
    const double a;

    Family(const Sequences &candidates, const Sequences &voters, double a) : Grader(candidates, voters), a(a) {}
    void grade(const Matches *matches, std::size_t v, double *out) override {
        std::fill(out, out + BLOCK, 0.0);
        for (std::size_t k = 0; k < orders; ++k) {
            const double size = voters.orders[k].sizes[v];
            for (std::size_t c = first; c < last; ++c) {
                const double m = matches[k][c - first];
                if (m == 0) continue;
                const double length = candidates.orders[k].sizes[c];
                out[c - first] += a == 0 ? m / size : m * std::pow(size, a - 1.0) * std::pow(length, -a);
            }
        }
        for (std::size_t j = 0; j < BLOCK; ++j) out[j] /= static_cast<double>(orders);
    }
};

// BLEU: root(product of matches) / root(product of totals) * brevity penalty, for orders 1 to N.
struct Bleu : Grader {
    const bool smooth;
    double totals[BLOCK];  // root of the product of the n-gram totals; 1 where the score is 0 anyway
    struct {
        std::uint32_t voter = 0, length = 0;
        double penalty = 1.0;
    } penalties[BLOCK];  // those worked out last

    Bleu(const Sequences &candidates, const Sequences &voters, bool smooth)
        : Grader(candidates, voters), smooth(smooth) {}

    double added(std::size_t n) const { return smooth && n > 1 ? 1.0 : 0.0; }

    // exp(1 - |v| / |c|), for which libm takes its time.
    double penalty(std::uint32_t voter, std::uint32_t length) {
        auto &known = penalties[length % BLOCK];
        if (known.voter != voter || known.length != length)
            known = {voter, length, length ? std::exp(1 - static_cast<double>(voter) / length) : 0.0};
        return known.penalty;
    }

    void load() override {
        std::fill(totals, totals + BLOCK, 1.0);
        for (std::size_t c = first; c < last; ++c) {
            const std::uint32_t length = candidates.lengths[c];
            double total = 1.0;
            for (std::size_t n = 1; n <= orders; ++n)
                total *= (length >= n ? static_cast<double>(length - n + 1) : 0.0) + added(n);
            if (total > 0) totals[c - first] = root(total, orders);
        }
    }

    void grade(const Matches *matches, std::size_t v, double *out) override {
        std::fill(out, out + BLOCK, 1.0);
        for (std::size_t n = 1; n <= orders; ++n)
            for (std::size_t j = 0; j < BLOCK; ++j) out[j] *= static_cast<double>(matches[n - 1][j]) + added(n);
        if (orders == 4)  // the usual case in a loop of its own, so that it is vectorised
            for (std::size_t j = 0; j < BLOCK; ++j) out[j] = std::sqrt(std::sqrt(out[j])) / totals[j];
        else
            for (std::size_t j = 0; j < BLOCK; ++j) out[j] = root(out[j], orders) / totals[j];
        const std::uint32_t voter = voters.lengths[v];
        for (std::size_t c = first; c < last; ++c)
            if (candidates.lengths[c] < voter) out[c - first] *= penalty(voter, candidates.lengths[c]);
    }
};

// chrF: F_beta of the mean precision and the mean recall over the orders that both sides have.
struct Chrf : Grader {
    const double factor;
    std::vector<std::vector<double>> totals;  // for each order the candidates' n-grams, at least 1
    double effective[BLOCK];                  // how many orders each candidate has

    Chrf(const Sequences &candidates, const Sequences &voters, double beta)
        : Grader(candidates, voters), factor(beta * beta), totals(orders, std::vector<double>(BLOCK)) {}

    void load() override {
        std::fill(effective, effective + BLOCK, 0.0);
        for (std::size_t n = 1; n <= orders; ++n) {
            std::fill(totals[n - 1].begin(), totals[n - 1].end(), 1.0);
            for (std::size_t c = first; c < last; ++c) {
                if (candidates.lengths[c] < n) continue;
                totals[n - 1][c - first] = static_cast<double>(candidates.lengths[c] - n + 1);
                effective[c - first] += 1;
            }
        }
    }

    void grade(const Matches *matches, std::size_t v, double *out) override {
        double precision[BLOCK] = {}, recall[BLOCK] = {};
        const std::size_t length = voters.lengths[v], common = std::min(orders, length);
        for (std::size_t n = 1; n <= common; ++n) {
            const double own = static_cast<double>(length - n + 1), *theirs = totals[n - 1].data();
            for (std::size_t j = 0; j < BLOCK; ++j) {
                const double m = matches[n - 1][j];
                precision[j] += m / theirs[j];
                recall[j] += m / own;
            }
        }
        for (std::size_t j = 0; j < BLOCK; ++j) {
            const double p = precision[j], r = recall[j];
            const double below = std::min(static_cast<double>(common), effective[j]) * (factor * p + r);
            out[j] = (1.0 + factor) * p * r / (p > 0 ? below : 1.0);
        }
    }
};

std::unique_ptr<Grader> grader_of(Formula formula, double parameter, const Sequences &candidates,
                                  const Sequences &voters) {
    if (formula == Formula::family) return std::make_unique<Family>(candidates, voters, parameter);
    if (formula == Formula::chrf) return std::make_unique<Chrf>(candidates, voters, parameter);
    return std::make_unique<Bleu>(candidates, voters, formula == Formula::smoothed_bleu);
}

}  // namespace

// Calls take(v, first, last, grades) for every voter and block of candidates.
template <class Take> void Index::each_grade(Formula formula, double parameter, bool self_voting, Take &&take) const {
    check();
    const Sequences &voters = electorate(self_voting);
    const auto grader = grader_of(formula, parameter, candidates_, voters);
    std::vector<BlockRows> rows;
    for (const Id known : known_) rows.emplace_back(known);
    std::vector<std::int32_t> matches(features_.orders.size() * BLOCK);
    auto *by_order = reinterpret_cast<Matches *>(matches.data());
    double grades[BLOCK];
    for (std::size_t first = 0; first < candidates(); first += BLOCK) {
        const std::size_t last = std::min(first + BLOCK, candidates());
        for (std::size_t k = 0; k < features_.orders.size(); ++k) rows[k].load(candidates_.orders[k], first, last);
        grader->first = first, grader->last = last;
        grader->load();
        for (std::size_t v = 0; v < voters.lengths.size(); ++v) {
            for (std::size_t k = 0; k < features_.orders.size(); ++k) rows[k].count(voters.orders[k], v, by_order[k]);
            grader->grade(by_order, v, grades);
            take(v, first, last, grades);
        }
    }
}

void Index::grades(Formula formula, double parameter, bool self_voting, double *out) const {
    each_grade(formula, parameter, self_voting,
               [&](std::size_t v, std::size_t first, std::size_t last, const double *grades) {
                   std::copy(grades, grades + (last - first), out + v * candidates() + first);
               });
}

void Index::tally(Formula formula, double parameter, const double *weights, bool self_voting, double *scores) const {
    if (formula == Formula::family) return tally_family(weights, parameter, self_voting, scores);  // linear
    std::vector<std::int64_t> votes((candidates() / BLOCK + 1) * BLOCK, 0);
    const int bits = unit_bits(weights, voters(self_voting));
    each_grade(formula, parameter, self_voting,
               [&](std::size_t v, std::size_t first, std::size_t, const double *grades) {
        for (std::size_t j = 0; j < BLOCK; ++j) // scaling by a power of two is exact: before or after
            votes[first + j] += std::llrint(std::ldexp(1.0, bits) * (weights[v] * grades[j]));
    });
    for (std::size_t c = 0; c < candidates(); ++c) scores[c] = std::ldexp(static_cast<double>(votes[c]), -bits);
}

}  // namespace rangevote
