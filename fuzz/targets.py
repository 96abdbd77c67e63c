"""The table of what is fuzzed. A target takes bytes and may raise what its interface allows, nothing else."""

from __future__ import annotations

import importlib
import importlib.util
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from fuzz import words

HERE = Path(__file__).resolve().parent
CORPUS = HERE / "corpus"
#: Seconds for one input, and megabytes for all of them; torch alone takes some hundred.
SECONDS, MEMORY = 10, 1024


#: Findings that are not mended yet, by kind and place: told apart from new ones; in the corpus as `open-*`.
OPEN: dict[str, str] = {}


class Target(NamedTuple):
    """`function` is "module:name" in this folder, `needs` the package without which there is nothing to try,
    `tokens` what random bytes would not spell, `share` how much of the time it gets, and `quick` how many
    inputs the tests try."""

    function: str
    tokens: tuple[str, ...] = ()
    needs: str = "msgspec"
    share: float = 1.0
    quick: int = 200

    @property
    def missing(self) -> bool:
        """Whether the package is not installed."""
        return importlib.util.find_spec(self.needs) is None

    def load(self) -> Callable[[bytes], None]:
        """The function itself."""
        module, _, name = self.function.partition(":")
        function: Callable[[bytes], None] = getattr(importlib.import_module(f"fuzz.{module}"), name)
        return function


TARGETS: dict[str, Target] = {
    "detected": Target("formats:detected", (*words.JSON, *words.BALLOT, *words.MOSES, *words.FAIRSEQ)),
    "ballots": Target("formats:ballots", (*words.JSON, *words.BALLOT), share=2),
    "json": Target("formats:json_values", words.JSON),
    "moses": Target("formats:moses", (*words.MOSES, *words.NUMBERS)),
    "fairseq": Target("formats:fairseq", (*words.FAIRSEQ, *words.NUMBERS)),
    "sockeye": Target("formats:sockeye", (*words.JSON, *words.SOCKEYE)),
    "mbrs": Target("formats:mbrs", ("\0", "\n", *words.NUMBERS)),
    "vllm": Target("formats:vllm", (*words.JSON, *words.VLLM)),
    "openai": Target("formats:openai", (*words.JSON, *words.OPENAI)),
    "pipeline": Target("formats:pipeline", (*words.JSON, *words.PIPELINE)),
    "scores": Target("formats:scores", words.NUMBERS),
    "compressed": Target("formats:compressed", words.PACKED, "zstandard"),
    "inputs": Target("formats:inputs", (*words.JSON, *words.INPUTS)),
    "parquet": Target("tables:files", ("PAR1",), "pyarrow"),
    "parquet rows": Target("tables:rows", (*words.JSON, *words.BALLOT), "pyarrow"),
    "parquet written": Target("tables:written", (*words.JSON, *words.BALLOT), "pyarrow", quick=60),
    "arpa": Target("models:arpa", (*words.ARPA, *words.NUMBERS)),
    "corpus": Target("models:corpus", words.CORPUS),
    "vocabulary": Target("models:vocabulary", (*words.JSON, *words.VOCABULARY), "tokenizers"),
    "card": Target("models:card", (*words.JSON, *words.CARD), "torch"),
    "weights": Target("models:weights", (*words.JSON, *words.TENSORS), "torch"),
    "outputs": Target("reports:outputs", (*words.JSON, *words.OUTPUTS)),
    "pairs": Target("reports:pairs", (*words.JSON, *words.PAIRS)),
    "profile": Target("reports:profile", words.TOML, quick=100),
    "choices": Target("sources:choices", (*words.JSON, *words.OPENAI), "httpx"),
    "answers": Target("sources:answers", (*words.JSON, *words.OPENAI, *words.ANSWER), "httpx", quick=100),
    "addresses": Target("sources:addresses", words.URL, "httpx"),
    "arguments": Target("commands:arguments", words.LINES, quick=100),
    "commands": Target("commands:harmless", words.LINES, share=2, quick=100),
    "resumed": Target("commands:resumed", ("\0", *words.JSON, *words.RESUMED), quick=40),
    "requests": Target("services:requests", (*words.JSON, *words.ASKED), "starlette", 2),
    "service": Target(
        "services:http", (*words.JSON, *words.HTTP, *words.ASKED, *words.ADDRESSES), "starlette", 2
    ),
    "configuration": Target("services:configuration", (*words.TOML, *words.SERVICE), "starlette"),
    "keys": Target("services:keys", words.KEYS, "starlette"),
    "page": Target("pages:exported", (*words.JSON, *words.BALLOT, *words.PAGE), "starlette"),
    "page questions": Target("pages:questions", (*words.HTTP, *words.QUESTIONS), "starlette"),
    "judgements": Target("pages:judgements", (*words.JSON, *words.HTTP, *words.STUDY), "starlette"),
    "elections": Target("elections:elections", (*words.JSON, *words.BALLOT), share=2, quick=100),
    "kernels": Target("elections:kernels", words.KERNELS),
}


def seeds(name: str) -> list[Path]:
    """The files of a target's corpus: samples, and every case that was found."""
    folder = CORPUS / name.replace(" ", "-")
    return sorted(path for path in folder.iterdir() if path.is_file()) if folder.is_dir() else []


def tokens(name: str) -> list[bytes]:
    """The dictionary of a target."""
    found = [*TARGETS[name].tokens]
    if name in ("arguments", "commands"):
        from fuzz.commands import tokens as options

        found += options()
    return [token.encode("latin-1" if max(token) < "\u0100" else "utf-8") for token in found]


def tried(function: Callable[[bytes], None], data: bytes) -> BaseException | None:
    """Run a target; the error that is a finding, or None. Warnings that are not ours are errors."""
    from rangevote.errors import RangevoteError

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("ignore", ResourceWarning)
        try:
            function(data)
        except RangevoteError:
            return None
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # also SystemExit, and what panics of Rust become
            return error
    return None


def place_of(error: BaseException) -> str:
    """The kind of an error and its place in our code, by which findings are told apart."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "rangevote" in frame.filename or "/fuzz/" in frame.filename]
    last = ours[-1] if ours else frames[-1]
    return f"{type(error).__name__} in {Path(last.filename).name}:{last.name}:{last.lineno}"


def is_open(place: str) -> bool:
    """Whether a finding is known and waits to be mended."""
    return place.rpartition(":")[0] in OPEN
