"""rangevote doctor: what is there and what is missing, with packages in every state of repair."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import rangevote
from rangevote.cli.doctor import look, requirements

REQUIRES = """\
Metadata-Version: 2.4
Name: rangevote
Version: 0.1.0
Provides-Extra: web
Provides-Extra: evaluate
Provides-Extra: dev
Provides-Extra: zstd
Requires-Dist: numpy>=1.26
Requires-Dist: tomli>=2; python_version < "3.11"
Requires-Dist: whole-one>=1.2; extra == "web"
Requires-Dist: half.one[more]>=3.0,<9; extra == "web"
Requires-Dist: not-here-at-all; extra == "evaluate"
Requires-Dist: rangevote[web,evaluate]; extra == "dev"
Requires-Dist: old_one>=2.10; extra == "zstd"
"""


def install(place: Path, name: str, version: str, code: str | None) -> None:
    """A package as pip leaves it: a record, and code; `code=None`: the code is gone, its folder is not."""
    record = place / f"{name.replace('-', '_')}-{version}.dist-info" / "METADATA"
    record.parent.mkdir()
    record.write_text(f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n")
    folder = place / name.replace("-", "_").replace(".", "_")
    folder.mkdir()
    if code is not None:
        (folder / "__init__.py").write_text(code)


@pytest.fixture
def place(tmp_path, monkeypatch) -> Path:
    """Our own record with made-up extras, a whole package, half a package and an old one."""
    record = tmp_path / "rangevote-0.1.0.dist-info"
    record.mkdir()
    (record / "METADATA").write_text(REQUIRES)
    install(tmp_path, "whole-one", "1.2", "")
    install(tmp_path, "half.one", "3.1", None)
    install(tmp_path, "old_one", "2.9", "")
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_versions_kernels_threads_and_cache_are_listed(run, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    (tmp_path / "models--some--model").mkdir()
    found = json.loads(run("doctor", "--json").out)
    assert found["rangevote"]["version"] == rangevote.__version__
    assert found["python"]["version"] == platform.python_version()
    from rangevote.kernel import COMPILED

    assert found["kernels"]["compiled"] is COMPILED
    assert 1 <= found["threads"]["usable"] <= found["threads"]["processors"] == os.cpu_count()
    assert found["cache"] == {"folder": str(tmp_path), "exists": True, "models": ["some/model"]}
    assert found["variables"]["HF_HUB_CACHE"] == str(tmp_path)


def test_the_report_has_the_problem_of_every_package_and_what_fixes_it(run, place):
    done = run("doctor")
    assert (done.code, done.err) == (0, "")
    lines = [" ".join(line.split()) for line in done.out.decode().splitlines()]
    for first, *below in (
        ("partly web", "half.one: 3.1 is recorded", "pip install --force-reinstall --no-deps half.one"),
        ("missing evaluate", 'pip install "rangevote[evaluate]"'),
        ("partly zstd", "old_one: 2.9 is installed, >=2.10 is needed", 'pip install "rangevote[zstd]"'),
    ):
        start = next(n for n, line in enumerate(lines) if line.startswith(first))
        for line, wanted in zip(lines[start + 1 :], below, strict=False):
            assert line.startswith(wanted)


def test_the_report_fits_a_terminal_of_80_columns_except_for_commands(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = run("doctor").out.decode().splitlines()
    assert [
        line
        for line in lines
        if len(line) > 80 and len(line.split()) > 3 and not re.search("pip|git clone", line)
    ] == []


TOMLI = ["tomli"] * (sys.version_info < (3, 11))  # part of Python since then


def test_json_holds_the_state_of_every_package(run, place):
    found = json.loads(run("doctor", "--json").out)
    states = {p["name"]: p["state"] for extra in found["extras"] for p in extra["packages"]}
    wanted = {"whole-one": "ok", "half.one": "broken", "not-here-at-all": "missing", "old_one": "version"}
    assert states == wanted
    assert [(extra["name"], extra["complete"]) for extra in found["extras"]] == [
        *(("evaluate", False), ("web", False), ("zstd", False))
    ]
    assert [package["name"] for package in found["core"]] == ["numpy", *TOMLI]


def test_trying_imports_finds_what_only_breaks_then(place, monkeypatch):
    install(place, "numpy-like", "1.0", "raise RuntimeError('compiled for another machine')")
    install(place, "falls-over", "1.0", "import os; os._exit(139)")
    assert look(Requirement("numpy-like"))["state"] == "ok"
    monkeypatch.setenv("PYTHONPATH", str(place))
    assert look(Requirement("numpy-like"), tried=True)["problem"] == (
        "cannot be imported: RuntimeError: compiled for another machine"
    )
    assert look(Requirement("falls-over"), tried=True)["problem"].endswith("the process ended with code 139")
    assert look(Requirement("whole-one"), tried=True)["state"] == "ok"
    install(place, "slow-one", "1.0", "import time; time.sleep(600)")
    slow = look(Requirement("slow-one"), tried=True, timeout=1)
    assert slow["problem"] == "cannot be imported: not done after 1 seconds"


def test_a_module_that_is_blocked_is_no_traceback(run, monkeypatch):
    for name in ("torch", "sacrebleu", "starlette", "comet"):
        monkeypatch.setitem(sys.modules, name, None)  # find_spec raises ValueError then
    assert run("doctor").code == 0


def test_without_any_record_of_the_installation_there_are_no_extras(run, monkeypatch):
    from importlib import metadata

    def gone(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", gone)
    assert requirements("rangevote") == {}
    assert json.loads(run("doctor", "--json").out)["core"] == []


def test_a_broken_numpy_and_plain_kernels_are_reported_with_exit_code_0(tmp_path):
    (tmp_path / "numpy").mkdir()
    (tmp_path / "numpy" / "__init__.py").write_text("raise ImportError('numpy is half here')")
    for variable, value, line in (
        ("PYTHONPATH", str(tmp_path), "numpy is half here"),
        ("RANGEVOTE_PURE", "1", "kernels     plain Python (RANGEVOTE_PURE is set)"),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "rangevote", "doctor"],
            capture_output=True,
            text=True,
            env={**os.environ, variable: value},
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert line in done.stdout
