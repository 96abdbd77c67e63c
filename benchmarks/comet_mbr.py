"""COMET: how many texts an election encodes, beside comet-mbr and mbrs, on a tiny random model.

Runs among the peers, where unbabel-comet is; rangevote comes from src/.
"""

from __future__ import annotations

import gc
import gzip
import json
import logging
import os
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from common import ONE_THREAD, REAL, ROOT, Row, chapter, say, spread, versions

os.environ |= {"HF_HUB_OFFLINE": "1", "TQDM_DISABLE": "1", **ONE_THREAD}
sys.path.insert(0, str(ROOT / "src"))

import generate

SAMPLES = REAL / "test_2016_flickr.en-de.samples100.jsonl.gz"
SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
HIDDEN, LAYERS = 64, 4
OURS = "rangevote"


class List(NamedTuple):
    """Translations of one source."""

    source: str
    texts: list[str]


Elect = Callable[[list[List]], list[str]]


def lists(k: int, count: int) -> dict[str, list[List]]:
    """Lists of k: generated ones, whose texts differ, and samples of a translator, some of them the same."""
    made = [ballot.texts for ballot in generate.ballots(k, count)]
    kinds = {"generated": [List(" ".join(reversed(texts[0].split())), texts) for texts in made]}
    if SAMPLES.exists():
        with gzip.open(SAMPLES, "rt", encoding="utf-8") as file:
            rows = [json.loads(file.readline()) for _ in range(count)]
        kinds["samples"] = [
            List(row["source"], [sample["text"] for sample in row["hypotheses"][:k]]) for row in rows
        ]
    return kinds


class Counter:
    """A regression model of COMET's, of random weights, that counts the texts it encodes."""

    def __init__(self, words: list[str], folder: Path) -> None:
        import torch
        from comet.models import RegressionMetric
        from tokenizers import Tokenizer, models, pre_tokenizers
        from transformers import XLMRobertaConfig, XLMRobertaTokenizerFast

        torch.set_num_threads(1)
        torch.manual_seed(1)
        known = {word: i for i, word in enumerate([*SPECIAL, *words])}
        tokenizer = Tokenizer(models.WordLevel(known, unk_token="<unk>"))
        tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        tokenizer.save(str(folder / "words.json"))
        XLMRobertaTokenizerFast(tokenizer_file=str(folder / "words.json")).save_pretrained(folder)
        XLMRobertaConfig(
            vocab_size=len(known) + 1,
            hidden_size=HIDDEN,
            num_hidden_layers=LAYERS,
            num_attention_heads=4,
            intermediate_size=4 * HIDDEN,
            max_position_embeddings=514,
            type_vocab_size=1,
            initializer_range=0.5,
        ).save_pretrained(folder)
        self.model = RegressionMetric(
            pretrained_model=str(folder),
            hidden_sizes=[2 * HIDDEN],
            final_activation="Sigmoid",
            load_pretrained_weights=False,
        ).eval()
        self.encoded, self._encode = 0, self.model.get_sentence_embedding
        self.model.get_sentence_embedding = self.count

    def count(self, input_ids: Any, *arguments: Any, **options: Any) -> Any:
        self.encoded += len(input_ids)
        return self._encode(input_ids, *arguments, **options)


def sides(model: Any) -> dict[str, Elect]:
    """Each takes lists and gives the winner of each; all hold the same model."""
    import mbrs.metrics.comet as mbrs_comet
    import torch
    from comet.cli import mbr
    from mbrs.decoders import DecoderMBR

    import rangevote as rv
    from rangevote.similarity.neural import Comet, LazyModel

    measure = Comet("tiny")
    measure._lazy = LazyModel(model)
    mbrs_comet.download_model, mbrs_comet.load_from_checkpoint = str, lambda _: model
    decoder = DecoderMBR(
        DecoderMBR.Config(), mbrs_comet.MetricCOMET(mbrs_comet.MetricCOMET.Config(model="tiny"))
    )

    def ours(some: list[List]) -> list[str]:
        ballots = [rv.Ballot([rv.Hypothesis(t) for t in one.texts], source=one.source) for one in some]
        return [str(r.winner) for r in rv.elect_many(ballots, similarity=measure, weights="count")]

    def comet_mbr(some: list[List]) -> list[str]:
        sources, texts = [one.source for one in some], [text for one in some for text in one.texts]
        vectors, translated = mbr.build_embeddings(sources, texts, model, batch_size=32)
        scores = mbr.mbr_decoding(vectors, translated.reshape(len(some), len(some[0].texts), -1), model)
        return [one.texts[best] for one, best in zip(some, scores.argmax(1).tolist(), strict=True)]

    def mbrs(some: list[List]) -> list[str]:
        with torch.no_grad():
            return [str(decoder.decode(one.texts, one.texts, one.source).sentence[0]) for one in some]

    return {OURS: ours, "comet-mbr": comet_mbr, "mbrs": mbrs}


def measure(quick: bool) -> dict[str, Any]:
    """Of every kind and size of lists, for each side: encodings, CPU seconds by round, winners as ours."""
    sizes, rounds = ({10: 2, 100: 1}, 2) if quick else ({10: 20, 100: 4}, 5)
    if find_spec("comet") is None:
        raise SystemExit("unbabel-comet is missing, which mbrs brings: see what benchmarks/setup.sh says")
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    cases = {(kind, k): some for k, count in sizes.items() for kind, some in lists(k, count * rounds).items()}
    everything = [" ".join([one.source, *one.texts]) for some in cases.values() for one in some]
    words = sorted({word for text in everything for word in text.split()})
    measured = []
    with tempfile.TemporaryDirectory() as folder:
        counter = Counter(words, Path(folder))
        contestants = sides(counter.model)
        for (kind, k), some in cases.items():
            rows = {name: {"times": [], "encoded": 0, "same": 0} for name in contestants}
            count = sizes[k]
            for elect in contestants.values():
                elect(some[:1])  # what is made at the first call
            gc.collect()
            gc.freeze()  # else a walk over all that the libraries hold falls to whoever is measured then
            for turn in range(rounds):
                part = some[turn * count : (turn + 1) * count]
                reference: list[str] = []
                for name, elect in contestants.items():
                    say(f"{kind}, k = {k}, round {turn}: {name}")
                    counter.encoded, spent = 0, time.process_time()
                    winners = elect(part)
                    rows[name]["times"].append((time.process_time() - spent) / count)
                    rows[name]["encoded"] += counter.encoded
                    reference = reference or winners
                    rows[name]["same"] += sum(a == b for a, b in zip(winners, reference, strict=True))
            measured.append({"kind": kind, "k": k, "lists": count * rounds, "sides": rows})
    return {
        "measured": measured,
        "versions": versions("torch", "transformers", "unbabel-comet", "mbrs"),
    }


def page(data: dict[str, Any]) -> str:
    rows = []
    for case in data["measured"]:
        count, ours, found = case["lists"], case["sides"][OURS], []
        for name, side in case["sides"].items():
            ratios = [a / b for a, b in zip(side["times"], ours["times"], strict=True)]
            took = f"{statistics.median(side['times']) * 1e3:.1f} ms, {spread(ratios, '.2f', ' x')} ours"
            same = f"same winner {side['same']} of {count}"
            found.append(f"{name} {side['encoded'] / count:.1f} encodings, {took}, {same}")
        rows.append(Row(f"{case['kind']}, k = {case['k']}", "", "; ".join(found)))
    about = f"""A regression model of COMET's with random weights ({LAYERS} layers, {HIDDEN} dimensions),
        the same for all, in one process and on one thread; every voter counts once. All three encode the
        source and each text once, rangevote those that are the same only once; scoring all pairs by
        `comet-score` would encode 3 k^2 texts. `comet-mbr` is its functions `build_embeddings` and
        `mbr_decoding` in float32; it leaves out what a candidate would give itself, so it may elect
        another. Lists are generated (all texts differ) or a translator's samples."""
    return chapter("How much does COMET encode?", about, data, {"": rows})
