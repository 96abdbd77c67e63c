"""The wheel carries all it needs: built, installed where neither the source tree nor a network is near, and
both pages loaded, in a browser too."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.browser.conftest import chromium, new_page, watch  # noqa: F401
from tests.figure1 import WINNER
from tests.wheels import CONSTRAINED, ROOT, done

#: A program in front of another that takes the network away from it, where the system lets it.
OFFLINE = ["unshare", "--map-root-user", "--net"]


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the commands in a clean environment with the wheel and the extra `web`.

    What they need is fetched first; installing is then done with the network off.
    """
    place = tmp_path_factory.mktemp("clean")
    wheels = place / "wheels"
    done([sys.executable, "-m", "pip", "wheel", "--quiet", "-w", wheels, f"{wheel}[web]"], env=CONSTRAINED)
    done([sys.executable, "-m", "venv", place / "venv"])
    commands = place / "venv" / "bin"
    alone = ["--no-index", "--find-links", wheels]
    done([*offline(), commands / "python", "-m", "pip", "install", "--quiet", *alone, f"{wheel}[web]"])
    return commands


def offline() -> list[object]:
    """The words before a command that is to have no network; none where the system does not offer it."""
    try:
        works = subprocess.run([*OFFLINE, "true"], capture_output=True).returncode == 0
    except OSError:
        works = False
    return [*OFFLINE] if works else []


def test_every_file_of_the_pages_is_in_the_wheel(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    for folder in ("web", "study"):
        files = sorted((ROOT / "src" / "rangevote" / folder / "static").iterdir())
        assert files
        for file in files:
            assert f"rangevote/{folder}/static/{file.name}" in names
    assert "rangevote/py.typed" in names
    assert not [name for name in names if name.startswith(("tests/", "experiments/", "benchmarks/"))]


@contextmanager
def served(commands: Path, folder: Path, *arguments: object) -> Iterator[str]:
    """A command that serves, until its address is no longer needed; fails where it tells none."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    process = subprocess.Popen(
        [str(commands / "rangevote"), *map(str, arguments)],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    stop = threading.Timer(60, process.kill)  # a server that says nothing must not hang the tests
    stop.start()
    told = ""
    try:
        for line in process.stderr:
            told += line
            if found := re.search(r"http://127\.0\.0\.1:\d+\S*", line):
                yield found[0]
                break
        else:
            pytest.fail(f"no address was told:\n{told}")
    finally:
        stop.cancel()
        process.terminate()
        process.wait(20)
        process.stderr.close()


@pytest.mark.slow
def test_both_pages_work_in_a_browser_from_the_wheel(installed, tmp_path, new_page):  # noqa: F811
    """And ask for nothing beyond this machine, which the fixture `watch` sees to."""
    page = new_page()
    with served(installed, tmp_path, "show", "--no-browser") as address:
        page.goto(address)
        page.wait_for_selector("html[data-complete]")
        assert page.inner_text("#winner") == WINNER
    outputs = {"beam": "a man", "voted": "a man on a bench"}
    (tmp_path / "pairs.jsonl").write_text(json.dumps({"id": "1", "outputs": outputs}) + "\n")
    done([installed / "rangevote", "study", "new", "pairs.jsonl", "-o", "study.db"], cwd=tmp_path)
    with served(installed, tmp_path, "study", "serve", "study.db", "--port", 0) as address:
        page.goto(address)
        page.get_by_role("button", name="Begin without practice").click()
        page.wait_for_selector("#work:not([hidden])")
        page.keyboard.press("3")
        page.keyboard.press("Enter")
        page.wait_for_selector("text=The item is judged")
    exported = done([installed / "rangevote", "study", "export", "study.db"], cwd=tmp_path)
    assert json.loads(exported)["winner"] == "tie"
