"""Who may import whom, what `import rangevote` must not load, and that a name is used once."""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

import rangevote
from tests.wheels import done

ROOT = Path(rangevote.__file__).parent

#: stage -> the stages it may import besides itself, `hypothesis` and `errors`.
#: Similarity and election are one stage; what stands to the right of a stage it must not know.
BELOW = {
    "errors": set(),
    "text": set(),
    "parallel": set(),
    "entry_points": set(),
    "hypothesis": {"kernel"},
    "kernel": set(),
    "models": set(),
    "decoding": {"models"},
    "similarity": {"kernel", "election", "models"},
    "election": {"kernel", "similarity"},
    "formats": {"kernel", "similarity", "election"},
    "generation": {"models", "decoding", "similarity", "election"},
    "evaluation": {"kernel", "similarity", "election", "formats"},
    "batch_elect": {"election", "formats"},
    "engines": {"decoding", "formats", "similarity", "election", "generation"},
    "tuning": {"similarity", "election", "formats", "evaluation"},
}
COMMON = {"errors", "text", "hypothesis", "parallel", "entry_points", "__version__"}
LAST = {"cli", "integrations", "web", "study", "service"}  # nothing but themselves may import these
HEAVY = (
    "torch transformers sacrebleu rapidfuzz matplotlib rich click nltk scipy starlette ray pyarrow".split()  # noqa: SIM905
)


FILES = sorted(ROOT.rglob("*.py"))

#: File names that several folders have, and why; commands in `cli/` are named as the function they call.
SHARED_NAMES = {
    "app.py": "each of the three servers is an application",
    "base.py": "what all similarities, and all searches, have in common",
    "errors.py": "the service turns the package's errors into replies",
    "metrics.py": "of texts, and of the running service",
    "ngram.py": "a similarity, and a model",
    "plan.py": "of a generation, and of a study",
}


def stage_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imports(path: Path) -> frozenset[str]:
    """The stages of this package a file imports anywhere in it, in functions and under TYPE_CHECKING too."""
    names: list[str] = []
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
    return frozenset(name.split(".")[1] for name in names if name.startswith("rangevote."))


def test_a_stage_imports_only_what_stands_to_its_left():
    assert {"election", "errors", "hypothesis"} <= imports(ROOT / "election" / "elect.py")
    for path in FILES:
        stage = stage_of(path)
        if stage in BELOW:
            allowed = {stage} | (COMMON if stage != "errors" else set()) | BELOW[stage] | {"_kernels"}
            assert imports(path) <= allowed, path
        if stage not in LAST and stage not in ("__init__", "__main__"):
            assert not imports(path) & LAST, path


def test_errors_and_kernels_import_nothing_of_the_package_and_only_the_kernel_the_compiled_one():
    assert imports(ROOT / "errors.py") == set()
    assert all(imports(path) <= {"kernel", "_kernels"} for path in (ROOT / "kernel").glob("*.py"))
    assert {stage_of(path) for path in FILES if "_kernels" in imports(path)} == {"kernel"}


def test_no_class_name_is_used_twice():
    classes = defaultdict(list)
    for path in FILES:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef):
                classes[node.name].append(str(path.relative_to(ROOT)))
    assert {name: paths for name, paths in classes.items() if len(paths) > 1} == {}


def test_no_file_name_is_used_twice_but_for_a_reason():
    names = defaultdict(list)
    for path in FILES:
        folder = path.relative_to(ROOT).parts[0]
        if path.name != "__init__.py" and folder != "cli":
            names[path.name].append(path)
    assert {name for name, paths in names.items() if len(paths) > 1} == set(SHARED_NAMES)


def heavy_at_the_top(path: Path) -> set[str]:
    """What a file loads of torch and transformers as soon as it is imported."""
    names = set()
    for node in parsed(path).body:
        if isinstance(node, ast.ImportFrom):
            names.add((node.module or "").partition(".")[0])
        elif isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
    return names & {"torch", "transformers"}


def test_torch_is_loaded_only_by_what_computes_with_it():
    users = {path for path in FILES if heavy_at_the_top(path)}
    assert {stage_of(path) for path in users} <= {"models", "decoding", "generation"}
    light = {"models/ngram.py", "models/protocol.py", "models/load.py", "decoding/__init__.py"}
    light |= {"generation/generate.py"}
    assert users.isdisjoint(ROOT / name for name in light)
    assert all((ROOT / name).exists() for name in light)


def loaded(script: str) -> set[str]:
    code = f"{script}\nimport sys; print(*sys.modules)"
    return {name.partition(".")[0] for name in done([sys.executable, "-c", code]).split()}


@pytest.mark.parametrize(
    "script",
    [
        "import rangevote",
        "import rangevote as rv; [getattr(rv, name) for name in rv.__all__]",
        "import rangevote as rv; rv.elect(['a b', 'a'], [-1, -2]).explain()",
        "import rangevote as rv; rv.elect(['a b', 'a'], similarity='0.5*chrf+0.5*exact')",
        "import rangevote.decoding, rangevote.generation.generate, rangevote.models.ngram",
        "import rangevote.evaluation.evaluate, rangevote.evaluation.plot",
    ],
)
def test_importing_and_electing_load_nothing_heavy(script):
    assert loaded(script).isdisjoint(HEAVY)


def test_the_test_sees_a_heavy_package_that_is_loaded():
    assert "rapidfuzz" in loaded("import rangevote as rv; rv.elect(['a'], similarity='edit')")
