"""One of every search, for what must hold for all of them."""

from __future__ import annotations

from rangevote.decoding.base import Search
from rangevote.decoding.beam import Beam, LengthNormalised
from rangevote.decoding.diverse import DiverseBeam, DiverseDecoding
from rangevote.decoding.sample import Epsilon, MinP, Nucleus, Sample, TopK
from rangevote.decoding.stochastic import StochasticBeam

BEAMS: list[Search] = [
    Beam(1),
    Beam(4),
    Beam(4, finish="transformers"),
    LengthNormalised(4),
    LengthNormalised(4, alpha=0.6, form="wu"),
    DiverseDecoding(4),
    DiverseBeam(4),
    StochasticBeam(4, seed=5),
]
SAMPLINGS: list[Search] = [
    Sample(7, seed=5),
    Sample(7, temperature=2.0, seed=5),
    TopK(7, top=3, seed=5),
    Nucleus(7, p=0.8, seed=5),
    Epsilon(7, epsilon=0.1, seed=5),
    MinP(7, p=0.3, seed=5),
]
EVERY = BEAMS + SAMPLINGS
