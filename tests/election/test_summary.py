"""Why the winner won, in facts: on ballots worked by hand, and recomputed from the texts of any ballot."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rangevote as rv
from rangevote.election.summary import Quote, probability_shares, why
from tests.figure1 import CAPTIONS, LOGPROBS, PROBABILITIES, TOTAL


def reason(result: rv.Result) -> str:
    return "".join(f"“{part}”" if isinstance(part, Quote) else part for part in why(result))


def says(text: str, passage: str) -> bool:
    words, wanted = text.split(), passage.split()
    return any(words[i : i + len(wanted)] == wanted for i in range(len(words) - len(wanted) + 1))


def test_figure_1_is_told_as_one_counts_it_by_hand():
    # the other captions with "sitting on a bench" are 1, 2, 4, 5, 6: 0.00567 of 0.00798;
    # those with "a black and white photo of a man" are 8, 9, 10: 0.00104
    assert reason(rv.elect(CAPTIONS, LOGPROBS, similarity="overlap_2")) == (
        "Elected because 5 of 9 other outputs (71 % of the vote) also say “sitting on a bench”, and 3 (13 %) "
        "“a black and white photo of a man”, as the most likely does not. The most likely output "
        "(29 % of the probability) stands alone in “people that are sitting”."
    )


def test_a_passage_that_the_most_likely_lacks_is_told_alone():
    result = rv.elect(["x y z", "a b c", "a b d"], [-1.0, -1.1, -1.1], similarity="overlap_2")
    assert reason(result) == (
        "Elected because 1 of 2 other outputs (32 % of the vote) also says “a b”, as the most likely does "
        "not. The most likely output (36 % of the probability) stands alone in “x y z”."
    )


def test_a_rare_passage_of_the_most_likely_names_how_many_say_it():
    texts, logprobs = ["a b x y", "a b c", "a b c d", "a b c e", "q x y"], [-1.0, -1.2, -1.3, -1.3, -3.0]
    result = rv.elect(texts, logprobs, similarity="overlap_2")
    assert result.winner == "a b c d"
    assert reason(result).endswith("stands alone in “b x”.")  # "q x y" says "x y"
    result = rv.elect(["a b x", *texts[1:4], "q b x"], logprobs, similarity="overlap_2")
    assert reason(result).endswith(
        "The most likely output (29 % of the probability) says “b x”, as only 1 of 4 other outputs does."
    )


def test_the_most_likely_may_be_the_winner_or_empty_or_a_part_of_it():
    assert reason(rv.elect(["a b c", "a b d"], [-1.0, -2.0], similarity="overlap_2")).endswith(
        " It is also the most likely output (73 % of the probability)."
    )
    assert reason(rv.elect(["", "a b", "a b c"], [-1.0, -2.0, -2.1], similarity="overlap_2")).endswith(
        " The most likely output (59 % of the probability) is empty."
    )
    result = rv.elect(["a b", "a b c", "b c d"], [-1.0, -1.1, -1.2], similarity="overlap_2")
    assert result.winner == "a b c"
    assert reason(result).endswith(
        " It has every passage of the most likely output (37 % of the probability)."
    )


def test_without_probabilities_nothing_is_told_of_the_most_likely():
    text = reason(rv.elect(["a b c", "a b d", "x"], similarity="overlap_2"))
    assert text == "Elected because 1 of 2 other outputs (33 % of the vote) also says “a b”."


def test_given_voters_are_counted_as_voters():
    result = rv.elect(["a b", "x"], voters=["a b c", "a b", "y"], similarity="overlap_2")
    assert reason(result) == "Elected because 2 of 3 voters (67 % of the vote) also say “a b”."


def test_a_winner_that_shares_nothing_won_by_its_own_weight():
    result = rv.elect(["a b", "c d"], [-1.0, -2.0], similarity="overlap_2")
    assert reason(result) == "No output supports another one; it won by its own 73 % of the vote."


def test_a_majority_is_told_by_its_answer():
    texts = ["so 4", "4", "it is 4", "5"]
    assert reason(rv.elect(texts, similarity="exact:last_number")) == (
        "Elected because 3 of 4 outputs (75 % of the vote) give the answer “4”."
    )
    assert reason(rv.elect(["a", "a", "b"], similarity="exact")) == (
        "Elected because 2 of 3 outputs (67 % of the vote) are this very text."
    )


def test_measures_that_count_no_n_grams_tell_the_mean_grade():
    result = rv.elect(["abc", "abd", "xyz"], [-1.1, -1.1, -1.0], similarity=lambda v, c: float(v[0] == c[0]))
    assert reason(result).startswith(
        "Elected because the voters grade it 0.644 on average, and the most likely output"
    )
    assert result.scores[2] == pytest.approx(
        float(re.search(r"output (0\.\d+)", reason(result))[1]), abs=6e-4
    )


def test_what_needs_no_reason_is_said_in_a_word():
    assert reason(rv.elect(["a"])) == "It is the only candidate."
    assert reason(rv.elect(["a b"] * 16)) == "All 16 outputs are the same."
    assert reason(rv.elect(["a b", "b a"], similarity="overlap_1")) == (
        "To the similarity overlap_1 all 2 outputs are the same."
    )
    assert "the order of ties decided" in reason(rv.elect(["a", "b"], voters=["x"], similarity="overlap_1"))
    both = {"candidates": ["a b", "c"], "logprobs": [-1.0, -2.0]}
    assert reason(rv.elect(**both, rule="most_likely")) == "Chosen without a vote, as the most likely output."
    assert "highest log-probability per token" in reason(rv.elect(**both, rule="length_normalised"))


def test_own_likelihood_is_named_where_it_decides():
    options = {"similarity": "overlap_1", "weights": "count"}
    texts, logprobs = ["a b c", "a b d", "a b c d"], [-1.0, -9.0, -20.0]
    assert rv.elect(texts, logprobs, **options).winner == "a b c d"
    assert reason(rv.elect(texts, logprobs, likelihood=5.0, **options)).endswith(
        " By votes alone it would have been “a b c d”."
    )


def test_texts_that_are_not_written_in_words_are_compared_by_characters():
    texts = ["男人坐在公园的长椅上看着他的狗和远处的湖水", "男人坐在公园的长椅上看着他的猫和远处的湖水", "x"]
    result = rv.elect(texts, similarity="overlap_2", tokenize="chars")
    assert "“男人坐在公园的长椅上看" in reason(result)  # twelve characters


WORDS = st.lists(st.sampled_from(["a", "b", "c", "d", "e"]), max_size=8).map(" ".join)
ROWS = st.lists(st.tuples(WORDS, st.floats(-9, 0)), min_size=2, max_size=8, unique_by=lambda row: row[0])


@settings(max_examples=150)
@given(rows=ROWS, similarity=st.sampled_from(["overlap_1", "overlap_2", "overlap_1-4@0.25", "bleu_4"]))
def test_every_count_in_the_sentence_is_true_of_the_texts(rows, similarity):
    texts, logprobs = [text for text, _ in rows], [logprob for _, logprob in rows]
    result = rv.elect(texts, logprobs, similarity=similarity)
    text, parts = reason(result), why(result)
    quotes = [str(part) for part in parts if isinstance(part, Quote)]
    others = [t for i, t in enumerate(texts) if i != result.index]
    if match := re.search(r"Elected because (?:(\d+) of \d+ other outputs|the other output)", text):
        assert says(str(result.winner), quotes[0])
        assert sum(says(t, quotes[0]) for t in others) == int(match[1] or 1)
    likely = texts[max(range(len(texts)), key=lambda i: (logprobs[i], -i))]
    if match := re.search(r", and (\d+) \(", text):
        assert says(str(result.winner), quotes[1])
        assert sum(says(t, quotes[1]) for t in others) == int(match[1])
        assert not says(likely, quotes[1])
        assert says(likely, quotes[0])
    elif "as the most likely does not" in text:
        assert not says(likely, quotes[0])
    if "stands alone in" in text:
        assert [t for t in texts if says(t, quotes[-1])] == [likely]
    if match := re.search(r"as only (\d+) of", text):
        assert sum(says(t, quotes[-1]) for t in texts) == int(match[1]) + 1
        assert says(likely, quotes[-1])
        assert not says(str(result.winner), quotes[-1])


def test_shares_of_probability_are_those_of_figure_1():
    shares = probability_shares(rv.Hypotheses.of(CAPTIONS, LOGPROBS))
    assert shares == pytest.approx([p / TOTAL for p in PROBABILITIES])
    assert probability_shares(rv.Hypotheses.of(["a", "b"], [-1.0, None])) is None


def test_of_a_panel_it_says_whose_output_won_and_who_said_the_same():
    panel = {"one": ["a dog runs"], "two": ["a dog runs"], "three": ["a cat"]}
    sentences = "".join(why(rv.elect(panel, shares={"one": 2, "two": 2, "three": 1})))
    assert sentences.endswith(
        " It is the output of one (whose share of the vote is 40 %); two said the same."
    )
    assert "output of" not in "".join(why(rv.elect(["a dog", "a dog"], voters=panel)))
