"""One case of the search benchmark, in a process of its own: ours and transformers' own, in turn.

    python benchmarks/search_case.py '{"case": "smollm2", "k": 10, ...}'     # prints one JSON object

Both sides get the same token ids, the same k, the same length limit and the same rule of when a beam is
finished (`finish="transformers"`, no length penalty), so their outputs must be identical; that is checked
first.
"""

from __future__ import annotations

import gc
import json
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
import transformers

import rangevote as rv

ROOT = Path(__file__).resolve().parent.parent


def smollm2() -> tuple[Any, list[list[int]]]:
    """SmolLM2-135M-Instruct, and prompts of 256 tokens: pieces of our own texts."""
    from rangevote.models.load import smollm2 as file

    transformers.utils.logging.set_verbosity_error()
    model = rv.load(file())
    text = "\n".join((ROOT / name).read_text() for name in ("LICENSE", "docs/design.md", "CONTRIBUTING.md"))
    ids = model.tokenizer(text, add_special_tokens=False)["input_ids"]
    return model, [ids[i : i + 256] for i in range(0, 256 * 8, 256)]


def marian() -> tuple[Any, list[list[int]]]:
    """An encoder-decoder of the size of opus-mt with random weights, and sources of 15 to 40 tokens.

    The weights are drawn wider than for training: else all tokens are about equally likely, and rounding
    decides.
    """
    config = transformers.MarianConfig(
        vocab_size=58101,
        d_model=512,
        encoder_layers=6,
        decoder_layers=6,
        encoder_attention_heads=8,
        decoder_attention_heads=8,
        encoder_ffn_dim=2048,
        decoder_ffn_dim=2048,
        max_position_embeddings=512,
        pad_token_id=58100,
        eos_token_id=0,
        decoder_start_token_id=58100,
        forced_eos_token_id=None,
        init_std=0.08,
        scale_embedding=True,
    )
    torch.manual_seed(1)
    hf = transformers.MarianMTModel(config).eval()
    lengths = torch.randint(15, 41, (64,), generator=torch.Generator().manual_seed(2)).tolist()
    draw = torch.Generator().manual_seed(3)
    return rv.load(hf), [
        [*torch.randint(1, 58100, (length - 1,), generator=draw).tolist(), 0] for length in lengths
    ]


MODELS = {"smollm2": smollm2, "marian": marian}


def theirs(model: Any, inputs: list[list[int]], k: int, new: int, scores: bool = False) -> Any:
    """Transformers' own generate, as a user would call it for an n-best list."""
    hf = model.hf
    width, encoder = max(map(len, inputs)), hf.config.is_encoder_decoder
    pad = hf.generation_config.pad_token_id or 0
    rows = [
        [*ids, *[pad] * (width - len(ids))] if encoder else [*[pad] * (width - len(ids)), *ids]
        for ids in inputs
    ]
    masks = [
        [*[1] * len(ids), *[0] * (width - len(ids))]
        if encoder
        else [*[0] * (width - len(ids)), *[1] * len(ids)]
        for ids in inputs
    ]
    return hf.generate(
        torch.tensor(rows),
        attention_mask=torch.tensor(masks),
        num_beams=k,
        num_return_sequences=k,
        max_new_tokens=new,
        do_sample=False,
        length_penalty=0.0,
        early_stopping="never",
        pad_token_id=pad,
        return_dict_in_generate=scores,
        output_scores=scores,
    )


def ours(model: Any, inputs: list[list[int]], k: int, new: int) -> list[list[rv.Hypothesis]]:
    """The same search over the seam."""
    method = rv.Beam(k, max_new_tokens=new, finish="transformers")
    return rv.search(model, inputs, method, max_rows=len(inputs) * k)  # type: ignore[no-any-return]


def agreement(model: Any, inputs: list[list[int]], k: int, new: int) -> dict[str, Any]:
    """How many hypotheses are the same on both sides, and how far their scores lie apart."""
    out = theirs(model, inputs, k, new, scores=True)
    start = out.sequences.shape[1] - out.beam_indices.shape[1]
    lengths = (out.beam_indices >= 0).sum(-1).tolist()
    ends = set(model.ends)
    same, apart, total = 0, 0.0, 0
    for i, hypotheses in enumerate(ours(model, inputs, k, new)):
        rows = range(i * k, i * k + k)
        known = {
            tuple(
                t for t in out.sequences[row, start : start + lengths[row]].tolist() if t not in ends
            ): float(out.sequences_scores[row])
            for row in rows
        }
        both = [one for one in hypotheses if tuple(one.tokens or ()) in known]
        same, total = same + len(both), total + len(rows)
        gaps = [abs(known[tuple(one.tokens or ())] - (one.logprob or 0.0)) for one in both]
        apart = max([apart, *gaps])
    return {"same": same, "of": total, "apart": apart}


def timed(call: Any) -> float:
    """Wall seconds of one call; both sides use the same threads."""
    gc.collect()
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def status(name: str) -> float:
    """A line of /proc/self/status in MB: VmRSS is what is resident now, VmHWM the most so far."""
    match = re.search(rf"{name}:\s+(\d+)", Path("/proc/self/status").read_text())
    assert match
    return int(match[1]) / 1024


def memory(call: Any) -> dict[str, float]:
    """The most that is resident during a call, and how much of it was there before."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # forgets the peak of loading
    before = status("VmRSS")
    call()
    return {"before": before, "peak": status("VmHWM")}


def voting(model: Any, inputs: list[list[int]], k: int, new: int) -> dict[str, float]:
    """Seconds for searching and for electing by overlap_2, on text where there is some, else on tokens."""
    began = time.perf_counter()
    lists = ours(model, inputs, k, new)
    searched = time.perf_counter()
    for hypotheses in lists:
        rv.elect(hypotheses, similarity="overlap_2")
    return {"search": searched - began, "vote": time.perf_counter() - searched}


def main(request: dict[str, Any]) -> dict[str, Any]:
    """Answer one request."""
    torch.set_num_threads(request.get("threads", 2))
    model, inputs = MODELS[request["case"]]()
    inputs = inputs[: request["inputs"]]
    k, new = request["k"], request["new"]
    sides = {"ours": lambda: ours(model, inputs, k, new), "theirs": lambda: theirs(model, inputs, k, new)}
    if request["what"] == "memory":
        theirs(model, inputs, 1, 2)  # what the libraries load on first use
        ours(model, inputs, 1, 2)
        return memory(sides[request["side"]])
    if request["what"] == "voting":
        ours(model, inputs, k, 2)
        return voting(model, inputs, k, new)
    result: dict[str, Any] = {"agreement": agreement(model, inputs, k, new), "ours": [], "theirs": []}
    for _ in range(request["rounds"]):
        for side, call in sides.items():
            result[side].append(timed(call))
    return result


if __name__ == "__main__":
    with torch.inference_mode():
        print(json.dumps(main(json.loads(sys.argv[1]))))
