#include "lines.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

namespace rangevote {
namespace {

constexpr double NEAR_TIE = 1e-9;         // election/result.py
constexpr std::string_view LETTERS = "\"\\/bfnrt", MEANT = "\"\\/\b\f\n\r\t";  // after a backslash
constexpr double MOST = 1 + 1e-3 - 1e-9;  // formats/logprobs.py, less what sums in another order may differ by

bool digit(char c) { return c >= '0' && c <= '9'; }

int hex(char c) {
    return digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

void append_utf8(std::string &out, std::uint32_t point) {
    const auto byte = [&](std::uint32_t bits) { out.push_back(static_cast<char>(bits)); };
    if (point < 0x80) {
        byte(point);
    } else if (point < 0x800) {
        byte(0xC0 | point >> 6), byte(0x80 | (point & 63));
    } else if (point < 0x10000) {
        byte(0xE0 | point >> 12), byte(0x80 | (point >> 6 & 63)), byte(0x80 | (point & 63));
    } else {
        byte(0xF0 | point >> 18), byte(0x80 | (point >> 12 & 63)), byte(0x80 | (point >> 6 & 63));
        byte(0x80 | (point & 63));
    }
}

void append_string(std::string &out, std::string_view text) {
    out.push_back('"');
    std::size_t from = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto c = static_cast<unsigned char>(text[i]);
        if (c >= 0x20 && c != '"' && c != '\\') continue;
        out.append(text, from, i - from);
        from = i + 1;
        const std::size_t letter = MEANT.find(text[i]);
        out.push_back('\\');
        if (letter != std::string_view::npos) {
            out.push_back(LETTERS[letter]);
        } else {
            out.append("u00");
            out.push_back("0123456789abcdef"[c >> 4]);
            out.push_back("0123456789abcdef"[c & 15]);
        }
    }
    out.append(text, from, std::string_view::npos);
    out.push_back('"');
}

void append_whole(std::string &out, std::size_t number) {
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
    out.append(digits, end);
}

#if defined(__cpp_lib_to_chars)

// The shortest decimals that mean this number: plain from 1e-5 to 1e16, else with an exponent, as msgspec has it.
void append_number(std::string &out, double number) {
    if (!std::isfinite(number)) {
        out.append("null");
        return;
    }
    char spelled[40];
    const auto end = std::to_chars(spelled, spelled + sizeof spelled, number, std::chars_format::scientific).ptr;
    const char *p = spelled;
    if (*p == '-') out.push_back(*p++);
    const char *const e = static_cast<const char *>(std::memchr(p, 'e', static_cast<std::size_t>(end - p)));
    std::string digits(1, *p);
    if (e - p > 2) digits.append(p + 2, e);
    int exponent = 0;
    std::from_chars(e + (e[1] == '+' ? 2 : 1), end, exponent);
    if (number == 0) {
        out.append("0.0");
    } else if (exponent < -5 || exponent >= 16) {
        out.push_back(digits[0]);
        if (digits.size() > 1) out.push_back('.'), out.append(digits, 1, std::string::npos);
        out.push_back('e');
        const auto last = std::to_chars(spelled, spelled + sizeof spelled, exponent).ptr;
        out.append(spelled, last);
    } else if (exponent < 0) {
        out.append("0.").append(static_cast<std::size_t>(-exponent - 1), '0').append(digits);
    } else {
        const auto before = static_cast<std::size_t>(exponent) + 1;
        if (digits.size() <= before) {
            out.append(digits).append(before - digits.size(), '0').append(".0");
        } else {
            out.append(digits, 0, before).append(".").append(digits, before, std::string::npos);
        }
    }
}

bool parse_number(const char *from, const char *to, double &value) {
    const auto [end, error] = std::from_chars(from, to, value);
    return error == std::errc() && end == to;
}

#else

void append_number(std::string &, double) {}
bool parse_number(const char *, const char *, double &) { return false; }

#endif

}  // namespace

// Whether the probabilities may add up to more than 1 (formats/logprobs.py, accept), which is worth a warning.
bool too_probable(const Side &side) {
    double sum = 0;
    for (const double logprob : side.logprobs) sum += std::exp(logprob);
    if (sum <= 1) return false;
    double distinct = 0;  // of equal sequences the most likely counts
    const auto start = [&](std::size_t i) { return i ? side.token_ends[i - 1] : 0; };
    const auto same = [&](std::size_t i, std::size_t j) {
        if (side.token_ends.empty()) return side.texts[i] == side.texts[j];
        return std::equal(side.tokens.data() + start(i), side.tokens.data() + side.token_ends[i],
                          side.tokens.data() + start(j), side.tokens.data() + side.token_ends[j]);
    };
    if (side.size() > 128) return true;  // left to the careful way, which is quicker then
    for (std::size_t i = 0; i < side.size(); ++i) {
        bool counts = true;
        for (std::size_t j = 0; j < side.size() && counts; ++j)
            if (j != i && (side.logprobs[j] > side.logprobs[i] || (side.logprobs[j] == side.logprobs[i] && j < i)))
                counts = !same(i, j);
        if (counts) distinct += std::exp(side.logprobs[i]);
    }
    return distinct > MOST;
}

bool lines_supported() {
#if defined(__cpp_lib_to_chars)
    return true;
#else
    return false;
#endif
}

bool valid_utf8(std::string_view bytes) {
    auto p = reinterpret_cast<const unsigned char *>(bytes.data());
    const auto end = p + bytes.size();
    while (p < end) {
        if (end - p >= 8 && !(load8(p) & 0x8080808080808080ull)) {
            p += 8;
            continue;
        }
        const unsigned char c = *p++;
        if (c < 0x80) continue;
        const int more = c >= 0xF0 ? 3 : c >= 0xE0 ? 2 : 1;
        if (c < 0xC2 || c > 0xF4 || end - p < more) return false;
        if ((c == 0xE0 && *p < 0xA0) || (c == 0xED && *p > 0x9F) || (c == 0xF0 && *p < 0x90) || (c == 0xF4 && *p > 0x8F))
            return false;  // longer than need be, a surrogate, or beyond U+10FFFF
        for (int i = 0; i < more; ++i)
            if ((*p++ & 0xC0) != 0x80) return false;
    }
    return true;
}

// A line

bool BallotReader::read(std::string_view line) {
    p_ = line.data(), end_ = p_ + line.size();
    candidates.clear(), voters.clear(), room_.clear();
    room_.reserve(line.size());  // so that no text in it ever moves
    has_voters = false, id_kind = Id::none;
    if (!valid_utf8(line) || !take('{')) return false;
    bool listed = false, seen[4] = {};  // voters, id, source, references
    const auto first = [](bool &flag) { return !flag && (flag = true); };
    for (bool more = true; more; more = take(',')) {
        std::string_view name;
        if (!key(name)) return false;
        if (name == "candidates" || name == "hypotheses") {
            if (!first(listed) || !side(candidates)) return false;
        } else if (name == "voters") {
            if (!first(seen[0])) return false;
            has_voters = !word("null");
            if (has_voters && !side(voters)) return false;
        } else if (name == "id") {
            if (!first(seen[1]) || !read_id()) return false;
        } else if (name == "source") {
            if (!first(seen[2]) || !(word("null") || string(name))) return false;
        } else if (name == "references") {
            if (!first(seen[3]) || !texts()) return false;
        } else {
            return false;
        }
    }
    if (!take('}') || !listed) return false;
    next();
    if (p_ != end_) return false;
    return !too_probable(candidates) && !too_probable(voters);
}

char BallotReader::next() {
    while (p_ < end_ && (*p_ == ' ' || *p_ == '\t' || *p_ == '\n' || *p_ == '\r')) ++p_;
    return p_ < end_ ? *p_ : '\0';
}

bool BallotReader::take(char c) {
    if (next() != c || p_ == end_) return false;
    ++p_;
    return true;
}

bool BallotReader::key(std::string_view &name) { return string(name) && take(':'); }

// The bytes between two quotation marks; where there are escapes, a copy without them.
bool BallotReader::string(std::string_view &text) {
    if (!take('"')) return false;
    const char *from = p_;
    const std::size_t copied = room_.size();
    bool copy = false;
    for (;;) {
#ifdef RANGEVOTE_EIGHT_AT_A_TIME
        while (end_ - p_ >= 8) {  // past eight bytes of which none is a quotation mark, a backslash or a control
            const std::uint64_t x = load8(reinterpret_cast<const unsigned char *>(p_));
            const std::uint64_t quote = x ^ '"' * EACH, slash = x ^ '\\' * EACH;
            const std::uint64_t found = ((quote - EACH) & ~quote) | ((slash - EACH) & ~slash) | ((x - 0x20 * EACH) & ~x);
            if (found & 0x80 * EACH) {
                p_ += first_byte(found & 0x80 * EACH);
                break;
            }
            p_ += 8;
        }
#endif
        if (p_ == end_ || static_cast<unsigned char>(*p_) < 0x20) return false;
        if (*p_ != '"' && *p_ != '\\') {
            ++p_;
            continue;
        }
        if (copy || *p_ == '\\') room_.append(from, p_);
        if (*p_ == '"') break;
        copy = true;
        if (!escape()) return false;
        from = p_;
    }
    text = copy ? std::string_view(room_).substr(copied)
                : std::string_view(from, static_cast<std::size_t>(p_ - from));
    ++p_;
    return true;
}

bool BallotReader::escape() {
    if (end_ - p_ < 2) return false;
    const char c = p_[1];
    p_ += 2;
    if (c != 'u') {
        const std::size_t which = LETTERS.find(c);
        if (which == std::string_view::npos) return false;
        room_.push_back(MEANT[which]);
        return true;
    }
    const auto unit = [&](std::uint32_t &value) {
        if (end_ - p_ < 4) return false;
        value = 0;
        for (int i = 0; i < 4; ++i) {
            const int nibble = hex(*p_++);
            if (nibble < 0) return false;
            value = value << 4 | static_cast<std::uint32_t>(nibble);
        }
        return true;
    };
    std::uint32_t point, low;
    if (!unit(point)) return false;
    if (point >= 0xD800 && point < 0xE000) {  // half of a pair: the other half must follow
        if (point >= 0xDC00 || end_ - p_ < 6 || p_[0] != '\\' || p_[1] != 'u') return false;
        p_ += 2;
        if (!unit(low) || low < 0xDC00 || low > 0xDFFF) return false;
        point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00);
    }
    append_utf8(room_, point);
    return true;
}

bool BallotReader::word(std::string_view spelled) {
    next();
    if (static_cast<std::size_t>(end_ - p_) < spelled.size() || std::string_view(p_, spelled.size()) != spelled)
        return false;
    p_ += spelled.size();
    return true;
}

// A log-probability: a number of JSON, from minus infinity to 0.
bool BallotReader::number(double &value) {
    next();
    const char *from = p_;
    const auto digits = [&] {
        const char *first = p_;
        while (p_ < end_ && digit(*p_)) ++p_;
        return p_ - first;
    };
    if (p_ < end_ && *p_ == '-') ++p_;
    const bool zero = p_ < end_ && *p_ == '0';
    const auto before = digits();
    if (before == 0 || (zero && before > 1)) return false;
    bool whole = true;
    if (p_ < end_ && *p_ == '.') {
        whole = false, ++p_;
        if (digits() == 0) return false;
    }
    if (p_ < end_ && (*p_ == 'e' || *p_ == 'E')) {
        whole = false, ++p_;
        if (p_ < end_ && (*p_ == '+' || *p_ == '-')) ++p_;
        if (digits() == 0) return false;
    }
    if (whole && before > 15) return false;  // might not be exact, as a float
    return parse_number(from, p_, value) && value <= 0.0;
}

bool BallotReader::whole(std::int64_t &value) {
    next();
    const char *from = p_;
    if (p_ < end_ && *p_ == '-') ++p_;
    const char *first = p_;
    while (p_ < end_ && digit(*p_)) ++p_;
    if (p_ == first || p_ - first > 18 || (*first == '0' && (p_ - first > 1 || first != from))) return false;
    if (p_ < end_ && (*p_ == '.' || *p_ == 'e' || *p_ == 'E')) return false;
    return std::from_chars(from, p_, value).ec == std::errc();
}

bool BallotReader::truth(bool &value) { return (value = word("true")) || word("false"); }

bool BallotReader::read_id() {
    if (word("null")) return true;
    if (next() == '"') {
        id_kind = Id::text;
        return string(id);
    }
    const char *from = p_;
    std::int64_t value;
    if (!whole(value)) return false;
    id_kind = Id::number;
    id = std::string_view(from, static_cast<std::size_t>(p_ - from));
    return true;
}

bool BallotReader::texts() {
    if (word("null")) return true;
    if (!take('[')) return false;
    if (take(']')) return true;
    std::string_view text;
    do
        if (!string(text)) return false;
    while (take(','));
    return take(']');
}

bool BallotReader::side(Side &side) {
    if (!take('[') || take(']')) return false;
    do
        if (!hypothesis(side)) return false;
    while (take(','));
    const std::size_t all = side.size();
    return take(']') && (side.logprobs.empty() || side.logprobs.size() == all) &&
           (side.token_ends.empty() || side.token_ends.size() == all);
}

bool BallotReader::hypothesis(Side &side) {
    bool finished = true, sampled = false, seen[5] = {};
    std::string_view text;
    if (next() == '"') {
        seen[0] = string(text);
    } else {
        if (!take('{')) return false;
        const auto first = [](bool &flag) { return !flag && (flag = true); };
        for (bool more = true; more; more = take(',')) {
            std::string_view name;
            if (!key(name)) return false;
            if (name == "text") {
                if (!first(seen[0]) || !string(text)) return false;
            } else if (name == "logprob") {
                double value;
                if (!first(seen[1])) return false;
                if (word("null")) continue;
                if (!number(value)) return false;
                side.logprobs.push_back(value);
            } else if (name == "tokens") {
                if (!first(seen[2]) || !(word("null") || integers(side))) return false;
            } else if (name == "finished") {
                if (!first(seen[3]) || !truth(finished)) return false;
            } else if (name == "sampled") {
                if (!first(seen[4]) || !truth(sampled)) return false;
            } else {
                return false;
            }
        }
        if (!take('}')) return false;
    }
    side.texts.push_back(text);
    side.finished.push_back(finished);
    side.sampled |= sampled;
    return seen[0];
}

bool BallotReader::integers(Side &side) {
    if (!take('[')) return false;
    if (!take(']')) {
        std::int64_t value;
        do {
            if (!whole(value)) return false;
            side.tokens.push_back(value);
        } while (take(','));
        if (!take(']')) return false;
    }
    side.token_ends.push_back(side.tokens.size());
    return true;
}

// A result

void write_result(const BallotReader &ballot, const Outcome &outcome, const ResultFormat &format, std::string &out) {
    const std::string_view winner = ballot.candidates.texts[outcome.winner];
    if (format.text) {
        for (std::size_t i = 0; i < winner.size(); ++i) {
            if (winner[i] == '\r' && i + 1 < winner.size() && winner[i + 1] == '\n') continue;
            out.push_back(winner[i] == '\n' || winner[i] == '\r' ? ' ' : winner[i]);
        }
        out.push_back('\n');
        return;
    }
    out.append("{\"id\":");
    if (ballot.id_kind == BallotReader::Id::text) append_string(out, ballot.id);
    else out.append(ballot.id_kind == BallotReader::Id::none ? std::string_view("null") : ballot.id);
    out.append(",\"winner\":");
    append_string(out, winner);
    out.append(",\"index\":");
    append_whole(out, outcome.winner);
    out.append(",\"score\":");
    append_number(out, outcome.scores[outcome.winner]);
    out.append(",\"margin\":");
    if (outcome.alone) out.append("null");
    else append_number(out, outcome.margin);
    out.append(",\"signature\":\"");
    const std::vector<std::string> &pieces = outcome.by_probability ? format.by_probability : format.by_count;
    out.append(pieces[0]);
    append_whole(out, outcome.scores.size());
    out.append(pieces[1]);
    append_whole(out, outcome.weights.size());
    out.append(pieces[2]).append("\"");
    if (!outcome.alone && outcome.margin < NEAR_TIE) out.append(",\"near_tie\":true");
    if (!outcome.supported()) out.append(",\"no_support\":true");
    if (format.scores) {
        out.append(",\"scores\":[");
        for (std::size_t c = 0; c < outcome.scores.size(); ++c) {
            if (c) out.push_back(',');
            append_number(out, outcome.scores[c]);
        }
        out.push_back(']');
    }
    out.append("}\n");
}

}  // namespace rangevote
