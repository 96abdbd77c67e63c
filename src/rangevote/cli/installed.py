"""Which packages are there: looked up without importing them, since what is broken fails at import."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import re
import subprocess
import sys
from typing import NamedTuple

#: Where a package is not imported by its own name.
MODULES = {"pillow": "PIL", "unbabel-comet": "comet", "scikit-learn": "sklearn", "pyyaml": "yaml"}

#: What to know before a package of others is installed.
NOTES = {"unbabel-comet": "; 2.2.7 needs transformers below 5, so not beside rangevote[models]"}

#: Seconds that an import may take.
PATIENCE = 300

_REQUIREMENT = re.compile(
    r"\s*(?P<name>[A-Za-z0-9._-]+)\s*(?:\[[^]]*\])?\s*(?P<versions>[^;]*)(?:;(?P<only>.*))?"
)


class Package(NamedTuple):
    """A requirement: a package, and the oldest version that will do (empty: any)."""

    name: str
    least: str = ""


class Found(NamedTuple):
    """What was found of a package: `state` is ok, missing, old or broken, `problem` says more."""

    name: str
    version: str | None
    state: str
    problem: str = ""


def extras_of(distribution: str) -> dict[str, list[Package]]:
    """Extra -> what it needs, from the record of the installation; under "" what is always needed."""
    try:
        lines = importlib.metadata.requires(distribution) or []
    except importlib.metadata.PackageNotFoundError:
        return {}
    found: dict[str, list[Package]] = {}
    for line in lines:
        match = _REQUIREMENT.fullmatch(line)
        if match is None or match["name"] == distribution:  # an extra made of others
            continue
        only = match["only"] or ""
        extra = re.search(r"extra\s*==\s*['\"]([^'\"]+)", only)
        if not extra and only.strip():  # for other versions of Python, as tomli
            continue
        least = re.search(r">=\s*([0-9][0-9.]*)", match["versions"])
        package = Package(match["name"].lower(), least[1] if least else "")
        found.setdefault(extra[1] if extra else "", []).append(package)
    return found


def others() -> list[tuple[Package, str]]:
    """Packages that measures take from the user, and for which measure."""
    try:
        from rangevote.similarity import WITH_MODELS
    except Exception:  # without numpy there are no measures
        return []
    return [
        (Package(listing.package), f"the similarity {listing.example}{NOTES.get(listing.package, '')}")
        for listing in WITH_MODELS.values()
        if listing.package
    ]


def look(package: Package, tried: bool = False) -> Found:
    """What is there of a package; with `tried`, whether it can be imported, too."""
    module = module_of(package)
    version, here = _version(package.name), _has_files(module)
    if version is None and not here:
        return Found(package.name, None, "missing", "not installed")
    if not here:
        return Found(package.name, version, "broken", f"{version} is recorded, but its files are gone")
    if version is not None and package.least and older(version, package.least):
        return Found(package.name, version, "old", f"{version} is older than {package.least}")
    if tried and (problem := _import(module)):
        return Found(package.name, version, "broken", f"cannot be imported: {problem}")
    return Found(package.name, version, "ok")


def loaded(package: Package) -> Found:
    """The same for a package without which nothing goes, so it can as well be imported here and now."""
    found = look(package)
    try:
        if found.state == "ok":
            importlib.import_module(module_of(package))
    except Exception as error:  # whatever half a package raises
        return found._replace(state="broken", problem=f"cannot be imported: {type(error).__name__}: {error}")
    return found


def module_of(package: Package) -> str:
    """The name by which a package is imported."""
    return MODULES.get(package.name, package.name.replace("-", "_").replace(".", "_"))


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
    except Exception:  # the record itself may be half there
        return None


def _has_files(module: str) -> bool:
    """Whether there is something to import; a folder without code, left behind, is nothing."""
    try:
        spec = importlib.util.find_spec(module)
    except Exception:  # ValueError, and whatever a finder of others raises
        return False
    return spec is not None and spec.origin is not None


def _import(module: str) -> str:
    """What goes wrong at import, in a process of its own: some break with no exception at all."""
    try:
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-c", f"import {module}"], capture_output=True, text=True, timeout=PATIENCE
        )
    except subprocess.TimeoutExpired:
        return f"not done after {PATIENCE} seconds"
    if done.returncode == 0:
        return ""
    told = done.stderr.strip().splitlines()
    return told[-1] if told else f"the process ended with code {done.returncode}"
