"""Hash collisions cost time and change no result: here they are, made on purpose.

The compiled kernel keeps words by a 64-bit digest and ids by a hash, but compares the whole word and
the whole key (kernels/table.hpp). `digest` below is that of kernels/text.hpp for words of 16 bytes:
with f a mixing of the first 8 bytes and g a mere reordering of the last 8,

    digest(w) = (f(first) ^ g(last)) * MIX

so for any two beginnings p, q and an end e, the end e' with g(e') = f(p) ^ g(e) ^ f(q) makes p+e and
q+e' collide. If text.hpp changes its digest, these words only stop colliding; the tests stay right.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernel.both import each_kernel

MASK = 2**64 - 1
MIX = 0x9E3779B97F4A7C15
KEY_MIX = 0xD6E8FEB86659FD93


def f(chunk: bytes) -> int:
    h = int.from_bytes(chunk, "little") * MIX & MASK
    return h ^ h >> 32


def g(chunk: bytes) -> int:
    return int.from_bytes(chunk[:4], "little") << 32 | int.from_bytes(chunk[4:], "little")


def g_inverse(number: int) -> bytes:
    return (number >> 32).to_bytes(4, "little") + (number & 0xFFFFFFFF).to_bytes(4, "little")


def digest(word: str) -> int:
    data = word.encode()
    assert len(data) == 16
    return (f(data[:8]) ^ g(data[8:])) * MIX & MASK


def colliding_words(wanted: int) -> list[str]:
    """Different printable words of 16 bytes with one digest."""
    rng = np.random.default_rng(0)
    first, last = b"abcdefgh", b"ijklmnop"
    target = f(first) ^ g(last)
    found = [(first + last).decode()]
    while len(found) < wanted:
        start = rng.integers(0x21, 0x7F, size=8, dtype=np.uint8).tobytes()
        end = g_inverse(target ^ f(start))
        if all(0x21 <= byte < 0x7F for byte in end):
            found.append((start + end).decode())
    return found


@pytest.fixture(scope="module")
def words() -> list[str]:
    return colliding_words(8)


def test_the_words_collide(words):
    assert len(set(words)) == 8
    assert len({digest(word) for word in words}) == 1


@each_kernel
def test_words_with_one_digest_are_different_words(kernel, words):
    index = kernel.Index(words, "words", [1], True, True)
    np.testing.assert_array_equal(index.grades(0.0, True), np.eye(8))
    index.add([words[3], "unknown-to-all!!", words[5] + " " + words[5]])
    np.testing.assert_array_equal(index.grades(0.0, False), [np.eye(8)[3], np.zeros(8), np.eye(8)[5] / 2])


@each_kernel
def test_bigrams_of_words_with_one_digest_are_different_bigrams(kernel, words):
    pairs = [f"{a} {b}" for a in words for b in words]
    np.testing.assert_array_equal(
        kernel.Index(pairs, "words", [2], False, True).grades(0.0, True), np.eye(64)
    )


def ids_of_one_slot(wanted: int) -> list[int]:
    """Keys whose hash (kernels/table.hpp, KeyTable) ends in 24 zero bits: one slot in any table here."""
    inverse = pow(KEY_MIX, -1, 2**64)
    keys = []
    for j in range(wanted):
        h = j << 24
        h ^= h >> 32
        key = h * inverse & MASK
        key ^= key >> 32
        keys.append(key - 2**64 if key >= 2**63 else key)
    return keys


@each_kernel
def test_token_ids_that_all_fall_into_one_slot_are_different_tokens(kernel):
    ids = ids_of_one_slot(700)
    assert len(set(ids)) == 700
    index = kernel.Index([[i] for i in ids], "ids", [1], True, True)
    np.testing.assert_array_equal(index.grades(0.0, True), np.eye(700))


@each_kernel
def test_a_hundred_thousand_random_words_keep_their_own_votes(kernel):
    rng = np.random.default_rng(1)
    drawn = rng.integers(97, 123, size=(100_000, 12), dtype=np.uint8)
    words = sorted({bytes(row).decode() for row in drawn})
    half = words[::2]
    index = kernel.Index([" ".join(half)], "words", [1], True, True)
    index.add([" ".join(words)])
    assert index.grades(0.0, False)[0, 0] == len(half) / len(words)
