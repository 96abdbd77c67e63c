"""Numbers on real data that were reported by others: the paper, and who made the data."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

import rangevote as rv
from rangevote.evaluation.corpus import WordUnits
from rangevote.evaluation.evaluate import compare, evaluate, selection, texts_of
from rangevote.formats import read

DATA = Path(__file__).parents[3] / "shared" / "data"
pytestmark = pytest.mark.skipif(not DATA.exists(), reason="the real data (../shared/data) are not here")


@cache
def ballots(name):
    with read(DATA / "nbest" / f"{name}.jsonl.gz") as entries:
        return [entry.get() for entry in entries]


def winners(listed, **options):
    return [str(result) for result in rv.elect_many(listed, **options)]


def news(name):
    return (DATA / "newstest2014" / name).read_text(encoding="utf-8").split("\n")[:-1]


def news_references():
    known = dict(zip(news("newstest2014.en"), news("newstest2014.de"), strict=True))
    return [known[source] for source in news("system.source.en")]


def test_the_references_of_newstest2014_have_the_papers_21_66_words():
    references = news_references()
    assert len(references) == 2737  # section 4.2
    found = evaluate(references, metrics=["length"], units=WordUnits("wordpunct"), resamples=0)
    assert f"{found.first.scores['length'].value:.2f}" == "21.66"


def test_translations_have_the_bleu_and_the_empty_outputs_of_the_datas_readme():
    pytest.importorskip("sacrebleu")
    listed = {k: ballots(f"test_2016_flickr.en-de.k{k}") for k in (10, 100)}
    references = [ballot.references for ballot in listed[10]]
    systems = {f"beam {k}": winners(listed[k], rule="most_likely") for k in listed}
    systems["overlap_2"] = winners(listed[10], preset="paper")
    found = compare(systems, references, metrics=["bleu", "empty"])
    bleu = [f"{system.scores['bleu'].value:.2f}" for system in found.systems]
    assert bleu == ["30.83", "27.41", "36.18"]
    assert found.systems[1].scores["empty"].value == pytest.approx(17.6)
    assert found.systems[2].against_first["bleu"].p < 0.001


def test_captions_have_the_bleu_4_and_distinct_captions_that_were_reported():
    listed = ballots("flickr8k_test.k100")
    references = [ballot.references for ballot in listed]
    systems = {"beam": winners(listed, rule="most_likely"), "blend": winners(listed, preset="blend")}
    found = compare(systems, references, metrics=["bleu_4", "distinct_outputs"], resamples=0)
    assert [system.scores["distinct_outputs"].value for system in found.systems] == [472, 720]
    assert found.systems[1].scores["bleu_4"].value == pytest.approx(21.5, abs=0.1)


def test_winners_of_small_beams_get_lost_in_a_large_one_and_more_so_by_voting():
    small, large = ballots("test_2016_flickr.en-de.k4"), ballots("test_2016_flickr.en-de.k100")
    beams = [texts_of(ballot) for ballot in large]
    found = {}
    for rule in ("most_likely", "range"):
        chosen = {"rule": rule, "preset": "paper"}
        found[rule] = selection(winners(small, **chosen), beams, winners(large, **chosen))
    # as in section 4.2.1: about as many are absent either way, but fewer are chosen again by voting
    assert found["range"].absent == pytest.approx(found["most_likely"].absent, abs=2)
    assert found["range"].chosen_again < found["most_likely"].chosen_again - 10
