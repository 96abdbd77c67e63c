"""Outputs of CTranslate2, compared with what it says itself of whole sequences (`score_batch`)."""

from __future__ import annotations

import math
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

os.environ["HF_HUB_OFFLINE"] = "1"
ctranslate2 = pytest.importorskip("ctranslate2", reason="needs ctranslate2: pip install ctranslate2")

import rangevote as rv  # noqa: E402
from rangevote.engines.ctranslate2 import hypotheses_of, is_converted  # noqa: E402
from rangevote.errors import DataError  # noqa: E402

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
        {"length_penalty": 0.0, "return_end_token": True},
        {"length_penalty": 1.5, "max_decoding_length": 2, "return_end_token": True},
        {"beam_size": 1, "sampling_topk": 0, "sampling_temperature": 0.7},
    ],
)
def test_scores_become_the_log_probability_of_the_whole_sequence(translator, options):
    source = ["<s>", "the", "dog", "sleeps"]
    options = {"beam_size": 4, "num_hypotheses": 4, "max_decoding_length": 6, **WHOLE, **options}
    results = translator.translate_batch([source], **options)
    sampled, longest = "sampling_topk" in options, options["max_decoding_length"]
    [listed] = hypotheses_of(
        results, length_penalty=options.get("length_penalty", 1.0), max_length=longest, sampled=sampled
    )
    assert sampled or {one.finished for one in listed} == ({True} if longest == 6 else {True, False})
    for hypothesis in listed:
        assert hypothesis.sampled == sampled
        expected = scored(translator, source, hypothesis.text.split(), whole=hypothesis.finished)
        assert hypothesis.logprob == pytest.approx(expected, abs=1e-3)


def test_without_scores_only_the_texts_are_known(translator):
    results = translator.translate_batch([["<s>", "the", "dog"]], num_hypotheses=2)
    assert [one.logprob for one in hypotheses_of(results)[0]] == [None, None]


def test_asynchronous_results_are_waited_for(translator):
    source, options = ["<s>", "the", "dog"], {"num_hypotheses": 2, "max_decoding_length": 6, **WHOLE}
    at_once = hypotheses_of(translator.translate_batch([source], **options), max_length=6)
    later = translator.translate_batch([source], asynchronous=True, **options)
    assert hypotheses_of(later, max_length=6) == at_once


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


# The engine: searches by CTranslate2's own beams and samples


@pytest.fixture(scope="module")
def letters(real):
    return rv.load(REAL)


SPELLED = [" ".join(word) for word in WORDS]


@pytest.mark.parametrize(
    "search",
    [
        "beam:6",
        "length_normalised:6,alpha=1",
        "sample:6,seed=4",
        "top_k:6,top=3",
        "nucleus:6,p=0.5,temperature=0.7",
    ],
)
def test_hypotheses_of_its_own_searches_have_the_log_probability_of_the_model_itself(real, letters, search):
    lists = rv.search(letters, SPELLED, search)
    beams = search.startswith(("beam", "length"))
    for word, found in zip(WORDS, lists, strict=True):
        assert len(found) == 6
        assert not beams or len({hypothesis.text for hypothesis in found}) == 6
        logprobs = [hypothesis.logprob for hypothesis in found]
        assert logprobs == sorted(logprobs, reverse=True)
        for hypothesis in found:
            assert (hypothesis.finished, hypothesis.sampled) == (True, not beams)
            said = scored(real, list(word), hypothesis.text.split(), whole=True)
            assert hypothesis.logprob == pytest.approx(said, abs=1e-3)


def test_generate_elects_its_beams_by_its_samples_and_a_run_can_be_repeated(real):
    plan = {"candidates": "beam:4", "voters": "sample:30,seed=4", "similarity": "overlap_2"}
    one, again = (rv.generate(rv.load(REAL), SPELLED, **plan) for _ in range(2))
    assert [list(result.voters) for result in one] == [list(result.voters) for result in again]
    for result in one:
        assert "w:count|cand:4|vot:30" in result.signature
        assert all(voter.sampled for voter in result.voters)
    other = rv.generate(rv.load(REAL), SPELLED, **{**plan, "voters": "sample:30,seed=5"})
    assert [list(result.voters) for result in one] != [list(result.voters) for result in other]
    with pytest.raises(rv.UsageError, match="adaptive draws from a model in rounds"):
        rv.generate(rv.load(REAL), SPELLED, adaptive=0.9, **plan)


@pytest.mark.parametrize("search", ["stochastic_beam:3", "epsilon:3", "beam:3,copy_filter=0.5"])
def test_what_the_engine_has_not_is_refused(letters, search):
    with pytest.raises(
        rv.UsageError, match=r"CTranslate2 cannot search by .*, only by: beam, length_normalised"
    ):
        rv.search(letters, SPELLED, search)


def test_an_engine_has_no_states_and_takes_texts_or_tokens(letters):
    with pytest.raises(rv.UsageError, match="an engine gives no hidden states"):
        rv.generate(letters, SPELLED, similarity="states")
    with pytest.raises(DataError, match=r"inputs\[1\]: expected a text, or tokens of the model as texts"):
        rv.search(letters, [SPELLED[0], [1, 2]], "beam:2")
    assert rv.search(letters, [list(WORDS[0])], "beam:2") == rv.search(letters, SPELLED[:1], "beam:2")


def test_the_tokenizer_in_a_folder_reads_and_writes_texts(folder):
    from tests.models.huggingface.tiny import make_tokenizer

    tokenizer, place = make_tokenizer(), folder("bart", 2)
    tokenizer.save_pretrained(place)
    text = tokenizer.decode([7, 8, 9])
    tokens = tokenizer.convert_ids_to_tokens(tokenizer(text).input_ids)
    options = {"beam_size": 3, "num_hypotheses": 3, "length_penalty": 0, "max_decoding_length": 9, **WHOLE}
    [result] = ctranslate2.Translator(place, intra_threads=1).translate_batch([tokens], **options)
    [found] = rv.search(rv.load(place), [text], "beam:3,max_new_tokens=9")
    for hypothesis, own, score in zip(found, result.hypotheses, result.scores, strict=True):
        ids = tokenizer.convert_tokens_to_ids(own)
        assert hypothesis.text == tokenizer.decode(ids, skip_special_tokens=True).strip()
        assert hypothesis.logprob == pytest.approx(score, abs=1e-5)


def test_language_models_continue_their_inputs(folder):
    engine = rv.load(folder("gpt2", 3))
    tokens = ctranslate2.Generator(folder("gpt2", 3)).generate_batch([["<s>"]], max_length=3)[0].sequences[0]
    [found] = rv.search(engine, [tokens[:2]], "beam:3,max_new_tokens=4")
    assert len(found) == 3
    assert all(len(hypothesis.tokens) <= 4 for hypothesis in found)


def test_what_is_no_converted_model_is_left_to_transformers_or_refused(tmp_path):
    (tmp_path / "model.bin").write_bytes(b"\x80\x02}q\x00.")
    assert not is_converted(tmp_path)
    with pytest.raises(rv.UsageError, match="the engine 'ctranslate2' reads folders that were converted"):
        rv.load(f"ctranslate2:{tmp_path}")
    (tmp_path / "model.bin").write_bytes(b"\x06\x00\x00\x00\x0c\x00WhisperSpec\x00")
    with pytest.raises(rv.UsageError, match="has a model of the kind 'WhisperSpec'"):
        rv.load(tmp_path)
    (tmp_path / "model.bin").write_bytes(b"\x06\x00\x00\x00\x10\x00TransformerSpec\x00")
    with pytest.raises(rv.SetupError, match="CTranslate2 cannot load"):
        rv.load(tmp_path)
