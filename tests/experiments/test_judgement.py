"""Which similarity agrees with people: the judgements, the grades and the table."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("scipy")

from experiments.judgement import BEGIN, END, agreement, concordance, grades, read_judgements, table, tau
from scipy import stats

from experiments.steps import write_table

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
    return read_judgements(tmp_path)


def test_judgements_are_read_without_the_images_own_captions(read):
    judged, captions = read
    assert judged == {
        "a.jpg": {"a dog sits": [3, 3, 2], "two men sit": [1, 1, 1]},
        "b.jpg": {"a dog runs": [1, 1, 2]},
    }
    assert captions["a.jpg"] == ["a dog runs", "a dog is running"]


def test_a_grade_is_the_mean_over_the_images_captions(read):
    found = grades("overlap_1", *read)
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
        assert tau(concordance(found, judged), judged, counts) == pytest.approx(expected)


def test_agreement_is_measured_for_every_installed_measure(read):
    judged, captions = read
    data = agreement(judged, captions, ["overlap_1", "chrf"])
    assert (data["images"], data["pairs"], data["judgements"]) == (2, 3, 9)
    assert [row["measure"] for row in data["measures"]] == ["overlap_1", "chrf"]


def test_the_table_is_put_between_its_marks_best_first(tmp_path):
    rows = [{"measure": name, "tau": t, "interval": [t, t]} for name, t in (("edit", 0.1), ("chrf", 0.3))]
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    write_table(table({"measures": rows}), page, BEGIN, END)
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert table({"measures": rows}).index("chrf") < table({"measures": rows}).index("edit")
