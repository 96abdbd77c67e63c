// The usual election, from texts and log-probabilities to the winner, in one call. No Python in here.
//
// The general way through Python (election/elect.py) says what an election is; this one is for what most
// elections are, gives the same bits, and leaves to that way whatever needs a warning, an error or a choice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "index.hpp"

namespace rangevote {

// One side of a ballot, as columns; an empty column: nothing is known of it (finished: all are).
struct Side {
    std::vector<std::string_view> texts;
    std::vector<double> logprobs;
    std::vector<std::int64_t> tokens;     // of all, one after the other
    std::vector<std::size_t> token_ends;  // where those of each end
    std::vector<unsigned char> finished;
    std::vector<std::size_t> members;  // of a panel, by number
    std::vector<double> shares;        // of each member; sum to 1
    std::size_t sampled = 0;           // how many were

    std::size_t size() const { return texts.size(); }
    std::size_t bytes() const;  // of all texts
};

enum class Weighting { usual, probability, count };  // usual: election/weights.py, default_weights

struct ElectionPlan {
    Features features;
    Formula formula;
    double parameter;
    Weighting weighting;
    double temperature;
    bool temperature_given;
    double likelihood;
};

struct Outcome {
    std::vector<double> scores, weights, evidence;  // evidence: the part of a score that is the candidate's likelihood
    std::size_t winner = 0;
    bool by_probability = false;  // else by count
    bool alone = false;           // no candidate is of another group than the winner, so there is no margin
    bool supported = false;       // whether a voter supports any candidate but itself
    double margin = 0.0;
};

// P^(1/T) of the numbers, in place, normalised to sum to 1 (plain.py, softmax); `again` of them are -inf because
// they repeat others. All 0 if every P is 0.
void softmax(double *numbers, std::size_t size, std::size_t again, double temperature);

// Room for elections, one after the other: of a thread, or of a call.
class Elections {
public:
    // False: nothing was elected, and the general way has to say why or how. Voters nullptr: the candidates vote.
    bool hold(const ElectionPlan &plan, const Side &candidates, const Side *voters, Outcome &out);

private:
    std::unique_ptr<Index> index_;
    std::vector<double> ordered_;
    std::vector<std::uint64_t> digests_;
    std::vector<std::size_t> order_, ends_;  // the voters member by member, and where those of each end

    bool weigh(const ElectionPlan &plan, const Side &voters, Outcome &out);
    void group_by_member(const Side &voters);
    bool repeats(const Side &voters);
    bool add_likelihood(const ElectionPlan &plan, const Side &candidates, Outcome &out) const;
    void choose(const Side &candidates, Outcome &out) const;
};

Elections &elections_of_thread();

}  // namespace rangevote
