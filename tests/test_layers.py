"""Who may import whom (section 1 of the design), and what `import rangevote` must not load."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import rangevote

ROOT = Path(rangevote.__file__).parent

#: stage -> the stages it may import besides itself, `hypothesis` and `errors`.
#: Similarity and election are one stage; what stands to the right of a stage it must not know.
BELOW = {
    "errors": set(),
    "parallel": set(),
    "hypothesis": {"kernel"},
    "kernel": set(),
    "models": set(),
    "decoding": {"models"},
    "similarity": {"kernel", "election"},
    "election": {"kernel", "similarity"},
    "formats": {"kernel", "similarity", "election"},
    "generation": {"models", "decoding", "similarity", "election"},
    "evaluation": {"similarity", "election", "formats"},
    "ray_data": {"election", "formats"},
    "sources": {"decoding", "formats", "similarity", "election", "generation"},
    "tuning": {"similarity", "election", "evaluation"},
}
COMMON = {"errors", "hypothesis", "parallel", "quiet", "__version__"}
LAST = {"cli", "web", "study", "service"}  # nothing but themselves may import these
HEAVY = (
    "torch transformers sacrebleu rapidfuzz matplotlib rich click nltk scipy starlette ray pyarrow".split()  # noqa: SIM905
)


def stage_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imports(path: Path) -> set[str]:
    """The stages of this package a file imports anywhere in it, in functions and under TYPE_CHECKING too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("rangevote.")}
    return found


FILES = sorted(ROOT.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_stage_imports_only_what_stands_to_its_left(path):
    stage = stage_of(path)
    if stage in BELOW:
        assert imports(path) <= {stage} | (COMMON if stage != "errors" else set()) | BELOW[stage] | {
            "_kernels"
        }
    if stage not in LAST and stage not in ("__init__", "__main__"):
        assert not imports(path) & LAST


def test_errors_and_kernels_import_nothing_of_the_package_and_hypotheses_only_those():
    assert imports(ROOT / "errors.py") == set()
    assert all(imports(path) <= {"kernel", "_kernels"} for path in (ROOT / "kernel").glob("*.py"))
    assert imports(ROOT / "hypothesis.py") == {"errors", "kernel"}


def test_only_the_kernel_knows_the_compiled_one():
    users = {stage_of(path) for path in FILES if "_kernels" in imports(path)}
    assert users == {"kernel"}


def test_the_test_sees_the_imports_of_a_file():
    assert imports(ROOT / "election" / "elect.py") >= {"election", "errors", "hypothesis"}


def heavy_at_the_top(path: Path) -> set[str]:
    """What a file loads of torch and transformers as soon as it is imported."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            found.add((node.module or "").partition(".")[0])
        elif isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
    return found & {"torch", "transformers"}


def test_torch_is_loaded_only_by_what_computes_with_it():
    users = {path for path in FILES if heavy_at_the_top(path)}
    assert {stage_of(path) for path in users} == {"models", "generation"}
    light = {"models/ngram.py", "models/protocol.py", "models/load.py", "generation/generate.py"}
    assert users.isdisjoint(ROOT / name for name in light)


def loaded(script: str) -> set[str]:
    code = f"{script}\nimport sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in done.stdout.split()}


@pytest.mark.parametrize(
    "script",
    [
        "import rangevote",
        "import rangevote as rv; [getattr(rv, name) for name in rv.__all__]",
        "import rangevote as rv; rv.elect(['a b', 'a'], [-1, -2]).explain()",
        "import rangevote as rv; rv.elect(['a b', 'a'], similarity='0.5*chrf+0.5*exact')",
        "import rangevote.decoding.run, rangevote.generation.generate, rangevote.models.ngram",
        "import rangevote.evaluation.evaluate, rangevote.evaluation.plot",
    ],
)
def test_importing_and_electing_load_nothing_heavy(script):
    assert loaded(script).isdisjoint(HEAVY)


def test_the_test_sees_a_heavy_package_that_is_loaded():
    assert "rapidfuzz" in loaded("import rangevote as rv; rv.elect(['a'], similarity='edit')")
