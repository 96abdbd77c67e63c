"""Outputs of transformers' generate: log P is added up from the tokens, never `sequences_scores`."""

from __future__ import annotations

import math
import os
from types import SimpleNamespace

import pytest

os.environ["HF_HUB_OFFLINE"] = "1"
torch = pytest.importorskip("torch", reason="needs torch: pip install 'rangevote[models]'")
pytest.importorskip("transformers", reason="needs transformers: pip install 'rangevote[models]'")

from rangevote.engines.transformers import hypotheses_of  # noqa: E402
from rangevote.errors import DataError, UsageError  # noqa: E402
from rangevote.hypothesis import Hypothesis  # noqa: E402
from tests.models.huggingface.tiny import END, PAD, forced, make, make_tokenizer  # noqa: E402

PROMPTS = [[1, 4, 6, 9], [1, 5, 7, 11]]


@pytest.fixture(scope="module", params=["llama", "bart"])
def kind(request) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def net(kind):
    net = make(kind, seed=5)
    if kind == "bart":
        net.final_logits_bias[0, END] += 8  # else it hardly ever ends
    return net


def generated(net, **options):
    torch.manual_seed(7)
    given = torch.tensor(PROMPTS)
    options = {"max_new_tokens": 7, "pad_token_id": PAD, "forced_eos_token_id": None, **options}
    return net.generate(given, attention_mask=torch.ones_like(given), return_dict_in_generate=True, **options)


def truth(kind: str, net, prompt: list[int], hypothesis: Hypothesis) -> float:
    """log P by one pass over all tokens."""
    tokens = list(hypothesis.tokens or ())
    said = forced(kind, net, prompt, tokens).log_probs
    written = [*tokens, END] if hypothesis.finished else tokens
    return math.fsum(float(said[i, token]) for i, token in enumerate(written))


@pytest.mark.parametrize("outputs", [{"output_logits": True, "output_scores": True}, {"output_scores": True}])
@pytest.mark.parametrize("length_penalty", [0.0, 2.0])
def test_the_log_probability_of_a_beam_is_that_of_the_model(kind, net, outputs, length_penalty):
    output = generated(net, num_beams=5, num_return_sequences=5, length_penalty=length_penalty, **outputs)
    found = hypotheses_of(output, ends=[END], inputs=2)
    assert [len(listed) for listed in found] == [5, 5]
    assert any(hypothesis.finished for listed in found for hypothesis in listed)
    for prompt, listed in zip(PROMPTS, found, strict=True):
        for hypothesis in listed:
            assert hypothesis.logprob == pytest.approx(truth(kind, net, prompt, hypothesis), abs=1e-4)
            assert not hypothesis.sampled


def test_it_is_the_sum_of_the_transition_scores_and_not_the_normalised_score(net):
    output = generated(net, num_beams=4, num_return_sequences=4, output_scores=True)
    sums = net.compute_transition_scores(output.sequences, output.scores, output.beam_indices).sum(1)
    found = [one for listed in hypotheses_of(output, ends=[END], inputs=2) for one in listed]
    assert [one.logprob for one in found] == pytest.approx(sums.tolist(), abs=1e-5)
    assert max(abs(sums - output.sequences_scores)) > 0.1


def test_scores_that_processors_bent_above_a_probability_of_one_are_refused(net):
    bent = {"num_beams": 2, "num_return_sequences": 2, "sequence_bias": [[[6], 50.0]]}
    output = generated(net, output_scores=True, **bent)
    with pytest.raises(
        DataError, match=r"sequences\[0\]: the scores of its tokens add up to .*output_logits=True"
    ):
        hypotheses_of(output, ends=[END], inputs=2)
    output = generated(net, output_scores=True, output_logits=True, **bent)
    assert all(one.logprob <= 0 for listed in hypotheses_of(output, ends=[END], inputs=2) for one in listed)


def test_logits_are_the_models_own_where_processors_bend_the_scores(kind, net):
    bent = {"num_beams": 4, "num_return_sequences": 4, "repetition_penalty": 1.8, "min_new_tokens": 4}
    output = generated(net, output_logits=True, output_scores=True, **bent)
    for prompt, listed in zip(PROMPTS, hypotheses_of(output, ends=[END], inputs=2), strict=True):
        for hypothesis in listed:
            assert hypothesis.logprob == pytest.approx(truth(kind, net, prompt, hypothesis), abs=1e-4)


def test_samples_are_cut_at_their_end_and_their_log_probability_is_untempered(kind, net):
    drawn = {"do_sample": True, "temperature": 0.6, "top_k": 9, "num_return_sequences": 6}
    output = generated(net, output_logits=True, **drawn)
    found = hypotheses_of(output, ends=[END], inputs=2)
    assert any(one.finished and len(one.tokens) < 6 for listed in found for one in listed)
    for prompt, listed in zip(PROMPTS, found, strict=True):
        assert len(listed) == 6
        for hypothesis in listed:
            assert hypothesis.sampled
            assert END not in hypothesis.tokens
            assert hypothesis.logprob == pytest.approx(truth(kind, net, prompt, hypothesis), abs=1e-4)


def test_scores_of_samples_are_of_another_distribution_so_log_p_is_not_known(net):
    output = generated(net, do_sample=True, temperature=0.6, num_return_sequences=3, output_scores=True)
    found = hypotheses_of(output, ends=[END], inputs=2)
    assert {one.logprob for listed in found for one in listed} == {None}


def test_without_scores_there_are_tokens_alone_and_the_prompt_must_be_told(kind, net):
    output = generated(net, do_sample=True, num_return_sequences=3)
    with pytest.raises(
        DataError, match="length of the prompt is unknown; pass its number of tokens as prompt="
    ):
        hypotheses_of(output, ends=[END], inputs=2)
    found = hypotheses_of(output, ends=[END], inputs=2, prompt=4 if kind == "llama" else 1)
    told = generated(net, do_sample=True, num_return_sequences=3, output_scores=True)
    known = hypotheses_of(told, ends=[END], inputs=2)
    assert [[(one.tokens, one.finished) for one in listed] for listed in found] == [
        [(one.tokens, one.finished) for one in listed] for listed in known
    ]
    assert {one.logprob for listed in found for one in listed} == {None}


def test_tokens_are_made_text(net):
    tokenizer = make_tokenizer()
    output = generated(net, num_beams=2, output_scores=True)
    [[first], [_]] = hypotheses_of(output, ends=[END], inputs=2, decode=tokenizer.decode)
    assert first.text == tokenizer.decode(list(first.tokens))


def test_a_beam_that_was_never_filled_is_no_hypothesis():
    output = SimpleNamespace(
        sequences=torch.tensor([[1, 5, 2], [1, 0, 0]]),
        beam_indices=torch.tensor([[0, 0], [-1, -1]]),
        scores=[torch.full((2, 8), -1.0), torch.full((2, 8), -0.5)],
    )
    [[only]] = hypotheses_of(output, ends=[2], inputs=1)
    assert (only.tokens, only.logprob, only.finished) == ((5,), -1.5, True)


def test_what_is_no_such_output_is_refused():
    with pytest.raises(UsageError, match="call generate with return_dict_in_generate=True"):
        hypotheses_of(torch.zeros(2, 3), ends=[END], inputs=1)
    with pytest.raises(UsageError, match="2 sequences cannot be those of 3 inputs"):
        hypotheses_of(SimpleNamespace(sequences=torch.zeros(2, 3)), ends=[END], inputs=3)


def test_how_many_inputs_there_were_must_be_said_so_that_those_of_a_batch_are_never_mixed(net):
    output = generated(net, num_beams=2, num_return_sequences=2, output_scores=True)
    with pytest.raises(TypeError, match="'inputs'"):
        hypotheses_of(output, ends=[END])
