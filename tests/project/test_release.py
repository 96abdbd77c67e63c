"""What is published with a release: metadata, the wheels' workflow, the citation."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import rangevote

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
PYTHONS = [f"3.{minor}" for minor in range(10, 15)]


def yaml_of(path: str) -> Any:
    yaml = pytest.importorskip("yaml", reason="comes with the extra 'docs'")
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


def test_the_metadata_says_what_a_package_index_shows():
    assert {"Homepage", "Documentation", "Changelog", "Issues"} <= set(PROJECT["urls"])
    assert len(PROJECT["keywords"]) >= 6
    assert len(PROJECT["description"]) < 100
    classifiers = PROJECT["classifiers"]
    assert [c.rpartition(" ")[2] for c in classifiers if re.search(r":: 3\.\d+$", c)] == PYTHONS
    assert PROJECT["requires-python"] == f">={PYTHONS[0]}"
    for system in ("MacOS", "Microsoft :: Windows", "POSIX :: Linux"):
        assert f"Operating System :: {system}" in classifiers


def test_one_address_of_the_repository_is_given_everywhere():
    home = PROJECT["urls"]["Homepage"]
    assert all(url.startswith(home) for url in PROJECT["urls"].values())
    assert yaml_of("CITATION.cff")["repository-code"] == home


def test_wheels_are_built_for_every_python_that_the_metadata_names_on_three_systems():
    settings = PYPROJECT["tool"]["cibuildwheel"]
    assert settings["build"] == [f"cp{version.replace('.', '')}-*" for version in PYTHONS]
    workflow = yaml_of(".github/workflows/wheels.yml")
    systems = workflow["jobs"]["wheels"]["strategy"]["matrix"]["os"]
    assert {name.partition("-")[0] for name in systems} == {"ubuntu", "macos", "windows"}
    assert any("cibuildwheel" in step.get("uses", "") for step in workflow["jobs"]["wheels"]["steps"])
    assert workflow["jobs"]["publish"]["needs"] == ["wheels", "archive"]


def test_pull_requests_are_tested_on_three_systems_old_and_new_pythons_and_without_a_compiler():
    jobs = yaml_of(".github/workflows/tests.yml")["jobs"]
    matrix = jobs["tests"]["strategy"]["matrix"]
    assert {name.partition("-")[0] for name in matrix["os"]} == {"ubuntu", "macos", "windows"}
    assert {PYTHONS[0], PYTHONS[-1]} <= set(matrix["python"]) <= set(PYTHONS)
    assert any(leg["kernels"] == "plain" for leg in matrix["include"])
    assert {"ruff check .", "ruff format --check .", "mypy"} <= {
        step.get("run") for step in jobs["lint"]["steps"]
    }
    assert "test" in PROJECT["optional-dependencies"]
    for folder in jobs["tests"]["env"]["LIBRARY"].split():
        assert (ROOT / folder).is_dir()


def test_the_citation_is_of_this_version_and_names_the_paper():
    citation = yaml_of("CITATION.cff")
    assert str(citation["version"]) == rangevote.__version__
    assert citation["license"] == PROJECT["license"]
    assert citation["preferred-citation"]["doi"] == "10.18653/v1/2020.ngt-1.11"
