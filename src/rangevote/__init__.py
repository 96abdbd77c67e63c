"""Elect the most representative output of a language model instead of the most likely one.

>>> import rangevote as rv
>>> rv.elect(["a dog runs", "a dog sits", "cats"], [-1.2, -1.3, -1.0]).winner
'a dog runs'

Names are loaded when they are first used, so that `rangevote --help` answers at once.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

__version__ = "0.3.0"

if TYPE_CHECKING:
    from rangevote.batch_elect import Elect as Elect
    from rangevote.decoding import search as search
    from rangevote.decoding.beam import Beam as Beam
    from rangevote.decoding.beam import LengthNormalised as LengthNormalised
    from rangevote.decoding.diverse import DiverseBeam as DiverseBeam
    from rangevote.decoding.diverse import DiverseDecoding as DiverseDecoding
    from rangevote.decoding.sample import Epsilon as Epsilon
    from rangevote.decoding.sample import MinP as MinP
    from rangevote.decoding.sample import Nucleus as Nucleus
    from rangevote.decoding.sample import Sample as Sample
    from rangevote.decoding.sample import TopK as TopK
    from rangevote.decoding.stochastic import StochasticBeam as StochasticBeam
    from rangevote.election.agreement import Agreement as Agreement
    from rangevote.election.agreement import agreement_shares as agreement_shares
    from rangevote.election.elect import elect as elect
    from rangevote.election.elect import elect_many as elect_many
    from rangevote.election.explain import Explanation as Explanation
    from rangevote.election.result import Result as Result
    from rangevote.election.settings import read_profile as read_profile
    from rangevote.election.streaming import Electorate as Electorate
    from rangevote.errors import DataError as DataError
    from rangevote.errors import MissingExtra as MissingExtra
    from rangevote.errors import RangevoteError as RangevoteError
    from rangevote.errors import RangevoteWarning as RangevoteWarning
    from rangevote.errors import SetupError as SetupError
    from rangevote.errors import UnknownName as UnknownName
    from rangevote.errors import UsageError as UsageError
    from rangevote.evaluation.samples import evaluate_samples as evaluate_samples
    from rangevote.formats.reader import read_ballots as read  # noqa: F401
    from rangevote.generation.custom_generate import custom_generate as custom_generate
    from rangevote.generation.generate import generate as generate
    from rangevote.hypothesis import Ballot as Ballot
    from rangevote.hypothesis import Hypotheses as Hypotheses
    from rangevote.hypothesis import Hypothesis as Hypothesis
    from rangevote.hypothesis import ToolCall as ToolCall
    from rangevote.models.load import load as load
    from rangevote.similarity import SIMILARITIES as SIMILARITIES
    from rangevote.similarity import get_similarity as get_similarity
    from rangevote.similarity.base import Similarity as Similarity
    from rangevote.similarity.exact import Exact as Exact
    from rangevote.similarity.ngram import Bleu as Bleu
    from rangevote.similarity.ngram import Chrf as Chrf
    from rangevote.similarity.ngram import Ngrams as Ngrams
    from rangevote.similarity.pairwise import Custom as Custom
    from rangevote.similarity.pairwise import Mixture as Mixture
    from rangevote.similarity.vectors import States as States
    from rangevote.tuning.tune import tune as tune

#: The public names by the modules that define them.
_MODULES = {
    "batch_elect": "Elect",
    "decoding": "search",
    "decoding.beam": "Beam LengthNormalised",
    "decoding.diverse": "DiverseBeam DiverseDecoding",
    "decoding.sample": "Epsilon MinP Nucleus Sample TopK",
    "decoding.stochastic": "StochasticBeam",
    "election.agreement": "Agreement agreement_shares",
    "election.elect": "elect elect_many",
    "election.explain": "Explanation",
    "election.result": "Result",
    "election.settings": "read_profile",
    "election.streaming": "Electorate",
    "errors": "DataError MissingExtra RangevoteError RangevoteWarning SetupError UnknownName UsageError",
    "evaluation.samples": "evaluate_samples",
    "generation.custom_generate": "custom_generate",
    "generation.generate": "generate",
    "hypothesis": "Ballot Hypotheses Hypothesis ToolCall",
    "models.load": "load",
    "similarity": "SIMILARITIES get_similarity",
    "similarity.base": "Similarity",
    "similarity.exact": "Exact",
    "similarity.ngram": "Bleu Chrf Ngrams",
    "similarity.pairwise": "Custom Mixture",
    "similarity.vectors": "States",
    "tuning.tune": "tune",
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}
_HOMES["read"] = "formats.reader:read_ballots"

__all__ = sorted([*_HOMES, "__version__"])


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'rangevote' has no attribute {name!r}")
    module, _, attribute = _HOMES[name].partition(":")
    value = getattr(importlib.import_module(f"rangevote.{module}"), attribute or name)
    return globals().setdefault(name, value)


def __dir__() -> list[str]:
    return list(__all__)
