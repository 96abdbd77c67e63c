// The Python face of the kernels: takes strings and arrays, releases the GIL, calls Index.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>

#include "election.hpp"
#include "index.hpp"

namespace nb = nanobind;
using namespace rangevote;

namespace {

using Weights = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Scores = nb::ndarray<nb::numpy, double>;

// Borrowed views of Python strings. The tuple keeps the strings alive while the GIL is released.
struct Texts {
    nb::tuple owner;
    std::vector<std::string_view> views;

    explicit Texts(nb::handle sequences) : owner(nb::tuple(sequences)) {
        const std::size_t n = owner.size();
        views.reserve(n);
        for (std::size_t i = 0; i < n; ++i) {
            Py_ssize_t size = 0;
            const char *data = PyUnicode_AsUTF8AndSize(nb::handle(owner[i]).ptr(), &size);
            if (!data) throw nb::python_error();  // a lone surrogate, or not a string
            views.emplace_back(data, static_cast<std::size_t>(size));
        }
    }
};

std::vector<std::vector<std::int64_t>> token_ids(nb::handle sequences) {
    std::vector<std::vector<std::int64_t>> all;
    for (nb::handle sequence : nb::iter(sequences)) {
        all.emplace_back();
        for (nb::handle id : nb::iter(sequence)) {
            const long long value = PyLong_AsLongLong(id.ptr());
            if (value == -1 && PyErr_Occurred()) throw nb::python_error();  // beyond 64 bits
            all.back().push_back(value);
        }
    }
    return all;
}

Unit unit_named(const std::string &name) {
    if (name == "space") return Unit::space;
    if (name == "words") return Unit::words;
    if (name == "chars") return Unit::chars;
    if (name == "ids") return Unit::ids;
    throw std::invalid_argument("unit must be space, words, chars or ids, not " + name);
}

Formula formula_named(const std::string &name) {
    if (name == "family") return Formula::family;
    if (name == "bleu") return Formula::bleu;
    if (name == "smoothed_bleu") return Formula::smoothed_bleu;
    if (name == "chrf") return Formula::chrf;
    throw std::invalid_argument("formula must be family, bleu, smoothed_bleu or chrf, not " + name);
}

// Runs work with the GIL released; one thread at a time in each Index.
template <class Work> void run(const Index &index, Work &&work) {
    nb::gil_scoped_release release;
    std::lock_guard<std::mutex> lock(index.mutex());
    work();
}

// Calls take(sequences), with texts or with token ids.
template <class Take> void read(const Index &index, nb::handle sequences, Take &&take) {
    if (index.unit() == Unit::ids) {
        const auto ids = token_ids(sequences);
        run(index, [&] { take(ids); });
    } else {
        const Texts texts(sequences);
        run(index, [&] { take(texts.views); });
    }
}

void construct(Index *self, nb::handle sequences, const std::string &unit, std::vector<int> orders, bool bag,
               bool short_sequences) {
    auto index = new (self) Index(Features{unit_named(unit), std::move(orders), bag, short_sequences});
    try {
        read(*index, sequences, [&](const auto &candidates) { index->set_candidates(candidates); });
    } catch (...) {
        index->~Index();
        throw;
    }
}

void add(Index &index, nb::handle sequences) {
    read(index, sequences, [&](const auto &voters) { index.add(voters); });
}

std::unique_ptr<double[]> room(std::size_t n) { return std::unique_ptr<double[]>(new double[n ? n : 1]); }

Scores array(std::unique_ptr<double[]> data, std::initializer_list<std::size_t> shape) {
    double *raw = data.get();
    nb::capsule owner(raw, [](void *p) noexcept { delete[] static_cast<double *>(p); });
    data.release();
    return Scores(raw, shape, owner);
}

// Sizes are read inside the lock: another thread may be adding voters.
Scores tally(const Index &index, const Weights &weights, double parameter, bool self_voting,
             const std::string &formula) {
    auto scores = room(index.candidates());
    run(index, [&] {
        if (weights.shape(0) != index.voters(self_voting)) throw std::invalid_argument("one weight for each voter");
        index.tally(formula_named(formula), parameter, weights.data(), self_voting, scores.get());
    });
    return array(std::move(scores), {index.candidates()});
}

Scores grades(const Index &index, double parameter, bool self_voting, const std::string &formula) {
    std::size_t rows = 0;
    std::unique_ptr<double[]> grades;
    run(index, [&] {
        rows = index.voters(self_voting);
        grades = room(rows * index.candidates());
        index.grades(formula_named(formula), parameter, self_voting, grades.get());
    });
    return array(std::move(grades), {rows, index.candidates()});
}

// A log-probability that needs no second look: a number from minus infinity to 0.
bool read_logprob(nb::handle value, double &number) {
    if (!PyFloat_CheckExact(value.ptr())) return false;
    number = PyFloat_AsDouble(value.ptr());
    return number <= 0.0;  // not NaN
}

// The fields of a hypothesis that most have (hypothesis.py, Hypothesis); the first five have values to keep.
enum Field { TEXT, LOGPROB, TOKENS, MEMBER, FINISHED, SAMPLED, FIELDS };
constexpr const char *NAMES[FIELDS] = {"text", "logprob", "tokens", "member", "finished", "sampled"};

// The field of a name; FIELDS if it is another one. Readers of JSON give the same object for each occurrence of a
// short name, so `seen` has the names of before.
int field_of(PyObject *name, PyObject *(&seen)[FIELDS]) {
    for (int field = 0; field < FIELDS; ++field)
        if (seen[field] == name) return field;
    if (!PyUnicode_CheckExact(name)) return FIELDS;
    for (int field = 0; field < FIELDS; ++field)
        if (PyUnicode_CompareWithASCIIString(name, NAMES[field]) == 0) {
            seen[field] = name;
            return field;
        }
    return FIELDS;
}

// Whether a value of a usual field has nothing to refuse.
bool is_usual(int field, PyObject *value) {
    double number;
    if (field == LOGPROB) return read_logprob(value, number);
    if (field == FINISHED || field == SAMPLED) return PyBool_Check(value);
    if (field != TOKENS) return PyUnicode_CheckExact(value);
    const bool list = PyList_CheckExact(value);
    if (!list && !PyTuple_CheckExact(value)) return false;
    const Py_ssize_t size = list ? PyList_Size(value) : PyTuple_Size(value);
    for (Py_ssize_t i = 0; i < size; ++i)
        if (!PyLong_CheckExact(list ? PyList_GetItem(value, i) : PyTuple_GetItem(value, i))) return false;
    return true;
}

nb::object tuple_of(const std::vector<PyObject *> &values) {
    if (values.empty()) return nb::none();
    nb::object tuple = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(values.size())));
    if (!tuple) throw nb::python_error();
    for (std::size_t i = 0; i < values.size(); ++i) {
        Py_INCREF(values[i]);
        PyTuple_SetItem(tuple.ptr(), static_cast<Py_ssize_t>(i), values[i]);
    }
    return tuple;
}

// The columns of hypotheses as JSON has them, texts or objects, in which there is nothing to refuse: texts,
// log-probabilities, token ids, members, which are finished, whether all were sampled, and the sum of the probabilities;
// None for a column without values (finished: all are). None in place of them if a value needs a second look
// (hypothesis.py, check_rows): then Python makes the columns, or says what is wrong.
nb::object usual_columns(nb::handle rows) {
    if (!PyList_CheckExact(rows.ptr())) return nb::none();
    const Py_ssize_t size = PyList_Size(rows.ptr());
    std::vector<PyObject *> columns[FINISHED + 1];
    PyObject *seen[FIELDS] = {};
    Py_ssize_t sampled = 0, unfinished = 0;
    double mass = 0.0;
    for (Py_ssize_t row = 0; row < size; ++row) {
        PyObject *const item = PyList_GetItem(rows.ptr(), row);
        PyObject *finished = Py_True;
        if (PyUnicode_CheckExact(item)) {
            columns[TEXT].push_back(item);
        } else {
            if (!PyDict_CheckExact(item)) return nb::none();
            PyObject *name, *value;
            for (Py_ssize_t place = 0; PyDict_Next(item, &place, &name, &value);) {
                const int field = field_of(name, seen);
                if (field == FIELDS) return nb::none();
                if (value == Py_None && field < FINISHED) continue;  // not known
                if (!is_usual(field, value)) return nb::none();
                if (field == FINISHED) finished = value;
                else if (field == SAMPLED) sampled += value == Py_True;
                else columns[field].push_back(value);
                if (field == LOGPROB) mass += std::exp(PyFloat_AsDouble(value));
            }
        }
        columns[FINISHED].push_back(finished);
        unfinished += finished == Py_False;
        if (columns[TEXT].size() != columns[FINISHED].size()) return nb::none();
    }
    if (!size || (sampled && sampled < size)) return nb::none();
    for (const auto &column : columns)
        if (!column.empty() && column.size() != static_cast<std::size_t>(size)) return nb::none();
    if (!unfinished) columns[FINISHED].clear();
    return nb::make_tuple(tuple_of(columns[TEXT]), tuple_of(columns[LOGPROB]), tuple_of(columns[TOKENS]),
                          tuple_of(columns[MEMBER]), tuple_of(columns[FINISHED]), sampled > 0, mass);
}

// P^(1/T), normalised to sum to 1; those in `again` count nothing. All 0 if every P is 0.
Scores softmax_of(const Weights &logprobs, double temperature, const std::vector<std::size_t> &again) {
    const std::size_t n = logprobs.shape(0);
    auto out = room(n);
    std::copy(logprobs.data(), logprobs.data() + n, out.get());
    for (const std::size_t i : again) out[i] = -std::numeric_limits<double>::infinity();
    softmax(out.get(), n, again.size(), temperature);
    return array(std::move(out), {n});
}

// Elections of one kind, many in a call. What is unusual gives None: the general way through Python is for that.
class Election {
    ElectionPlan plan_;

    static constexpr std::size_t LARGE = 8192;  // bytes of text for which it pays to let other threads run

    struct Work {
        Side candidates, voters;
        nb::object texts[2];
        Outcome outcome;
        bool two = false, usual = false;
    };

    static bool read_text(PyObject *text, Side &side) {
        if (!PyUnicode_CheckExact(text)) return false;
        Py_ssize_t size = 0;
        const char *data = PyUnicode_AsUTF8AndSize(text, &size);
        if (!data) {  // a lone surrogate
            PyErr_Clear();
            return false;
        }
        side.texts.emplace_back(data, static_cast<std::size_t>(size));
        return true;
    }

    static bool read_tokens(PyObject *ids, Side &side) {
        const bool list = PyList_CheckExact(ids);
        if (!list && !PyTuple_CheckExact(ids)) return false;
        const Py_ssize_t size = list ? PyList_Size(ids) : PyTuple_Size(ids);
        for (Py_ssize_t i = 0; i < size; ++i) {
            PyObject *id = list ? PyList_GetItem(ids, i) : PyTuple_GetItem(ids, i);
            if (!PyLong_CheckExact(id)) return false;
            const long long value = PyLong_AsLongLong(id);
            if (value == -1 && PyErr_Occurred()) {
                PyErr_Clear();
                return false;
            }
            side.tokens.push_back(value);
        }
        side.token_ends.push_back(side.tokens.size());
        return true;
    }

    // One value of the column that stands at `column`: text, log-probability, tokens, finished, sampled, number of the
    // member; then the share of a member; of others none.
    static bool read_value(Py_ssize_t column, PyObject *value, Side &side) {
        double number;
        switch (column) {
        case 0: return read_text(value, side);
        case 1:
            if (value == Py_None) return true;
            if (!read_logprob(value, number)) return false;
            side.logprobs.push_back(number);
            return true;
        case 2: return value == Py_None || read_tokens(value, side);
        case 3: side.finished.push_back(value == Py_True); return PyBool_Check(value);
        case 4: side.sampled += value == Py_True; return PyBool_Check(value);
        case 5: side.members.push_back(PyLong_AsSize_t(value)); return true;
        case 6: side.shares.push_back(PyFloat_AsDouble(value)); return true;
        default: return value == Py_None;
        }
    }

    // A side of a ballot, as a tuple of columns, or None where nothing is known. The texts are kept in a tuple, so
    // that they live while other threads run.
    static bool read(nb::handle columns, Side &side, nb::object &texts) {
        if (!PyTuple_CheckExact(columns.ptr())) return false;
        for (Py_ssize_t c = 0; c < PyTuple_Size(columns.ptr()); ++c) {
            const nb::handle given = PyTuple_GetItem(columns.ptr(), c);
            if (given.is_none()) continue;
            const nb::tuple column(given);
            if (c == 0) side.texts.reserve(column.size());
            if (c == 0) texts = column;
            if (c == 1) side.logprobs.reserve(column.size());
            for (nb::handle value : column)
                if (!read_value(c, value.ptr(), side)) return false;
        }
        const auto all_or_none = [&](const auto &column) { return column.empty() || column.size() == side.size(); };
        const std::size_t members = side.shares.size();  // numbered by election/settings.py, each there once or more
        for (const std::size_t member : side.members)
            if (member >= members) throw std::invalid_argument("one share for each member");
        return all_or_none(side.logprobs) && all_or_none(side.token_ends) && all_or_none(side.finished) &&
               all_or_none(side.members);
    }

    void elect(std::vector<Work> &works) const {
        for (Work &work : works)
            if (work.usual)
                work.usual = elections_of_thread().hold(plan_, work.candidates, work.two ? &work.voters : nullptr,
                                                        work.outcome);
    }

    // election/result.py, Answer; at the end scores, weights and own likelihoods as bytes.
    static nb::object answer(const Outcome &outcome) {
        std::vector<double> numbers = outcome.scores;
        numbers.insert(numbers.end(), outcome.weights.begin(), outcome.weights.end());
        numbers.insert(numbers.end(), outcome.evidence.begin(), outcome.evidence.end());
        return nb::make_tuple(outcome.winner, outcome.scores[outcome.winner],
                              outcome.alone ? nb::object(nb::none()) : nb::cast(outcome.margin), outcome.supported,
                              outcome.by_probability, nb::bytes(numbers.data(), numbers.size() * sizeof(double)));
    }

public:
    Election(const std::string &unit, std::vector<int> orders, bool bag, bool short_sequences,
             const std::string &formula, double parameter, const std::string &weights, double temperature,
             bool temperature_given, double likelihood)
        : plan_{Features{unit_named(unit), std::move(orders), bag, short_sequences}, formula_named(formula), parameter,
                Weighting::usual, temperature, temperature_given, likelihood} {
        if (weights == "probability") plan_.weighting = Weighting::probability;
        else if (weights == "count") plan_.weighting = Weighting::count;
        else if (weights != "usual") throw std::invalid_argument("no such weights: " + weights);
    }

    // `ballots` are tuples of the candidates' columns and the voters', None where the candidates vote.
    nb::list many(nb::handle list) const {
        const nb::tuple ballots(list);
        std::vector<Work> works(ballots.size());
        std::size_t bytes = 0;
        for (std::size_t i = 0; i < works.size(); ++i) {
            const nb::tuple ballot = nb::borrow<nb::tuple>(ballots[i]);
            Work &work = works[i];
            work.two = !nb::handle(ballot[1]).is_none();
            work.usual = read(ballot[0], work.candidates, work.texts[0]) &&
                         (!work.two || read(ballot[1], work.voters, work.texts[1]));
            bytes += work.candidates.bytes() + (work.two ? work.voters.bytes() : 0);
        }
        if (bytes > LARGE) {
            nb::gil_scoped_release release;
            elect(works);
        } else {
            elect(works);
        }
        nb::list answers;
        for (const Work &work : works) answers.append(work.usual ? answer(work.outcome) : nb::object(nb::none()));
        return answers;
    }
};

}  // namespace

NB_MODULE(_kernels, m) {
    nb::set_leak_warnings(false);  // settings keep elections until the interpreter ends
    m.doc() = "Compiled counting kernels; rangevote.kernel.plain holds the same functions in Python.";
    m.def("softmax", &softmax_of, nb::arg("logprobs"), nb::arg("temperature"), nb::arg("again"));
    m.def("usual_columns", &usual_columns, nb::arg("rows"));
    nb::class_<Election>(m, "Election")
        .def(nb::init<const std::string &, std::vector<int>, bool, bool, const std::string &, double, const std::string &,
                      double, bool, double>(),
             nb::arg("unit"), nb::arg("orders"), nb::arg("bag"), nb::arg("short"), nb::arg("formula"),
             nb::arg("parameter"), nb::arg("weights"), nb::arg("temperature"), nb::arg("temperature_given"),
             nb::arg("likelihood"))
        .def("many", &Election::many, nb::arg("ballots"));
    nb::class_<Index>(m, "Index")
        .def("__init__", &construct, nb::arg("sequences"), nb::arg("unit"), nb::arg("orders"), nb::arg("bag"),
             nb::arg("short"))
        .def_prop_ro("voters", [](const Index &index) { return index.voters(false); })
        .def("add", &add, nb::arg("sequences"))
        .def("tally", &tally, nb::arg("weights"), nb::arg("parameter"), nb::arg("self_voting"),
             nb::arg("formula") = "family")
        .def("grades", &grades, nb::arg("parameter"), nb::arg("self_voting"), nb::arg("formula") = "family");
}
