// The Python face of the kernels: takes strings and arrays, releases the GIL, calls Index.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <mutex>

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
    auto index = new (self) Index(unit_named(unit), std::move(orders), bag, short_sequences);
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

// Log-probabilities as an array, if each is a number from minus infinity to 0; else None.
nb::object logprob_column(nb::list values) {
    const std::size_t n = values.size();
    auto column = room(n);
    for (std::size_t i = 0; i < n; ++i) {
        const nb::handle value = values[i];
        if (!PyFloat_CheckExact(value.ptr()) && !PyLong_CheckExact(value.ptr())) return nb::none();
        const double number = PyFloat_AsDouble(value.ptr());
        if (number == -1.0 && PyErr_Occurred()) {  // an integer beyond all floats
            PyErr_Clear();
            return nb::none();
        }
        if (!(number <= 0.0)) return nb::none();  // NaN too
        column[i] = number;
    }
    return nb::cast(array(std::move(column), {n}));
}

// Whether no two numbers are the same.
bool distinct(const Weights &values) {
    std::vector<double> sorted(values.data(), values.data() + values.shape(0));
    std::sort(sorted.begin(), sorted.end());
    return std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
}

// P^(1/T), normalised to sum to 1; those in `again` count nothing. All 0 if every P is 0.
Scores softmax(const Weights &logprobs, double temperature, const std::vector<std::size_t> &again) {
    const std::size_t n = logprobs.shape(0);
    const double *in = logprobs.data();
    auto out = room(n);
    std::copy(in, in + n, out.get());
    for (const std::size_t i : again) out[i] = -std::numeric_limits<double>::infinity();
    const double largest = n ? *std::max_element(out.get(), out.get() + n) : 0.0;
    const bool none = std::isinf(largest);
    for (std::size_t i = 0; i < n; ++i) out[i] = none ? 0.0 : std::exp((out[i] - largest) / temperature);
    int length = 0;
    for (std::size_t rest = n - again.size(); rest > 0; rest >>= 1) ++length;
    std::int64_t whole = 0;  // the sum, counted: the same in any order
    for (std::size_t i = 0; i < n; ++i) whole += std::llrint(std::ldexp(out[i], 62 - length));
    const double total = std::ldexp(static_cast<double>(whole), length - 62);
    for (std::size_t i = 0; i < n && whole > 0; ++i) out[i] /= total;
    return array(std::move(out), {n});
}

}  // namespace

NB_MODULE(_kernels, m) {
    m.doc() = "Compiled counting kernels; rangevote.kernel.plain holds the same functions in Python.";
    m.def("logprob_column", &logprob_column, nb::arg("values"));
    m.def("distinct", &distinct, nb::arg("values"));
    m.def("softmax", &softmax, nb::arg("logprobs"), nb::arg("temperature"), nb::arg("again"));
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
