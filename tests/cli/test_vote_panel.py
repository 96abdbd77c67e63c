"""`rangevote vote --voters a.jsonl --voters b.jsonl`: files of voters as a panel."""

from __future__ import annotations

import json
import random

import pytest

import rangevote as rv
from rangevote.election.settings import read_toml
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
    assert "without outputs, of 2 ballots: 'b' in 1;" in done.err
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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--voters", "{0}/a.jsonl=0.7", "--voters", "{0}/b.jsonl"], "give each of them one"),
        (["--voters", "{0}/a.jsonl=0.7"], "shares are for several files of voters"),
        (
            ["--voters", "{0}/a.jsonl=1", "--voters", "{0}/b.jsonl=2", "--shares", "a=1,b=2"],
            "do not combine them with",
        ),
        (["--shares", "a"], "write each name once, with its number, as A=0.7,B=0.3"),
        (["--shares", "a=1,a=2"], "write each name once"),
        (["--shares", "a=x"], "write each name once"),
    ],
)
def test_what_cannot_be_a_panel_is_a_usage_error(run, files, arguments, message):
    done = run("vote", files / "stand.jsonl", *(argument.format(files) for argument in arguments))
    assert done.code == 2
    assert message in done.err


# Several files whose candidates stand


@pytest.fixture
def panel(tmp_path):
    """Three members; each lacks a ballot or has another order, and one ballot is b's alone."""
    files = {
        "a": {1: ["a dog runs", "a dog sits"], 2: ["the cat"], 3: ["x y"]},
        "b": {1: ["the dog runs"], 3: ["x z"], 4: ["only b"]},
        "c": {2: ["a cat"], 1: ["the dog runs"], 3: ["x y"]},
    }
    for name, ballots in files.items():
        records = [{"id": id, "candidates": texts} for id, texts in ballots.items()]
        (tmp_path / f"{name}.jsonl").write_bytes(lines(*records))
    return [tmp_path / f"{name}.jsonl" for name in files]


def test_candidates_of_several_files_stand_and_each_file_has_its_share(run, panel):
    done = run("vote", *panel, "-s", "exact", "--scores")
    assert done.code == 0
    results = {result["id"]: result for result in done.results()}
    assert list(results) == [1, 2, 3, 4]
    # each text of a has half of its third; "the dog runs" has the thirds of b and c
    assert results[1]["scores"] == pytest.approx([1 / 6, 1 / 6, 2 / 3, 2 / 3])
    assert results[2]["scores"] == pytest.approx([1 / 2, 1 / 2])
    assert results[2]["left_out"] == ["b"]
    assert results[3]["winner"] == "x y"
    assert (results[4]["winner"], results[4]["left_out"]) == ("only b", ["a", "c"])
    assert run("vote", *panel, "-s", "exact", "--scores", "--workers", 2).out == done.out


def test_standard_input_may_be_a_member(run, panel):
    options = ("-s", "exact", "--shares", "a=1,stdin=1,c=1")
    done = run("vote", panel[0], "-", panel[2], *options, stdin=panel[1].read_bytes())
    assert [result["winner"] for result in done.results()][2:] == ["x y", "only b"]


def test_members_of_one_file_stand_like_several_files(run, panel):
    texts = [("a", "a dog runs"), ("a", "a dog sits"), ("b", "the dog runs"), ("c", "the dog runs")]
    record = {"id": 1, "candidates": [{"text": text, "member": member} for member, text in texts]}
    options = ("-s", "exact", "--scores", "--shares", "a=1,b=1,c=1")
    [one] = run("vote", *options, stdin=lines(record)).results()
    assert one == run("vote", *panel, *options).results()[0]


def test_a_panel_is_resumed_with_the_same_members_only(run, panel, tmp_path):
    bad = b'{"id": 3, "candidates": 5}\n'
    whole, good = run("vote", *panel, "-s", "exact").out, panel[2].read_bytes()
    panel[2].write_bytes(good.replace(good.splitlines(keepends=True)[2], bad))
    out = tmp_path / "out.jsonl"
    assert run("vote", *panel, "-s", "exact", "-o", out).code == 3
    panel[2].write_bytes(good)
    done = run("vote", *panel[:2], "-s", "exact", "-o", out, "--resume")
    assert (done.code, "members was" in done.err) == (5, True)
    assert run("vote", *panel, "-s", "exact", "-o", out, "--resume").code == 0
    assert out.read_bytes() == whole


def test_other_layouts_and_carried_fields_join_too(run, tmp_path):
    (tmp_path / "a.csv").write_text("id,text,topic\n1,a dog,pets\n1,a cat,pets\n2,x,letters\n")
    (tmp_path / "b.jsonl").write_bytes(
        lines({"id": "2", "candidates": ["x"]}, {"id": "1", "candidates": ["a dog"]})
    )
    files = [tmp_path / "a.csv", tmp_path / "b.jsonl"]
    done = run("vote", *files, "-s", "exact", "--carry", "topic")
    assert [(r["winner"], r["topic"]) for r in done.results()] == [("a dog", "pets"), ("x", "letters")]
    assert "to carry" not in done.err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--shares", "a=1,b=1,z=1"], 2, "it has 'z', which is not a member"),
        (["--shares", "a=1,b=1"], 2, "it has no share for 'c'"),
        (["{0}"], 2, "a.jsonl is given twice"),
        (["{0}/../a.jsonl"], 2, "a.jsonl is given twice"),
        (["-", "-"], 2, "- is given twice"),
        (["--engine", "ray", "-o", "out"], 2, "--engine ray reads one file"),
        (["-o", "{0}", "--force"], 2, "is one of the inputs"),
        (["-"], 3, "stdin: there are no ballots in this file"),
    ],
)
def test_what_cannot_be_a_panel_of_files_is_refused(run, panel, arguments, code, message):
    done = run("vote", *panel, *(argument.format(panel[0]) for argument in arguments))
    assert (done.code, done.out) == (code, b"")
    assert message in done.err


def test_the_last_lines_count_wins_and_missing_outputs_once(run, panel):
    done = run("vote", *panel, "-s", "exact", "--shares", "a=2,b=1,c=1")
    assert "without outputs, of 4 ballots: 'a' in 1, 'b' in 1, 'c' in 1;" in done.err
    table = [line.split() for line in done.err.splitlines()[-3:]]
    # 1: b and c say the same and have the half of a's two texts each; 2: a; 3: a and c; 4: b
    assert table == [["a", "0.500", "2"], ["b", "0.250", "2"], ["c", "0.250", "2"]]
    assert [result["member"] for result in done.results()] == ["b", "a", "a", "b"]
    assert done.results()[2]["members"] == ["a", "c"]
    assert run("vote", *panel, "-s", "exact", "-q").err == ""


def test_an_output_that_elects_itself_is_warned_of(run, panel):
    done = run("vote", *panel[:2], "-s", "exact")
    # 1: b, since a has two outputs; 3: a and b have half of the vote each; 2 and 4 have one member
    assert "in 2 of 4 ballots the winner is the only output of a member" in done.err
    # 2, where b is missing
    assert "in 1 of 4 ballots the winner is the only" in run("vote", *panel, "-s", "exact").err


def test_a_member_that_never_wins_is_in_the_table_and_one_without_any_output_is_named(run):
    texts = {"a": "the train leaves at ten", "b": "a dog", "c": "the train leaves at ten today"}
    candidates = [{"text": text, "member": member} for member, text in texts.items()]
    done = run("vote", "--shares", "a=1,b=1,c=1,B2=1", stdin=lines({"candidates": candidates}))
    assert "without outputs, of 1 ballots: 'B2' in 1;" in done.err
    assert "'B2' has no output in any ballot, so its share has no effect" in done.err
    assert "The other members are a, b, c. Did you mean 'b'?" in done.err
    table = [line.split() for line in done.err.splitlines()[-4:]]
    assert sorted(table) == [[name, "0.250", str(int(name == "c"))] for name in ("B2", *"abc")]


def test_members_that_win_without_a_vote_are_in_the_table_without_a_share(run):
    stand = [{"text": text, "member": name, "logprob": -1} for text, name in (("x y", "a"), ("z", "b"))]
    voters = [{"text": text, "member": name} for text, name in (("x y", "c"), ("q", "d"))]
    done = run("vote", stdin=lines({"candidates": stand, "voters": voters}))
    assert [line.split() for line in done.err.splitlines()[-3:]] == [
        ["c", "0.500", "0"],
        ["d", "0.500", "0"],
        ["a", "1"],
    ]
    done = run("vote", "--rule", "most_likely", stdin=lines({"candidates": stand}))
    assert done.err.splitlines()[-1].split() == ["a", "1"]


def test_a_member_that_hardly_ever_gives_the_elected_answer_is_named(run):
    said = [{"a": i, "b": i, "c": i if i % 2 else -1, "d": i + 99 if i else 0, "e": None} for i in range(20)]
    ballots = [
        {
            "candidates": [
                {"text": f"{text}", "member": name} for name, text in one.items() if text is not None
            ]
        }
        for one in said
    ]
    options = ("vote", "-s", "exact", "--shares", "a=1,b=1,c=1,d=1,e=1")
    assert "hardly ever give the elected answer: 'd'. `" in run(*options, stdin=lines(*ballots)).err
    assert "hardly ever" not in run(*options, stdin=lines(*ballots[:9])).err  # too few to judge
    assert "hardly ever" not in run("vote", "-s", "chrf", stdin=lines(*ballots)).err


def test_where_all_abstain_the_message_names_what_may_find_answers(run):
    abstaining = [{"text": "who knows", "member": member} for member in "ab"]
    answered = [{"text": "4", "member": member} for member in "ab"]
    ballots = [{"candidates": abstaining}, {"candidates": answered}]
    done = run("vote", "-s", "exact:last_number", stdin=lines(*ballots[:1] * 2))
    assert "2 of 2 ballots have no winner." in done.err
    assert "exact:last_number or exact:choice may find them" in done.err
    done = run("vote", "-s", "exact:last_number", stdin=lines(*ballots))
    assert "1 of 2 ballots have no winner." in done.err
    assert "exact:choice" not in done.err


# Shares by agreement


@pytest.fixture
def answers(tmp_path):
    """Five members of different accuracy over 60 questions; "copy" says what "weak" says."""
    chance = random.Random(1)
    accuracy = {"good": 0.9, "fair": 0.7, "weak": 0.4, "copy": 0.4, "far": 0.0}
    records: dict[str, list[dict[str, object]]] = {name: [] for name in accuracy}
    for id in range(60):
        for name, p in accuracy.items():
            text = str(id if chance.random() < p else chance.randint(100, 999))
            text = records["weak"][-1]["candidates"][0] if name == "copy" else text
            records[name].append({"id": id, "candidates": [text]})
    for name, listed in records.items():
        (tmp_path / f"{name}.jsonl").write_bytes(lines(*listed))
    return [tmp_path / f"{name}.jsonl" for name in accuracy]


AGREEMENT = ("-s", "exact:last_number", "--shares", "agreement")


def expected(files):
    """The winners by the shares that the library finds."""
    read = [list(rv.read(path)) for path in files]
    ballots = [
        {path.stem: [row.text for row in ballot.candidates] for path, ballot in zip(files, some, strict=True)}
        for some in zip(*read, strict=True)
    ]
    with pytest.warns(rv.RangevoteWarning, match="far"):
        results = rv.elect_many(ballots, similarity="exact:last_number", shares="agreement")
    return [result.winner for result in results]


def test_shares_by_agreement_are_found_over_the_whole_file(run, answers, tmp_path):
    done = run("vote", *answers, *AGREEMENT)
    assert done.code == 0
    assert [result["winner"] for result in done.results()] == expected(answers)
    assert "over all 60 ballots" in done.err
    rows = {line.split()[0]: line.split() for line in done.err.splitlines()[-5:]}
    assert (rows["far"][1], rows["weak"][3], rows["copy"][3]) == ("0.000", "copy", "weak")
    assert run("vote", *answers, *AGREEMENT, "--workers", 2).out == done.out
    stream = run("vote", *answers[:4], "-", *AGREEMENT, stdin=answers[4].read_bytes())
    assert [r["winner"] for r in stream.results()] == [r["winner"] for r in done.results()]


def test_shares_of_a_stream_are_found_from_its_first_ballots(run, answers, monkeypatch):
    monkeypatch.setattr("rangevote.cli.members.WARM_UP", 20)
    done = run("vote", "-", *answers[1:], *AGREEMENT, "--require-nonempty", stdin=answers[0].read_bytes())
    assert "the first 20 ballots" in done.err
    assert len(done.results()) == 60
    some = [b"".join(path.read_bytes().splitlines(keepends=True)[:20]) for path in answers]
    for path, content in zip(answers, some, strict=True):
        path.write_bytes(content)
    short = run("vote", "-", *answers[1:], *AGREEMENT, stdin=some[0])
    assert done.out.startswith(short.out)


def test_a_run_by_agreement_is_resumed_with_the_same_shares_only(run, answers, tmp_path):
    out, whole, good = tmp_path / "out.jsonl", run("vote", *answers, *AGREEMENT).out, answers[0].read_bytes()
    records = good.splitlines(keepends=True)
    answers[0].write_bytes(b"".join([*records[:50], b'{"id": 50, "candidates": 5}\n', *records[51:]]))
    assert run("vote", *answers, *AGREEMENT, "-o", out).code == 3
    done = run("vote", *answers[:4], *AGREEMENT, "-o", out, "--resume")
    assert (done.code, "members was" in done.err) == (5, True)
    answers[0].write_bytes(good)  # one answer more changes the shares
    done = run("vote", *answers, *AGREEMENT, "-o", out, "--resume")
    assert (done.code, "shares was" in done.err) == (5, True)
    assert run("vote", *answers, *AGREEMENT, "-o", out, "--force").code == 0
    assert out.read_bytes() == whole


def test_tune_writes_shares_by_agreement_into_a_profile_without_references(run, answers, tmp_path):
    profile = tmp_path / "profile.toml"
    done = run("tune", *answers, *AGREEMENT, "-o", profile)
    assert done.code == 0
    assert done.out.decode().splitlines()[-1].split()[0] == "far"
    table = read_toml(profile)
    assert table["tuned"]["twins"] == [["copy", "weak"]]
    by_profile = run("vote", *answers, "--profile", profile)
    assert by_profile.out == run("vote", *answers, *AGREEMENT).out
    found = json.loads(run("tune", *answers, *AGREEMENT, "--to", "json").out)
    assert found["shares"] == table["election"]["shares"]


@pytest.mark.parametrize(
    ("command", "options", "code", "message"),
    [
        ("vote", ["--shares", "agreement"], 2, "is for answers"),
        ("tune", ["--shares", "agreement"], 2, "is for answers"),
        ("tune", [*AGREEMENT, "-s", "exact:last_number,exact"], 2, "give one similarity"),
        ("vote", ["-s", "exact:choice", "--shares", "agreement"], 3, "all abstain"),
        ("vote one", AGREEMENT, 3, "good.jsonl:1: candidates: has no members"),
    ],
)
def test_agreement_that_cannot_be_found_is_refused(run, answers, command, options, code, message):
    command, _, one = command.partition(" ")
    done = run(command, *(answers[:1] if one else answers), *options)
    assert (done.code, done.out) == (code, b"")
    assert message in done.err
