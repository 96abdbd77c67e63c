"""`Elect`: the same elections in anybody's pipeline, whatever a batch looks like there."""

from __future__ import annotations

import json
import math
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rangevote as rv
from rangevote.batch_elect import Elect, ray_session
from rangevote.cli import run as run_command
from rangevote.errors import DataError, UsageError

TEXTS = [
    "i do not know",
    "the train leaves at ten",
    "the train leaves at ten o'clock",
    "a train leaves at ten",
]
LOGPROBS = [-1.4, -1.7, -1.8, -2.0]
OBJECTS = [{"text": text, "logprob": p} for text, p in zip(TEXTS, LOGPROBS, strict=True)]
BATCH: dict[str, list[Any]] = {
    "id": [1, 2, 3],
    "prompt": ["when", "what", "who"],
    "candidates": [OBJECTS, [{"text": "a", "logprob": 0.5}], [{"text": "b c", "logprob": -1.0}]],
}
EXPECTED = rv.elect(TEXTS, LOGPROBS)


def check(result: Any) -> None:
    assert list(result["id"]) == [1, 2, 3]
    assert list(result["prompt"]) == ["when", "what", "who"]
    assert len(result["candidates"]) == 3
    winners = [None if isinstance(w, float) and math.isnan(w) else w for w in result["winner"]]
    assert winners == [EXPECTED.winner, None, "b c"]
    assert result["score"][0] == EXPECTED.score
    assert result["signature"][0] == EXPECTED.signature
    assert "candidates[0].logprob: 0.5 is not a log-probability" in result["error"][1]
    assert result["error"][0] is None or result["error"][0] != result["error"][0]


def test_a_dict_of_lists_gives_one():
    result = Elect()(BATCH)
    check(result)
    assert result["error"][0] is None
    assert result["near_tie"] == [False, None, False]


def test_arrays_of_numpy_are_taken_as_ray_hands_them_to_other_processes():
    lists = np.empty(3, object)
    lists[:] = [np.array(row, object) for row in BATCH["candidates"]]
    elect = pickle.loads(pickle.dumps(Elect()))
    check(elect({"id": np.array([1, 2, 3]), "prompt": np.array(BATCH["prompt"]), "candidates": lists}))


def test_a_table_gives_a_table_and_a_frame_a_frame():
    pa = pytest.importorskip("pyarrow")
    table = Elect(all_scores=True)(pa.table(BATCH))
    assert isinstance(table, pa.Table)
    check(table.to_pydict())
    assert table.schema.field("scores").type == pa.list_(pa.float64())
    assert table.to_pydict()["scores"][0] == EXPECTED.scores.tolist()
    empty = Elect()(pa.table(BATCH).slice(0, 0))
    assert empty.schema == Elect()(pa.table(BATCH)).schema  # blocks without rows fit those with some
    pd = pytest.importorskip("pandas")
    frame = Elect()(pd.DataFrame(BATCH))
    assert isinstance(frame, pd.DataFrame)
    check({name: frame[name].tolist() for name in frame.columns})


def test_nothing_of_a_frame_is_dropped():
    pd = pytest.importorskip("pandas")
    when = pd.to_datetime(["2026-01-01", None])
    frame = pd.DataFrame(
        {"outputs": [TEXTS, TEXTS], "when": when, "kind": pd.Categorical(["a", "b"]), "n": [1, 2]},
        index=pd.Index(["x", "y"], name="key"),
    )
    elected = Elect(candidates="outputs", similarity="overlap_1")(frame)
    pd.testing.assert_frame_equal(elected[list(frame.columns)], frame)
    assert elected["winner"].tolist() == [rv.elect(TEXTS, similarity="overlap_1").winner] * 2


def test_types_of_a_table_stay():
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"outputs": [TEXTS], "n": pa.array([1], pa.int8())}).replace_schema_metadata({"a": "b"})
    elected = Elect(candidates="outputs")(table)
    assert elected.select(table.column_names) == table
    assert elected.schema.metadata == table.schema.metadata


def test_a_column_that_a_result_would_replace_is_refused_unless_they_are_named_otherwise():
    batch = {"candidates": [TEXTS], "score": [5]}
    with pytest.raises(UsageError, match=r"a column 'score' already.*Elect\(prefix"):
        Elect()(batch)
    elected = Elect(prefix="vote_", similarity="overlap_1")(batch)
    assert elected["score"] == [5]
    assert elected["vote_score"] == [rv.elect(TEXTS, similarity="overlap_1").score]


def test_texts_and_log_probabilities_may_stand_in_two_columns_of_any_name():
    elect = Elect(candidates="outputs", logprobs="scores_of_model", voters="others", similarity="overlap_1")
    batch = {"outputs": [TEXTS, TEXTS], "scores_of_model": [LOGPROBS, LOGPROBS[:3]], "others": [None, None]}
    result = elect(batch)
    assert {name: result[name] for name in batch} == batch  # the user's columns stay
    assert result["winner"][0] == rv.elect(TEXTS, LOGPROBS, similarity="overlap_1").winner
    assert result["error"][1] == "logprobs: 3 log-probabilities for 4 candidates"
    voted = elect({"outputs": [TEXTS], "scores_of_model": [None], "others": [["i do not know"]]})
    assert voted["winner"] == ["i do not know"]


def test_the_lists_are_left_out_where_that_is_asked_for():
    result = Elect(keep=False)(BATCH)
    assert ("candidates" in result, result["prompt"]) == (False, BATCH["prompt"])


def test_several_winners_explanations_and_threads_are_as_in_the_engine():
    elect = Elect(rule="reweighted", winners=2, explain=True, threads=2)
    result = elect({"candidates": [OBJECTS] * 40})
    expected = rv.elect(TEXTS, LOGPROBS, rule="reweighted", winners=2)
    assert [[w["winner"] for w in row] for row in result["winners"]] == [list(expected.winners)] * 40
    assert result["explanation"][0].startswith('{"ngrams":')


def test_a_bad_row_stops_where_that_is_asked_for():
    with pytest.raises(DataError, match="is not a log-probability"):
        Elect(on_error="stop")(BATCH)
    with pytest.raises(UsageError, match="on_error is 'skip'; it must be 'keep' or 'stop'"):
        Elect(on_error="skip")


@pytest.mark.parametrize(
    ("columns", "key"), [(("id", "candidates"), "id"), (("candidates", "prompt"), "prompt")]
)
def test_one_row_per_candidate_is_refused_with_what_to_group_by(columns, key):
    pd = pytest.importorskip("pandas")
    values = {"id": [1, 1, 2], "prompt": ["p", "p", "q"], "candidates": ["a b", "a c", "d"]}
    frame = pd.DataFrame({name: values[name] for name in columns})
    with pytest.raises(UsageError, match=rf"for example by '{key}': frame.groupby\('{key}'\)"):
        Elect()(frame)
    grouped = frame.groupby(key)["candidates"].agg(list).reset_index()
    assert Elect()(grouped)["winner"].tolist() == ["a b", "d"]


@pytest.mark.parametrize(
    ("options", "batch", "message"),
    [
        ({"candidates": "outputs"}, BATCH, "no column 'outputs', only 'id', 'prompt', 'candidates'"),
        (
            {},
            type("DataFrame", (), {"__module__": "polars.dataframe.frame"})(),
            r"polars.from_arrow\(elect\(frame.to_arrow\(\)\)\)",
        ),
        (
            {},
            {"candidates": [[{"text": "a", "log_prob": -1.0}]]},
            r"candidates\[0\]\.log_prob (?!.*_field).* name it logprob",
        ),
    ],
    ids=["another column", "polars", "a misnamed score"],
)
def test_what_cannot_be_elected_is_refused_with_the_way(options, batch, message):
    with pytest.raises(UsageError, match=message):
        Elect(**options)(batch)


@pytest.fixture
def datasets(tmp_path, monkeypatch):
    """Hugging Face's package, without a network."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path))
    return pytest.importorskip("datasets", reason="datasets is not installed")


@pytest.mark.filterwarnings("ignore")
def test_a_dataset_of_hugging_face_is_mapped(datasets):
    rows = [{"id": i, "candidates": OBJECTS, "prompt": "when"} for i in range(7)]
    rows[3]["candidates"] = [{"text": None, "logprob": -1.0}]
    mapped = datasets.Dataset.from_list(rows).map(
        Elect(), batched=True, batch_size=2, remove_columns=["candidates"], load_from_cache_file=False
    )
    assert mapped["id"][:] == list(range(7))
    assert list(mapped["winner"]) == [None if i == 3 else EXPECTED.winner for i in range(7)]
    assert "has neither text nor tokens" in mapped["error"][3]


@pytest.mark.filterwarnings("ignore")
def test_features_of_a_dataset_stay(datasets):
    features = datasets.Features(
        {
            "outputs": datasets.List(datasets.Value("string")),
            "kind": datasets.ClassLabel(names=["short", "long"]),
            "n": datasets.Value("int8"),
        }
    )
    rows = {"outputs": [TEXTS] * 3, "kind": [0, 1, 0], "n": [1, 2, 3]}
    dataset = datasets.Dataset.from_dict(rows, features=features)
    mapped = dataset.map(Elect(candidates="outputs"), batched=True, batch_size=2, load_from_cache_file=False)
    assert {name: mapped.features[name] for name in features} == dict(features)
    assert mapped.select_columns(list(features)).to_dict() == dataset.to_dict()
    assert mapped["winner"][:] == [rv.elect(TEXTS).winner] * 3


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_engine_elects_as_one_process_does_and_goes_on_where_it_stopped(tmp_path, capfd):
    """Results of Ray, row by row; then a checkpoint that holds half of the ids."""
    pytest.importorskip("ray", reason="ray is not installed")
    pq = pytest.importorskip("pyarrow.parquet")
    data, out = tmp_path / "in.jsonl", tmp_path / "out"
    rows = [{"id": f"n{i}", "candidates": [*OBJECTS, {"text": f"a {i}", "logprob": -3.0}]} for i in range(40)]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    vote = ["vote", str(data), "-o", str(out), "--engine", "ray"]
    with ray_session():
        assert run_command(vote) == 0
        rows_by_id = {row["id"]: row for row in pq.read_table(out).to_pylist()}
        for row in rows:
            one = rv.elect([c["text"] for c in row["candidates"]], [c["logprob"] for c in row["candidates"]])
            assert (rows_by_id[row["id"]]["winner"], rows_by_id[row["id"]]["score"]) == (
                one.winner,
                one.score,
            )
        for resume in ([], ["--resume"]):
            assert run_command([*vote, *resume]) == 5
            assert "out is complete. Use --force to replace it." in capfd.readouterr().err
        (out / "_SUCCESS").unlink()
        assert run_command([*vote, "--resume"]) == 5
        checkpoint = re.search(r"cannot resume: (\S+), the checkpoint", capfd.readouterr().err)
        assert checkpoint is not None
        Path(checkpoint[1]).mkdir()
        pq.write_table(pq.read_table(out, columns=["id"]).slice(0, 20), f"{checkpoint[1]}/done.parquet")
        assert run_command(vote) == 5
        assert "exists from an unfinished run. Use --resume" in capfd.readouterr().err
        assert run_command([*vote, "--resume"]) == 0
        assert len(pq.read_table(out)) == 60
        data.write_text(json.dumps({"id": "bad", "candidates": [{"text": "a", "logprob": 0.5}]}) + "\n")
        assert run_command([*vote, "--force"]) == 3
        assert re.search(r"ballot 'bad': .*0\.5 is not a log-probability", capfd.readouterr().err)
        assert run_command([*vote, "--force", "--on-error", "skip"]) == 4
        assert len(pq.read_table(out)) == 1
