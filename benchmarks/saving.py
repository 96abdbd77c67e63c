"""What the service saves by early stopping and by stages, in samples and words, and what that costs.

The model's servers are scripted: to a question of GSM8K they answer with one of the four texts that a model
once gave to it, drawn by the seed of the request. The service in front of them is the real one, over
loopback. Every setting asks the same questions with the same seed, so that its answers can be compared.
"""

from __future__ import annotations

import gzip
import json
import random
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from common import REAL, ROOT, Row, chapter, say, versions

sys.path.insert(0, str(ROOT))
from tests.engines.openai.upstream import Asked, Reply, Upstream, choice
from tests.service.running import Running

AT_A_TIME = 12
DATA = REAL.parent / "panels" / "gsm8k.jsonl.gz"
#: The servers, and the stored members whose texts they say begin with this.
MODELS = {"small": "gpt-3.5-turbo", "large": "gpt-4o-mini"}
#: What is asked: the name of the setting, the model, the options, and the setting it is compared with.
SETTINGS: list[tuple[str, str, dict[str, Any], str]] = [
    ("small, 32 samples", "small", {"samples": 32}, ""),
    ("small, until 95 % certain", "small", {"samples": 32, "adaptive": 0.95}, "small, 32 samples"),
    ("large, 32 samples", "large", {"samples": 32}, ""),
    ("large, until 95 % certain", "large", {"samples": 32, "adaptive": 0.95}, "large, 32 samples"),
    ("both, 32 samples", "panel", {"samples": 32}, ""),
    ("both, until 95 % certain", "panel", {"samples": 32, "adaptive": 0.95}, "both, 32 samples"),
    ("large, 4 samples", "large", {"samples": 4}, ""),
    ("both, 8 samples", "panel", {"samples": 8}, ""),
    (
        "small, then large if not all of 4 agree",
        "panel",
        {"samples": 8, "escalate": "share<1"},
        "both, 8 samples",
    ),
    (
        "small, then large if fewer than 3 of 4 agree",
        "panel",
        {"samples": 8, "escalate": "share<0.75"},
        "both, 8 samples",
    ),
]


def questions() -> list[dict[str, Any]]:
    """Those to which every model has a text; the last line of each text is the answer that was stored."""
    kept = []
    with gzip.open(DATA, "rt", encoding="utf-8") as lines:
        for line in lines:
            ballot = json.loads(line)
            texts: dict[str, list[str]] = {name: [] for name in MODELS}
            for one in ballot["candidates"]:
                for name, member in MODELS.items():
                    if one["member"].startswith(member):
                        texts[name].append(f"{one['text']}\nA: {one['answer'] or 'none'}")
            if all(texts.values()):
                kept.append({"source": ballot["source"], "gold": float(ballot["gold"]), **texts})
    return kept


def server(name: str, by_source: dict[str, dict[str, Any]]) -> Callable[[Asked], Reply]:
    """One of the stored texts for each sample; a token is a word."""

    def answer(asked: Asked) -> Reply:
        question, seed = asked.body["messages"][-1]["content"], asked.body["seed"]
        said = by_source[question][name]
        texts = [random.Random(f"{question}/{seed + i}").choice(said) for i in range(asked.n)]
        choices = [choice(asked, i) | {"message": {"content": text}} for i, text in enumerate(texts)]
        words = sum(len(text.split()) for text in texts)
        usage = {"prompt_tokens": len(question.split()), "completion_tokens": words}
        return Reply({"id": "1", "object": "chat.completion", "choices": choices, "usage": usage})

    return answer


def ask(service: Running, model: str, options: dict[str, Any], question: dict[str, Any]) -> dict[str, Any]:
    """One question: the answer, whether it is right, and what it took."""
    messages = [{"role": "user", "content": question["source"]}]
    reply = service.ask(model=model, messages=messages, seed=1, rangevote=options).json()
    election = reply["rangevote"]
    answer, samples = (election.get("answers") or {}).get("answer"), election["samples"]["asked"]
    return {
        "answer": answer,
        "right": answer is not None and abs(float(answer) - question["gold"]) < 1e-3,
        "samples": samples,
        "large": election.get("members", {model: samples}).get("large", 0),
        "words": reply["usage"]["completion_tokens"],
    }


def measure(quick: bool) -> dict[str, Any]:
    asked = questions()[: 40 if quick else None]
    by_source = {one["source"]: one for one in asked}
    found: dict[str, list[dict[str, Any]]] = {}
    with (
        Upstream(models=("small",), answer=server("small", by_source)) as small,
        Upstream(models=("large",), answer=server("large", by_source)) as large,
        Running(
            small.url,
            upstreams={"small": small.url, "large": large.url},
            options={"similarity": "exact:last_number"},
        ) as service,
    ):
        for name, model, options, _ in SETTINGS:
            say(name)
            with ThreadPoolExecutor(AT_A_TIME) as threads:
                found[name] = list(threads.map(partial(ask, service, model, options), asked))
    return {"found": found, "questions": len(asked), "versions": versions("rangevote")}


def page(data: dict[str, Any]) -> str:
    found, size, rows = data["found"], data["questions"], []
    for name, _, _, compared in SETTINGS:
        mine, whole = found[name], found.get(compared)
        totals = {key: sum(one[key] for one in mine) for key in ("samples", "large", "words")}
        right = f"{sum(one['right'] for one in mine) / size:.1%} right"
        drawn = f"{totals['samples'] / size:.1f} samples ({totals['large'] / size:.1f} large)"
        row = Row(name, "", f"{right}, {drawn}, {totals['words'] / size:,.0f} words")
        if whole is not None:
            same = sum(one["answer"] == other["answer"] for one, other in zip(mine, whole, strict=True))
            samples, words = (
                1 - totals[key] / sum(one[key] for one in whole) for key in ("samples", "words")
            )
            asked = sum(one["large"] > 0 for one in mine) / size
            saved = f"same answer {same / size:.1%}; saved {samples:.0%} of samples, {words:.0%} of words"
            row = row._replace(measured=f"{row.measured}; {saved}; large asked in {asked:.0%}")
        rows.append(row)
    about = f"""The numbers do not depend on the machine: every sample has its seed. {size} questions of
        GSM8K, elected by `exact:last_number`. The model's servers are scripted: a sample of `small` is one
        of four stored texts of gpt-3.5-turbo for that question, one of `large` of gpt-4o-mini, drawn with
        replacement by the seed. So there are at most four different samples: many of them show what
        stopping saves, not what a model would say. Means for each question; what was saved is compared with
        the setting that draws all (for stages, 4 of each)."""
    title = "What does the service save by stopping early and by stages?"
    return chapter(title, about, data, {"": rows})
