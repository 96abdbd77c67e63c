"""Hash collisions cost time and change no result: here they are, made on purpose.

The compiled kernel keeps words by a 64-bit digest and ids by a hash, but compares the whole word and
the whole key (kernels/table.hpp). `digest` below is that of kernels/text.hpp for words of 16 bytes:
with f a mixing of the first 8 bytes as a number,

    digest(w) = f(f(first) ^ last)

so for any two beginnings p, q and an end e, the end e' = f(p) ^ e ^ f(q) makes p+e and q+e' collide.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.kernel.both import each_kernel

SOURCES = Path(__file__).parents[2] / "kernels"
MASK = 2**64 - 1
MIX = 0x9E3779B97F4A7C15
KEY_MIX = 0xD6E8FEB86659FD93


@pytest.mark.skipif(not SOURCES.exists(), reason="the sources of the kernels are not here")
@pytest.mark.parametrize(
    ("file", "lines"),
    [
        (
            "text.hpp",
            ["h = (h ^ chunk) * MIX;", "return h ^ (h >> 32);", "mixed(digest, x)", f"0x{MIX:X}ull"],
        ),
        ("table.hpp", ["key ^= key >> 32;", f"key *= 0x{KEY_MIX:X}ull;", "(key ^ (key >> 32))"]),
    ],
)
def test_the_sources_hash_as_these_tests_believe(file, lines):
    # without this the words below would silently stop colliding when the sources change
    source = (SOURCES / file).read_text(encoding="utf-8")
    assert [line for line in lines if line not in source] == []


def number(chunk: bytes) -> int:
    return int.from_bytes(chunk, "little")


def f(chunk: int) -> int:
    h = chunk * MIX & MASK
    return h ^ h >> 32


def digest(word: str) -> int:
    data = word.encode()
    assert len(data) == 16
    return f(f(number(data[:8])) ^ number(data[8:]))


def colliding_words(wanted: int) -> list[str]:
    """Different printable words of 16 bytes with one digest."""
    rng = np.random.default_rng(0)
    first, last = b"abcdefgh", b"ijklmnop"
    target = f(number(first)) ^ number(last)
    found = [(first + last).decode()]
    while len(found) < wanted:
        start = rng.integers(0x21, 0x7F, size=8, dtype=np.uint8).tobytes()
        end = (target ^ f(number(start))).to_bytes(8, "little")
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
    index = kernel.Index(words, "space", [1], True, True)
    np.testing.assert_array_equal(index.grades(0.0, True), np.eye(8))
    index.add([words[3], "unknown-to-all!!", words[5] + " " + words[5]])
    np.testing.assert_array_equal(index.grades(0.0, False), [np.eye(8)[3], np.zeros(8), np.eye(8)[5] / 2])


@each_kernel
def test_bigrams_of_words_with_one_digest_are_different_bigrams(kernel, words):
    pairs = [f"{a} {b}" for a in words for b in words]
    np.testing.assert_array_equal(
        kernel.Index(pairs, "space", [2], False, True).grades(0.0, True), np.eye(64)
    )


def key_hash(key: int) -> int:
    key ^= key >> 32
    key = key * KEY_MIX & MASK
    return key ^ key >> 32


def signed(key: int) -> int:
    return key - 2**64 if key >= 2**63 else key


def ids_of_one_slot(wanted: int) -> list[int]:
    """Keys whose hash ends in 24 zero bits: all in one slot of any table here."""
    inverse = pow(KEY_MIX, -1, 2**64)
    keys = []
    for j in range(wanted):
        h = j << 24
        h ^= h >> 32
        key = h * inverse & MASK
        keys.append(key ^ key >> 32)
        assert key_hash(keys[-1]) == j << 24
    return [signed(key) for key in keys]


@each_kernel
def test_token_ids_that_all_fall_into_one_slot_are_different_tokens(kernel):
    ids = ids_of_one_slot(700)
    assert len(set(ids)) == 700
    index = kernel.Index([[i] for i in ids], "ids", [1], True, True)
    np.testing.assert_array_equal(index.grades(0.0, True), np.eye(700))
