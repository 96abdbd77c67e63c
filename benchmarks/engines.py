"""CTranslate2 as an engine beside transformers' generate and our own search, on the same Marian weights.

.venv/bin/python benchmarks/engines.py           # or: make bench-engines; needs ../shared/data/opus-mt-en-fr
.venv/bin/python benchmarks/engines.py --quick   # fewer inputs and rounds; the page is only printed
.venv/bin/python benchmarks/engines.py --render  # the page again, from the last run
"""

from __future__ import annotations

import datetime
import gzip
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from common import ROOT, SCRATCH, machine, machine_line, publish, say, table

os.environ["HF_HUB_OFFLINE"] = "1"
DATA = ROOT.parent / "shared" / "data"
MODEL, INPUTS = DATA / "opus-mt-en-fr", DATA / "newstest-en-fr" / "newstest2013.en.gz"
K, NEW, TARGET = 10, 64, 2.5
Lists = list[list[str]]


def sides(folder: Path) -> dict[str, Callable[[list[str]], Lists]]:
    """Each takes texts and gives k translations of each."""
    import torch
    import transformers
    from ctranslate2.converters import TransformersConverter

    import rangevote as rv

    transformers.utils.logging.set_verbosity_error()
    torch.set_num_threads(1)
    tokenizer = transformers.AutoTokenizer.from_pretrained(MODEL)
    network = transformers.AutoModelForSeq2SeqLM.from_pretrained(MODEL, dtype=torch.float32).eval()
    engines: dict[str, Any] = {"our own search, float32": rv.load(network, tokenizer)}
    for kind in ("float32", "int8"):
        target = folder / kind
        TransformersConverter(str(MODEL)).convert(str(target), quantization=kind)
        engines[f"CTranslate2, {kind}"] = rv.load(target, tokenizer, device="cpu", dtype=kind)

    def generate(texts: list[str]) -> Lists:
        with torch.inference_mode():
            found = network.generate(
                **tokenizer(texts, return_tensors="pt", padding=True),
                num_beams=K,
                num_return_sequences=K,
                max_new_tokens=NEW,
                length_penalty=0.0,
            )
        spelled = [text.strip() for text in tokenizer.batch_decode(found, skip_special_tokens=True)]
        return [spelled[i : i + K] for i in range(0, len(spelled), K)]

    def searched(engine: Any) -> Callable[[list[str]], Lists]:
        method = rv.Beam(K, max_new_tokens=NEW, finish="transformers")
        return lambda texts: [[str(h.text).strip() for h in row] for row in rv.search(engine, texts, method)]

    return {"transformers, float32": generate} | {name: searched(engine) for name, engine in engines.items()}


def measure(number: int, rounds: int) -> dict[str, Any]:
    """CPU seconds of each side in every round, on inputs of its own, and how many outputs are transformers'."""
    if not MODEL.exists():
        raise SystemExit(f"needs the translator in {MODEL.parent.name}/{MODEL.name} beside the repository")
    began, load = time.time(), os.getloadavg()[0]
    with gzip.open(INPUTS, "rt", encoding="utf-8") as file:
        texts = [line.strip() for line in file if 5 <= len(line.split()) <= 25][: number * rounds]
    with tempfile.TemporaryDirectory() as folder:
        contestants = sides(Path(folder))
        times: dict[str, list[float]] = {name: [] for name in contestants}
        best = dict.fromkeys(contestants, 0)
        shared = dict.fromkeys(contestants, 0)
        for call in contestants.values():
            call(texts[:1])  # what is made at the first call
        for turn in range(rounds):
            some, reference = texts[turn * number : (turn + 1) * number], []
            for name, call in contestants.items():
                say(f"round {turn}: {name}")
                spent = time.process_time()
                found = call(some)
                times[name].append(time.process_time() - spent)
                reference = reference or found
                best[name] += sum(a[0] == b[0] for a, b in zip(found, reference, strict=True))
                shared[name] += sum(len(set(a) & set(b)) for a, b in zip(found, reference, strict=True))
    names = ("torch", "transformers", "ctranslate2", "rangevote")
    return {
        "times": times,
        "best": best,
        "shared": shared,
        "inputs": number * rounds,
        "versions": {name: version(name) for name in names},
        "machine": machine() | {"load": [load, os.getloadavg()[0]]},
        "date": datetime.date.today().isoformat(),
        "seconds": time.time() - began,
    }


def page(data: dict[str, Any]) -> str:
    """The chapter."""
    theirs, rows = data["times"]["transformers, float32"], []
    for name, times in data["times"].items():
        ratios = [a / b for a, b in zip(theirs, times, strict=True)]
        middle = statistics.median(ratios)
        goal = TARGET if name == "CTranslate2, float32" else None
        reached = "-" if goal is None else "yes" if middle >= goal else "**no**"
        spread = f"{middle:.2f} x ({min(ratios):.2f} to {max(ratios):.2f})"
        outputs = f"{data['best'][name]} of {data['inputs']}, {data['shared'][name]} of {K * data['inputs']}"
        rows.append([name, f">= {goal} x" if goal else "", spread, reached, f"{sum(times):.2f} s", outputs])
    head = ["k = 10", "must reach", "as fast as transformers", "reached", "CPU", "same best, same outputs"]
    # ruff: noqa: E501  (lines of the page)
    return f"""# How fast are engines?

Written by `make bench-engines`; do not edit. OPUS-MT en-fr (Marian), newstest2013 sentences of 5 to 25 words, beams of
{K}, at most {NEW} tokens, no length penalty, one thread; CPU time, all sides on the same inputs in turn, the median of the rounds'
ratios, lowest and highest in brackets. An engine ends its beams by its own rule, so its lists may differ in the last places.

{machine_line(data)}

{table(head, rows)}"""


if __name__ == "__main__":
    SCRATCH.mkdir(exist_ok=True)
    quick, raw = "--quick" in sys.argv, SCRATCH / "engines.json"
    if "--render" not in sys.argv:
        raw.write_text(json.dumps(measure(3 if quick else 8, 2 if quick else 5), indent=1))
    publish("engines", raw, page, quick=quick)
