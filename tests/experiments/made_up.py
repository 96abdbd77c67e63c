"""Results of an experiment that never was, in the shape that `collect.py` writes."""

from __future__ import annotations

from typing import Any

from experiments.command import settings_of
from experiments.paper import SAMPLING, TABLES


def results(experiment: str, **changed: dict[str, dict[int, float]]) -> dict[str, Any]:
    """The paper's own numbers as if two seeds had given them; `changed`: metric -> method -> k -> number."""
    settings = settings_of(experiment, "paper")
    methods: dict[str, dict[str, dict[str, float]]] = {}
    for metric, published in TABLES[experiment].items():
        for method in published.rows:
            for k in published.ks:
                methods.setdefault(method, {}).setdefault(str(k), {})[metric] = published.at(method, k) or 0.0
    for method, value in SAMPLING[experiment].items():
        methods[method] = {"0": {settings.report.metric: value}}
    for metric, rows in changed.items():
        for method, by_k in rows.items():
            for k, value in by_k.items():
                methods.setdefault(method, {}).setdefault(str(k), {})[metric] = value
    for by_k in methods.values():
        for values in by_k.values():
            values.setdefault("empty", 0.0)
            values["unfinished"] = 0
    numbers = {
        "methods": methods,
        "references": {"length": 10.0, "distinct_bigrams": 4000.0},
        "signatures": {settings.report.metric: "signature"},
        "items": 1000,
        "selection": [
            {"method": "beam", "k": 10, "large": 100, "absent": 5.0, "again": 61.0},
            {"method": "overlap_2", "k": 10, "large": 100, "absent": 5.0, "again": 36.0},
        ],
        "training": {"dev_loss": 2.0, "best_step": 10},
    }
    if experiment == "translation":
        metric = settings.report.metric
        curve = {"4": {metric: 25.0}, "1000": {metric: 25.5}}
        numbers["voters"] = {"items": 200, "curves": {"sample": {"overlap_2": curve}}}
    comparison = {
        "asked": "best voting, best beam search",
        "ours": ["states", 100],
        "theirs": ["beam", 10],
        "ours_mean": 28.23,
        "theirs_mean": 27.16,
        "seeds": [{"seed": seed, "difference": 1.07, "interval": [0.5, 1.6], "p": 0.0002} for seed in (1, 2)],
        "all": {"difference": 1.07, "interval": [0.6, 1.5], "p": 0.0002},
    }
    system = {"label": "made up", "seeds": {"1": numbers, "2": numbers}, "comparisons": [comparison]}
    return {
        "experiment": experiment,
        "scale": "local",
        "seeds": [1, 2],
        "settings": settings.as_data(),
        "systems": {settings.main: system},
        "run": {
            "seconds": {"all": {"data": 1.0}, "1": {"train": 100.0}},
            "versions": {"python": "3"},
            "machine": {"processor": "x", "cores": 2},
        },
    }
