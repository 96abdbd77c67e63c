"""The table of what is fuzzed. A target takes bytes and may raise what its interface allows, nothing else."""

from __future__ import annotations

import atexit
import importlib
import importlib.util
import re
import shutil
import tempfile
import traceback
import warnings
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
CORPUS = HERE / "corpus"
#: Seconds for one input, and megabytes for all of them.
SECONDS, MEMORY = 10, 1024


class Target(NamedTuple):
    """`function` is "module:name" in this folder, `needs` the package without which there is nothing to try,
    and `quick` how many inputs the tests try."""

    function: str
    needs: str = "msgspec"
    quick: int = 60

    @property
    def missing(self) -> bool:
        return importlib.util.find_spec(self.needs) is None

    def load(self) -> Callable[[bytes], None]:
        module, _, name = self.function.partition(":")
        function: Callable[[bytes], None] = getattr(importlib.import_module(f"fuzz.{module}"), name)
        return function


TARGETS: dict[str, Target] = {
    "detected": Target("formats:detected"),
    "ballots": Target("formats:ballots"),
    "json": Target("formats:json_values"),
    "moses": Target("formats:moses"),
    "fairseq": Target("formats:fairseq"),
    "sockeye": Target("formats:sockeye"),
    "mbrs": Target("formats:mbrs"),
    "vllm": Target("formats:vllm"),
    "openai": Target("formats:openai"),
    "documents": Target("formats:documents"),
    "records": Target("formats:records"),
    "csv": Target("formats:csv"),
    "tsv": Target("formats:tsv"),
    "scores": Target("formats:scores"),
    "compressed": Target("formats:compressed"),
    "inputs": Target("formats:inputs"),
    "parquet": Target("formats:parquet", "pyarrow"),
    "parquet rows": Target("formats:parquet_rows", "pyarrow"),
    "parquet written": Target("formats:parquet_written", "pyarrow", quick=30),
    "arpa": Target("files:arpa"),
    "corpus": Target("files:corpus"),
    "outputs": Target("files:outputs"),
    "pairs": Target("files:pairs"),
    "profile": Target("files:profile"),
    "arguments": Target("commands:arguments"),
    "commands": Target("commands:harmless"),
    "resumed": Target("commands:resumed", quick=15),
    "choices": Target("services:choices", "httpx"),
    "answers": Target("services:answers", "httpx"),
    "addresses": Target("services:addresses", "httpx"),
    "requests": Target("services:requests", "starlette"),
    "service": Target("services:http", "starlette"),
    "configuration": Target("services:configuration", "starlette"),
    "keys": Target("services:keys", "starlette"),
    "page": Target("services:exported", "starlette", quick=30),
    "page questions": Target("services:questions", "starlette"),
    "judgements": Target("services:judgements", "starlette"),
    "elections": Target("elections:elections", quick=30),
    "panels": Target("elections:panels", quick=30),
    "merged": Target("elections:merged", quick=30),
    "options": Target("elections:options"),
    "answer keys": Target("elections:answer_keys"),
    "kernels": Target("elections:kernels"),
    "lines": Target("elections:lines", quick=30),
}

#: Words of the samples that a change may put elsewhere, and what none of them spells.
_WORD = re.compile(rb'"[^"\n]{1,40}"|[\w.+-]{1,40}|[^\w\s]+|\s')
_ODD = rb"NaN -Infinity inf 1e400 1e308 -0.0 \ud800 \u0000 </script> %2e%2e %00 %ff [[[[[[[[ 0x ''' |||"
ODD = [
    *_ODD.split(),
    b"\n",
    b"\n\n",
    b"\0",
    b"9" * 30,
    b"1" * 4301,
    "\u2028".encode(),
    b"\x1f\x8b\x08",
    b"\x85",
]


def seeds(name: str) -> list[Path]:
    """The files of a target's corpus: samples, and every case that was found."""
    folder = CORPUS / name.replace(" ", "-")
    return sorted(path for path in folder.iterdir() if path.is_file()) if folder.is_dir() else []


def tokens(name: str) -> list[bytes]:
    """The dictionary of a target."""
    words = {word for path in seeds(name) for word in _WORD.findall(path.read_bytes())}
    if name in ("arguments", "commands"):
        from fuzz.commands import tokens as options

        words |= {option.encode() for option in options()}
    return [*sorted(words), *ODD]


def attempt(function: Callable[[bytes], None], data: bytes) -> BaseException | None:
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


def location_of(error: BaseException) -> str:
    """The kind of an error and where in our code it was raised, by which findings are told apart."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "rangevote" in frame.filename or "/fuzz/" in frame.filename]
    last = ours[-1] if ours else frames[-1]
    return f"{type(error).__name__} in {Path(last.filename).name}:{last.name}:{last.lineno}"


@lru_cache(maxsize=1)
def scratch() -> Path:
    """A folder of this process; libFuzzer ends a process at once, so run.py removes what is left of it."""
    folder = Path(tempfile.mkdtemp(prefix="rangevote-fuzz-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def scratch_file(name: str, data: bytes) -> Path:
    """A file with these bytes, for readers that take a path."""
    path = scratch() / name
    path.write_bytes(data)
    return path
