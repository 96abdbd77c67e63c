"""What the tree, the changelog and the package metadata say is so."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import rangevote
from rangevote.cli import run as run_command
from rangevote.kernel import COMPILED

ROOT = Path(__file__).parent.parent


def tree() -> list[str]:
    """The paths in the tree of docs/design.md."""
    text = (ROOT / "docs" / "design.md").read_text(encoding="utf-8").partition("## The tree")[2]
    paths, parent = [], ""
    for line in text.partition("```text\n")[2].partition("```")[0].splitlines():
        name = line.split()[0]
        parent = parent if line.startswith(" ") else name
        paths.append(parent + name if line.startswith(" ") else name)
    return paths


def test_the_tree_names_what_is_there_and_all_of_it():
    for path in tree():
        assert (ROOT / path).exists(), path
    inside = {
        f"src/rangevote/{p.name}/" for p in (ROOT / "src/rangevote").iterdir() if (p / "__init__.py").exists()
    }
    assert inside <= set(tree())
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if tracked.returncode == 0:
        folders = {line.split("/")[0] + "/" for line in tracked.stdout.splitlines() if "/" in line}
        folders -= {"src/", ".ci/", ".github/"}
        assert folders <= set(tree())


def test_the_changelog_has_what_is_not_released_first_and_no_numbers_of_issues():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    sections = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert sections[0] == "Unreleased"
    assert all(re.match(r"\d+\.\d+\.\d+ - \d{4}-\d{2}-\d{2}$", title) for title in sections[1:])
    assert not re.search(r"#\d", text)


def test_the_core_needs_five_packages_and_no_torch():
    needed = re.search(
        r"^dependencies = \[(.*?)\]", (ROOT / "pyproject.toml").read_text(), re.MULTILINE | re.DOTALL
    )
    assert needed is not None
    # tomli: what Python itself has from 3.11 on
    assert re.findall(r'"([a-z]+)', needed[1]) == ["numpy", "msgspec", "click", "rich", "packaging", "tomli"]
    assert "tomli>=2; python_version < '3.11'" in needed[1]


def test_no_file_holds_a_path_of_one_machine():
    pattern = r"[^A-Za-z0-9_.]/(home|root|work)/[A-Za-z.]"
    command = ["git", "grep", "-nE", pattern, "--", ":!tests/test_project.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        pytest.skip("not a git checkout")
    assert done.stdout == ""


def test_the_pictures_of_the_docs_are_there_taken_by_make_screenshots_and_small():
    script = (ROOT / "docs" / "screenshots.py").read_text()
    pictures = {path.stem: path.stat().st_size for path in (ROOT / "docs" / "images").iterdir()}
    shown = set()
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        shown |= set(re.findall(r"[(/]images/([^)\"]+)\.png", page.read_text()))
    assert shown == set(pictures)
    assert all(f'"{name}"' in script for name in pictures)
    assert max(pictures.values()) <= 150_000
    assert sum(pictures.values()) <= 1_000_000


def stops(heading: str) -> list[str]:
    """The files of a numbered list in docs/design.md, after a line that holds `heading`."""
    text = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    section = text.partition(heading)[2].partition("\n\n")[2].partition("\n\n")[0]
    return re.findall(r"^\d+\. `([^`]+)`", section, re.MULTILINE)


def test_a_ballots_way_through_the_house_is_the_one_on_the_page():
    assert len(stops("`rv.elect(texts, logprobs)` passes")) <= 10
    beside = {"errors.py", "similarity/base.py", "kernel/__init__.py", "kernel/plain.py"}
    own: Any = type("Own", (str,), {})("words")  # no plain text, so nothing is kept
    careful = files_entered(
        lambda: rangevote.elect(["a b", "a c"], [-1.0, -2.0], tokenize=own, winners=2).score
    )
    assert careful - beside == set(stops("`rv.elect(texts, logprobs)` passes")) - beside
    if COMPILED:
        usual = files_entered(lambda: rangevote.elect(["a b", "a c"], [-1.0, -2.0]).score)
        assert usual == {
            "hypothesis.py",
            *(f"election/{name}.py" for name in ("elect", "settings", "result")),
        }


@pytest.mark.skipif(not COMPILED, reason="there are no compiled kernels")
def test_vote_enters_the_files_on_the_page_and_no_others(tmp_path):
    pytest.importorskip("rapidfuzz")
    text = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    usual = set(stops("`rangevote vote ballots.jsonl` enters"))
    table = text.partition("| run | files |")[2].partition("\n\n")[0]
    expected = {
        run: (int(number), set(re.findall("`([^`]+)`", files)))
        for run, number, files in re.findall(r"^\| (.+?) \| (\d+) \| (.+) \|$", table, re.MULTILINE)
    }
    scored = [{"text": "a b", "logprob": -1}, {"text": "a c", "logprob": -1.5}]
    samples = [{"text": "a b"}, {"text": "a b"}, {"text": "a c"}]
    of_members = [{**sample, "member": name} for sample, name in zip(samples, "xyz", strict=True)]

    def written(name: str, *ballots: dict[str, object]) -> Path:
        path = tmp_path / f"{name}.jsonl"
        path.write_text("".join(json.dumps({"id": i, **ballot}) + "\n" for i, ballot in enumerate(ballots)))
        return path

    def entered(*options: object) -> set[str]:
        arguments = ["vote", "-o", tmp_path / "out.jsonl", "--force", *options]
        return files_entered(lambda: run_command(list(map(str, arguments))))

    bad = written("bad", {"candidates": scored, "x": 1}, {})
    data, second = (written(name, {"candidates": scored}, {"candidates": scored}) for name in ("a", "b"))
    runs = {
        "a bad line, or a warning": [bad, "--on-error", "skip"],
        "`--score-scale`": [data, "--score-scale", "2"],
        "lists under other names": [written("outputs", {"outputs": ["a b", "a c"]})],
        "`--voters`": [data, "--voters", second],
        "`--explain`": [data, "--explain"],
        "`--winners`": [data, "--winners", "2"],
        "members in the file": [written("members", {"candidates": of_members})],
        "`rouge_l`": [data, "-s", "rouge_l"],
        "`exact`": [written("samples", {"candidates": samples}), "-s", "exact"],
        "`--cutoff`": [data, "--cutoff", "0.1"],
        "several files": [data, second],
    }
    assert entered(data) == usual
    assert len(usual) <= 16
    files_of = {run: entered(*options) for run, options in runs.items()}
    assert {run: (len(files), files - usual) for run, files in files_of.items()} == expected


def files_entered(work: Callable[[], object]) -> set[str]:
    """The files of the package in which a function is called by work that was done before."""
    package = Path(rangevote.__file__).parent
    entered: set[str] = set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(package):
            entered.add(str(path.relative_to(package)))

    work()  # what is imported, is
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return entered
