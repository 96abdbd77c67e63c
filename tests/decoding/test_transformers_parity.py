"""`finish="transformers"` against transformers' own beam search, and every search against teacher forcing."""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from dataclasses import replace
from itertools import pairwise
from math import log

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("PIL")

import rangevote as rv  # noqa: E402
from rangevote.decoding import search  # noqa: E402
from rangevote.decoding.beam import Beam  # noqa: E402
from rangevote.engines.transformers import hypotheses_of  # noqa: E402
from tests.decoding.compare import ranking  # noqa: E402
from tests.decoding.every import EVERY  # noqa: E402
from tests.decoding.models import Written  # noqa: E402
from tests.models.huggingface import tiny  # noqa: E402
from tests.models.table import TableModel  # noqa: E402

MODELS = ("bart", "marian", "llama", "gpt2", "vit-gpt2")
LIMIT = 6
NEAR = 1e-5
RAGGED, EQUAL, ONE = [5, 3, 7, 1, 4, 6, 2], [4] * 7, [5]
#: k, lengths of the inputs, whether there is an attention mask, length_penalty, early_stopping, several ends
QUICK = [
    (1, RAGGED, True, 0.0, False, False),
    (2, EQUAL, False, 0.0, True, False),
    (4, RAGGED, True, 0.0, False, False),
    (4, EQUAL, False, 0.0, "never", True),
    (4, RAGGED, True, 1.0, False, True),
    (4, RAGGED, True, 1.0, True, True),
    (4, RAGGED, True, -0.7, "never", True),
    (10, RAGGED, True, 0.0, True, True),
    (30, ONE, True, 1.0, "never", True),
]


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # the models are too small for more
    yield
    torch.set_num_threads(before)


def tiny_model(name, seed, several):
    """A tiny model and its ends: one that hardly comes, or the second to fourth most probable tokens."""
    hf = deepcopy(tiny.make(name, seed))
    start = hf.generation_config.decoder_start_token_id
    hf.generation_config = transformers.GenerationConfig(
        pad_token_id=tiny.PAD, eos_token_id=tiny.END, decoder_start_token_id=start
    )
    ends = (tiny.END,)
    if several:
        logs = [
            tiny.forced(name, hf, input, list(range(10 + i, 14 + i))).log_probs
            for i, input in enumerate(inputs_for(name, seed + 1, [4] * 20))
        ]
        ends = tuple(torch.stack(logs).exp().mean(dim=(0, 1)).topk(4).indices[1:].tolist())
    hf.generation_config.eos_token_id = list(ends)
    return hf, ends


def inputs_for(name, seed, lengths):
    """Prompts or sources of these lengths, without special tokens; or as many images."""
    rng = np.random.default_rng(seed)
    if name in tiny.SEEING:
        return [tiny.Image.fromarray(rng.integers(256, size=(16, 16, 3)).astype(np.uint8)) for _ in lengths]
    return [rng.integers(3, tiny.VOCABULARY, size=length).tolist() for length in lengths]


def loaded(hf):
    return rv.load(hf, processor=tiny.make_processor() if hf.main_input_name == "pixel_values" else None)


def generated(hf, name, inputs, mask, k, penalty, early, ends):
    """Transformers' hypotheses for each input: tokens without the end, whether it came, log P, score."""
    options = {"max_new_tokens": LIMIT, "do_sample": False, "return_dict_in_generate": True}
    if k > 1:
        options |= {
            "num_beams": k,
            "num_return_sequences": k,
            "length_penalty": penalty,
            "early_stopping": early,
            "output_scores": True,
        }
    batch = loaded(hf)._encoder.encode(inputs)[0]
    if not mask:
        batch.pop("attention_mask", None)
    out = hf.generate(**batch, **options, output_logits=k == 1)
    return [
        [
            (one.tokens, one.finished, one.logprob, one.logprob / (len(one.tokens) + one.finished) ** penalty)
            for one in beams
        ]
        for beams in hypotheses_of(out, ends=ends, inputs=len(inputs))
    ]


def assert_parity(name, seed, k, lengths, mask, penalty, early, several):
    hf, ends = tiny_model(name, seed, several)
    inputs = inputs_for(name, seed + 2, lengths)
    method = Beam(
        k, finish="transformers", length_penalty=penalty, early_stopping=early, max_new_tokens=LIMIT
    )
    ours = search(loaded(hf), inputs, method)
    theirs = generated(hf, name, inputs, mask, k, penalty if k > 1 else 0.0, early, ends)
    ended = 0
    for found, wanted in zip(ours, theirs, strict=True):
        assert len(found) == len(wanted) == k
        scores = [one.logprob if one.ranked_by is None else one.ranked_by for one in found]
        assert scores == pytest.approx([score for *_, score in wanted], abs=1e-4)
        pairs = [(tokens, finished) for tokens, finished, *_ in wanted]
        # where two are nearer than rounding, either may come first; at the edge, either may come at all
        clear = sum(score > wanted[-1][-1] + NEAR for *_, score in wanted)
        if min((a[-1] - b[-1] for a, b in pairwise(wanted[:clear])), default=1) > NEAR:
            assert ranking(found)[:clear] == pairs[:clear]
        else:
            assert Counter(ranking(found)[:clear]) == Counter(pairs[:clear])
        if ranking(found)[clear:] == pairs[clear:]:
            assert [one.logprob for one in found] == pytest.approx([one[2] for one in wanted], abs=1e-4)
        else:
            assert scores[clear:] == pytest.approx([score for *_, score in wanted[clear:]], abs=NEAR)
        ended += sum(finished for _, finished in pairs)
    return ended


@pytest.mark.parametrize("name", MODELS)
def test_the_beam_of_transformers(name):
    assert sum(assert_parity(name, 0, *setting) for setting in QUICK) > 20  # or nothing differs


@pytest.mark.parametrize("name", ["llama", "bart"])
def test_what_the_models_settings_bend_is_ranked_as_in_transformers(name):
    hf, ends = tiny_model(name, 0, several=True)
    inputs = inputs_for(name, 2, RAGGED)
    plain = generated(hf, name, inputs, True, 4, 0.0, False, ends)
    hf.generation_config.update(repetition_penalty=1.5, no_repeat_ngram_size=2, min_new_tokens=2)
    theirs = generated(hf, name, inputs, True, 4, 0.0, False, ends)
    assert [[one[0] for one in found] for found in plain] != [[one[0] for one in found] for found in theirs]
    ours = search(rv.load(hf), inputs, Beam(4, finish="transformers", max_new_tokens=LIMIT))
    bent = 0
    for found, wanted, input in zip(ours, theirs, inputs, strict=True):
        assert ranking(found) == [(tokens, finished) for tokens, finished, *_ in wanted]
        scores = [one.logprob if one.ranked_by is None else one.ranked_by for one in found]
        assert scores == pytest.approx([score for *_, score in wanted], abs=1e-4)
        for one in found:  # the log-probability stays the model's own
            assert_forced(name, hf, input, one, ends)
            bent += one.ranked_by is not None and abs(one.ranked_by - one.logprob) > 0.1
    assert bent


def assert_forced(name, hf, input, one, ends):
    """The log-probability and, where kept, the mean state are those of one pass over the whole hypothesis."""
    logs, states = tiny.forced(name, hf, input, list(one.tokens))
    own = sum(float(logs[i, token]) for i, token in enumerate(one.tokens))
    # which of several ends came is not told: one of them explains the rest
    finals = [float(logs[-1, end]) for end in ends] if one.finished else [0.0]
    assert min(abs(one.logprob - own - final) for final in finals) < 1e-4
    if one.state is not None:
        positions = len(one.tokens) + one.finished
        assert one.state == pytest.approx(states[:positions].mean(dim=0).tolist(), abs=1e-4)


def test_how_the_two_ways_to_finish_differ():
    # At first the end has .4, a .35, b .25. Where finished hypotheses compete, the end and a are the two best
    # and b is lost. In transformers two stay alive beside the end: a, that falls to .175, and b, that ends.
    model = Written(3, {(): (0.4, 0.35, 0.25), (1,): (0.5, 0.5, 0.0), (1, 1): (0.5, 0.5, 0.0)})
    (ours,) = search(model, [0], Beam(2))
    (theirs,) = search(model, [0], Beam(2, finish="transformers"))
    assert ranking(ours) == [((), True), ((1,), True)]
    assert ranking(theirs) == [((), True), ((2,), True)]


def test_the_length_penalty_ranks_and_decides_when_to_stop():
    # the end .5 (-0.693 / 1) against "a a end" with .5 * .8 * .8 (-1.139 / 3 = -0.380)
    model = Written(2, {(): (0.5, 0.5), (1,): (0.2, 0.8), (1, 1): (0.2, 0.8)})
    method = Beam(1, finish="transformers", length_penalty=1.0, early_stopping="never", max_new_tokens=3)
    (found,) = search(model, [0], method)
    assert ranking(found) == [((1, 1, 1), False)]
    assert found[0].ranked_by == pytest.approx(log(0.32) / 3)
    (found,) = search(model, [0], replace(method, early_stopping=True))
    assert ranking(found) == [((), True)]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("early", [False, "never"])
def test_with_all_sequences_both_ways_to_finish_agree(seed, early):
    model = TableModel(4, 3, seed)  # 40 sequences
    inputs = ["a", "b"]
    for limit in (2, 64):
        ours = search(model, inputs, Beam(40, max_new_tokens=limit))
        method = Beam(40, finish="transformers", early_stopping=early, max_new_tokens=limit)
        assert search(model, inputs, method) == ours


@pytest.mark.parametrize(
    ("method", "name"), [*((method, "llama") for method in EVERY), (Beam(4), "bart")], ids=str
)
def test_log_probabilities_and_states_are_those_of_teacher_forcing(method, name):
    hf, ends = tiny_model(name, 0, several=True)
    inputs = inputs_for(name, 5, [5, 2, 7])
    method = replace(method, max_new_tokens=4)
    found = search(rv.load(hf), inputs, method, states=True)
    for listed, input in zip(found, inputs, strict=True):
        for one in listed:
            assert one.state is not None
            assert_forced(name, hf, input, one, ends)
    assert any(one.finished for listed in found for one in listed)
