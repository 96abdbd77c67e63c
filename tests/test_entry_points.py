"""Packages add similarities, keys, formats and engines: that of examples/plugin, installed by pip."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from rangevote.entry_points import load_plugin, plugins
from rangevote.errors import SetupError
from tests.wheels import done

EXAMPLE = Path(__file__).parent.parent / "examples" / "plugin"


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Where the package was installed; `run` calls rangevote with it."""
    setuptools = pytest.importorskip("setuptools", reason="setuptools builds the example")
    if int(setuptools.__version__.split(".")[0]) < 70:  # from then on it makes wheels by itself
        pytest.importorskip("wheel", reason="this setuptools needs the package wheel")
    folder = tmp_path_factory.mktemp("plugin")
    for file in EXAMPLE.iterdir():
        if file.is_file():
            (folder / file.name).write_bytes(file.read_bytes())
    target = folder / "target"
    options = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--target", target]
    done([sys.executable, "-m", "pip", "install", *options, folder])
    return target


def run(installed: Path, *arguments: object, stdin: str = "") -> str:
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    return done([sys.executable, "-m", "rangevote", *arguments], input=stdin, env=environment)


def test_a_package_adds_one_of_each(installed, tmp_path):
    ballot = json.dumps({"candidates": ["yes it is", "no it is not", "it is not, no"]}) + "\n"
    graded = json.loads(run(installed, "vote", "-", "-s", "jaccard", "--scores", stdin=ballot))
    assert graded["scores"][0] == pytest.approx((1 + 2 / 5 + 2 / 5) / 3)
    assert "sim:jaccard|" in graded["signature"]
    assert (
        "sim:jaccard:3|"
        in json.loads(run(installed, "vote", "-", "-s", "jaccard:3", stdin=ballot))["signature"]
    )
    keyed = json.loads(run(installed, "vote", "-", "-s", "exact:yes_or_no", stdin=ballot))
    assert keyed["winner"] == "no it is not"
    pipes = "7 | a b | a c | a b\n"
    assert json.loads(run(installed, "vote", "-", "--format", "pipes", stdin=pipes))["id"] == "7"
    prompts = tmp_path / "prompts.txt"
    prompts.write_text("one two\nthree\n", encoding="utf-8")
    asked = ("generate", "-m", "shuffle:3", "-i", prompts, "--candidates", "sample:4", "--text")
    first, second = run(installed, *asked).splitlines()
    assert (sorted(first.split()), second) == (["one", "two"], "three")
    assert "jaccard: added by the package rangevote-example-plugin." in run(installed, "similarities")


def test_without_the_package_its_names_are_unknown():
    assert "jaccard" not in plugins("similarities")


def test_a_package_that_cannot_be_loaded_is_named(monkeypatch):
    class Broken:
        module, dist = "broken", None

        def load(self):
            raise ZeroDivisionError("oh")

    monkeypatch.setattr("rangevote.entry_points.plugins", lambda kind: {"x": Broken()})
    with pytest.raises(
        SetupError, match=r"cannot load 'x', which the package broken adds to rangevote\.keys: Zero"
    ):
        load_plugin("keys", "x")
