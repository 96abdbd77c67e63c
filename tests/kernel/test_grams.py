"""Grams that could be confused: each kernel must tell them apart by itself."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.kernel.both import each_kernel


def shared(kernel, unit: str, order: int, sequences, *, short: bool = True) -> np.ndarray:
    """Share of each sequence's items that each other has; (voters, candidates)."""
    return np.asarray(kernel.Index(sequences, unit, [order], True, short).grades(0.0, True))


@each_kernel
def test_words_of_1_to_20_bytes_that_share_ends_are_all_different(kernel):
    # lengths around 4, 8 and 16 are where words are read in overlapping pieces
    words = set()
    for size in range(1, 21):
        base = "abcdefghijklmnopqrst"[:size]
        for i in range(size):
            words.add(base[:i] + "X" + base[i + 1 :])
        words |= {base, "a" * size, "a" * (size - 1) + "b", "b" + "a" * (size - 1), base[::-1]}
        words |= {"ä" * size, "日" * size, "\x00" * size, "a" + "\x00" * (size - 1)}
    listed = sorted(words)
    assert len(listed) > 350
    np.testing.assert_array_equal(shared(kernel, "space", 1, listed), np.eye(len(listed)))


@each_kernel
def test_token_ids_that_differ_only_in_high_bits_or_sign_are_different(kernel):
    ids = [0, 1, -1, -2, 2**31, -(2**31), 2**32, 2**32 + 1, 2**33, 2**61 - 1, 2**62, 2**63 - 1, -(2**63)]
    np.testing.assert_array_equal(shared(kernel, "ids", 1, [[i] for i in ids]), np.eye(len(ids)))
    pairs = [list(pair) for pair in itertools.product(ids, repeat=2)]
    np.testing.assert_array_equal(shared(kernel, "ids", 2, pairs), np.eye(len(pairs)))


@each_kernel
def test_a_short_sequence_is_no_part_of_a_longer_one(kernel):
    sequences = [[1], [1, 1], [1, 1, 1], [1, 1, 1, 1]]
    # order 3: (1), (1, 1) and two of (1, 1, 1); the third is half of what the fourth has
    expected = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 1], [0, 0, 0.5, 1]]
    np.testing.assert_array_equal(shared(kernel, "ids", 3, sequences), expected)


@each_kernel
def test_without_short_a_sequence_shorter_than_n_has_nothing(kernel):
    np.testing.assert_array_equal(shared(kernel, "ids", 2, [[1], [1, 1]], short=False), [[0, 0], [0, 1]])


@each_kernel
def test_occurrence_numbers_are_no_grams(kernel):
    # the second 5 is the item (5, 2); it must not be a pair of 5 and 2, nor a short sequence
    sequences = [[5, 5], [5], [2], [5, 2], [5, 5, 5]]
    expected = [
        [1, 0.5, 0, 0.5, 1],
        [1, 1, 0, 1, 1],
        [0, 0, 1, 1, 0],
        [0.5, 0.5, 0.5, 1, 0.5],
        [2 / 3, 1 / 3, 0, 1 / 3, 1],
    ]
    np.testing.assert_allclose(shared(kernel, "ids", 1, sequences), expected, atol=1e-15)


@each_kernel
def test_voters_full_of_unknown_grams_keep_their_size(kernel):
    index = kernel.Index(["a b"], "space", [1], True, True)
    index.add(["a " + " ".join(f"new{i}" for i in range(9999)), "b b b b"])
    assert index.grades(0.0, False)[:, 0].tolist() == [1e-4, 0.25]


@each_kernel
@pytest.mark.parametrize("wrong", [3, 0])
def test_weights_that_are_not_one_for_each_voter_are_refused(kernel, wrong):
    index = kernel.Index(["a", "b"], "space", [1], True, True)
    with pytest.raises(ValueError, match=r"one weight for each voter|zip\(\)"):
        index.tally(np.full(wrong, 0.1), 0.0, True)


@each_kernel
def test_a_lone_surrogate_is_an_encoding_error_and_adds_nobody(kernel):
    with pytest.raises(UnicodeEncodeError, match="surrogates not allowed"):
        kernel.Index(["a", "\ud800"], "space", [1], True, True)
    index = kernel.Index(["a"], "space", [1], True, True)
    with pytest.raises(UnicodeEncodeError, match="surrogates not allowed"):
        index.add(["a", "\ud800"])
    assert index.voters == 0
    assert index.tally(np.zeros(0), 0.0, False).tolist() == [0.0]


@each_kernel
@pytest.mark.parametrize("too_large", [2**63, -(2**63) - 1, 2**200], ids=["2^63", "-2^63-1", "2^200"])
def test_a_token_id_beyond_64_bits_is_an_overflow_and_adds_nobody(kernel, too_large):
    with pytest.raises(OverflowError, match=r"int too (large|big) to convert|64 bits"):
        kernel.Index([[1], [too_large]], "ids", [1], True, True)
    index = kernel.Index([[1]], "ids", [1], True, True)
    with pytest.raises(OverflowError, match=r"int too (large|big) to convert|64 bits"):
        index.add([[1], [too_large]])
    assert index.voters == 0
