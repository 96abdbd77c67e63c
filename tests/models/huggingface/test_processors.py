"""What a generation configuration asks for bends the ranking; log-probabilities stay the model's."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import GenerationConfig

from rangevote.errors import UsageError
from rangevote.models.huggingface.model import HuggingFace
from tests.models.huggingface.tiny import BEGIN, END, PAD, make

PROMPT = [5, 6, 7, 8] * 5


def bent(kind: str, **settings) -> HuggingFace:
    """A model whose generation configuration has these settings."""
    net = make(kind)
    start = net.generation_config.decoder_start_token_id
    net.generation_config = GenerationConfig(
        bos_token_id=BEGIN, eos_token_id=END, pad_token_id=PAD, decoder_start_token_id=start, **settings
    )
    return HuggingFace(net)


def test_without_settings_there_is_no_ranking_of_its_own():
    assert bent("llama").step(bent("llama").start([PROMPT]), None).ranking is None


@pytest.mark.parametrize("kind", ["llama", "bart"])
def test_forbidden_words_have_no_rank_and_keep_their_probability(kind):
    model, free = bent(kind, bad_words_ids=[[9], [10, 11]], suppress_tokens=[12]), bent(kind)
    step, expected = (one.step(one.start([PROMPT]), None) for one in (model, free))
    torch.testing.assert_close(step.log_probs, expected.log_probs)
    assert step.ranking[0, [9, 12]].tolist() == [-np.inf, -np.inf]
    assert step.ranking[0, 11] == step.log_probs[0, 11]
    state = model.select(step.state, np.array([0, 0]))
    step = model.step(state, np.array([10, 13]))
    assert step.ranking[0, 11] == -np.inf  # after a 10
    assert step.ranking[1, 11] == step.log_probs[1, 11]


def test_a_row_keeps_its_own_tokens_for_what_may_not_repeat():
    model = bent("llama", no_repeat_ngram_size=2)
    step = model.step(model.start([[5, 20, 21]]), None)
    step = model.step(model.select(step.state, np.array([0, 0])), np.array([20, 22]))
    assert step.ranking[0, 21] == -np.inf  # 20 21 was in the prompt
    assert step.ranking[1, 21] > -np.inf
    step = model.step(model.select(step.state, np.array([1, 0, 1])), np.array([20, 20, 5]))
    assert (step.ranking[:, 21] == -np.inf).tolist() == [True, True, False]
    assert (step.ranking[:, 20] == -np.inf).tolist() == [False, True, True]  # 20 20, and 5 20


def test_the_end_has_no_rank_before_the_least_length():
    model = bent("bart", min_new_tokens=2)
    step, ranks = model.step(model.start([PROMPT]), None), []
    for _ in range(3):
        ranks.append(step.ranking[0, END].item())
        step = model.step(step.state, np.array([7]))
    assert ranks[:2] == [-np.inf, -np.inf]
    assert ranks[2] > -np.inf


def test_a_forced_first_token_is_the_only_one_with_a_rank():
    model = bent("bart", forced_bos_token_id=17)
    step = model.step(model.start([PROMPT, [5]]), None)
    assert (step.ranking > -np.inf).nonzero().tolist() == [[0, 17], [1, 17]]
    later = model.step(step.state, np.array([17, 17]))
    assert (later.ranking > -np.inf).all()


def test_what_belongs_to_a_search_is_not_applied():
    sampling = {"do_sample": True, "temperature": 0.1, "top_k": 3, "top_p": 0.5, "num_beams": 4}
    lengths = {"max_length": 3, "max_new_tokens": 2, "forced_eos_token_id": END, "early_stopping": True}
    model = bent("bart", **sampling, **lengths, length_penalty=2.0, num_return_sequences=2)
    step = model.step(model.start([PROMPT]), None)
    for _ in range(6):
        assert step.ranking is None
        step = model.step(step.state, np.array([7]))


def test_a_setting_made_for_a_fixed_batch_is_refused():
    with pytest.raises(UsageError, match=r"'encoder_no_repeat_ngram_size' cannot be kept.*= None"):
        bent("bart", encoder_no_repeat_ngram_size=2).start([PROMPT])


def test_a_ranking_may_be_written_into_without_harm():
    model = bent("llama", suppress_tokens=[12])
    step = model.step(model.start([PROMPT]), None)
    before = step.log_probs.clone()
    step.ranking[:] = 7.0
    assert torch.equal(step.log_probs, before)
