"""The small studies: copies, units, likelihood, meaning, samples of an LLM, judgements of people."""

from __future__ import annotations

import json

import numpy as np
import pytest
from experiments.settings import HERE, ROOT
from scipy import stats

import rangevote as rv
from experiments import copies, judgement, likelihood, llm, meaning, units
from experiments.steps import write_table
from rangevote.formats.jsonl import write_ballot

PAGE = ROOT / "docs" / "reference" / "similarities.md"


@pytest.mark.parametrize("study", [judgement, units], ids=lambda study: study.__name__)
def test_the_table_of_the_docs_was_made_from_the_results(study, tmp_path):
    before, rest = PAGE.read_text(encoding="utf-8").split(study.BEGIN)
    page = tmp_path / "page.md"
    page.write_text(f"{before}{study.BEGIN}\nold\n{study.END}{rest.split(study.END)[1]}", encoding="utf-8")
    record = HERE / "results" / f"{study.__name__.rpartition('.')[2]}.json"
    write_table(study.table(json.loads(record.read_bytes())), page, study.BEGIN, study.END)
    assert page.read_bytes() == PAGE.read_bytes()


def test_a_word_that_repeats_in_the_source_counts_once_by_sets_and_each_time_by_bags():
    copying = rv.Ballot([rv.Hypothesis("the cat", logprob=-1.0)], source="the cat the dog the end")
    other = rv.Ballot([rv.Hypothesis("eine Katze", logprob=-1.0)], source="a cat")
    found = copies.measured([copying, other])
    assert found["ballots"] == 2
    for name in copies.METHODS:
        assert found["methods"][name] == {"partial_copies": 50.0, "partial_copies_by_bags": 0.0}


def test_units_are_compared_on_the_same_candidates():
    texts = ["Nine.", "It is TEN!", "ten"]
    ballot = rv.Ballot([rv.Hypothesis(text, sampled=True) for text in texts], references=("It is TEN!",))
    found = units.compare([ballot], {"similarity": "overlap_1"})
    assert (found["ballots"], found["same"]) == (1, 0.0)
    assert found["chrf"]["space"] + found["chrf"]["words"] == pytest.approx(100)


@pytest.mark.filterwarnings("ignore:no voter supports")
def test_texts_without_spaces_tie_where_words_are_cut_at_white_space():
    texts = ["\u72ac\u304c\u8d70\u308b", "\u72ac\u304c\u8d70\u3063\u305f", "\u732b"]
    found = units.tied([rv.Ballot([rv.Hypothesis(text) for text in texts])])
    assert found == {"ballots": 1, "space": 1, "words": 0}


LIKELY, SHORT = "two dogs run on the white snow", "a cat sits"


def test_likelihood_decides_more_the_more_it_weighs():
    """Samples vote for the short text, the candidates' own likelihood for the long one."""
    candidates = [rv.Hypothesis(LIKELY, logprob=-1.0), rv.Hypothesis(SHORT, logprob=-40.0)]
    ballots = {2: [rv.Ballot(candidates, references=[LIKELY])]}
    found = likelihood.measured(ballots, [rv.Ballot([rv.Hypothesis(SHORT)] * 3)])
    assert list(found) == [*likelihood.BASELINES, *likelihood.ELECTIONS]
    assert found["beam search"]["2"] == pytest.approx(100)
    by_samples = found["100 samples, overlap_2"]["2"]
    assert list(by_samples) == [f"{x:g}" for x in likelihood.WEIGHTS]
    assert by_samples["0"] < by_samples["1.6"] == pytest.approx(100)


@pytest.fixture
def lists(tmp_path):
    captions = [("a dog", -1.0), ("a dog runs on grass", -1.5), ("a dog runs on the grass", -1.6)]
    ballot = rv.Ballot(
        [rv.Hypothesis(t, logprob=p) for t, p in captions], references=["a dog runs on the grass"]
    )
    path = tmp_path / "lists.jsonl"
    path.write_bytes(write_ballot(ballot) * 3)
    return path


def test_the_default_is_among_the_methods_and_every_measure_has_every_temperature():
    names = list(meaning.methods())
    assert meaning.DEFAULT in names
    assert len(names) == 3 + len(meaning.MEASURES) * len(meaning.TEMPERATURES)


def test_methods_are_judged_and_compared_with_the_default(lists):
    found = meaning.judged(lists, meaning.methods(["overlap_1-4@0.25"]), ["bleu_4"], ["bleu_4"])
    assert found["overlap_1-4@0.25, T = 4"]["values"]["bleu_4"] == pytest.approx(100)
    likely, default = found["beam search"], found[meaning.DEFAULT]
    observed = likely["values"]["bleu_4"] - default["values"]["bleu_4"]
    assert likely["over_default"]["bleu_4"]["difference"] == pytest.approx(observed)


def test_the_recorded_numbers_are_of_all_methods():
    data = json.loads((HERE / "results" / "meaning.json").read_bytes())
    assert all(list(by_method) == list(meaning.methods()) for by_method in data["lists"].values())


RIGHT, WRONG = "Steps\nAnswer: 4 * 6 = 24", "Steps\nAnswer: 4 + 6 = 24"


def task(right, wrong):
    return {"ys": [RIGHT] * right + [WRONG] * wrong, "infos": [{"r": 1}] * right + [{"r": 0}] * wrong}


def test_a_clear_majority_is_elected_whatever_is_drawn():
    found = llm.puzzles([task(8, 2), task(1, 9)], [llm.ANSWER], [9, 10])
    assert found["sample"]["mean"] == pytest.approx(45)
    assert found["any"]["mean"] == 100
    assert found["elected"][llm.ANSWER]["10"]["mean"] == 50
    assert found["elected"][llm.ANSWER]["9"]["mean"] == 50
    low, high = found["elected"][llm.ANSWER]["10"]["interval"]
    assert low <= 50 <= high


def test_a_draw_without_any_answer_is_not_right():
    silent = {"ys": ["no idea", "24?"], "infos": [{"r": 0}] * 2}
    elected = llm.puzzles([silent], [llm.ANSWER], [1, 2])["elected"][llm.ANSWER]
    assert (elected["1"]["mean"], elected["2"]["mean"]) == (0, 0)


def test_the_score_of_the_elected_text_stands_beside_mean_best_and_longest():
    texts = ["a b c", "a b d", "x y z z z"]
    found = llm.writing([{"ys": texts, "infos": [{"r": 6.0}, {"r": 5.0}, {"r": 1.0}]}], ["overlap_1"])
    assert (found["mean"]["mean"], found["best"]["mean"], found["longest"]["mean"]) == (4.0, 6.0, 1.0)
    assert found["elected"]["overlap_1"]["mean"] == 6.0


IMAGES = {
    "a.jpg": ["A dog runs.", "a dog is running"],
    "b.jpg": ["two men sit", "men on a bench"],
    "c.jpg": ["a dog sits", "the dog sits down"],
}
ROWS = [
    "a.jpg\tc.jpg#0\t3\t3\t2",
    "a.jpg\tb.jpg#0\t1\t1\t1",
    "b.jpg\tb.jpg#1\t4\t4\t4",
    "b.jpg\ta.jpg#0\t1\t1\t2",
]


@pytest.fixture
def read(tmp_path):
    images = [{"file": file, "captions": texts} for file, texts in IMAGES.items()]
    (tmp_path / "captions.json").write_text(json.dumps({"images": images}))
    (tmp_path / "human_expert.tsv").write_text("\n".join(ROWS))
    return judgement.read_judgements(tmp_path)


def test_judgements_are_read_without_the_images_own_captions(read):
    judged, captions = read
    assert judged == {
        "a.jpg": {"a dog sits": [3, 3, 2], "two men sit": [1, 1, 1]},
        "b.jpg": {"a dog runs": [1, 1, 2]},
    }
    assert captions["a.jpg"] == ["a dog runs", "a dog is running"]


def test_a_grade_is_the_mean_over_the_images_captions(read):
    found = judgement.grades("overlap_1", *read)
    assert found["a.jpg"] == pytest.approx([(2 / 3 + 2 / 4) / 2, 0])
    assert found["b.jpg"] == pytest.approx([(0 + 1 / 4) / 2])


def test_tau_is_scipys_over_every_single_judgement_of_the_images_drawn():
    rng = np.random.default_rng(0)
    judged = {f"{i}.jpg": {f"text {j}": rng.integers(1, 5, 3).tolist() for j in range(3)} for i in range(40)}
    found = {image: rng.integers(0, 7, 3).tolist() for image in judged}
    for counts in (np.ones(40), np.bincount(rng.integers(40, size=40), minlength=40).astype(float)):
        single = [
            (grade, mark)
            for times, image in zip(counts, judged, strict=True)
            for grade, marks in zip(found[image], judged[image].values(), strict=True)
            for mark in marks * int(times)
        ]
        expected = stats.kendalltau(*zip(*single, strict=True), variant="c").statistic
        assert judgement.tau(judgement.concordance(found, judged), judged, counts) == pytest.approx(expected)


def test_agreement_is_measured_for_every_installed_measure(read):
    judged, captions = read
    data = judgement.agreement(judged, captions, ["overlap_1", "chrf"])
    assert (data["images"], data["pairs"], data["judgements"]) == (2, 3, 9)
    assert [row["measure"] for row in data["measures"]] == ["overlap_1", "chrf"]


def test_the_measures_that_agree_best_stand_first():
    rows = [{"measure": name, "tau": t, "interval": [t, t]} for name, t in (("edit", 0.1), ("chrf", 0.3))]
    text = judgement.table({"measures": rows})
    assert text.index("chrf") < text.index("edit")
