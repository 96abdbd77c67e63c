"""Panels: several systems vote over all their outputs. References, people, a stored judge or the right answer
say how good the elected outputs are, compared with the mean and the best member.

The similarity is chosen on WMT23 English-German, the beams on the first 400 sentences of newstest2014, and
the weak members on the first half of the GSM8K questions. Everything else about a panel is in this file and
was committed before its outputs were judged. Each panel is judged once.

The judgement of a text is the mean over all members that wrote it, since people judge equal texts
differently. Every member votes with an equal share. Differences have 95 % intervals and p by paired
bootstrap. The "best member" is the best by these judgements, so nobody knows it beforehand.

    make reproduce NAME=panels     # writes results/panels-*.json (parts that are there stay) and RESULTS.md
"""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

import rangevote as rv
from experiments.ensemble import ensemble
from experiments.page import write_page
from experiments.panel_scores import (
    Ballot,
    References,
    by_marks,
    choose,
    compare,
    mean_mark,
    texts_of,
)
from experiments.panel_tables import AGREEMENT, ALL, BEST, ELECTED, EQUAL, LABELS, MEAN
from experiments.settings import HERE, Folders
from experiments.steps import say, write_json
from rangevote.hypothesis import Array

#: Looked at on WMT23 English-German. The first is the default, which stays unless the one with the highest
#: BLEU + chrF is above it by both, each with p < 0.05.
MEASURES = ("blend", "overlap_1-4", "overlap_1-4@0.5", "overlap_1", "overlap_2", "smoothed_bleu_4", "chrf")
#: Looked at on newstest2014, lines 1 to 400: OPUS-MT's beam and the temperature of its votes. The same rule.
BEAMS = ((10, 2.0), (10, 1.0), (10, 4.0), (4, 2.0), (4, 1.0), (4, 4.0))
FLORES = ("bn-en", "de-en", "en-ca", "en-fi", "en-hi", "en-id", "en-ja", "vi-en")
#: Who sits in a panel of WMT24 beside the panel of all, by what the systems are: general language models
#: whose weights are published; online services.
WMT24 = {
    "wmt24-en-de": {
        "open LLMs": ("Aya23", "CommandR-plus", "Llama3-70B", "Phi-3-Medium"),
        "online systems": ("ONLINE-A", "ONLINE-B", "ONLINE-G", "ONLINE-W"),
    },
    "wmt24-en-cs": {
        "open LLMs": ("Aya23", "CommandR-plus", "Llama3-70B"),
        "online systems": ("ONLINE-A", "ONLINE-B", "ONLINE-G", "ONLINE-W"),
    },
}
#: Pairs that wrote the same text in more than a quarter of the ballots (README of the data). Without near
#: copies: in the order of the file, a member is left out if it is such a copy of one that is kept.
COPIES = {
    "flores-en-ca": (("argos", "opusmt"),),
    "flores-en-id": (("bergamot-tiny", "microsoft"),),
    "ted-en-de": (
        *(("metricsystem1", "VolcTrans-GLAT"), ("metricsystem1", "metricsystem4")),
        *(("metricsystem4", "VolcTrans-GLAT"), ("metricsystem2", "metricsystem3")),
        *(("eTranslation", "UEdin"), ("Online-W", "VolcTrans-AT"), ("Nemo", "UEdin")),
    ),
    "wmt24-en-cs": (("ONLINE-A", "TranssionMT"), ("ONLINE-B", "TranssionMT")),
    "wmt24-en-de": (("CycleL", "CycleL2"), ("ONLINE-B", "TranssionMT")),
}
NO_COPIES = "without near copies"
ASPECTS = ("coherence", "consistency", "fluency", "relevance")
#: GSM8K: panels of the members that are right less often than this on the first half of the questions.
BELOW = (90, 80, 70)
#: ... and of those below 80 % with so many further copies of the worst of them.
CLONES = 6
#: AlpacaEval: a panel without the two models that are a generation younger than the others, and far ahead of
#: them in the table of members that comes with the data.
YOUNGER = ("FuseChat-Gemma-2-9B-Instruct", "FuseChat-Llama-3.2-3B-Instruct")


def read_panel(path: Path) -> list[Ballot]:
    """Ballots as they are stored: candidates with `member`, and what is known of each."""
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def members_of(ballots: Sequence[Ballot]) -> list[str]:
    """The members, in the order of the file, which is alphabetical."""
    listed = {one["member"] for ballot in ballots for one in ballot["candidates"]}
    return sorted(listed, key=str.casefold)


def without_copies(members: Sequence[str], pairs: Sequence[tuple[str, str]]) -> list[str]:
    """Those that are no near copy of one that is kept before them."""
    kept: list[str] = []
    for member in members:
        if not any({member, other} == set(pair) for other in kept for pair in pairs):
            kept.append(member)
    return kept


def elected_texts(ballots: Sequence[Ballot], members: Sequence[str], **options: Any) -> list[str]:
    """The text that these members elect among all of theirs, each with an equal share unless `shares` say
    otherwise."""
    return [str(result) for result in rv.elect_many(_hypotheses(ballots, members), **options)]


def _hypotheses(ballots: Sequence[Ballot], members: Sequence[str]) -> list[list[rv.Hypothesis]]:
    return [
        [
            rv.Hypothesis(one["text"], logprob=one.get("logprob"), member=one["member"])
            for one in ballot["candidates"]
            if one["member"] in members
        ]
        for ballot in ballots
    ]


# Parts: each is a function of the folders and of what was chosen, and becomes results/panels-<part>.json.


def choice(folders: Folders) -> dict[str, Any]:
    """The similarity, on WMT23 English-German; the beam of OPUS-MT, on newstest2014, lines 1 to 400."""
    ballots = read_panel(folders.given("panels", "wmt23-en-de.jsonl.gz"))
    references, members = References(ballots, "de"), members_of(ballots)
    found = references.compare(
        {member: references.rows(texts_of(ballots, member)) for member in members},
        {m: references.rows(elected_texts(ballots, members, similarity=m)) for m in MEASURES},
        pairs=[(one, MEASURES[0]) for one in MEASURES[1:]] + [(MEASURES[0], MEAN), (MEASURES[0], BEST)],
    )
    measure = choose(found, MEASURES)
    beams = {f"k = {k}, T = {t:g}": (k, t) for k, t in BEAMS}
    ballots = read_beams(folders, "1-400", 10)
    references = References(ballots, "fr")
    others = {}
    for name, (k, temperature) in beams.items():
        listed = read_beams(folders, "1-400", k)
        options = {"similarity": measure, "temperature": temperature}
        others[name] = references.rows(elected_texts(listed, members_of(listed), **options))
    first, *rest = beams
    pairs = [(one, first) for one in rest] + [(first, MEAN), (first, BEST)]
    beam_found = references.compare(_en_fr_members(ballots, references), others, pairs=pairs)
    k, temperature = beams[choose(beam_found, list(beams))]
    return {
        "similarity": measure,
        "beam": {"k": k, "temperature": temperature},
        "looked_at": len(MEASURES) + len(BEAMS),
        "wmt23-en-de": found,
        "newstest2014, lines 1 to 400": beam_found,
    }


OPUS = "OPUS-MT"


def read_beams(folders: Folders, lines: str, k: int) -> list[Ballot]:
    """OPUS-MT's beam of k, and one output each of two Mozilla systems."""
    named = "newstest2014_{}.en-fr.{}.jsonl.gz"
    beams = read_panel(folders.given("panels/en-fr", named.format(lines, f"k{k}")))
    others = read_panel(folders.given("panels/en-fr", named.format(lines, "panel")))
    by_id = {ballot["id"]: ballot["hypotheses"] for ballot in others}
    return [
        ballot
        | {"candidates": [one | {"member": OPUS} for one in ballot["hypotheses"]] + by_id[ballot["id"]]}
        for ballot in beams
    ]


def length_normalised(ballots: Sequence[Ballot]) -> list[str]:
    """OPUS-MT's output with the highest log P per token, end of sequence included."""

    def best(ballot: Ballot) -> str:
        own = [one for one in ballot["candidates"] if one["member"] == OPUS]
        return str(max(own, key=lambda one: one["logprob"] / (len(one["tokens"]) + 1))["text"])

    return [best(ballot) for ballot in ballots]


def _en_fr_members(ballots: Sequence[Ballot], references: References) -> dict[str, dict[str, Array]]:
    others = [member for member in members_of(ballots) if member != OPUS]
    found = {f"{OPUS}, length-normalised": references.rows(length_normalised(ballots))}
    return found | {member: references.rows(texts_of(ballots, member)) for member in others}


def translators(folders: Folders, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """BLEU and chrF: newstest2014 English-French, FLORES, WMT24; and people's judgements (ESA) of en-cs."""
    k, temperature = chosen["beam"]["k"], chosen["beam"]["temperature"]
    ballots = read_beams(folders, "1301-2300", k)
    references, beam = References(ballots, "fr"), f"{OPUS}, most likely"
    normalised = f"{OPUS}, length-normalised"
    options = {"similarity": chosen["similarity"], "temperature": temperature}
    outputs = {
        ELECTED: elected_texts(ballots, members_of(ballots), **options),
        beam: texts_of(ballots, OPUS),
    }
    members = _en_fr_members(ballots, references)
    found: dict[str, Any] = {
        "newstest2014 en-fr": {
            ALL: references.compare(
                members,
                {name: references.rows(texts) for name, texts in outputs.items()},
                pairs=[(ELECTED, MEAN), (ELECTED, BEST), (ELECTED, normalised), (ELECTED, beam)],
            )
        }
    }
    for name in (*(f"flores-{direction}" for direction in FLORES), *WMT24):
        say(name)
        found[name] = _by_references(folders, name, chosen["similarity"])
    return found


def _by_references(folders: Folders, name: str, similarity: str) -> dict[str, Any]:
    """Every panel of a file."""
    ballots = read_panel(folders.given("panels", f"{name}.jsonl.gz"))
    references = References(ballots, name.rpartition("-")[2])
    members = {member: references.rows(texts_of(ballots, member)) for member in members_of(ballots)}
    return {
        panel: references.compare(
            {member: members[member] for member in seated},
            {ELECTED: references.rows(elected_texts(ballots, seated, similarity=similarity))},
        )
        for panel, seated in panels_of(name, list(members)).items()
    }


def panels_of(name: str, members: Sequence[str]) -> dict[str, Sequence[str]]:
    """The panels of a file: all, all but near copies where there are any, and those named beforehand."""
    found: dict[str, Sequence[str]] = {ALL: members}
    if name in COPIES:
        found[NO_COPIES] = without_copies(members, COPIES[name])
    return found | WMT24.get(name, {})


def people(folders: Folders, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """TED English-German by expert MQM, SummEval by expert ratings, WMT24 English-Czech by human ESA."""
    similarity, found = chosen["similarity"], {}
    ballots = read_panel(folders.given("panels", "ted-en-de.jsonl.gz"))
    for panel, members in panels_of("ted-en-de", members_of(ballots)).items():
        elected = {ELECTED: elected_texts(ballots, members, similarity=similarity)}
        found[f"TED en-de, MQM, {panel}"] = by_marks(ballots, lambda one: one["mqm"], members, elected)
    ballots = read_panel(folders.given("panels", "summeval.jsonl.gz"))
    members = members_of(ballots)
    elected = {ELECTED: elected_texts(ballots, members, similarity=similarity)}

    def rating(one: Ballot, aspects: Sequence[str]) -> float:
        return fmean(one["expert"][aspect] for aspect in aspects)

    for label, aspects in {"mean of four": ASPECTS, **{aspect: (aspect,) for aspect in ASPECTS}}.items():
        marks = by_marks(ballots, lambda one, a=aspects: rating(one, a), members, elected)
        found[f"SummEval, {label}"] = marks
    every = read_panel(folders.given("panels", "wmt24-en-cs.jsonl.gz"))
    ballots = [ballot for ballot in every if any("esa" in one for one in ballot["candidates"])]
    rated = {one["member"] for ballot in ballots for one in ballot["candidates"] if "esa" in one}
    members = [member for member in members_of(ballots) if member in rated]
    for panel, seated in (("all rated", members), ("open LLMs", WMT24["wmt24-en-cs"]["open LLMs"])):
        elected = {ELECTED: elected_texts(ballots, seated, similarity=similarity)}
        found[f"WMT24 en-cs, ESA, {panel}"] = by_marks(ballots, lambda one: one.get("esa"), seated, elected)
    return found


def answers(folders: Folders, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """GSM8K: shares of right answers by equal shares and by shares found without labels."""
    ballots = [_answered(ballot) for ballot in read_panel(folders.given("panels", "gsm8k.jsonl.gz"))]
    first, second = ballots[: len(ballots) // 2], ballots[len(ballots) // 2 :]
    known = {
        m: float(mean_mark(_right_rows(first, texts_of(first, m)).sum(axis=0))) for m in members_of(first)
    }
    panels: dict[str, list[str]] = {ALL: list(known)}
    panels |= {f"below {b} %": [m for m in known if known[m] < b] for b in BELOW}
    weak = panels["below 80 %"]
    worst = min(weak, key=lambda member: known[member])
    copied = f"below 80 %, {CLONES} further copies of the worst"
    panels[copied] = [*weak, *(f"{worst}, copy {i + 1}" for i in range(CLONES))]
    halves = {"second half": second, "first half": first, "both halves": ballots}
    return {
        half: {
            panel: _by_answers(
                [_with_copies(b, worst) for b in listed] if panel == copied else listed, members, known
            )
            for panel, members in panels.items()
        }
        for half, listed in halves.items()
    }


def _answered(ballot: Ballot) -> Ballot:
    """The answers in place of the texts; who gave none abstains."""
    listed = [one | {"text": one["answer"]} for one in ballot["candidates"] if one["answer"] is not None]
    return {**ballot, "candidates": listed}


def _with_copies(ballot: Ballot, member: str) -> Ballot:
    own = [one for one in ballot["candidates"] if one["member"] == member]
    copies = [one | {"member": f"{member}, copy {i + 1}"} for one in own for i in range(CLONES)]
    return {**ballot, "candidates": [*ballot["candidates"], *copies]}


def _right_rows(ballots: Sequence[Ballot], texts: Sequence[str]) -> Array:
    """100 for a right answer, 0 for a wrong one or none."""
    rights = [{one["text"] for one in ballot["candidates"] if one["right"]} for ballot in ballots]
    return np.array([(100.0 * (text in right), 1.0) for right, text in zip(rights, texts, strict=True)])


def _by_answers(
    ballots: Sequence[Ballot], members: Sequence[str], known: Mapping[str, float]
) -> dict[str, Any]:
    chosen = max((member for member in members if member in known), key=lambda member: known[member])
    outputs = {
        EQUAL: elected_texts(ballots, members, similarity="exact"),
        AGREEMENT: elected_texts(ballots, members, similarity="exact", shares="agreement"),
        LABELS: texts_of(ballots, chosen),
    }
    found = compare(
        mean_mark,
        {member: _right_rows(ballots, texts_of(ballots, member)) for member in members},
        {name: _right_rows(ballots, texts) for name, texts in outputs.items()},
        [
            *((EQUAL, MEAN), (EQUAL, BEST), (AGREEMENT, MEAN), (AGREEMENT, BEST)),
            *((AGREEMENT, EQUAL), (AGREEMENT, LABELS)),
        ],
    )
    agreement = rv.agreement_shares(_hypotheses(ballots, members), similarity="exact")
    facts = {
        name: getattr(agreement, name) for name in ("shares", "agreement", "twins", "rounds", "converged")
    }
    return found | {"chosen_by_labels": chosen, "by_agreement": facts}


NEAREST, LONGEST = "nearest in length to the elected", "longest"


def judge(folders: Folders, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """AlpacaEval: how often the stored judge prefers the elected text to the baseline's, in per cent.

    Length control: in each ballot the elected text is compared with that other text of the panel whose
    length in characters is nearest to its own (of two equally near the first).
    """
    ballots = read_panel(folders.given("panels", "alpacaeval.jsonl.gz"))
    members, found = members_of(ballots), {}
    panels = {ALL: members, "without FuseChat": [member for member in members if member not in YOUNGER]}
    for panel, seated in panels.items():
        elected = elected_texts(ballots, seated, similarity=chosen["similarity"])
        outputs = {
            ELECTED: elected,
            LONGEST: [max(_texts(ballot, seated), key=len) for ballot in ballots],
            NEAREST: [
                nearest_in_length(_texts(b, seated), text) for b, text in zip(ballots, elected, strict=True)
            ],
        }
        pairs = [(ELECTED, rival) for rival in (MEAN, BEST, LONGEST, NEAREST)] + [(LONGEST, MEAN)]
        found[panel] = by_marks(ballots, lambda one: 100 * one["win"], seated, outputs, pairs)
        found[panel]["characters"] = {name: fmean(map(len, texts)) for name, texts in outputs.items()} | {
            MEAN: fmean(len(text) for ballot in ballots for text in _texts(ballot, seated))
        }
    return found


def _texts(ballot: Ballot, members: Sequence[str]) -> list[str]:
    return [one["text"] for one in ballot["candidates"] if one["member"] in members]


def nearest_in_length(texts: Sequence[str], elected: str) -> str:
    """That other text whose length is nearest; where all are equal, the elected one."""
    others = [text for text in texts if text != elected]
    return min(others, key=lambda text: abs(len(text) - len(elected)), default=elected)


Part = Callable[[Folders, Mapping[str, Any]], dict[str, Any]]
PARTS: dict[str, Part] = {
    "translators": translators,
    "people": people,
    "answers": answers,
    "judge": judge,
    "ensemble": ensemble,
}


def main() -> None:
    folders = Folders.usual()
    chosen = recorded(folders, "choice", {"measures": MEASURES, "beams": BEAMS}, lambda: choice(folders))
    options = {"similarity": chosen["similarity"], "beam": chosen["beam"]}
    for name, part in PARTS.items():
        recorded(folders, name, options, lambda part=part: part(folders, options))
    write_page(folders.results, HERE)


def recorded(
    folders: Folders, name: str, settings: Mapping[str, Any], run: Callable[[], dict[str, Any]]
) -> dict[str, Any]:
    """What a part found; it is run if no file has it under these settings."""
    path, wanted = folders.results / f"panels-{name}.json", json.loads(json.dumps(settings))
    if path.is_file():
        known = json.loads(path.read_bytes())
        if known["settings"] == wanted:
            say(f"panels-{name}: done already")
            return dict(known["found"])
    began = time.monotonic()
    found = run()
    seconds = round(time.monotonic() - began, 1)
    write_json(path, {"settings": wanted, "seconds": seconds, "found": found})
    say(f"panels-{name}: {seconds} s")
    return found
