"""Majority voting, `exact`: the same texts, or the same answers, support each other; and how keys are named.

A key is a function from a text to what is compared, such as the answer in it. `answers.py` and
`math_answers.py` have those that read an answer. `exact:command=CMD` is what the user's own program prints
for a text, so that behaviour is voted on: the program gets the text on its standard input, and no shell sees
the command. It runs whatever the text makes it run, with the rights of the user: put it into a container
where texts cannot be trusted.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Hashable, Iterable, Mapping
from contextlib import suppress
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import BinaryIO

import numpy as np

from rangevote.entry_points import load_plugin, plugins
from rangevote.errors import SetupError, UnknownName, UsageError, nearest, need
from rangevote.hypothesis import Array, Hypotheses
from rangevote.kernel.plain import unit_bits
from rangevote.parallel import map_in_order
from rangevote.similarity.answers import (
    after,
    boxed,
    choice,
    last_number,
    line,
    plain,
    regex,
)
from rangevote.similarity.base import Measure, Tokenise, refuse_surrogates, same_content, same_keys
from rangevote.similarity.json_leaves import json_value, path_steps
from rangevote.similarity.math_answers import math_answer
from rangevote.text import split_reasoning

Key = Callable[[str], Hashable]


class Exact(Measure):
    """1 for the same key, otherwise 0. Without a key, texts are compared, including the empty text.

    A key is a function from the text, without reasoning such as <think>...</think> before it, to what is
    compared; None abstains. If a key has `prepare`, that is called with all texts of a list first.
    """

    linear = answers = decomposes = True

    def __init__(self, key: Key | None = None, *, name: str | None = None) -> None:
        self.key = key
        self.name = name or ("exact" if key is None else f"exact:{getattr(key, '__name__', 'key')}")
        self.label = None if key is None else str

    def poll(self, candidates: Hypotheses) -> ExactPoll:
        return ExactPoll(candidates, self.keys)

    def keys(self, candidates: Hypotheses) -> list[Hashable]:
        """What is compared: the text, the token ids, or what the key function finds in the text."""
        refuse_surrogates(candidates)
        contents = same_content(candidates)
        if self.key is None:
            return contents
        answers = [
            split_reasoning(content, ended=False)[1] if isinstance(content, str) else None
            for content in contents
        ]
        if hasattr(self.key, "prepare"):
            self.key.prepare(answer for answer in answers if answer is not None)
        return [None if answer is None else self.key(answer) for answer in answers]

    def remembering(self) -> Exact:
        if self.key is None or hasattr(self.key, "prepare"):
            return self
        return Exact(cache(self.key), name=self.name)


class ExactPoll:
    """Votes counted by key."""

    def __init__(self, candidates: Hypotheses, keys: Callable[[Hypotheses], list[Hashable]]) -> None:
        self._keys = keys
        self._candidates = keys(candidates)
        self._voters: list[Hashable] = []

    def add(self, voters: Hypotheses) -> None:
        self._voters.extend(self._keys(voters))

    def tally(self, weights: Array) -> Array:
        """score(c): the mass of the voters with c's key, shape (candidates,)."""
        votes: dict[Hashable, int] = {}
        bits = unit_bits(weights.tolist())
        for key, vote in zip(self._voters, np.ldexp(weights, bits).tolist(), strict=True):
            if key is not None:
                votes[key] = votes.get(key, 0) + round(vote)
        return np.ldexp([float(votes.get(key, 0)) for key in self._candidates], -bits)

    def matrix(self) -> Array:
        return same_keys(self._voters, self._candidates)


def exact(argument: str, tokenize: Tokenise) -> Exact:
    """Same text, or same answer: exact:last_number and others; of JSON the same value."""
    if not argument:
        return Exact(get_key("json"), name="exact:json") if tokenize == "json" else Exact()
    key = get_key(argument)
    name = getattr(key, "__name__", argument)  # of a command not all may be shown
    return Exact(key, name=f"exact:{name if name.startswith('command=') else argument}")


#: Seconds that a text may take (`RANGEVOTE_COMMAND_SECONDS`), and bytes that may be printed for it.
SECONDS, MOST_BYTES = 10.0, 2**20
#: Between two looks at a program that runs.
_PAUSE = 0.02


class Command:
    """A program as a key of `exact`. What it prints is the answer; a text for which it fails, prints nothing,
    prints too much or takes too long abstains. Each text is handed over once."""

    def __init__(self, command: str) -> None:
        try:
            self.arguments = shlex.split(command)
        except ValueError as error:
            raise UsageError(f"exact:command: cannot read {command!r}: {str(error).lower()}.") from None
        if not self.arguments or shutil.which(self.arguments[0]) is None:
            named = self.arguments[0] if self.arguments else command
            raise UsageError(
                f"exact:command: there is no program {named!r}; give one with its arguments, such as "
                f"exact:command=python -I."
            )
        self.seconds = _seconds()
        # the whole command may hold what others should not see, and a signature is shown to others
        digest = hashlib.sha256("\0".join(self.arguments).encode()).hexdigest()[:8]
        self.__name__ = f"command={Path(self.arguments[0]).name}#{digest}"
        self._printed: dict[str, str | None] = {}

    def __call__(self, text: str) -> str | None:
        if text not in self._printed:
            self._printed[text] = self._run(text)
        return self._printed[text]

    def prepare(self, texts: Iterable[str]) -> None:
        """Run the program for all of them, several at a time."""
        if len(self._printed) > 2**14:
            self._printed.clear()
        for _ in map_in_order(self, dict.fromkeys(texts), os.cpu_count() or 1):
            pass

    def _run(self, text: str) -> str | None:
        # files, and no pipes, which a child that left the session could hold open forever
        with tempfile.TemporaryFile() as standard_input, tempfile.TemporaryFile() as printed:
            standard_input.write(text.encode())
            standard_input.seek(0)
            try:
                process = subprocess.Popen(  # noqa: S603 - the user's own program, and no shell
                    self.arguments,
                    stdin=standard_input,
                    stdout=printed,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
            except OSError as error:
                problem = (error.strerror or str(error)).lower()
                raise SetupError(f"exact:command: cannot run {self.arguments[0]}: {problem}.") from None
            if not self._ended_well(process, printed):
                return None
            printed.seek(0)
            return printed.read().decode(errors="replace").strip() or None

    def _ended_well(self, process: subprocess.Popen[bytes], printed: BinaryIO) -> bool:
        deadline = time.monotonic() + self.seconds
        try:
            while os.fstat(printed.fileno()).st_size <= MOST_BYTES and time.monotonic() < deadline:
                with suppress(subprocess.TimeoutExpired):
                    return process.wait(_PAUSE) == 0 and os.fstat(printed.fileno()).st_size <= MOST_BYTES
            return False
        finally:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End what is left of the program: it, and what it started in its session."""
    with suppress(OSError):  # nothing is left
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()


def _seconds() -> float:
    setting = os.environ.get("RANGEVOTE_COMMAND_SECONDS") or str(SECONDS)
    with suppress(ValueError):
        if 0 < float(setting) < 86_400:
            return float(setting)
    raise UsageError(f"RANGEVOTE_COMMAND_SECONDS is {setting!r}; it must be a number above 0.")


def _regex(pattern: str) -> Key:
    try:
        return partial(regex, re.compile(pattern))
    except (re.error, RecursionError, OverflowError) as error:
        raise UsageError(f"exact:regex: {pattern!r} is not a valid regular expression: {error}.") from None


def _line(which: str) -> Key:
    if which not in ("first", "last"):
        raise UsageError(f"exact:line is 'exact:line:last' or 'exact:line:first', got {which!r}.")
    return partial(line, -1 if which == "last" else 0)


def _math(argument: str) -> Key:
    if not (find_spec("sympy") and find_spec("lark")):  # which can read a box, too
        need("math_verify", "math", "exact:math")
    return math_answer


#: What can follow `exact:`. A key that finds nothing gives None, and the voter abstains.
KEYS: Mapping[str, Key] = {
    "boxed": boxed,
    "choice": choice,
    "last_number": last_number,
    "plain": plain,
}
#: Keys that are made of what follows their own name; and how they are written.
MADE: Mapping[str, tuple[Callable[[str], Key], str]] = {
    "after": (lambda marker: partial(after, marker), "after:the answer is"),
    "command": (Command, "command=python -I"),
    "json": (lambda path: partial(json_value, path_steps(path)), "json:price"),
    "line": (_line, "line:last"),
    "math": (_math, "math"),
    "regex": (_regex, r"regex:= (\d+)"),
}
#: Keys for which nothing need follow their name.
_ALONE = ("json", "math")
#: Keys that only who runs a server may name, never who sends it a request: a command runs code, and a regular
#: expression or mathematics may take forever on a text that was made for that.
UNSAFE = ("command", "math", "regex")
#: How every key is written.
EXAMPLES = sorted([*KEYS, *(example for _, example in MADE.values())])

_MADE = re.compile(r"(?P<name>[a-z_]+)(?P<mark>[:=]?)(?P<rest>.*)", re.DOTALL)


def get_key(named: str) -> Key:
    """The key of a name, as `last_number`, `after:the answer is`, `json:items[0].price`."""
    if named in KEYS:
        return KEYS[named]
    match = _MADE.fullmatch(named)
    if match is None or match["name"] not in MADE:
        if named in plugins("keys"):
            return load_plugin("keys", named)  # type: ignore[no-any-return]
        names = [*EXAMPLES, *plugins("keys")]
        raise UnknownName(
            f"unknown key of exact {named!r}.{nearest(named, names)} Choose from: {', '.join(names)}."
        )
    make, example = MADE[match["name"]]
    mark = "=" if match["name"] == "command" else ":"
    incomplete = match["mark"] != mark or not match["rest"]
    alone = match["name"] in _ALONE and not match["mark"]
    if (incomplete and not alone) or (match["name"] == "math" and match["rest"]):
        raise UsageError(f"cannot read exact:{named}; write it as 'exact:{example}'.")
    return make(match["rest"])
