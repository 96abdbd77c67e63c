"""CTranslate2 as an engine beside transformers' generate and our own search, on the same Marian weights.

Needs ../shared/data/opus-mt-en-fr.
"""

from __future__ import annotations

import gzip
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from common import ONE_THREAD, ROOT, Row, chapter, compared, say, spread, versions

# before torch and CTranslate2 are imported: otherwise CTranslate2 takes a thread for each core, and those
# that wait use CPU time
os.environ |= {"HF_HUB_OFFLINE": "1", **ONE_THREAD}
DATA = ROOT.parent / "shared" / "data"
MODEL, INPUTS = DATA / "opus-mt-en-fr", DATA / "newstest-en-fr" / "newstest2013.en.gz"
K, NEW, TARGET = 10, 64, 2.5
REFERENCE, JUDGED = "transformers, float32", "CTranslate2, float32"
Lists = list[list[str]]


class Timed:
    """A model of CTranslate2's that knows how much CPU time its own call has taken."""

    def __init__(self, model: Any) -> None:
        self.model, self.spent = model, 0.0

    def translate_batch(self, *arguments: Any, **options: Any) -> Any:
        began = time.process_time()
        found = self.model.translate_batch(*arguments, **options)
        self.spent += time.process_time() - began
        return found


def sides(folder: Path) -> tuple[dict[str, Callable[[list[str]], Lists]], Timed]:
    """Each takes texts and gives k translations of each; and the model of the one that is judged."""
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
    engines[JUDGED]._model = timed = Timed(engines[JUDGED]._model)

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

    return {REFERENCE: generate} | {name: searched(engine) for name, engine in engines.items()}, timed


def measure(quick: bool) -> dict[str, Any]:
    """CPU seconds of each side in every round: all inputs of the round in one call, 8 and one at a time.

    Every round has inputs of its own. Counted as well: how many outputs are those of transformers.
    """
    number, rounds = (4, 1) if quick else (24, 3)
    if not MODEL.exists():
        raise SystemExit(f"needs the translator in {MODEL.parent.name}/{MODEL.name} beside the repository")
    with gzip.open(INPUTS, "rt", encoding="utf-8") as file:
        texts = [line.strip() for line in file if 5 <= len(line.split()) <= 25][: number * rounds]
    with tempfile.TemporaryDirectory() as folder:
        contestants, timed = sides(Path(folder))
        settings: dict[str, dict[str, dict[str, Any]]] = {
            str(size): {name: {"times": [], "best": 0, "shared": 0} for name in contestants}
            for size in (number, min(8, number), 1)
        }
        for call in contestants.values():
            call(texts[:1])  # what is made at the first call
        timed.spent = 0.0
        for turn in range(rounds):
            some = texts[turn * number : (turn + 1) * number]
            for size, measured in settings.items():
                parts = [some[i : i + int(size)] for i in range(0, number, int(size))]
                reference: Lists = []
                for name, call in contestants.items():
                    say(f"round {turn}, {size} at a time: {name}")
                    spent = time.process_time()
                    found = [each for part in parts for each in call(part)]
                    measured[name]["times"].append(time.process_time() - spent)
                    reference = reference or found
                    pairs = list(zip(found, reference, strict=True))
                    measured[name]["best"] += sum(a[0] == b[0] for a, b in pairs)
                    measured[name]["shared"] += sum(len(set(a) & set(b)) for a, b in pairs)
    return {
        "settings": settings,
        "own": timed.spent,
        "inputs": number * rounds,
        "versions": versions("torch", "transformers", "ctranslate2", "rangevote"),
    }


def page(data: dict[str, Any]) -> str:
    rows, inputs, own = list[Row](), data["inputs"], 0.0
    why = "both sides are bound by the float32 multiplication, ten rows at a time; int8 is not"
    for size, measured in data["settings"].items():
        own += sum(measured[JUDGED]["times"])
        for name, side in measured.items():
            if name == REFERENCE:
                continue
            ratios = [a / b for a, b in zip(measured[REFERENCE]["times"], side["times"], strict=True)]
            what = f"{name}, {size} at a time"
            row = Row(what, "", spread(ratios, ".2f", " x"))
            if name == JUDGED:
                row = compared(what, ratios, TARGET, least=True, why=why)
            cost = f"{sum(side['times']) / inputs:.2f} s a sentence"
            same = f"same best {side['best']} of {inputs}, same outputs {side['shared']} of {K * inputs}"
            rows.append(row._replace(measured=f"{row.measured}, {cost}; {same}"))
    about = f"""As fast as transformers: OPUS-MT en-fr (Marian), newstest2013 sentences of 5 to 25 words,
        beams of {K}, at most {NEW} tokens, no length penalty, one thread; CPU time, all sides on the same
        inputs in turn. An engine ends its beams by its own rule, so its lists may differ in the last places.
        Of the time of CTranslate2 in float32, {1 - data["own"] / own:.1%} is rangevote's around it."""
    return chapter("How fast are engines?", about, data, {"": rows})
