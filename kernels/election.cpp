#include "election.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

namespace rangevote {
namespace {

constexpr double ROUNDING = 0x1p-40;  // more than all rounding of a score
constexpr double INFINITE = std::numeric_limits<double>::infinity();
constexpr std::size_t KEPT = 4u << 20;  // bytes of tables that are kept for the next election
constexpr std::size_t MANY = 64;        // equal log-probabilities among which repeated texts are looked for

std::size_t words_in(std::string_view text, std::string &room) {
    std::size_t words = 0;
    each_word(plainly_spaced(text, room), [&](std::string_view, std::uint64_t) { ++words; });
    return words;
}

// To a multiple of 2^-48, so that what is equal on paper ties; the same as rounded() of similarity/base.py.
double rounded(double score) {
    return std::abs(score) < 32.0 ? std::ldexp(std::nearbyint(std::ldexp(score, 48)), -48) : score;
}

}  // namespace

std::size_t Side::bytes() const {
    std::size_t sum = 0;
    for (const std::string_view text : texts) sum += text.size();
    return sum;
}

void softmax(double *numbers, std::size_t size, std::size_t again, double temperature) {
    const double largest = size ? *std::max_element(numbers, numbers + size) : 0.0;
    const bool none = std::isinf(largest);
    for (std::size_t i = 0; i < size; ++i) numbers[i] = none ? 0.0 : std::exp((numbers[i] - largest) / temperature);
    int length = 0;
    for (std::size_t rest = size - again; rest > 0; rest >>= 1) ++length;
    std::int64_t whole = 0;  // the sum, counted: the same in any order
    for (std::size_t i = 0; i < size; ++i) whole += std::llrint(std::ldexp(numbers[i], 62 - length));
    const double total = std::ldexp(static_cast<double>(whole), length - 62);
    for (std::size_t i = 0; i < size && whole > 0; ++i) numbers[i] /= total;
}

Elections &elections_of_thread() {
    thread_local Elections elections;
    return elections;
}

bool Elections::hold(const ElectionPlan &plan, const Side &candidates, const Side *voters, Outcome &out) {
    const Side &electors = voters ? *voters : candidates;
    if (candidates.size() == 0 || electors.size() == 0 || !weigh(plan, electors, out)) return false;
    if (!index_ || index_->bytes() > KEPT) index_ = std::make_unique<Index>(plan.features);
    else index_->reset(plan.features);
    index_->set_candidates(candidates.texts);
    if (voters) index_->add(voters->texts);
    const bool self_voting = !voters;
    out.scores.resize(candidates.size());
    index_->tally(plan.formula, plan.parameter, out.weights.data(), self_voting, out.scores.data());
    out.supported = false;
    for (std::size_t c = 0; c < out.scores.size(); ++c) {  // a text gives itself at most its own weight
        out.scores[c] = rounded(out.scores[c]);
        out.supported |= out.scores[c] > (self_voting && out.scores.size() > 1 ? out.weights[c] + ROUNDING : 0.0);
    }
    if (!add_likelihood(plan, candidates, out)) return false;
    choose(candidates, out);
    return true;
}

// Each member of a panel for itself, times its share. False where a voter repeats another of its member, where all
// weights of a member are 0, where members are weighed differently, and where the temperature has no effect.
bool Elections::weigh(const ElectionPlan &plan, const Side &voters, Outcome &out) {
    const bool known = !voters.logprobs.empty(), usual = plan.weighting == Weighting::usual && known;
    if (usual && voters.sampled && voters.sampled < voters.size() && !voters.members.empty()) return false;
    out.by_probability = plan.weighting == Weighting::probability || (usual && !voters.sampled);
    if (out.by_probability ? !known || repeats(voters) : plan.temperature_given) return false;
    group_by_member(voters);
    out.weights.resize(voters.size());
    for (std::size_t m = 0, begin = 0; m < ends_.size(); begin = ends_[m++]) {
        const std::size_t size = ends_[m] - begin;
        ordered_.assign(size, 1.0 / static_cast<double>(size));
        if (out.by_probability) {
            for (std::size_t i = 0; i < size; ++i) ordered_[i] = voters.logprobs[order_[begin + i]];
            softmax(ordered_.data(), size, 0, plan.temperature);
            if (std::all_of(ordered_.begin(), ordered_.end(), [](double weight) { return weight == 0.0; })) return false;
        }
        const double share = voters.shares.empty() ? 1.0 : voters.shares[m];
        for (std::size_t i = 0; i < size; ++i) out.weights[order_[begin + i]] = share * ordered_[i];
    }
    return true;
}

void Elections::group_by_member(const Side &voters) {
    ends_.assign(voters.members.empty() ? 1 : voters.shares.size(), 0);
    order_.resize(voters.size());
    const auto member = [&](std::size_t i) { return voters.members.empty() ? 0 : voters.members[i]; };
    for (std::size_t i = 0; i < voters.size(); ++i) ++ends_[member(i)];
    for (std::size_t m = 0, sum = 0; m < ends_.size(); ++m) {
        sum += ends_[m];
        ends_[m] = sum - ends_[m];  // where it begins, and ends once its voters are there
    }
    for (std::size_t i = 0; i < voters.size(); ++i) order_[ends_[member(i)]++] = i;
}

// Whether some voter may be an exact duplicate of another of its member (election/weights.py, repeated): the same
// tokens, or the same text and log-probability. Equal digests of different tokens only cost the general way's time.
bool Elections::repeats(const Side &voters) {
    if (!voters.token_ends.empty()) {
        digests_.clear();
        std::size_t start = 0;
        for (const std::size_t end : voters.token_ends) {
            std::uint64_t digest = end - start;
            for (; start < end; ++start) digest = mixed(digest, static_cast<std::uint64_t>(voters.tokens[start]));
            if (!voters.members.empty()) digest = mixed(digest, voters.members[digests_.size()]);
            digests_.push_back(digest);
        }
        std::sort(digests_.begin(), digests_.end());
        return std::adjacent_find(digests_.begin(), digests_.end()) != digests_.end();
    }
    ordered_ = voters.logprobs;
    std::sort(ordered_.begin(), ordered_.end());
    for (auto same = ordered_.begin(); (same = std::adjacent_find(same, ordered_.end())) != ordered_.end();) {
        std::vector<std::pair<std::size_t, std::string_view>> texts;
        for (std::size_t i = 0; i < voters.size(); ++i)
            if (voters.logprobs[i] == *same)
                texts.emplace_back(voters.members.empty() ? 0 : voters.members[i], voters.texts[i]);
        if (texts.size() > MANY) return true;
        std::sort(texts.begin(), texts.end());
        if (std::adjacent_find(texts.begin(), texts.end()) != texts.end()) return true;
        same += static_cast<std::ptrdiff_t>(texts.size());
    }
    return false;
}

// x log P(c) / |c| (election/rules.py, own_likelihood; |c| is hypothesis.py, Hypotheses.lengths).
bool Elections::add_likelihood(const ElectionPlan &plan, const Side &candidates, Outcome &out) const {
    out.evidence.clear();
    if (plan.likelihood == 0.0) return true;
    if (candidates.logprobs.empty()) return false;
    std::string room;
    for (std::size_t c = 0; c < candidates.size(); ++c) {
        std::size_t length = candidates.token_ends.empty()
                                 ? words_in(candidates.texts[c], room)
                                 : candidates.token_ends[c] - (c ? candidates.token_ends[c - 1] : 0);
        length += candidates.finished.empty() ? 1 : candidates.finished[c];
        out.evidence.push_back(rounded(
            plan.likelihood * (candidates.logprobs[c] / static_cast<double>(std::max<std::size_t>(length, 1)))));
        out.scores[c] += out.evidence[c];
    }
    return true;
}

// The winner: the highest score, then the highest log-probability, then the first; and its margin over the best
// of another group. Where voters alone gave the scores, only equal ones can be of one group.
void Elections::choose(const Side &candidates, Outcome &out) const {
    const std::vector<double> &scores = out.scores;
    std::size_t winner = 0;
    for (std::size_t c = 1; c < scores.size(); ++c)
        if (scores[c] > scores[winner] || (scores[c] == scores[winner] && !candidates.logprobs.empty() &&
                                           candidates.logprobs[c] > candidates.logprobs[winner]))
            winner = c;
    out.winner = winner;
    out.alone = true;
    double second = -INFINITE;
    for (std::size_t c = 0; c < scores.size(); ++c) {
        if (c == winner || (!out.alone && scores[c] <= second)) continue;
        if ((!out.evidence.empty() || scores[c] == scores[winner]) && index_->same_items(c, winner)) continue;
        out.alone = false;
        second = std::max(second, scores[c]);
    }
    out.margin = scores[winner] == second ? 0.0 : scores[winner] - second;  // both may be -inf
}

}  // namespace rangevote
