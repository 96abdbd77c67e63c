"""Options: their defaults, sections of TOML files, and what is refused."""

from __future__ import annotations

import dataclasses

import pytest
from experiments.training.options import LIMITS, CaptionerOptions, TranslatorOptions

from rangevote.errors import UnknownName, UsageError


def test_a_section_of_a_toml_file_becomes_options():
    tomllib = pytest.importorskip("tomllib", reason="Python 3.10 has no tomllib")
    section = tomllib.loads('preset = "base"\nlabel_smoothing = 0.1\nepochs = 3\nlearning_rate = 1')
    found = TranslatorOptions.read(section)
    assert found == TranslatorOptions(preset="base", label_smoothing=0.1, epochs=3, learning_rate=1)


def test_an_unknown_option_is_refused_with_the_nearest():
    with pytest.raises(
        UnknownName, match=r"option of TranslatorOptions 'lable_smoothing'.* 'label_smoothing'"
    ):
        TranslatorOptions.read({"lable_smoothing": 0.1})
    with pytest.raises(UnknownName, match="option of CaptionerOptions 'copy_share'"):
        CaptionerOptions.read({"copy_share": 0.1})


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ({"epochs": 0}, "TranslatorOptions: epochs must lie between 1 and 1e\\+06, got 0"),
        ({"epochs": 1.5}, "epochs must be of type int, got 1.5"),
        ({"epochs": True}, "epochs must be of type int, got True"),
        ({"learning_rate": "fast"}, "learning_rate must be of type float, got 'fast'"),
        ({"learning_rate": float("nan")}, "learning_rate must lie between 0 and 10, got nan"),
        ({"copy_share": 1.1}, "copy_share must lie between 0 and 1, got 1.1"),
        ({"dropout": "some"}, r"dropout must be of type float \| None, got 'some'"),
        ({"preset": "bigg"}, "unknown preset 'bigg'. Did you mean 'big'"),
        ({"schedule": "cosin"}, "unknown schedule 'cosin'. Did you mean 'cosine'"),
        ({"precision": "float16"}, "unknown precision 'float16'"),
    ],
)
def test_a_value_that_cannot_be_meant_is_refused(option, told):
    with pytest.raises(UsageError, match=told):
        TranslatorOptions(**option)


def test_the_captioner_has_the_papers_sizes():
    found = CaptionerOptions()
    assert (found.units, found.embedding, found.vocabulary_size, found.dropout) == (512, 512, 5000, 0.4)
    with pytest.raises(UsageError, match="plain must be of type bool, got 1"):
        CaptionerOptions(plain=1)


def test_every_number_that_can_be_set_has_limits():
    for kind in (TranslatorOptions, CaptionerOptions):
        numbers = {f.name for f in dataclasses.fields(kind) if str(f.type).startswith(("int", "float"))}
        assert numbers <= set(LIMITS)
