"""The n-gram model behind the seam: the contract, prompts, and whole sentences."""

from __future__ import annotations

import numpy as np
import pytest

from rangevote.errors import DataError, UsageError
from rangevote.models.ngram import END, START, NgramModel
from tests.models.contract import ModelContract, chain
from tests.models.oracle import every_sentence, kenlm_scores

TEXT = """a dog runs on the grass
a dog sits
the cat sits on the grass
a cat runs
the dog runs
a cat sits on a dog on the grass""".splitlines()


class TestTrained(ModelContract):
    @pytest.fixture(params=[1, 3])
    def model(self, request):
        return NgramModel.train(TEXT, request.param)

    @pytest.fixture
    def inputs(self):
        return ["a dog", "", "the cat sits on the zebra", [3, 4]]


@pytest.fixture
def model():
    return NgramModel.train(TEXT, 3)


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_the_steps_along_a_sentence_give_its_log_probability(order):
    model = NgramModel.train(TEXT, order)
    for sentence in [*TEXT, "", "zebra", "the the the dog zebra cat a"]:
        tokens = [*model.source(sentence), END]
        log_probs = chain(model, "", tokens[:-1]).log_probs
        assert model.logprob(sentence) == pytest.approx(
            sum(log_probs[i, token] for i, token in enumerate(tokens)), abs=1e-12
        )


def test_a_prompt_goes_on_where_its_words_as_tokens_would(model):
    for prompt in TEXT:
        whole = model.step(model.start([prompt]), None).log_probs
        np.testing.assert_array_equal(whole[0], chain(model, "", model.source(prompt)).log_probs[-1])


def test_text_and_source_go_both_ways(model):
    assert model.text(model.source("  the  dog\tzebra ")) == "the dog <unk>"
    assert model.text([]) == ""
    assert model.source("") == []
    assert model.ends == (END,)
    assert model.words[END] == "</s>"
    assert model.room(model.start([""])) is None
    assert model.step(model.start([""]), None).hidden is None


def test_a_model_of_words_seen_and_unseen_learns_the_unknown_word():
    rare = NgramModel.train([*TEXT, "a zebra sits", "the gnu sits"], 3, min_count=2)
    assert "zebra" not in rare.words
    assert rare.logprob("a tapir sits") > NgramModel.train(TEXT, 3).logprob("a tapir sits")


def test_a_text_of_one_empty_line_makes_a_model_that_ends():
    model = NgramModel.train([""], 2)
    log_probs = model.step(model.start([""]), None).log_probs[0]
    assert np.exp(log_probs).tolist() == pytest.approx([0.125, 0, 0.875])  # D = 0.5 at both lengths, |V| = 2


def test_sentences_shorter_than_the_order_make_a_model_of_what_there_is(tmp_path):
    short, long = NgramModel.train(["a", "b", "a"], 3), NgramModel.train(["a", "b", "a"], 6)
    assert [level.keys.size for level in long.levels] == [5, 4, 2, 0, 0, 0]
    long.write(tmp_path / "model.arpa")
    expected = kenlm_scores(tmp_path / "model.arpa", sentences := every_sentence(["a", "b", "c"], 3))
    for sentence, scores in zip(sentences, expected, strict=True):
        np.testing.assert_allclose(long.scores(sentence), scores, rtol=0, atol=1e-5)
    assert short.levels[0].logprobs.tolist() == long.levels[0].logprobs.tolist()


def test_what_cannot_be_a_prompt_is_refused(model):
    for prompt in ("a <s> dog", "a dog </s>", [3, END], [START]):
        with pytest.raises(DataError, match="contains <s> or </s>"):
            model.start(["a", prompt])
    with pytest.raises(DataError, match="lone surrogate"):
        model.logprob("\ud800")
    with pytest.raises(UsageError, match="inputs is one text, 'a dog'; give a list of prompts"):
        model.start("a dog")
    for tokens in ([-1], [len(model.words)]):
        with pytest.raises(UsageError, match=r"tokens .* the model knows 0 to \d+"):
            model.start([tokens])
    with pytest.raises(UsageError, match="order 0: an n-gram model has order 1 or more"):
        NgramModel.train(TEXT, 0)


def test_no_rows_are_no_trouble(model, tmp_path):
    model.write(tmp_path / "model.arpa")
    for each in (model, NgramModel.read(tmp_path / "model.arpa")):
        step = each.step(each.start([]), None)
        assert step.log_probs.shape == (0, len(model.words))
        assert each.step(step.state, np.array([], np.int64)).log_probs.shape == (0, len(model.words))
