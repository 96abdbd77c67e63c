"""`rangevote doctor`: what is installed, what is missing, and what to do about it."""

from __future__ import annotations

import json
import os
import platform
import sys
from pathlib import Path
from typing import Any

import click

from rangevote import __version__
from rangevote.cli.installed import Package, extras_of, loaded, look, others

#: What the extras are for; those that are not named here are told without a word.
PURPOSES = {
    "embedding": "the similarity embedding:MODEL",
    "evaluate": "sacreBLEU, significance, plots; rouge_l and edit; tokenisations 13a, intl, zh",
    "models": "generate with Hugging Face models, and training",
    "parquet": "ballots in Parquet files",
    "ray": "many ballots with Ray",
    "web": "the pages (show, study) and the service (serve), and servers as sources",
    "zstd": "files that end in .zst",
}
#: Settings that change what happens here.
VARIABLES = (
    "RANGEVOTE_PURE",
    "RANGEVOTE_MAX_PAIRS",
    "OMP_NUM_THREADS",
    "HF_HOME",
    "HF_HUB_CACHE",
    "HF_HUB_OFFLINE",
    "TRANSFORMERS_OFFLINE",
)


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object in place of the report.")
@click.option(
    "--try", "tried", is_flag=True, help="Also import every package, in a process of its own: slow."
)
def doctor(as_json: bool, tried: bool) -> None:
    """Tell what is installed, what is missing, and which pip install mends it.

    Optional packages are looked up and not imported, unless --try asks for it. The exit code is 0 whatever is
    found.
    """
    found = examine(tried)
    click.echo(json.dumps(found, indent=2) if as_json else report(found))


def examine(tried: bool) -> dict[str, Any]:
    """All that is reported, as it is written in JSON."""
    extras = extras_of("rangevote")
    core = extras.pop("", [])
    for name in ("all", "dev", "docs"):  # not needed to use anything, or made of others
        extras.pop(name, None)
    return {
        "rangevote": {"version": __version__, "folder": str(Path(__file__).parents[1])},
        "python": {"version": platform.python_version(), "executable": sys.executable},
        "platform": platform.platform(),
        "kernels": kernels(),
        "core": [loaded(package)._asdict() for package in core],
        "extras": [_extra(name, packages, tried) for name, packages in sorted(extras.items())],
        "others": [
            {"for": purpose, **look(package, tried)._asdict(), "install": f"pip install {package.name}"}
            for package, purpose in others()
        ],
        "threads": threads(),
        "cache": cache(),
        "variables": {name: os.environ[name] for name in VARIABLES if name in os.environ},
    }


def kernels() -> dict[str, Any]:
    """Which kernels count, and why not the compiled ones."""
    try:
        from rangevote.kernel import COMPILED, WHY_PLAIN
    except Exception as error:  # numpy itself may be broken
        return {"compiled": False, "why": f"{type(error).__name__}: {error}", "usable": False}
    return {"compiled": COMPILED, "why": WHY_PLAIN, "usable": True}


def threads() -> dict[str, int | None]:
    """How many processors there are, and how many of them this process may use."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {"processors": os.cpu_count(), "usable": usable}


def cache() -> dict[str, Any]:
    """Where models from the hub are kept, and how many there are. We keep no cache of our own."""
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    base = os.environ.get("HF_HOME") or f"{home}/huggingface"
    folder = Path(os.environ.get("HF_HUB_CACHE") or f"{base}/hub").expanduser()
    try:
        models = sorted(
            path.name.removeprefix("models--").replace("--", "/") for path in folder.glob("models--*")
        )
    except OSError:  # not ours to read
        models = []
    return {"folder": str(folder), "exists": folder.is_dir(), "models": models}


def _extra(name: str, packages: list[Package], tried: bool) -> dict[str, Any]:
    looked = [look(package, tried) for package in packages]
    return {
        "name": name,
        "for": PURPOSES.get(name, ""),
        "complete": all(one.state == "ok" for one in looked),
        "packages": [one._asdict() for one in looked],
        "install": f'pip install "rangevote[{name}]"',
    }


def report(found: dict[str, Any]) -> str:
    """The same for people to read."""
    kernel = found["kernels"]
    counting = "compiled" if kernel["compiled"] else f"plain Python ({kernel['why']})"
    models = found["cache"]["models"]
    lines = [
        f"rangevote   {found['rangevote']['version']}, in {found['rangevote']['folder']}",
        f"python      {found['python']['version']} ({found['python']['executable']}), {found['platform']}",
        f"kernels     {counting}",
        f"core        {', '.join(map(_told, found['core'])) or 'unknown: no record of the installation'}",
        f"threads     {found['threads']['usable']} of {found['threads']['processors']} processors",
        f"hub cache   {found['cache']['folder']} ({len(models)} models)",
        *(f"setting     {name}={value}" for name, value in found["variables"].items()),
        "",
        "Extras",
    ]
    for extra in found["extras"]:
        lines += _block(extra["name"], extra["for"], extra["packages"], extra["install"])
    lines += ["", "Packages of others"]
    for other in found["others"]:
        lines += _block(other["name"], other["for"], [other], other["install"])
    return "\n".join(lines)


def _block(name: str, purpose: str, packages: list[dict[str, Any]], install: str) -> list[str]:
    """A line on what is there; where something is not, lines on what is wrong and how to mend it."""
    wrong = [package for package in packages if package["state"] != "ok"]
    missing = all(package["state"] == "missing" for package in packages)
    mark = "ok" if not wrong else "missing" if missing else "partly"
    lines = [f"  {mark:<8}{name:<14}{purpose}".rstrip()]
    if not wrong:
        return lines
    if not missing:
        lines += [f"{'':10}{package['name']}: {package['problem']}" for package in wrong]
    if any(package["state"] == "broken" for package in wrong):
        broken = " ".join(package["name"] for package in wrong if package["state"] == "broken")
        lines.append(f"{'':10}pip install --force-reinstall --no-deps {broken}")
    if any(package["state"] != "broken" for package in wrong):
        lines.append(f"{'':10}{install}")
    return lines


def _told(package: dict[str, Any]) -> str:
    version = package["version"] or ""
    problem = "" if package["state"] == "ok" else f" ({package['problem']})"
    return f"{package['name']} {version}".rstrip() + problem
