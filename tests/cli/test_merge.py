"""`rangevote vote --shard` and `rangevote merge`: shares that make up the whole, and nothing else."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from tests.cli.conftest import ballot, lines


def many(path: Path, number: int = 601) -> Path:
    """More ballots than a chunk has, blank lines among them."""
    rows = [
        lines(ballot(f"n{i * 7919 % 1000:03}", f"a b {i % 7} é", "a b c", f"c b {i}")) for i in range(number)
    ]
    path.write_bytes(b"\n".join(rows))
    return path


def shards(run, data: Path, folder: Path, of: int, *options: object, suffix: str = "jsonl") -> list[Path]:
    made = [folder / f"part-{i}.{suffix}" for i in range(1, of + 1)]
    for i, path in enumerate(made, 1):
        done = run("vote", data, "-o", path, "--shard", f"{i}/{of}", *options)
        assert (done.code, done.out, done.err) == (0, b"", "")
    return made


@pytest.mark.parametrize("of", [1, 2, 7])
def test_shards_merge_to_the_bytes_of_one_run(run, tmp_path, of):
    data, out = many(tmp_path / "in.jsonl"), tmp_path / "out.jsonl"
    made = shards(run, data, tmp_path, of, "--scores")
    assert max(sizes := [len(p.read_bytes().splitlines()) for p in made]) - min(sizes) <= 1
    done = run("merge", *reversed(made), "-o", out)
    assert done.code == 0
    assert f"{of} shards, 601 results, none missing, none twice." in done.err
    assert out.read_bytes() == run("vote", data, "--scores").out
    assert run("merge", *made, "-q").out == out.read_bytes()


def test_shards_as_parquet_merge_to_the_bytes_of_one_run(run, tmp_path):
    pytest.importorskip("pyarrow")
    data, whole, out = many(tmp_path / "in.jsonl"), tmp_path / "whole.parquet", tmp_path / "out.parquet"
    made = shards(run, data, tmp_path, 3, "--scores", suffix="parquet")
    assert run("vote", data, "-o", whole, "--scores").code == 0
    assert run("merge", *made, "-o", out).code == 0
    assert out.read_bytes() == whole.read_bytes()
    done = run("merge", *made)
    assert done.code == 2
    assert "Parquet is written to a file: give -o FILE." in done.err


def test_shards_of_texts_and_of_more_shards_than_ballots_merge_too(run, three, tmp_path):
    made = shards(run, three, tmp_path, 5, "--text")
    assert [len(p.read_bytes().splitlines()) for p in made] == [1, 1, 1, 0, 0]
    assert run("merge", *made).out == run("vote", three, "--text").out


def test_a_missing_shard_one_that_is_there_twice_and_one_of_another_number_are_named(run, three, tmp_path):
    one, two, three_ = shards(run, three, tmp_path, 3)
    out = tmp_path / "out.jsonl"
    done = run("merge", one, three_, "-o", out)
    assert done.code == 3
    assert "1 of 3 shards are missing: 2." in done.err
    done = run("merge", one, two, three_, two, "-o", out)
    assert done.code == 3
    assert f"shard 2 is there twice: {two} and {two}." in done.err
    (tmp_path / "halves").mkdir()
    half = shards(run, three, tmp_path / "halves", 2)[0]
    done = run("merge", one, two, half, "-o", out)
    assert done.code == 3
    assert f"{one} is one of 3 shards, {half} one of 2." in done.err
    assert not out.exists()


def test_shards_made_with_other_options_or_of_another_input_are_not_merged(run, three, tmp_path):
    one, two = shards(run, three, tmp_path, 2)
    assert run("vote", three, "-o", two, "--force", "--shard", "2/2", "-s", "overlap_1").code == 0
    done = run("merge", one, two)
    assert done.code == 5
    assert "the fingerprint differs between" in done.err
    assert "similarity 'overlap_2' and 'overlap_1'" in done.err
    three.write_bytes(three.read_bytes().replace(b"noon", b"nine"))
    assert run("vote", three, "-o", two, "--force", "--shard", "2/2").code == 0
    done = run("merge", one, two)
    assert done.code == 3
    assert "are of different inputs (3 and 3 ballots, check sums" in done.err


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_a_shard_that_was_cut_off_or_changed_is_named(run, three, tmp_path, suffix):
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
    one, two = shards(run, three, tmp_path, 2, suffix=suffix)
    out = tmp_path / "out"
    whole = one.read_bytes()
    other = b"[1]" + whole[whole.index(b"\n") :] if suffix == "jsonl" else whole[:8] + whole
    for wrong in (whole[:-1], whole[:-40], whole.replace(b"know", b"KNOW"), whole + b"x", other):
        assert wrong != whole
        one.write_bytes(wrong)
        done = run("merge", one, two, "-o", out)
        assert done.code == 3
        assert f"{one} is not as it was written" in done.err
        assert "Make shard 1 again" in done.err
        assert not out.exists()


def test_a_shard_that_is_no_parquet_though_its_notes_fit_is_named(run, three, tmp_path):
    pytest.importorskip("pyarrow")
    one, two = shards(run, three, tmp_path, 2, suffix="parquet")
    two.write_bytes(b"PAR1 and no more")
    notes = tmp_path / f"{two.name}.shard.json"
    told = json.loads(notes.read_text())
    notes.write_text(json.dumps({**told, "sha256": hashlib.sha256(two.read_bytes()).hexdigest()}))
    done = run("merge", one, two, "-o", tmp_path / "out")
    assert (done.code, f"{two} cannot be read as Parquet" in done.err) == (3, True)


def test_an_output_without_notes_cannot_be_merged(run, three, tmp_path):
    one, _ = shards(run, three, tmp_path, 2)
    plain = tmp_path / "plain.jsonl"
    assert run("vote", three, "-o", plain).code == 0
    done = run("merge", one, plain)
    assert done.code == 5
    assert f"{plain} has no notes beside it" in done.err
    (tmp_path / "plain.jsonl.shard.json").write_text("{")
    assert "cannot be read" in run("merge", one, plain).err


def test_a_merge_does_not_replace_an_output_unasked(run, three, tmp_path):
    made = shards(run, three, tmp_path, 2)
    out = tmp_path / "out.jsonl"
    out.write_text("old")
    assert run("merge", *made, "-o", out).code == 5
    assert out.read_text() == "old"
    assert run("merge", *made, "-o", out, "--force").code == 0
    assert out.read_bytes() == run("vote", three).out
    assert run("merge", *made, "-o", made[0], "--force").code == 2


def test_an_id_in_two_shards_is_found_when_they_are_merged(run, tmp_path):
    data = tmp_path / "in.jsonl"
    data.write_bytes(lines(ballot("x", "a b"), ballot("x", "c d")))
    made = shards(run, data, tmp_path, 2)
    done = run("merge", *made, "-o", tmp_path / "out")
    assert done.code == 3
    assert "the id 'x' is there twice" in done.err
    assert not (tmp_path / "out").exists()
    assert run("merge", *made, "--trust-ids").out == run("vote", data, "--trust-ids").out


def test_skipped_ballots_keep_their_place_and_their_exit_code(run, tmp_path):
    data = tmp_path / "in.jsonl"
    data.write_bytes(lines(ballot(1, "a"), ballot(2, "b")) + b"broken\n" + lines(ballot(4, "d")))
    made = [tmp_path / "1", tmp_path / "2"]
    codes = [
        run("vote", data, "-o", path, "--shard", f"{i}/2", "--on-error", "skip").code
        for i, path in enumerate(made, 1)
    ]
    assert codes == [4, 0]
    done = run("merge", *made)
    assert done.code == 4
    assert "1 of 4 ballots were skipped." in done.err
    assert done.out == run("vote", data, "--on-error", "skip").out


def test_an_unfinished_shard_goes_on_where_it_stopped(run, tmp_path):
    data, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    good = lines(*(ballot(i, f"a {i}", f"a b {i}") for i in range(700)))
    data.write_bytes(good + b"broken\n" + lines(ballot(701, "z")))
    assert run("vote", data, "-o", out, "--shard", "1/2").code == 3
    kept = (tmp_path / "out.jsonl.partial").read_bytes()
    assert len(kept.splitlines()) == 350
    data.write_bytes(good + lines(ballot(700, "y"), ballot(701, "z")))
    assert run("vote", data, "-o", out, "--shard", "2/2", "--resume").code == 5
    assert run("vote", data, "-o", out, "--shard", "1/2", "--resume").code == 0
    other = tmp_path / "other.jsonl"
    assert run("vote", data, "-o", other, "--shard", "2/2").code == 0
    assert run("merge", out, other).out == run("vote", data).out


def test_notes_say_what_a_shard_is(run, three, tmp_path):
    one, _ = shards(run, three, tmp_path, 2)
    notes = json.loads((tmp_path / "part-1.jsonl.shard.json").read_bytes())
    assert (notes["shard"], notes["of"], notes["ballots"], notes["total"]) == (1, 2, 2, 3)
    assert notes["options"]["similarity"] == "overlap_2"
    assert one.exists()


@pytest.mark.parametrize("text", ["0/2", "3/2", "1", "a/b", "1/0", "-1/2"])
def test_a_shard_that_cannot_be_is_refused(run, three, tmp_path, text):
    done = run("vote", three, "-o", tmp_path / "out", "--shard", text)
    assert done.code == 2
    assert f"--shard is '{text}'; it must be I/N with I from 1 to N, as 1/8." in done.err


def test_a_shard_needs_a_file_to_stand_beside(run, three):
    done = run("vote", three, "--shard", "1/2")
    assert done.code == 2
    assert "--shard needs -o FILE" in done.err


def test_a_folder_is_no_shard(run, tmp_path):
    done = run("merge", tmp_path)
    assert (done.code, done.err) == (5, f"rangevote: cannot read {tmp_path}: is a directory.\n")
    assert run("merge", ".").code == 5
