"""Outputs of CTranslate2, compared with what it says itself of whole sequences (`score_batch`)."""

from __future__ import annotations

import math
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

os.environ["HF_HUB_OFFLINE"] = "1"
ctranslate2 = pytest.importorskip("ctranslate2", reason="needs ctranslate2: pip install ctranslate2")

from rangevote.errors import DataError  # noqa: E402
from rangevote.sources.ctranslate2 import hypotheses_of  # noqa: E402

REAL = Path(__file__).parents[3] / "shared/data/aren-transliteration"
WORDS = ["محمد", "ليلى", "خالد", "مريم"]
WHOLE = {"return_scores": True, "min_decoding_length": 0}


@pytest.fixture(scope="module")
def real():
    """A transliteration model: letters in, letters out."""
    if not (REAL / "model.bin").exists():
        pytest.skip(
            f"needs the transliteration model in {REAL.parent.name}/{REAL.name} beside the repository"
        )
    return ctranslate2.Translator(str(REAL), intra_threads=1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Makes a tiny random model of a kind and converts it."""
    pytest.importorskip("torch", reason="needs torch: pip install 'rangevote[models]'")
    pytest.importorskip("transformers", reason="needs transformers: pip install 'rangevote[models]'")
    from ctranslate2.converters import TransformersConverter

    from tests.models.huggingface.tiny import END, make, make_tokenizer

    def converted(kind: str, seed: int) -> str:
        net, place = make(kind, seed=seed), tmp_path_factory.mktemp(kind)
        if kind == "bart":
            net.final_logits_bias[0, END] += 6  # else it hardly ever ends
        # the converter asks for what newer configurations of BART leave out
        net.config.normalize_before, net.config.normalize_embedding = False, True
        net.save_pretrained(place / "net")
        make_tokenizer().save_pretrained(place / "net")
        return str(TransformersConverter(str(place / "net")).convert(str(place / "converted")))

    return converted


@pytest.fixture(scope="module")
def translator(folder):
    return ctranslate2.Translator(folder("bart", 2), intra_threads=1)


@pytest.fixture(scope="module")
def generator(folder):
    return ctranslate2.Generator(folder("gpt2", 3), intra_threads=1)


def scored(model, source: list[str], target: list[str], *, whole: bool) -> float:
    """log P of a sequence by the engine itself, with its end or without."""
    [result] = model.score_batch([source], [target])
    return math.fsum(result.log_probs if whole else result.log_probs[:-1])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"return_end_token": True},
        {"max_decoding_length": 4, "return_end_token": True},
        {"beam_size": 1, "sampling_topk": 0, "sampling_temperature": 0.7},
    ],
)
def test_scores_become_the_log_probability_of_the_whole_sequence(real, options):
    options = {"beam_size": 6, "num_hypotheses": 6, **WHOLE, **options}
    results = real.translate_batch([list(word) for word in WORDS], **options)
    found = hypotheses_of(
        results,
        text="".join,
        length_penalty=options.get("length_penalty", 1.0),
        max_length=options.get("max_decoding_length"),
        sampled="sampling_topk" in options,
    )
    finished = set()
    for word, listed in zip(WORDS, found, strict=True):
        assert len(listed) == 6
        for hypothesis in listed:
            assert hypothesis.text.isascii()
            assert hypothesis.sampled == ("sampling_topk" in options)
            expected = scored(real, list(word), list(hypothesis.text), whole=hypothesis.finished)
            assert hypothesis.logprob == pytest.approx(expected, abs=1e-4)
            finished.add(hypothesis.finished)
    assert (False in finished) == ("max_decoding_length" in options)


def test_the_probabilities_of_a_beam_are_a_part_of_one(real):
    results = real.translate_batch([list("محمد")], beam_size=50, num_hypotheses=50, **WHOLE)
    [listed] = hypotheses_of(results, text="".join)
    assert 0.5 < math.fsum(math.exp(one.logprob) for one in listed) <= 1.0


def test_without_scores_only_the_texts_are_known(real):
    results = real.translate_batch([list("محمد")], num_hypotheses=2)
    assert [one.logprob for one in hypotheses_of(results, text="".join)[0]] == [None, None]


def test_asynchronous_results_are_waited_for(translator):
    source, options = ["<s>", "the", "dog"], {"num_hypotheses": 2, "max_decoding_length": 6, **WHOLE}
    at_once = hypotheses_of(translator.translate_batch([source], **options), max_length=6)
    later = translator.translate_batch([source], asynchronous=True, **options)
    assert hypotheses_of(later, max_length=6) == at_once


@pytest.mark.parametrize("length_penalty", [0.0, 1.5])
@pytest.mark.parametrize("longest", [2, 6])
def test_a_tiny_converted_translator_agrees_with_its_own_scores(translator, length_penalty, longest):
    source = ["<s>", "the", "dog", "sleeps"]
    options = {"beam_size": 4, "num_hypotheses": 4, "max_decoding_length": longest, **WHOLE}
    results = translator.translate_batch([source], length_penalty=length_penalty, **options)
    [listed] = hypotheses_of(results, length_penalty=length_penalty, max_length=longest)
    assert {one.finished for one in listed} == ({True} if longest == 6 else {True, False})
    for hypothesis in listed:
        expected = scored(translator, source, hypothesis.text.split(), whole=hypothesis.finished)
        assert hypothesis.logprob == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"length_penalty": 0.0},
        {"length_penalty": 0.5, "return_end_token": True},
        {"beam_size": 1, "num_hypotheses": 20, "sampling_topk": 0, "sampling_temperature": 1.5},
    ],
)
def test_a_generator_gives_token_ids_too_and_agrees_with_its_own_scores_and_the_network(generator, options):
    from tests.models.huggingface.tiny import END, forced, make

    prompt = ["<s>", "the", "dog"]
    options = {"beam_size": 4, "num_hypotheses": 4, "max_length": 6, "min_length": 0, **options}
    results = generator.generate_batch(
        [prompt], return_scores=True, include_prompt_in_result=False, **options
    )
    [listed] = hypotheses_of(
        results,
        length_penalty=options.get("length_penalty", 1.0),
        max_length=6,
        sampled="sampling_topk" in options,
    )
    assert {one.finished for one in listed} == {True, False}
    net = make("gpt2", seed=3)
    for hypothesis in listed:
        words = [*hypothesis.text.split(), "</s>"] if hypothesis.finished else hypothesis.text.split()
        [result] = generator.score_batch([[*prompt, *words]])
        own = math.fsum(result.log_probs[len(prompt) - 1 :])  # the first token of all has none
        assert hypothesis.logprob == pytest.approx(own, abs=1e-3)
        said = forced("gpt2", net, [1, 5, 6], list(hypothesis.tokens)).log_probs
        written = [*hypothesis.tokens, END] if hypothesis.finished else hypothesis.tokens
        expected = math.fsum(float(said[i, token]) for i, token in enumerate(written))
        assert hypothesis.logprob == pytest.approx(expected, abs=1e-3)
        assert len(hypothesis.text.split()) == len(hypothesis.tokens)


def test_an_empty_sequence_is_its_end_alone():
    result = SimpleNamespace(hypotheses=[[], ["</s>"]], scores=[-0.5, -0.5])
    [[hidden, shown]] = hypotheses_of([result])
    assert hidden == shown
    assert (hidden.text, hidden.logprob, hidden.finished) == ("", -0.5, True)


def test_what_is_no_result_is_refused():
    with pytest.raises(DataError, match="expected a TranslationResult or GenerationResult, got str"):
        hypotheses_of(["a b"])
    with pytest.raises(DataError, match=r"scores\[0\].logprob: nan is not a log-probability"):
        hypotheses_of([SimpleNamespace(hypotheses=[["a"]], scores=[math.nan])])
