"""custom_generate inside transformers' generate: what it elects is elected among transformers' own beams."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("transformers")

import torch
from torch import Tensor

import rangevote as rv
from rangevote.decoding import Batch
from rangevote.engines.transformers import hypotheses_of
from rangevote.generation.custom_generate import CustomGenerate
from tests.models.huggingface.tiny import END, PAD, VOCABULARY, make, make_tokenizer

K, NEW = 6, 8


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No network, and one thread: models this small only wait for a second one."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def inputs(model: Any, number: int = 3, *, padded: bool = False) -> dict[str, Tensor]:
    """What `generate` takes: images or token ids, some of them padded on the left."""
    torch.manual_seed(9)
    if model.config.model_type == "vision-encoder-decoder":
        return {"pixel_values": torch.randn(number, 3, 16, 16)}
    ids = torch.randint(3, VOCABULARY, (number, 6))
    mask = torch.ones_like(ids)
    if padded:
        ids[0, :2], mask[0, :2] = PAD, 0
    return {"input_ids": ids, "attention_mask": mask}


def beams(model: Any, given: dict[str, Tensor], k: int, **options: Any) -> list[list[rv.Hypothesis]]:
    """The lists of transformers' own beam search."""
    own = {"num_beams": k, "num_return_sequences": k, "do_sample": False, "length_penalty": 1.0, **options}
    out = model.generate(**given, **own, return_dict_in_generate=True, output_scores=True)
    return hypotheses_of(out, ends=[END], inputs=len(next(iter(given.values()))))


def generate(model: Any, given: dict[str, Tensor], **options: Any) -> Any:
    usual = {"custom_generate": rv.custom_generate, "num_beams": K, "max_new_tokens": NEW, "do_sample": False}
    return model.generate(**given, **{**usual, **options})


def written(model: Any, given: dict[str, Tensor], row: list[int]) -> rv.Hypothesis:
    """A row of the output without prompt, end and padding."""
    start = 1 if model.config.is_encoder_decoder else given["input_ids"].shape[1]
    tokens = row[start:]
    finished = END in tokens
    if finished:
        end = tokens.index(END)
        assert set(tokens[end + 1 :]) <= {PAD}  # nothing but padding follows the end
        tokens = tokens[:end]
    return rv.Hypothesis(tokens=tuple(tokens), finished=finished)


def same(model: Any, given: dict[str, Tensor], rows: Tensor, expected: list[rv.Hypothesis]) -> None:
    found = [written(model, given, row) for row in rows.tolist()]
    assert [(h.tokens, h.finished) for h in found] == [(h.tokens, h.finished) for h in expected]


@pytest.mark.parametrize("kind", ["llama", "gpt2", "marian", "vit-gpt2"])
@pytest.mark.parametrize("similarity", ["overlap_1", "exact"])
def test_the_winner_is_elected_among_transformers_own_beams(kind, similarity):
    model = make(kind)
    given = inputs(model)
    rows = generate(model, given, similarity=similarity)
    lists = beams(model, given, K, max_new_tokens=NEW)
    same(model, given, rows, [rv.elect(found, similarity=similarity).hypothesis for found in lists])


@pytest.mark.parametrize(
    "options", [{"length_penalty": 0.0, "early_stopping": True}, {"length_penalty": 2.0}]
)
@pytest.mark.parametrize("kind", ["llama", "marian"])
def test_the_settings_of_beam_search_are_kept(kind, options):
    model = make(kind, seed=4)
    given = inputs(model, padded=True)
    rows = generate(model, given, similarity="overlap_1", **options)
    lists = beams(model, given, K, max_new_tokens=NEW, **options)
    same(model, given, rows, [rv.elect(found, similarity="overlap_1").hypothesis for found in lists])


@pytest.mark.parametrize("kind", ["llama", "marian"])
def test_several_sequences_are_several_winners(kind):
    model = make(kind)
    given = inputs(model)
    options = {"num_return_sequences": 3, "return_dict_in_generate": True}
    out = generate(model, given, **options, similarity="precision_1-4")
    lists = beams(model, given, K, max_new_tokens=NEW)
    results = [rv.elect(found, similarity="precision_1-4", winners=3) for found in lists]
    expected = [result.candidates[i] for result in results for i in result.elected]
    same(model, given, out.sequences, expected)
    scores = torch.tensor([h.logprob / (len(h.tokens) + h.finished) for h in expected])
    torch.testing.assert_close(out.sequences_scores, scores, atol=1e-4, rtol=0)
    assert type(out).__name__.startswith("GenerateBeam")


def test_samples_follow_torchs_seed_and_the_settings_of_sampling():
    model = make("gpt2")
    given = inputs(model)

    def drawn(seed: int, **options: Any) -> list[list[int]]:
        torch.manual_seed(seed)
        rows = generate(
            model, given, **{"num_beams": 1, "num_return_sequences": 20, "do_sample": True, **options}
        )
        assert len(rows) == 3  # so many samples, one winner for each input
        return rows.tolist()

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)
    greedy = model.generate(**given, num_beams=1, do_sample=False, max_new_tokens=NEW)
    assert drawn(1, top_k=1) == greedy.tolist()


def test_candidates_can_be_searched_for_as_elsewhere():
    model = make("llama")
    given = inputs(model)
    rows = generate(model, given, num_beams=1, candidates="beam:6,finish=transformers,length_penalty=1")
    lists = beams(model, given, K, max_new_tokens=NEW)
    same(model, given, rows, [rv.elect(found).hypothesis for found in lists])


@pytest.mark.parametrize("kind", ["llama", "marian"])
def test_other_voters_are_those_of_a_search(kind):
    model = make(kind)
    given = inputs(model)
    rows = generate(model, given, voters="sample:40,seed=1", similarity="overlap_1")
    search = rv.Sample(40, seed=1, max_new_tokens=NEW)
    prompts = given["input_ids"].tolist()
    rolls = Batch(rv.load(model), prompts, range(len(prompts))).search(search, stream=1)
    lists = beams(model, given, K, max_new_tokens=NEW)
    results = [
        rv.elect(found, voters=roll, similarity="overlap_1") for found, roll in zip(lists, rolls, strict=True)
    ]
    same(model, given, rows, [result.hypothesis for result in results])


class Coarse:
    """A tokenizer that writes many tokens as the same word."""

    def decode(self, tokens: list[int], skip_special_tokens: bool) -> str:
        assert skip_special_tokens
        return " ".join(f"w{token % 4}" for token in tokens)


def test_with_a_tokenizer_texts_vote():
    model = make("llama")
    given = inputs(model, 6)
    lists = beams(model, given, K, max_new_tokens=NEW)
    decode = Coarse().decode
    texts = [[decode(list(h.tokens or ()), True) for h in found] for found in lists]
    chosen = [
        rv.elect(text, [h.logprob for h in found], similarity="overlap_1").index
        for text, found in zip(texts, lists, strict=True)
    ]
    method = rv.custom_generate.with_options(tokenizer=Coarse(), similarity="overlap_1")
    rows = generate(model, given, custom_generate=method)
    same(model, given, rows, [found[i] for found, i in zip(lists, chosen, strict=True)])
    by_tokens = [rv.elect(found, similarity="overlap_1").index for found in lists]
    assert chosen != by_tokens


def test_options_are_bound_or_given_and_what_is_given_counts():
    model = make("llama")
    given = inputs(model, 6)
    bound = CustomGenerate(similarity="exact", max_rows=7)
    assert bound.with_options(rule="most_likely").options["similarity"] == "exact"
    other = generate(model, given, custom_generate=bound, similarity="overlap_1")
    assert other.tolist() == generate(model, given, similarity="overlap_1").tolist()


def test_no_argument_of_a_network_is_named_in_the_signature():
    named = inspect.signature(rv.custom_generate).parameters
    network = set(inspect.signature(make("llama").forward).parameters) - {"self", "input_ids", "kwargs"}
    assert not network & set(named)
    settings = set(vars(make("llama").generation_config))
    assert not settings & set(named)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_beams": 1}, "an election needs several candidates: set num_beams=10"),
        ({"max_time": 5.0}, "the stopping criterion MaxTimeCriteria does not work"),
        ({"output_logits": True}, "output_logits=True has no meaning for an election"),
        ({"simularity": "overlap_2"}, "simularity"),  # transformers' own error
    ],
)
def test_what_cannot_be_kept_is_refused(options, message):
    model = make("llama")
    with pytest.raises(ValueError, match=message):
        generate(model, inputs(model), **options)


def test_an_unknown_option_cannot_be_bound():
    with pytest.raises(rv.UsageError, match="unknown option of custom_generate 'simularity'"):
        rv.custom_generate.with_options(simularity="overlap_1")


def test_the_text_generation_pipeline_elects():
    from transformers import pipeline

    model, words = make("llama"), make_tokenizer()
    write = pipeline("text-generation", model=model, tokenizer=words, device="cpu")
    options = {"num_beams": K, "do_sample": False, "max_new_tokens": NEW, "return_full_text": False}
    texts = ["the dog runs", "red"]
    method = rv.custom_generate.with_options(tokenizer=words)
    answers = [one[0]["generated_text"] for one in write(texts, custom_generate=method, **options)]
    for text, answer in zip(texts, answers, strict=True):
        given = dict(words(text, return_tensors="pt", return_token_type_ids=False))
        [found] = beams(model, given, K, max_new_tokens=NEW)
        spoken = [words.decode(list(h.tokens or ()), skip_special_tokens=True) for h in found]
        assert answer == rv.elect(spoken, [h.logprob for h in found]).winner
