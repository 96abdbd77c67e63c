// The Python face of the kernels: takes strings and arrays, releases the GIL, calls Index.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
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
    if (name == "words") return Unit::words;
    if (name == "chars") return Unit::chars;
    if (name == "ids") return Unit::ids;
    throw std::invalid_argument("unit must be words, chars or ids, not " + name);
}

// Runs work with the GIL released; one thread at a time in each Index.
template <class Work> void run(const Index &index, Work &&work) {
    nb::gil_scoped_release release;
    std::lock_guard<std::mutex> lock(index.mutex());
    work();
}

void construct(Index *self, nb::handle sequences, const std::string &unit, std::vector<int> orders, bool bag,
               bool short_sequences) {
    auto index = new (self) Index(Features{unit_named(unit), std::move(orders), bag, short_sequences});
    try {
        if (index->unit() == Unit::ids) {
            const auto ids = token_ids(sequences);
            run(*index, [&] { index->set_candidates(ids); });
        } else {
            const Texts texts(sequences);
            run(*index, [&] { index->set_candidates(texts.views); });
        }
    } catch (...) {
        index->~Index();
        throw;
    }
}

void add(Index &index, nb::handle sequences) {
    if (index.unit() == Unit::ids) {
        const auto ids = token_ids(sequences);
        run(index, [&] { index.add(ids); });
    } else {
        const Texts texts(sequences);
        run(index, [&] { index.add(texts.views); });
    }
}

std::unique_ptr<double[]> room(std::size_t n) { return std::unique_ptr<double[]>(new double[n ? n : 1]); }

Scores array(std::unique_ptr<double[]> data, std::initializer_list<std::size_t> shape) {
    double *raw = data.get();
    nb::capsule owner(raw, [](void *p) noexcept { delete[] static_cast<double *>(p); });
    data.release();
    return Scores(raw, shape, owner);
}

// Sizes are read inside the lock: another thread may be adding voters.
template <class Work> Scores vector_of(const Index &index, const Weights &weights, bool own, Work &&work) {
    auto scores = room(index.candidates());
    run(index, [&] {
        if (weights.shape(0) != index.voters(own)) throw std::invalid_argument("one weight for each voter");
        work(weights.data(), scores.get());
    });
    return array(std::move(scores), {index.candidates()});
}

template <class Work> Scores matrix_of(const Index &index, bool own, Work &&work) {
    std::size_t rows = 0;
    std::unique_ptr<double[]> grades;
    run(index, [&] {
        rows = index.voters(own);
        grades = room(rows * index.candidates());
        work(grades.get());
    });
    return array(std::move(grades), {rows, index.candidates()});
}

// A log-probability that needs no second look: a number from minus infinity to 0.
bool read_logprob(nb::handle value, double &number) {
    if (!PyFloat_CheckExact(value.ptr()) && !PyLong_CheckExact(value.ptr())) return false;
    number = PyFloat_AsDouble(value.ptr());
    if (number == -1.0 && PyErr_Occurred()) {  // an integer beyond all floats
        PyErr_Clear();
        return false;
    }
    return number <= 0.0;  // not NaN
}

// Log-probabilities as an array, if each is a number from minus infinity to 0; else None.
nb::object logprob_column(nb::list values) {
    const std::size_t n = values.size();
    auto column = room(n);
    for (std::size_t i = 0; i < n; ++i)
        if (!read_logprob(values[i], column[i])) return nb::none();
    return nb::cast(array(std::move(column), {n}));
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

// Elections of one kind. What is unusual gives None: the careful way through Python is for that.
class Election {
    ElectionPlan plan_;
    nb::object row_;  // the class Hypothesis; where its objects have what is read, and what must be None
    std::size_t text_, tokens_, logprob_, finished_, sampled_;
    std::vector<std::size_t> unread_;

    // Where objects of the class keep a field, in bytes from their start: asking for eleven attributes of each
    // would take as long as the count. Found by a marker, since the stable ABI does not tell; objects are frozen.
    static std::size_t offset_of(const nb::object &row, const char *field) {
        const nb::object marker = nb::steal(PyBytes_FromStringAndSize("marker", 6));
        nb::dict fields;
        fields[field] = marker;
        const nb::object probe = row(**fields);
        const auto size = nb::cast<std::size_t>(row.attr("__basicsize__"));
        for (std::size_t at = 0; at + sizeof(PyObject *) <= size; at += sizeof(PyObject *))
            if (field_at(probe, at) == marker.ptr()) return at;
        throw std::invalid_argument(std::string("no place for the field ") + field);
    }

    static PyObject *field_at(nb::handle row, std::size_t offset) {
        PyObject *value;
        std::memcpy(&value, reinterpret_cast<const char *>(row.ptr()) + offset, sizeof value);
        return value ? value : Py_None;
    }

    bool read_tokens(PyObject *ids, Side &side) const {
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

    // A `Hypothesis`. Its strings live as long as the row does, and that as long as its list.
    bool read_row(nb::handle row, Side &side) const {
        for (const std::size_t field : unread_)
            if (field_at(row, field) != Py_None) return false;
        if (!read_text(field_at(row, text_), side)) return false;
        PyObject *logprob = field_at(row, logprob_), *tokens = field_at(row, tokens_);
        PyObject *sampled = field_at(row, sampled_), *finished = field_at(row, finished_);
        if (logprob != Py_None) {
            double number;
            if (!read_logprob(logprob, number)) return false;
            side.logprobs.push_back(number);
        }
        if (tokens != Py_None && !read_tokens(tokens, side)) return false;
        if (!PyBool_Check(sampled) || !PyBool_Check(finished)) return false;
        side.sampled |= sampled == Py_True;
        side.finished.push_back(finished == Py_True);
        return true;
    }

public:
    Election(nb::object row, const std::vector<std::string> &unread, const std::string &unit, std::vector<int> orders, bool bag, bool short_sequences,
             const std::string &formula, double parameter, const std::string &weights, double temperature,
             bool temperature_given, double likelihood)
        : plan_{Features{unit_named(unit), std::move(orders), bag, short_sequences}, Formula::family, parameter,
                Weighting::usual, temperature, temperature_given, likelihood},
          row_(std::move(row)) {
        if (formula == "bleu") plan_.formula = Formula::bleu;
        else if (formula == "smoothed_bleu") plan_.formula = Formula::smoothed_bleu;
        else if (formula == "chrf") plan_.formula = Formula::chrf;
        else if (formula != "family") throw std::invalid_argument("no such formula: " + formula);
        if (weights == "probability") plan_.weighting = Weighting::probability;
        else if (weights == "count") plan_.weighting = Weighting::count;
        else if (weights != "usual") throw std::invalid_argument("no such weights: " + weights);
        text_ = offset_of(row_, "text"), tokens_ = offset_of(row_, "tokens"), logprob_ = offset_of(row_, "logprob");
        finished_ = offset_of(row_, "finished"), sampled_ = offset_of(row_, "sampled");
        for (const std::string &field : unread) unread_.push_back(offset_of(row_, field.c_str()));
    }

    const ElectionPlan &plan() const { return plan_; }

    // A list of texts with a list of log-probabilities or None, or a list of Hypothesis objects.
    bool read(nb::handle list, nb::handle logprobs, Side &side) const {
        side.clear();
        if (!PyList_CheckExact(list.ptr())) return false;
        const Py_ssize_t size = PyList_Size(list.ptr());
        const bool rows = size > 0 && nb::handle(PyList_GetItem(list.ptr(), 0)).type().is(row_);
        if (rows && !logprobs.is_none()) return false;
        for (Py_ssize_t i = 0; i < size; ++i) {
            const nb::handle item = PyList_GetItem(list.ptr(), i);
            if (rows ? !item.type().is(row_) || !read_row(item, side) : !read_text(item.ptr(), side)) return false;
        }
        if (!rows && !logprobs.is_none()) {
            if (!PyList_CheckExact(logprobs.ptr())) return false;
            const Py_ssize_t numbers = PyList_Size(logprobs.ptr());
            for (Py_ssize_t i = 0; i < numbers; ++i) {
                double number;
                if (!read_logprob(PyList_GetItem(logprobs.ptr(), i), number)) return false;
                side.logprobs.push_back(number);
            }
        }
        const std::size_t all = side.size();
        return (side.logprobs.empty() || side.logprobs.size() == all) &&
               (side.token_ends.empty() || side.token_ends.size() == all);
    }

    nb::object one(nb::handle candidates, nb::handle logprobs, nb::handle voters, nb::handle voter_logprobs) const {
        thread_local Side sides[2];
        thread_local Outcome outcome;
        const bool two = !voters.is_none();
        if (!two && !voter_logprobs.is_none()) return nb::none();
        if (!read(candidates, logprobs, sides[0]) || (two && !read(voters, voter_logprobs, sides[1])))
            return nb::none();
        bool held;
        if (LARGE < sides[0].bytes() + (two ? sides[1].bytes() : 0)) {
            const nb::tuple kept = nb::make_tuple(nb::tuple(candidates), two ? nb::tuple(voters) : nb::tuple());
            nb::gil_scoped_release release;
            held = elections_of_thread().hold(plan_, sides[0], two ? &sides[1] : nullptr, outcome);
        } else {
            held = elections_of_thread().hold(plan_, sides[0], two ? &sides[1] : nullptr, outcome);
        }
        return held ? told(outcome) : nb::none();
    }

    // `ballots` is a list of (candidates, voters or None). For each what `one` answers, with copies of the lists as
    // `one` takes them, since another thread may change these; or None.
    nb::list many(nb::list ballots) const {
        struct Work {
            Side candidates, voters;
            Outcome outcome;
            bool two = false, held = false;
        };
        thread_local std::vector<Work> works;  // with room from the last call
        const std::size_t size = ballots.size();
        if (works.size() < size) works.resize(size);
        nb::list answers;
        for (std::size_t i = 0; i < size; ++i) {
            const nb::tuple ballot = nb::borrow<nb::tuple>(ballots[i]);
            Work &work = works[i];
            work.two = !nb::handle(ballot[1]).is_none();
            work.held = read(ballot[0], nb::none(), work.candidates) &&
                        (!work.two || read(ballot[1], nb::none(), work.voters));
            nb::object kept = nb::none();
            if (work.held) {
                const nb::object voters = work.two ? nb::object(nb::tuple(ballot[1])) : nb::none();
                kept = nb::make_tuple(nb::tuple(ballot[0]), nb::none(), voters, nb::none());
            }
            answers.append(kept);
        }
        {
            nb::gil_scoped_release release;
            for (std::size_t i = 0; i < size; ++i)
                if (Work &work = works[i]; work.held)
                    work.held = elections_of_thread().hold(plan_, work.candidates,
                                                           work.two ? &work.voters : nullptr, work.outcome);
        }
        for (std::size_t i = 0; i < size; ++i)
            answers[i] = works[i].held ? nb::object(nb::make_tuple(told(works[i].outcome), answers[i])) : nb::none();
        return answers;
    }

private:
    static constexpr std::size_t LARGE = 8192;  // bytes of text for which it pays to let other threads run

    // (winner, margin or None, whether by probability, scores then weights then own likelihoods as bytes)
    static nb::object told(const Outcome &outcome) {
        const std::size_t sizes[] = {outcome.scores.size(), outcome.weights.size(), outcome.own.size()};
        const auto whole = static_cast<Py_ssize_t>(sizeof(double) * (sizes[0] + sizes[1] + sizes[2]));
        nb::object numbers = nb::steal(PyBytes_FromStringAndSize(nullptr, whole));
        if (!numbers.is_valid()) throw nb::python_error();
        char *to = PyBytes_AsString(numbers.ptr());
        for (const std::vector<double> *part : {&outcome.scores, &outcome.weights, &outcome.own}) {
            if (part->empty()) continue;  // its data() may be null
            std::memcpy(to, part->data(), part->size() * sizeof(double));
            to += part->size() * sizeof(double);
        }
        return nb::make_tuple(outcome.winner, outcome.alone ? nb::object(nb::none()) : nb::cast(outcome.margin),
                              outcome.by_probability, numbers);
    }
};

}  // namespace

NB_MODULE(_kernels, m) {
    nb::set_leak_warnings(false);  // settings keep elections until the interpreter ends
    m.doc() = "Compiled counting kernels; rangevote.kernel.plain holds the same functions in Python.";
    m.def("logprob_column", &logprob_column, nb::arg("values"));
    m.def("distinct", [](const Weights &values) { return distinct(values.data(), values.shape(0)); }, nb::arg("values"));
    m.def("softmax", &softmax_of, nb::arg("logprobs"), nb::arg("temperature"), nb::arg("again"));
    nb::class_<Election>(m, "Election")
        .def(nb::init<nb::object, const std::vector<std::string> &, const std::string &, std::vector<int>, bool, bool, const std::string &, double,
                      const std::string &, double, bool, double>(),
             nb::arg("row"), nb::arg("unread"), nb::arg("unit"), nb::arg("orders"), nb::arg("bag"), nb::arg("short"),
             nb::arg("formula"), nb::arg("parameter"), nb::arg("weights"), nb::arg("temperature"),
             nb::arg("temperature_given"), nb::arg("likelihood"))
        .def("one", &Election::one, nb::arg("candidates").none(), nb::arg("logprobs").none(),
             nb::arg("voters").none(), nb::arg("voter_logprobs").none())
        .def("many", &Election::many, nb::arg("ballots"));
    nb::class_<Index>(m, "Index")
        .def("__init__", &construct, nb::arg("sequences"), nb::arg("unit"), nb::arg("orders"), nb::arg("bag"),
             nb::arg("short"))
        .def_prop_ro("voters", [](const Index &index) { return index.voters(false); })
        .def("add", &add, nb::arg("sequences"))
        .def("tally",
             [](const Index &i, const Weights &w, double a, bool own) {
                 return vector_of(i, w, own, [&](auto *in, auto *out) { i.tally(in, a, own, out); });
             }, nb::arg("weights"), nb::arg("a"), nb::arg("own"))
        .def("bleu_tally",
             [](const Index &i, const Weights &w, bool smooth, bool own) {
                 return vector_of(i, w, own, [&](auto *in, auto *out) { i.bleu_tally(in, smooth, own, out); });
             }, nb::arg("weights"), nb::arg("smooth"), nb::arg("own"))
        .def("chrf_tally",
             [](const Index &i, const Weights &w, double beta, bool own) {
                 return vector_of(i, w, own, [&](auto *in, auto *out) { i.chrf_tally(in, beta, own, out); });
             }, nb::arg("weights"), nb::arg("beta"), nb::arg("own"))
        .def("grades",
             [](const Index &i, double a, bool own) {
                 return matrix_of(i, own, [&](auto *out) { i.grades(a, own, out); });
             }, nb::arg("a"), nb::arg("own"))
        .def("bleu_grades",
             [](const Index &i, bool smooth, bool own) {
                 return matrix_of(i, own, [&](auto *out) { i.bleu_grades(smooth, own, out); });
             }, nb::arg("smooth"), nb::arg("own"))
        .def("chrf_grades", [](const Index &i, double beta, bool own) {
            return matrix_of(i, own, [&](auto *out) { i.chrf_grades(beta, own, out); });
        }, nb::arg("beta"), nb::arg("own"));
}
