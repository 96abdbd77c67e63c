"""How an election is held: all that can change its result, checked once and named in the signature."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rangevote.election.rules import RULES, Rule
from rangevote.election.weights import WEIGHTS
from rangevote.errors import UsageError, choose, shown
from rangevote.hypothesis import Hypotheses
from rangevote.similarity import PRESETS, get_similarity
from rangevote.similarity.base import Measure, Similarity, short
from rangevote.similarity.tokens import Tokenise
from rangevote.version import __version__

Weights = str | Sequence[float] | None
Grader = str | Similarity | Callable[[Any, Any], Any]

NORMAL_FORMS = ("NFC", "NFD", "NFKC", "NFKD")
_SERIES = ".".join(__version__.split(".")[:2])


@dataclass(frozen=True)
class Settings:
    """The options of an election, as `elect` explains them."""

    similarity: Similarity
    weights: Weights
    temperature: float
    rule_name: str
    rule: Rule
    winners: int
    normalize: str | None
    merge: bool

    @classmethod
    def of(
        cls,
        similarity: Grader = "overlap_2",
        weights: Weights = None,
        temperature: float = 1.0,
        rule: str = "range",
        winners: int = 1,
        tokenize: Tokenise = "words",
        preset: str | None = None,
        normalize: str | None = None,
        merge: bool = False,
    ) -> Settings:
        """Check every option; a preset (also by its name as `similarity`) brings measure and temperature."""
        if preset is not None:
            choose("preset", preset, PRESETS)
            similarity = preset
        if isinstance(similarity, str) and similarity in PRESETS and temperature == 1.0:
            temperature = PRESETS[similarity].temperature
        if not (isinstance(temperature, (int, float)) and 0 < temperature <= sys.float_info.max):
            raise UsageError(f"temperature must be a number above 0, got {shown(temperature)}.")
        if isinstance(winners, bool) or not isinstance(winners, int) or not 1 <= winners < 2**63:
            raise UsageError(f"winners must be a whole number from 1, got {shown(winners)}.")
        if isinstance(weights, str):
            choose("weights", weights, WEIGHTS)
        if normalize is not None and normalize not in NORMAL_FORMS:
            raise UsageError(f"normalize must be one of {', '.join(NORMAL_FORMS)}, got {normalize!r}.")
        return cls(
            get_similarity(similarity, tokenize),
            weights,
            float(temperature),
            rule,
            choose("rule", rule, RULES),
            winners,
            normalize,
            merge,
        )

    def about(self, source: str | None) -> Settings:
        """The same for hypotheses about this source, where the measure looks at it."""
        measure = self.similarity
        told: Similarity = measure.about(source) if isinstance(measure, Measure) else measure
        return self if told is measure else replace(self, similarity=told)

    def signature(self, weighting: str, candidates: Hypotheses, voters: int) -> str:
        """Names all that can change a result: `rv:0.1|sim:overlap_2|on:words|w:probability|T:1|...`."""
        measure = self.similarity
        on = measure.signature_on(candidates) if isinstance(measure, Measure) else ""
        parts = [f"rv:{_SERIES}", f"sim:{measure.name}"]
        if on:
            parts.append(f"on:{on}")
        parts.append(f"w:{weighting}")
        if weighting == "probability":
            parts.append(f"T:{short(self.temperature)}")
        if self.rule_name != "range":
            parts.append(f"rule:{self.rule_name}")
        if self.winners > 1:
            parts.append(f"win:{self.winners}")
        if self.normalize:
            parts.append(f"norm:{self.normalize}")
        if self.merge:
            parts.append("merge:text")
        parts += [f"cand:{len(candidates)}", f"vot:{voters}", "tie:score,logprob,first"]
        return "|".join(parts)
