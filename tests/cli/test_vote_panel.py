"""`rangevote vote --voters a.jsonl --voters b.jsonl`: files of voters as a panel."""

from __future__ import annotations

import pytest

from tests.cli.conftest import lines


@pytest.fixture
def files(tmp_path):
    """Two ballots; the first member has both in another order, the second only one and another's."""
    stand = [{"id": i, "candidates": ["a dog", "a cat"]} for i in ("1", "2")]
    a = [{"id": "2", "candidates": ["a cat"]}, {"id": "1", "candidates": ["a cat", "a cat", "a dog"]}]
    b = [{"id": "9", "candidates": ["x"]}, {"id": "1", "candidates": ["a dog"]}]
    for name, ballots in {"stand": stand, "a": a, "b": b}.items():
        (tmp_path / f"{name}.jsonl").write_bytes(lines(*ballots))
    return tmp_path


def test_files_of_a_panel_go_together_by_id_and_a_member_without_the_ballot_is_named(run, files):
    voters = ["--voters", files / "a.jsonl", "--voters", files / "b.jsonl"]
    done = run("vote", files / "stand.jsonl", *voters, "-s", "exact", "--scores", "--explain")
    assert done.code == 0
    first, second = done.results()
    assert first["scores"] == pytest.approx([2 / 3, 1 / 3])
    assert "|panel:a=0.5,b=0.5|" in first["signature"]
    assert [vote["member"] for vote in first["explanation"]["voters"]] == ["b", "a", "a", "a"]
    assert "left_out" not in first
    assert (second["winner"], second["left_out"]) == ("a cat", ["b"])
    assert "|panel:a=1|out:b|" in second["signature"]
    assert "warning: of the panel, 'b' had no voters and is left out" in done.err
    assert "1 of the ballots of 'b' belong to no ballot" in done.err
    options = ("-s", "exact", "--scores", "--explain", "--workers", 2)
    assert run("vote", files / "stand.jsonl", *voters, *options).out == done.out


def test_shares_are_given_with_the_files_or_by_name(run, files):
    path = files / "stand.jsonl"
    voters = ["--voters", f"{files}/a.jsonl=1", "--voters", f"{files}/b.jsonl=3"]
    done = run("vote", path, *voters, "-s", "exact")
    assert "|panel:a=0.25,b=0.75|" in done.results()[0]["signature"]
    voters = ["--voters", files / "a.jsonl", "--voters", files / "b.jsonl", "--shares", "b=3,a=1"]
    assert run("vote", path, *voters, "-s", "exact").out == done.out


def test_members_of_one_ballot_file_are_a_panel(run):
    voters = [{"text": "a", "member": "m"}, {"text": "b", "member": "n"}, {"text": "b", "member": "n"}]
    ballot = {"candidates": ["a", "b"], "voters": voters}
    done = run("vote", "-s", "exact", "--shares", "m=2,n=1", stdin=lines(ballot))
    assert done.results()[0]["winner"] == "a"


def test_files_without_ids_go_by_position(run, tmp_path):
    for name in ("stand", "a", "b"):
        (tmp_path / f"{name}.jsonl").write_bytes(lines({"candidates": [name, "x"]}, {"candidates": [name]}))
    voters = ["--voters", tmp_path / "a.jsonl", "--voters", tmp_path / "b.jsonl"]
    done = run("vote", tmp_path / "stand.jsonl", *voters, "--text", "-s", "exact")
    assert (done.code, done.out) == (0, b"x\nstand\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--voters", "{0}/a.jsonl=0.7", "--voters", "{0}/b.jsonl"], "give each of them one"),
        (["--voters", "{0}/a.jsonl=0.7"], "shares are for several files of voters"),
        (["--voters", "{0}/a.jsonl=1", "--voters", "{0}/b.jsonl=2", "--shares", "a=1,b=2"], "and do so once"),
        (["--voters", "{0}/a.jsonl=1", "--voters", "{0}/b.jsonl=-1"], "share of 'b' must be a number from 0"),
        (["--voters", "{0}/a.jsonl", "--voters", "{0}/a.jsonl"], "a.jsonl' twice"),
        (["--shares", "a"], "write each member of the panel once, with its share, as A=0.7,B=0.3"),
        (["--shares", "a=1,a=2"], "write each member of the panel once"),
        (["--shares", "a=x"], "write each member of the panel once"),
    ],
)
def test_what_cannot_be_a_panel_is_a_usage_error(run, files, arguments, message):
    done = run("vote", files / "stand.jsonl", *(argument.format(files) for argument in arguments))
    assert done.code == 2
    assert message in done.err


def test_a_ballot_that_no_member_has_and_a_bad_line_are_bad_data(run, files):
    voters = ["--voters", files / "a.jsonl", "--voters", files / "b.jsonl"]
    done = run("vote", *voters, stdin=lines({"id": "7", "candidates": ["a"]}))
    assert done.code == 3
    assert "has no voters: none of 'a', 'b' has a ballot with its id" in done.err
    (files / "b.jsonl").write_bytes(b'{"id": 1, "candidates": 3}\n')
    done = run("vote", files / "stand.jsonl", *voters)
    assert (done.code, f"{files / 'b.jsonl'}:1" in done.err) == (3, True)
