// Lines of a ballot file to lines of results. No Python in here.
//
// Reads what most lines are: a JSON object with the fields of a ballot, in which every value is as it should be.
// formats/jsonl.py says what a line means; of anything else than that this reader says "unusual" and no more.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "election.hpp"

namespace rangevote {

// What is written of a result (formats/result_writer.py): the text alone, or JSON, perhaps with all scores. A signature
// comes as the three pieces around the numbers of candidates and voters.
struct ResultFormat {
    bool text, scores;
    std::vector<std::string> by_probability, by_count;
};

class BallotReader {
public:
    enum class Id { none, number, text };

    Side candidates, voters;
    bool has_voters = false;
    Id id_kind = Id::none;
    std::string_view id;  // its digits, or its text

    std::size_t pairs() const { return candidates.size() * (has_voters ? voters : candidates).size(); }

    // False: unusual. The line must outlive what was read of it.
    bool read(std::string_view line);

private:
    const char *p_ = nullptr, *end_ = nullptr;
    std::string room_;  // texts that had escapes, without them
    std::vector<std::string_view> unused_;

    char next();  // the next character that is no white space, 0 at the end
    bool take(char c);
    bool key(std::string_view &name);
    bool string(std::string_view &text);
    bool escape();
    bool word(std::string_view spelled);
    bool number(double &value);
    bool whole(std::int64_t &value);
    bool truth(bool &value);
    bool read_id();
    bool texts();
    bool side(Side &side);
    bool hypothesis(Side &side);
    bool integers(Side &side);
};

// Appends the line of a result, as the careful way would write it.
void write_result(const BallotReader &ballot, const Outcome &outcome, const ResultFormat &format, std::string &out);

bool valid_utf8(std::string_view bytes);
bool too_probable(const Side &side);
bool lines_supported();  // whether the compiler has what exact numbers need

}  // namespace rangevote
