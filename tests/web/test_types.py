"""The pages' modules under TypeScript's strict checker, with the types of what Python sends them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from msgspec import NODEFAULT, Struct, inspect

from rangevote.evaluation.panel_report import PanelSummary
from rangevote.web import api

pytest.importorskip("starlette")

from rangevote.study import app as study_app
from rangevote.study.store import Answer, SavedAnswer

ROOT = Path(__file__).parents[2]
FOLDERS = [ROOT / "src" / "rangevote" / name / "static" for name in ("web", "study")]
HOW = "no type checker for JavaScript: apt-get install node-typescript"


def structs(module: ModuleType) -> dict[str, Any]:
    """The structs of a module by name."""
    classes = {name: one for name, one in vars(module).items() if isinstance(one, type(Struct))}
    return {name: one for name, one in classes.items() if one.__module__ == module.__name__}


#: file -> names of types -> what Python sends; modules name them as `import("./answers").Election`.
TYPES = {
    "answers": structs(api) | {"PanelSummary": PanelSummary},
    "session": structs(study_app) | {"Answer": Answer, "SavedAnswer": SavedAnswer},
}
PLAIN = {"Int": "number", "Float": "number", "Str": "string", "Bool": "boolean", "None": "null", "Any": "any"}


def typescript(kind: inspect.Type) -> str:
    """A type as TypeScript writes it, for the JSON that msgspec makes of its values."""
    match kind:
        case inspect.ListType() | inspect.VarTupleType():
            return f"({typescript(kind.item_type)})[]"
        case inspect.TupleType():
            return f"[{', '.join(map(typescript, kind.item_types))}]"
        case inspect.NamedTupleType():
            return f"[{', '.join(typescript(field.type) for field in kind.fields)}]"
        case inspect.DictType():
            return f"Record<string, {typescript(kind.value_type)}>"
        case inspect.UnionType():
            return " | ".join(map(typescript, kind.types))
        case inspect.LiteralType():
            return " | ".join(f'"{value}"' for value in kind.values)
        case inspect.StructType():
            return f"{{ {' '.join(map(member, kind.fields))} }}"
    return PLAIN[type(kind).__name__.removesuffix("Type")]


def member(field: inspect.Field) -> str:
    """A field; one without a default that is not required may be UNSET."""
    unset = not field.required and field.default is field.default_factory is NODEFAULT
    return f"{field.encode_name}{'?' if unset else ''}: {typescript(field.type)};"


def test_every_module_is_typed_without_a_fault():
    build = ROOT / "build" / "types"
    build.mkdir(parents=True, exist_ok=True)
    for file, types in TYPES.items():
        lines = [
            f"export type {name} = {typescript(inspect.type_info(kind))};\n" for name, kind in types.items()
        ]
        (build / f"{file}.d.ts").write_text("".join(lines))
    checker = shutil.which("tsc")
    if os.environ.get("RANGEVOTE_NEEDS_TSC"):  # in CI one that is missing is a failure
        assert checker is not None, HOW
    elif checker is None:
        pytest.skip(HOW)
    command = [checker, "--project", ROOT / "tsconfig.json", "--listFiles"]
    found = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    lines = found.stdout.splitlines()
    assert [line for line in lines if "error TS" in line] == []
    assert found.returncode == 0
    modules = {str(file) for folder in FOLDERS for file in folder.glob("*.js")}
    assert len(modules) > 20
    assert modules <= set(lines)


def test_nothing_that_is_passed_on_is_of_any_type():
    """Where all is `any`, a checker checks nothing."""
    for folder in FOLDERS:
        for file in folder.glob("*.js"):
            assert re.findall(r"@(?:param|property|typedef) \{\(?any.*", file.read_text()) == [], file.name
