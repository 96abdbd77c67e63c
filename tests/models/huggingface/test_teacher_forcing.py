"""Step by step, rows say what transformers says of the whole sequence at once; hidden states are its own."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import transformers
from packaging.version import Version

from rangevote.models.huggingface.model import HuggingFace
from rangevote.models.huggingface.shared_cache import SharedPrompt
from tests.models.huggingface.forcing import forced
from tests.models.huggingface.samples import IDS, images
from tests.models.huggingface.tiny import MODELS, SEEING, SHARING, make_processor

# BLIP's decoder takes no image of its own; what it says is compared with `generate` below.
KINDS = [kind for kind in MODELS if kind != "blip"]


def given(kind: str) -> tuple[list, dict]:
    return (images(), {"processor": make_processor()}) if kind in SEEING else (IDS, {})


@pytest.mark.parametrize("share", [True, False], ids=["shared", "plain"])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_say_what_one_pass_over_the_whole_sequence_says(tiny_model, kind, share):
    if kind == "git" and Version(transformers.__version__) < Version("5.22"):
        pytest.skip("its steps with a cache differ from one pass in older versions")
    net, (inputs, more) = tiny_model(kind), given(kind)
    model = HuggingFace(net, share=share, **more)
    written = np.random.default_rng(0).integers(4, 40, size=(2 * len(inputs), 20))
    owner = np.arange(len(written)) // 2  # two rows of every input
    step = model.step(model.select(model.start(inputs), owner), None)
    assert isinstance(step.state.prompt, SharedPrompt) == (share and kind in SHARING)
    steps = [step]
    for tokens in written.T:
        steps.append(model.step(steps[-1].state, tokens))
    for row, tokens in enumerate(written.tolist()):
        expected = forced(kind, net, inputs[owner[row]], tokens)
        found = torch.stack([step.log_probs[row] for step in steps])
        hidden = torch.stack([step.hidden[row] for step in steps])
        torch.testing.assert_close(found, expected.log_probs, rtol=0, atol=1e-4)
        torch.testing.assert_close(hidden, expected.hidden.float(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", MODELS)
def test_the_likeliest_token_at_every_step_is_what_generate_writes(tiny_model, kind):
    net, (inputs, more) = tiny_model(kind), given(kind)
    model = HuggingFace(net, **more)
    step, tokens = model.step(model.start(inputs), None), []
    for _ in range(12):
        tokens.append(step.log_probs.argmax(dim=-1).numpy())
        step = model.step(step.state, tokens[-1])
    for i, input in enumerate(inputs):
        found = [int(chosen[i]) for chosen in tokens]
        found = found[: found.index(model.ends[0])] if model.ends[0] in found else found
        assert found == generated(net, kind, input, model.ends[0])


def generated(net, kind: str, input, end: int) -> list[int]:
    settings = {"max_new_tokens": 12, "do_sample": False, "forced_eos_token_id": None}
    if kind in SEEING:
        pixels = make_processor()(images=[input], return_tensors="pt")["pixel_values"]
        ids = net.generate(pixel_values=pixels, **settings)[0].tolist()[1:]
    else:
        prompt = torch.tensor([input])
        ids = net.generate(prompt, attention_mask=torch.ones_like(prompt), **settings)[0].tolist()
        ids = ids[1:] if net.config.is_encoder_decoder else ids[len(input) :]
    return ids[: ids.index(end)] if end in ids else ids
