"""The wheel in clean environments, the core alone and with each extra, tried as a user would."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import rangevote
from tests.docs.blocks import blocks, commands
from tests.wheels import CONSTRAINED, LEFT_OUT, ROOT, done

#: Tools for those who work on the package, and all extras together.
NOT_TRIED = {"all", "dev", "docs", "test"}
BALLOT = '{"id": 1, "candidates": ["a dog runs", "a dog sits", "a dog runs", "cats"]}\n'


def declared() -> dict[str, str]:
    """The extras in pyproject.toml, with their packages."""
    text = (ROOT / "pyproject.toml").read_text()
    table = text.partition("[project.optional-dependencies]")[2].partition("\n[")[0]
    return dict(re.findall(r"^([a-z_]+) = \[(.*?)\]$", table, re.MULTILINE | re.DOTALL))


class Environment(NamedTuple):
    """A clean environment, and a folder to work in that is no source tree."""

    python: Path
    folder: Path

    def run(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        """`rangevote ...`, by the script that was installed."""
        return self._run(self.python.with_name("rangevote"), *arguments)

    def python_says(self, script: str) -> str:
        found = self._run(self.python, "-c", script)
        assert found.returncode == 0, found.stderr
        return found.stdout.strip()

    def doctor(self, *options: str) -> dict[str, Any]:
        found = self.run("doctor", "--json", *options)
        assert (found.returncode, found.stderr) == (0, "")
        facts: dict[str, Any] = json.loads(found.stdout)
        return facts

    def _run(self, *command: object) -> subprocess.CompletedProcess[str]:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        return subprocess.run(
            list(map(str, command)), cwd=self.folder, env=clean, capture_output=True, text=True
        )


def installed(wheel: Path, folder: Path, extra: str = "") -> Environment:
    """A new environment with the wheel, and nothing else but what it asks for."""
    done([sys.executable, "-m", "venv", "--without-pip", folder / "venv"])
    place = Environment(folder / "venv" / "bin" / "python", folder)
    wanted = f"{wheel}[{extra}]" if extra else wheel
    pip = [sys.executable, "-m", "pip", "--python", place.python]
    done([*pip, "install", "--quiet", "--no-compile", wanted], env=CONSTRAINED)
    (folder / "ballots.jsonl").write_text(BALLOT)
    return place


@pytest.fixture(scope="module")
def core(wheel, tmp_path_factory) -> Environment:
    return installed(wheel, tmp_path_factory.mktemp("core"))


def test_the_core_votes_has_every_public_name_and_knows_its_version(core):
    found = core.run("vote", "ballots.jsonl", "--text")
    assert (found.returncode, found.stdout) == (0, "a dog runs\n"), found.stderr
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
                found = core.run(*arguments)
                assert found.returncode == 0, found.stderr
                assert not command.prints or found.stdout.splitlines() == command.prints


def test_the_core_brings_no_more_than_it_says(core):
    names = "from importlib.metadata import distributions; print(*{d.name.lower() for d in distributions()})"
    listed = set(core.python_says(names).split())
    own = {"rangevote", "numpy", "msgspec", "click", "rich", "packaging", "tomli"}
    assert listed <= own | {"markdown-it-py", "mdurl", "pygments", "typing_extensions", "colorama"}  # rich's


def test_the_doctor_names_every_extra_that_is_missing_and_its_install(core):
    told = core.doctor()
    assert [package["state"] for package in told["core"]] == ["ok"] * 5
    assert {extra["name"] for extra in told["extras"]} == set(declared()) - NOT_TRIED
    for extra in told["extras"]:
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
    found = core.run(*arguments)
    assert found.returncode == 5, found.stderr
    assert install in found.stderr
    assert "Traceback" not in found.stderr


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
    place = installed(wheel, tmp_path, extra)
    (told,) = [one for one in place.doctor("--try")["extras"] if one["name"] == extra]
    assert told["complete"], told
    if extra in USES:
        assert place.python_says(USES[extra]) == "0"
    done([sys.executable, "-m", "pip", "--python", place.python, "check"])


@pytest.fixture(scope="module")
def archive(tmp_path_factory) -> Path:
    """The source archive, built from a copy of the sources, by the backend that pip would fetch for it."""
    place = tmp_path_factory.mktemp("archive")
    source, backend = place / "source", place / "backend"
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(*LEFT_OUT))
    fetch = [sys.executable, "-m", "pip", "install", "--quiet", "--target", backend, "scikit-build-core"]
    done(fetch, env=CONSTRAINED)
    script = "from scikit_build_core.build import build_sdist; build_sdist('dist')"
    done([sys.executable, "-c", script], cwd=source, env={**os.environ, "PYTHONPATH": str(backend)})
    (built,) = (source / "dist").glob("*.tar.gz")
    return Path(built)


@pytest.mark.slow
def test_the_source_archive_installs_and_votes(archive, tmp_path):
    place = installed(archive, tmp_path)
    found = place.run("vote", "ballots.jsonl", "--text")
    assert (found.returncode, found.stdout) == (0, "a dog runs\n"), found.stderr
    assert place.run("--version").stdout.startswith(f"rangevote {rangevote.__version__} (")


@pytest.mark.slow
def test_a_source_archive_holds_what_a_build_needs_and_no_tests(archive):
    with tarfile.open(archive) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    kernels = {f"kernels/{file.name}" for file in (ROOT / "kernels").glob("*.[ch]pp")}
    assert kernels
    needed = {"pyproject.toml", "CMakeLists.txt", "README.md", "LICENSE", "PKG-INFO"}
    assert needed | kernels | {"src/rangevote/py.typed"} <= names
    assert not [name for name in names if name.startswith(("tests/", "benchmarks/"))]
