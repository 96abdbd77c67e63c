"""The wheel in clean environments, tried as a user would: the core, each extra, both pages without a network,
and an install where there is no compiler."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import rangevote
from tests.browser.conftest import chromium, new_page, watch  # noqa: F401
from tests.docs.blocks import blocks, commands
from tests.figure1 import WINNER
from tests.wheels import CONSTRAINED, LEFT_OUT, ROOT, done

#: Tools for those who work on the package, and all extras together.
NOT_TRIED = {"all", "dev", "docs", "test"}
BALLOT = '{"id": 1, "candidates": ["a dog runs", "a dog sits", "a dog runs", "cats"]}\n'


def declared() -> dict[str, str]:
    """The extras in pyproject.toml, with their packages."""
    text = (ROOT / "pyproject.toml").read_text()
    table = text.partition("[project.optional-dependencies]")[2].partition("\n[")[0]
    return dict(re.findall(r"^([a-z_]+) = \[(.*?)\]$", table, re.MULTILINE | re.DOTALL))


def without_python() -> dict[str, str]:
    """The variables, without those that would lead Python to this source tree."""
    return {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "RANGEVOTE_"))
    }


class Environment(NamedTuple):
    """A clean environment, and a folder to work in that is no source tree."""

    python: Path
    folder: Path

    def run(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        """`rangevote ...`, by the script that was installed."""
        return self._run(self.python.with_name("rangevote"), *arguments)

    def python_says(self, script: str) -> str:
        completed = self._run(self.python, "-c", script)
        assert completed.returncode == 0, completed.stderr
        return completed.stdout.strip()

    def doctor(self, *options: str) -> dict[str, Any]:
        completed = self.run("doctor", "--json", *options)
        assert (completed.returncode, completed.stderr) == (0, "")
        facts: dict[str, Any] = json.loads(completed.stdout)
        return facts

    @contextmanager
    def served(self, *arguments: object) -> Iterator[str]:
        """A command that serves, until its address is no longer needed; fails where it tells none."""
        process = subprocess.Popen(
            [str(self.python.with_name("rangevote")), *map(str, arguments)],
            cwd=self.folder,
            env=without_python(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr is not None
        stop = threading.Timer(60, process.kill)  # a server that says nothing must not hang the tests
        stop.start()
        output = ""
        try:
            for line in process.stderr:
                output += line
                if address := re.search(r"http://127\.0\.0\.1:\d+\S*", line):
                    yield address[0]
                    break
            else:
                pytest.fail(f"no address was printed:\n{output}")
        finally:
            stop.cancel()
            process.terminate()
            process.wait(20)
            process.stderr.close()

    def _run(self, *command: object) -> subprocess.CompletedProcess[str]:
        words, clean = list(map(str, command)), without_python()
        return subprocess.run(words, cwd=self.folder, env=clean, capture_output=True, text=True)


def installed(package: Path, folder: Path, extra: str = "", **variables: str) -> Environment:
    """A new environment with the wheel or the sources, and nothing else but what they ask for."""
    done([sys.executable, "-m", "venv", "--without-pip", folder / "venv"])
    environment = Environment(folder / "venv" / "bin" / "python", folder)
    pip = [sys.executable, "-m", "pip", "--python", environment.python, "install", "--quiet", "--no-compile"]
    done([*pip, f"{package}[{extra}]" if extra else package], env={**CONSTRAINED, **variables})
    (folder / "ballots.jsonl").write_text(BALLOT)
    return environment


@pytest.fixture(scope="module")
def core(wheel, tmp_path_factory) -> Environment:
    return installed(wheel, tmp_path_factory.mktemp("core"))


def test_the_core_votes_has_every_public_name_and_knows_its_version(core):
    completed = core.run("vote", "ballots.jsonl", "--text")
    assert (completed.returncode, completed.stdout) == (0, "a dog runs\n"), completed.stderr
    core.python_says("import rangevote as rv; [getattr(rv, name) for name in rv.__all__]")
    for command in ("similarities", "demo"):
        assert (core.run(command).returncode, core.run(command).stderr) == (0, "")
    assert core.run("--version").stdout.startswith(f"rangevote {rangevote.__version__} (")
    by_module = core._run(core.python, "-m", "rangevote", "--version")
    assert by_module.stdout == core.run("--version").stdout
    assert core.python_says("import rangevote; print(rangevote.__version__)") == rangevote.__version__
    recorded = "from importlib.metadata import version; print(version('rangevote'))"
    assert core.python_says(recorded) == rangevote.__version__


def test_what_the_readme_shows_runs_where_only_the_wheel_is_installed(core):
    page = ROOT / "README.md"
    script = "".join(block.text for block in blocks(page, "python"))
    promised = re.findall(r"^print\(.*\)\s+# (.*)$", script, re.MULTILINE)
    assert core.python_says(script).splitlines() == promised
    if not (core.folder / "examples").exists():
        (core.folder / "examples").symlink_to(ROOT / "examples")
    for block in blocks(page, "console"):
        for command in commands(block):
            program, *arguments = shlex.split(command.line, comments=True)
            if program == "rangevote" and arguments[0] == "vote":
                completed = core.run(*arguments)
                assert completed.returncode == 0, completed.stderr
                assert not command.prints or completed.stdout.splitlines() == command.prints


def test_the_core_brings_no_more_than_it_says(core):
    names = "from importlib.metadata import distributions; print(*{d.name.lower() for d in distributions()})"
    distributions = set(core.python_says(names).split())
    own = {"rangevote", "numpy", "msgspec", "click", "rich", "packaging", "tomli"}
    assert distributions <= own | {
        "markdown-it-py",
        "mdurl",
        "pygments",
        "typing_extensions",
        "colorama",
    }  # rich's


def test_the_doctor_names_every_extra_that_is_missing_and_its_install(core):
    report = core.doctor()
    assert {package["state"] for package in report["core"]} == {"ok"}  # six packages before Python 3.11
    assert {extra["name"] for extra in report["extras"]} == set(declared()) - NOT_TRIED
    for extra in report["extras"]:
        assert not extra["complete"]
        assert extra["for"], f"say in doctor.py what the extra {extra['name']} is for"
        assert extra["install"] == f'pip install "rangevote[{extra["name"]}]"'


@pytest.mark.parametrize(
    ("arguments", "install"),
    [
        (("vote", "ballots.jsonl", "-s", "rouge_l"), 'pip install "rangevote[evaluate]"'),
        (("vote", "ballots.jsonl", "-s", "embedding:some-model"), 'pip install "rangevote[embedding]"'),
        (("vote", "ballots.jsonl", "-s", "bertscore"), "pip install bert-score"),
        (("show", "--no-browser"), 'pip install "rangevote[web]"'),
        (("generate", "-m", "some/model", "-i", "ballots.jsonl"), 'pip install "rangevote[models]"'),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_is_missing_is_told_with_its_install_and_code_5(core, arguments, install):
    completed = core.run(*arguments)
    assert completed.returncode == 5, completed.stderr
    assert install in completed.stderr
    assert "Traceback" not in completed.stderr


#: What a user does first with an extra; the others are only imported.
USES = {
    "evaluate": "import rangevote as rv; print(rv.elect(['a b', 'a b c', 'x'], similarity='rouge_l').index)",
    "zstd": """
import subprocess, sys, pathlib
try:
    from compression import zstd
except ImportError:
    from backports import zstd
pathlib.Path("b.zst").write_bytes(zstd.compress(pathlib.Path("ballots.jsonl").read_bytes()))
code = subprocess.run([sys.executable, "-m", "rangevote", "vote", "b.zst", "--text"], stdout=-1).stdout
print(0 if code == b"a dog runs\\n" else code)
""",
    "web": "import rangevote.web.app, rangevote.study.app, rangevote.service.app; print(0)",
}


@pytest.mark.slow
@pytest.mark.parametrize("extra", sorted(set(declared()) - NOT_TRIED))
def test_an_extra_installs_imports_and_works(wheel, tmp_path, extra):
    environment = installed(wheel, tmp_path, extra)
    [report] = [row for row in environment.doctor("--try")["extras"] if row["name"] == extra]
    assert report["complete"], report
    if extra in USES:
        assert environment.python_says(USES[extra]) == "0"
    done([sys.executable, "-m", "pip", "--python", environment.python, "check"])


@pytest.fixture(scope="module")
def archive(tmp_path_factory) -> Path:
    """The source archive, built from a copy of the sources, by the backend that pip would fetch for it."""
    folder = tmp_path_factory.mktemp("archive")
    source, backend = folder / "source", folder / "backend"
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(*LEFT_OUT))
    fetch = [sys.executable, "-m", "pip", "install", "--quiet", "--target", backend, "scikit-build-core"]
    done(fetch, env=CONSTRAINED)
    script = "from scikit_build_core.build import build_sdist; build_sdist('dist')"
    done([sys.executable, "-c", script], cwd=source, env={**os.environ, "PYTHONPATH": str(backend)})
    (built,) = (source / "dist").glob("*.tar.gz")
    return Path(built)


@pytest.mark.slow
def test_the_source_archive_installs_and_votes(archive, tmp_path):
    environment = installed(archive, tmp_path)
    completed = environment.run("vote", "ballots.jsonl", "--text")
    assert (completed.returncode, completed.stdout) == (0, "a dog runs\n"), completed.stderr
    assert environment.run("--version").stdout.startswith(f"rangevote {rangevote.__version__} (")


@pytest.mark.slow
def test_a_source_archive_holds_what_a_build_needs_and_no_tests(archive):
    with tarfile.open(archive) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    kernels = {f"kernels/{file.name}" for file in (ROOT / "kernels").glob("*.[ch]pp")}
    assert kernels
    needed = {"pyproject.toml", "CMakeLists.txt", "README.md", "LICENSE", "PKG-INFO"}
    assert needed | kernels | {"src/rangevote/py.typed"} <= names
    assert not [name for name in names if name.startswith(("tests/", "benchmarks/"))]


def test_every_file_of_the_pages_is_in_the_wheel(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    for folder in ("web", "study"):
        files = sorted((ROOT / "src" / "rangevote" / folder / "static").iterdir())
        assert files
        for file in files:
            assert f"rangevote/{folder}/static/{file.name}" in names
    assert "rangevote/py.typed" in names
    assert not [name for name in names if name.startswith(("tests/", "experiments/", "benchmarks/"))]


@pytest.mark.slow
def test_both_pages_work_in_a_browser_from_the_wheel(wheel, tmp_path, new_page):  # noqa: F811
    """And ask for nothing beyond this machine, which the fixture `watch` sees to."""
    page, environment = new_page(), installed(wheel, tmp_path, "web")
    with environment.served("show", "--no-browser") as address:
        page.goto(address)
        page.wait_for_selector("html[data-complete]")
        assert page.inner_text("#winner") == WINNER
    outputs = {"beam": "a man", "voted": "a man on a bench"}
    (tmp_path / "pairs.jsonl").write_text(json.dumps({"id": "1", "outputs": outputs}) + "\n")
    assert environment.run("study", "new", "pairs.jsonl", "-o", "study.db").returncode == 0
    with environment.served("study", "serve", "study.db", "--port", 0) as address:
        page.goto(address)
        page.get_by_role("button", name="Begin without practice").click()
        page.wait_for_selector("#work:not([hidden])")
        page.keyboard.press("3")
        page.keyboard.press("Enter")
        page.wait_for_selector("text=The item is judged")
    assert json.loads(environment.run("study", "export", "study.db").stdout)["winner"] == "tie"


ELECTED = [["a b", "a c", "a b c"], [-1.0, -1.5, -2.0]]
PLAIN = f"""
import rangevote, rangevote.kernel
print(rangevote.kernel.COMPILED)
print(rangevote.kernel.WHY_PLAIN)
print(rangevote.elect(*{ELECTED}).scores.tolist())
"""


def test_an_install_without_a_compiler_works_and_says_what_it_lacks(tmp_path):
    tools, source = tmp_path / "bin", tmp_path / "source"
    tools.mkdir()
    for name in ("bash", "sh", "env", "uname"):
        if program := shutil.which(name):
            (tools / name).symlink_to(program)
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(*LEFT_OUT))
    hidden = {"PATH": str(tools), "CXX": "/nonexistent/c++", "CC": "/nonexistent/cc"}
    environment = installed(source, tmp_path, **hidden)
    assert not list((tmp_path / "venv").rglob("_kernels*.so"))
    compiled, why, scores = environment.python_says(PLAIN).splitlines()
    assert compiled == "False"
    assert "Install a C++17 compiler and reinstall" in why
    assert scores == str(rangevote.elect(*ELECTED).scores.tolist())  # the same bits
