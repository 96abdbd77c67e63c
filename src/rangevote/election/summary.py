"""Why the winner won, in a sentence or two of facts that are true of the ballot.

`why(result)` gives the parts of the sentences in order; what is quoted from an output is a `Quote`, so that a
page can show it as the text of a model. A passage is a run of words; a voter has it if the same words stand
one after the other in its text.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rangevote.election.weights import repeated
from rangevote.hypothesis import Array, Hypotheses
from rangevote.kernel import softmax

if TYPE_CHECKING:
    from rangevote.election.merge import Merged
    from rangevote.election.result import Result

#: Words of a quoted passage, and of a text in which passages are looked for.
LONGEST = 12
READ = 300
#: Stands between words where passages are looked for; no word contains it.
SEPARATOR = "\x1f"


class Quote(str):
    """Words of an output inside a sentence of ours."""

    __slots__ = ()


class Passage(NamedTuple):
    """Words of one output, how many other voters have them too, and their share of the vote."""

    text: str
    voters: int
    share: float


class Passages:
    """The passages of one candidate, and which voters other than itself have them too.

    `lengths[v, i]` is the length of the longest passage from word i on that other voter v has, at most
    `LONGEST`. `joint` is what stands between two words.
    """

    def __init__(self, result: Result, index: int) -> None:
        self.joint, words = _words(result.candidates, index)
        self.words = words[:READ]
        itself = index if result.voters is result.candidates else None
        others = [v for v in range(len(result.voters)) if v != itself]
        lengths = [_matches(self.words, _words(result.voters, v, self.joint)[1]) for v in others]
        self.lengths = np.array(lengths, dtype=np.int64).reshape(len(others), len(self.words))
        self.weights = result.weights[others]

    def passage(self, begin: int, length: int) -> Passage:
        have = self.lengths[:, begin] >= length
        text = self.joint.join(self.words[begin : begin + length])
        return Passage(text, int(have.sum()), math.fsum(self.weights[have].tolist()))

    def most_shared(self, least: int, without: Sequence[str] = ()) -> Passage | None:
        """The passage with the largest product of its share of the vote and its number of n-grams of `least`
        words that are not in the words of `without`. None where nobody else has any."""
        fresh = [length < least for length in _matches(self.words, without)]
        best, chosen = 0.0, None
        for begin in range(len(self.words) - least + 1):
            ngrams = 0
            for length in range(least, LONGEST + 1) if fresh[begin] else ():
                have = self.lengths[:, begin] >= length
                if not have.any():
                    break
                ngrams += fresh[begin + length - least]
                worth = float(self.weights[have].sum()) * ngrams
                if worth > best * (1 + 1e-12):  # of equals the first
                    best, chosen = worth, (begin, length)
        return None if chosen is None else self.passage(*chosen)

    def rarest(self, least: int, without: Sequence[str]) -> Passage | None:
        """The longest run of n-grams of `least` words that fewest others have, none of them in `without`.

        None where the words of `without` have them all.
        """
        lengths = _matches(self.words, without)
        begins = [i for i in range(len(self.words) - least + 1) if lengths[i] < least]
        if not begins:
            return None
        voters = (self.lengths[:, begins] >= least).sum(axis=0)
        runs: list[list[int]] = []
        for begin, number in zip(begins, voters, strict=True):
            if number != voters.min():
                continue
            if runs and begin == runs[-1][1] + 1 and begin - runs[-1][0] + least <= LONGEST:
                runs[-1][1] = begin
            else:
                runs.append([begin, begin])
        first, last = max(runs, key=lambda run: run[1] - run[0])
        return self.passage(first, last - first + least)


def _words(hypotheses: Hypotheses, index: int, joint: str | None = None) -> tuple[str, Sequence[str]]:
    """The words of a text; its characters where it is not written in words; and what stands between them."""
    content = hypotheses.content(index)
    if not isinstance(content, str):
        return " ", [str(token) for token in content]
    words = content.split()
    if joint == "" or (joint is None and len(words) == 1 and len(content) > 20):
        return "", list("".join(words))
    return " ", words


def _matches(words: Sequence[str], other: Sequence[str]) -> list[int]:
    """For each word, how long a passage from it on is in the other text, at most `LONGEST`."""
    text = SEPARATOR.join(("", *other, ""))
    lengths = []
    for begin in range(len(words)):
        length, passage = 0, SEPARATOR
        for word in words[begin : begin + LONGEST]:
            passage += word + SEPARATOR
            if passage not in text:
                break
            length += 1
        lengths.append(length)
    return lengths


def why(result: Result) -> tuple[str, ...]:
    """The sentences, in parts; what is quoted is a `Quote`."""
    return (*_reasons(result), *_member(result))


def _member(result: Result) -> list[str]:
    """In a panel: whose output won, and which other members gave the same."""
    if result.member is None:
        return []
    share = None if result.panel is None else result.panel.shares.get(result.member)
    part = "" if share is None else f" (whose share of the vote is {_percent(share)})"
    others = [name for name in result.members if name != result.member]
    same = f"; {', '.join(others)} said the same" if others else ""
    return [f" It is the output of {result.member}{part}{same}."]


def _merged(merged: Merged) -> tuple[str, ...]:
    if merged.text is None:
        return (f"The best whole sample is taken: {merged.whole}.",)
    weakest = min(merged.shares, key=lambda path: merged.shares[path])
    share = _percent(merged.shares[weakest])
    name = f"The field with the least agreement, {weakest}," if weakest else "It"
    parts = ["Merged field by field: ", Quote(merged.text), f". {name} has {share} of the vote."]
    if merged.left_out:
        parts.append(f" Left out, because no value has a majority: {', '.join(merged.left_out)}.")
    if merged.equal is None:
        parts.append(" No candidate says exactly this; the best whole candidate is shown.")
    return tuple(parts)


def _reasons(result: Result) -> tuple[str, ...]:
    if result.no_winner is not None:
        return (f"Nobody is elected: {result.no_winner}. The best candidate is shown.",)
    if result.merged is not None:
        return _merged(result.merged)
    if len(result.candidates) == 1:
        return ("It is the only candidate.",)
    if not len(result.voters):
        if result.settings.rule == "length_normalised":
            return ("Chosen without a vote, by the highest log-probability per token.",)
        return ("Chosen without a vote, as the most likely output.",)
    if result.no_support:
        if result.margin and result.voters is result.candidates:
            return (f"No output supports another one; it won by {_own_share(result)} of the vote.",)
        return (
            "Nobody is supported by others, so the order of ties decided: the more likely, then the first.",
        )
    if len(result.groups) == 1:
        return (_all_alike(result),)
    likely = most_likely(result.candidates)
    return (*_elected(result, likely), *_likely(result, likely), *_own_likelihood(result))


def _all_alike(result: Result) -> str:
    number = len(result.candidates)
    if len({result.candidates.content(i) for i in range(number)} if result.candidates.texts else ()) == 1:
        return f"All {number:,} outputs are the same."
    return f"To the similarity {result.similarity.name} all {number:,} outputs are the same."


def _elected(result: Result, likely: int | None) -> list[str]:
    if result.similarity.answers or result.answer is not None:
        return _majority(result)
    least = _least(result)
    if least is None:
        return _graded(result, likely)
    passages = Passages(result, result.leader)
    passage = passages.most_shared(least)
    if passage is None:
        return [f"No other output shares a passage with it; it won by {_own_share(result)} of the vote."]
    also = f"also {'says' if passage.voters == 1 else 'say'}"
    others = f"{_of(passage.voters, result)} ({_percent(passage.share)} of the vote)"
    sentence = [f"Elected because {others} {also} ", Quote(passage.text)]
    if likely is None or _like_the_winner(result, likely):
        return [*sentence, "."]
    rival = _words(result.candidates, likely, passages.joint)[1]
    words = passage.text.split() if passages.joint else list(passage.text)
    if _matches(words, rival)[0] < len(words):
        return [*sentence, ", as the most likely does not."]
    second = passages.most_shared(least, rival)
    if second is None:
        return [*sentence, "."]
    more = f", and {second.voters:,} ({_percent(second.share)}) "
    return [*sentence, more, Quote(second.text), ", as the most likely does not."]


def _majority(result: Result) -> list[str]:
    """Where only equal answers, or equal texts, support each other."""
    measure = result.similarity
    [answer] = measure.keys(result.candidates.only(result.leader))
    keys = measure.keys(result.voters)
    number, share = keys.count(answer), math.fsum(result.weights[[key == answer for key in keys]].tolist())
    who = "outputs" if result.voters is result.candidates else "voters"
    counted = f"{number:,} of {len(keys):,} {who} ({_percent(share)} of the vote)"
    if measure.label is None:
        return [f"Elected because {counted} {'is' if number == 1 else 'are'} this very text."]
    verb = "gives" if number == 1 else "give"
    return [f"Elected because {counted} {verb} the answer ", Quote(measure.label(answer)), "."]


def _graded(result: Result, likely: int | None) -> list[str]:
    votes = result.scores if result.evidence is None else result.scores - result.evidence
    other = likely is not None and likely != result.leader
    rival = f", and the most likely output {float(votes[likely]):.3f}" if other else ""
    return [f"Elected because the voters grade it {float(votes[result.leader]):.3f} on average{rival}."]


def _likely(result: Result, likely: int | None) -> list[str]:
    if likely is None:
        return []
    shares = probability_shares(result.candidates)
    name = "the most likely output"
    if shares is not None and shares[likely] > 0:
        name += f" ({_percent(float(shares[likely]))} of the probability)"
    if _like_the_winner(result, likely):
        return [f" It is also {name}."]
    joint, words = _words(result.candidates, likely)
    if not words:
        return [f" {name.capitalize()} is empty."]
    elected = _words(result.candidates, result.leader, joint)[1]
    passage = Passages(result, likely).rarest(min(_least(result) or 2, len(words)), elected)
    if passage is None:
        return [f" It has every passage of {name}."]
    if passage.voters == 0:
        return [f" {name.capitalize()} stands alone in ", Quote(passage.text), "."]
    only = f", as only {_of(passage.voters, result)} {'does' if passage.voters == 1 else 'do'}."
    return [f" {name.capitalize()} says ", Quote(passage.text), only]


def _own_likelihood(result: Result) -> list[str]:
    if result.evidence is None:
        return []
    votes = result.scores - result.evidence
    best = int(np.nanargmax(votes))
    if votes[result.leader] >= votes[best] or _like_the_winner(result, best):
        return []
    joint, words = _words(result.candidates, best)
    text = joint.join(words[: 2 * LONGEST]) + (" …" if len(words) > 2 * LONGEST else "")
    return [" By votes alone it would have been ", Quote(text), "."]


def _like_the_winner(result: Result, index: int) -> bool:
    return result.candidates.content(index) == result.candidates.content(result.leader)


def most_likely(candidates: Hypotheses) -> int | None:
    """The candidate with the highest log-probability, of equals the first; None where none is known."""
    if candidates.logprobs is None or np.isnan(candidates.logprobs).all():
        return None
    return int(np.nanargmax(candidates.logprobs))


def probability_shares(candidates: Hypotheses) -> Array | None:
    """Each candidate's share of the probability of all distinct ones; None where one is not known."""
    if not candidates.complete or candidates.logprobs is None:
        return None
    return softmax(candidates.logprobs, 1.0, repeated(candidates))


def _least(result: Result) -> int | None:
    """The fewest words that earn a vote; None where that is not the number of shared n-grams."""
    if result.settings.least_grade is not None:
        return None
    measures = [part for _, part in result.similarity.parts() if part.orders]
    return min((1 if part.tokenize == "chars" else min(part.orders) for part in measures), default=None)


def _of(number: int, result: Result) -> str:
    if result.voters is not result.candidates:
        return f"{number:,} of {len(result.voters):,} voters"
    others = len(result.voters) - 1
    return f"{number:,} of {others:,} other outputs" if others > 1 else "the other output"


def _own_share(result: Result) -> str:
    voted = result.voters is result.candidates
    return f"its own {_percent(float(result.weights[result.leader]) if voted else 0.0)}"


def _percent(share: float) -> str:
    percent = 100 * share
    if 0 < percent < 1:
        return "less than 1 %"
    return f"{percent:.0f} %" if percent <= 99 or share > 1 - 1e-9 else "over 99 %"
