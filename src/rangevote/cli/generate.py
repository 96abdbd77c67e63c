"""`rangevote generate`: inputs and a model in, elected outputs out."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from rangevote.cli.options import (
    COMMANDLINE,
    Command,
    election_options,
    grouped,
    read_secret,
    secret_from_environment,
)
from rangevote.cli.output import ResultsAndBallots, open_outputs
from rangevote.cli.progress import Bar, Notes, check_input
from rangevote.cli.resume import keeping_results, skip_done
from rangevote.errors import DataError, UsageError, need, warn

if TYPE_CHECKING:
    from rangevote.decoding.base import Search
    from rangevote.election.settings import Settings
    from rangevote.formats import Entry
    from rangevote.formats.results import ResultLine, ResultShape
    from rangevote.generation.batch import Elected, Elector, Request
    from rangevote.generation.plan import GenerationPlan
    from rangevote.models.protocol import LanguageModel

    #: An input, and its election or why there is none.
    Answer = tuple[Entry, Elected | DataError]

#: Options that change how a run goes but not what it writes; a resumed run may have others.
FREE = frozenset(
    {"source", "output", "ballots", "max_rows", "on_error", "resume", "force", "quiet"}
    | {"base_url", "key_env", "key_file", "concurrency", "timeout"}
)
#: Bytes of a response: hundreds of samples with their log-probabilities.
LONGEST_RESPONSE = 64 * 2**20


@dataclass(frozen=True)
class ModelOptions:
    """A model to load in this process, or its name at a server."""

    model: str
    device: str | None
    dtype: str | None
    no_chat: bool

    def load(self) -> LanguageModel[Any]:
        from rangevote.models.load import load

        return load(self.model, device=self.device, dtype=self.dtype, chat=not self.no_chat)


def model_options(command: Command) -> Command:
    """Which model; the command gets `chosen`, a `ModelOptions`."""
    options = {
        "model": click.option(
            "-m",
            "--model",
            required=True,
            metavar="NAME",
            help="A Hugging Face name, a folder, a GGUF or ARPA file, smollm2, or its name at the server.",
        ),
        "device": click.option("--device", metavar="NAME", help="As cuda or cpu."),
        "dtype": click.option(
            "--dtype", metavar="NAME", help="As float32 or bfloat16; else that of the weights."
        ),
        "no_chat": click.option(
            "--no-chat", is_flag=True, help="Give inputs as they are to a model with a chat template."
        ),
    }
    return grouped(command, "chosen", options, ModelOptions)


def search_options(command: Command) -> Command:
    """How to search; the command gets `plan_for`, which makes a `GenerationPlan` of election settings."""
    options = {
        "candidates": click.option(
            "--candidates",
            default="beam:10",
            show_default=True,
            metavar="SEARCH",
            help="Who can be elected; of servers sample:10.",
        ),
        "voters": click.option(
            "--voters", metavar="SEARCH", help="Who votes, as sample:100; else the candidates."
        ),
        "adaptive": click.option(
            "--adaptive",
            is_flag=False,
            flag_value=0.99,
            type=float,
            metavar="[CONFIDENCE]",
            help="Draw voters only until the winner is certain; 0.99 if no number follows.",
        ),
        "max_new_tokens": click.option(
            "--max-new-tokens", type=int, metavar="N", help="Longest output, in both searches."
        ),
        "seed": click.option("--seed", type=int, metavar="N", help="For searches by chance."),
        "copy_filter": click.option(
            "--copy-filter",
            type=float,
            metavar="SHARE",
            help="Prune outputs that copy this share of the input.",
        ),
        "states": click.option("--states", is_flag=True, help="Keep hidden states in the ballots."),
        "max_rows": click.option(
            "--max-rows", type=int, default=256, show_default=True, help="Outputs extended at a time."
        ),
    }

    def build(
        candidates: str,
        voters: str | None,
        adaptive: float | None,
        states: bool,
        max_rows: int,
        **common: Any,
    ) -> Callable[[Settings], GenerationPlan]:
        from rangevote.generation.plan import GenerationPlan

        context = click.get_current_context()
        default = context.get_parameter_source("candidates") is not COMMANDLINE
        if default and context.params.get("engine") is not None:
            candidates = "sample:10"  # most servers have no beams
        return partial(
            GenerationPlan.of,
            candidates=search_of(candidates, common),
            voters=None if voters is None else search_of(voters, common),
            adaptive=adaptive,
            states=states or None,
            max_rows=max_rows,
        )

    return grouped(command, "plan_for", options, build)


def search_of(spec: str, common: Mapping[str, Any]) -> Search:
    """The search that a spec names, with the common options that it has and does not itself set.

    >>> str(search_of("sample:5,seed=3", {"seed": 1, "max_new_tokens": 9}))
    'sample:5,max_new_tokens=9,seed=3'
    """
    from rangevote.decoding import get_search

    search = get_search(spec)
    own = {option.partition("=")[0].strip() for option in spec.split(",")[1:]}
    known = {field.name for field in fields(search)} - own
    return replace(search, **{k: v for k, v in common.items() if k in known and v is not None})


def server_options(command: Command) -> Command:
    """Which server, if one is to be asked; the command gets `server`, which makes an `Elector`, or None."""
    options = {
        "engine": click.option(
            "--source",
            "engine",
            type=click.Choice(["openai", "vllm", "llama_cpp"]),
            help="Ask an OpenAI-compatible server, or one of these that can do more.",
        ),
        "base_url": click.option(
            "--base-url", metavar="URL", help="Where the server is, as http://127.0.0.1:8000/v1."
        ),
        "key_env": click.option(
            "--key-env", metavar="NAME", help="Variable with its API key; else OPENAI_API_KEY, if set."
        ),
        "key_file": click.option("--key-file", metavar="FILE", help="File with its API key."),
        "body": click.option(
            "--body", metavar="JSON", help='Further fields of requests; null drops one, as {"seed": null}.'
        ),
        "concurrency": click.option(
            "--concurrency", type=click.IntRange(1), default=16, show_default=True, help="Calls at a time."
        ),
        "timeout": click.option(
            "--timeout",
            type=click.FloatRange(0, min_open=True),
            default=600.0,
            show_default=True,
            help="Seconds for a call.",
        ),
    }
    return grouped(command, "server", options, _server)


def _server(
    engine: str | None,
    base_url: str | None,
    key_env: str | None,
    key_file: str | None,
    body: str | None,
    **calls: Any,
) -> Callable[..., Elector] | None:
    given = {"--base-url": base_url, "--key-env": key_env, "--key-file": key_file, "--body": body}
    if engine is None:
        for name, value in given.items():
            if value is not None:
                raise UsageError(f"{name} is for servers; say which kind with --source, as --source openai.")
        return None
    if base_url is None:
        raise UsageError(f"--source {engine} needs --base-url, as --base-url http://127.0.0.1:8000/v1.")
    key = _key(key_env, key_file)
    return partial(server_elector, engine, base_url, key, extra=_body(body), **calls)


def server_elector(
    engine: str,
    base_url: str,
    key: str | None,
    chosen: ModelOptions,
    plan: GenerationPlan,
    *,
    extra: Mapping[str, Any],
    concurrency: int,
    timeout: float,
    skip: bool,
) -> Elector:
    """Elects by this server; nothing is sent before the first request."""
    need("httpx", "web", "asking a server")
    from rangevote.sources.openai.client import CallLimits, Client
    from rangevote.sources.openai.generating import RequestBuilder, ServerElector

    for name, value in (("--device", chosen.device), ("--dtype", chosen.dtype)):
        if value is not None:
            raise UsageError(f"{name} is for models in this process, but --source {engine} is not.")
    builder = RequestBuilder.of(engine, chosen.model, plan, chat=not chosen.no_chat, extra=extra)
    limits = CallLimits(read=timeout, total=timeout, response_bytes=LONGEST_RESPONSE)
    client = Client(base_url, key=key, limits=limits, concurrency=concurrency)
    if key is not None and exposed(client.base_url):
        warn(f"the API key goes to {client.base_url} unencrypted; if you can, use https.")
    return ServerElector(client, builder, plan, ahead=2 * concurrency, skip=skip)


def _key(variable: str | None, file: str | None) -> str | None:
    """The API key; servers of one's own mostly want none."""
    if variable is not None and file is not None:
        raise UsageError("--key-env and --key-file are both given; a server has one key.")
    if file is not None:
        return read_secret(file).strip()
    if variable is not None:
        return secret_from_environment(variable).strip()
    return os.environ.get("OPENAI_API_KEY", "").strip() or None


def exposed(url: str) -> bool:
    """Whether others can read what goes there.

    >>> exposed("http://example.org/v1"), exposed("https://example.org/v1"), exposed("http://[::1]:80/v1")
    (True, False, False)
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    return parts.scheme == "http" and host not in ("localhost", "::1") and not host.startswith("127.")


def _body(text: str | None) -> dict[str, Any]:
    from rangevote.formats.jsonl import parse

    if text is None:
        return {}
    try:
        fields = parse(text.encode())
    except DataError as error:
        raise UsageError(f"--body is {error.problem}.") from None
    if not isinstance(fields, dict):
        raise UsageError(f'--body must be a JSON object, as {{"stop": ["\\n"]}}, got {text!r}.')
    return fields


@click.command()
@model_options
@click.option(
    "-i",
    "--input",
    "source",
    default="-",
    metavar="FILE",
    help="Lines of text, JSON lines, or images: a folder or a list.",
)
@search_options
@server_options
@election_options
@click.option("-o", "--output", metavar="FILE", help="Where to write; standard output if not given.")
@click.option("--ballots", metavar="FILE", help="Keep candidates and voters, for rangevote vote.")
@click.option("--scores", is_flag=True, help="Write the scores of all candidates.")
@click.option("--explain", is_flag=True, help="Write which n-grams and voters earned the winner its score.")
@click.option("--text", is_flag=True, help="Write the winning text alone, one a line.")
@click.option("--input-format", type=click.Choice(["text", "jsonl"]), help="By default, by the file's name.")
@click.option("--field", metavar="NAME", help="Where JSON lines have the text, messages, ids or image.")
@click.option(
    "--on-error",
    type=click.Choice(["stop", "skip"]),
    default="stop",
    show_default=True,
    help="At a bad input.",
)
@click.option("--resume", is_flag=True, help="Go on with unfinished output files.")
@click.option("--force", is_flag=True, help="Replace the output files, or start again.")
@click.option("-q", "--quiet", is_flag=True, help="No notes, warnings or progress bar.")
def generate(
    chosen: ModelOptions,
    source: str,
    plan_for: Callable[[Settings], GenerationPlan],
    server: Callable[..., Elector] | None,
    settings: Settings,
    output: str | None,
    ballots: str | None,
    scores: bool,
    explain: bool,
    text: bool,
    input_format: str | None,
    field: str | None,
    on_error: str,
    resume: bool,
    force: bool,
    quiet: bool,
) -> int:
    """Search a model's outputs for every input, and elect one of them.

    A SEARCH is a name, a number and options, as in beam:10, diverse_beam:12,groups=4, stochastic_beam:20,
    sample:100,temperature=0.7, top_k:100,top=20 or nucleus:100,p=0.9. Results are written in the order of
    the inputs, with the fields that rangevote vote writes. With --source a server samples instead of a
    model in this process; its API key is read from the environment or a file.
    """
    from rangevote.formats.inputs import read_inputs
    from rangevote.formats.results import ResultShape
    from rangevote.generation.batch import elect_batches

    check_input(source, "inputs")
    notes, given = Notes(quiet=quiet), click.get_current_context().params
    remembered = {name: value for name, value in given.items() if name not in FREE}
    remembered["ballots"] = ballots is not None
    plan, skip, images = plan_for(settings), on_error == "skip", False
    with ExitStack() as files:
        sink = files.enter_context(
            open_outputs(output, ballots, source, remembered, resume=resume, force=force)
        )
        elector: Elector
        if server is None:
            model = chosen.load()
            elector, images = partial(elect_batches, model, plan=plan), getattr(model, "reads_images", False)
        else:
            elector = server(chosen, plan, skip=skip)
        entries = files.enter_context(read_inputs(source, format=input_format, field=field, images=images))
        run = GenerateRun(elector, sink, ResultShape(text, scores, explain), notes, skip)
        return run.write_all(entries, Reached(sink.done, entries.total), quiet=quiet)


@dataclass
class Reached:
    """How many of the inputs are answered, for the progress bar."""

    position: int
    size: int | None


@dataclass(frozen=True)
class GenerateRun:
    """One pass over the inputs: what elects for them, where lines go, and what happens at a bad one."""

    elector: Elector
    sink: ResultsAndBallots
    shape: ResultShape
    notes: Notes
    skip: bool

    def write_all(self, entries: Iterator[Entry], reached: Reached, *, quiet: bool) -> int:
        """Write a line for every input; returns the exit code."""
        sink, skipped = self.sink, 0
        bar = Bar(reached, "generating", quiet=quiet, unit="inputs")
        with keeping_results(sink, bar):
            text = self.shape.text and sink.leading is sink.results
            rest = skip_done(entries, sink.leading, text=text)
            bar.show()
            with closing(answers(self.elector, enumerate(rest, sink.done))) as batches:
                for batch in batches:
                    for entry, answer in batch:
                        line, ballot = self._line(entry, answer)
                        if line.error is not None:
                            if not self.skip:
                                raise line.error
                            self.notes.warn(f"skipped: {line.error}")
                            skipped += 1
                        sink.write(line.content, ballot)
                        reached.position += 1
                        bar.advance()
                    sink.flush()
            sink.finish()
        if not sink.done + bar.items:
            self.notes.tell("there are no inputs.")
        if skipped:
            click.echo(f"rangevote: {skipped} of {bar.items} inputs were skipped.", err=True)
        return 4 if skipped else 0

    def _line(self, entry: Entry, answer: Elected | DataError) -> tuple[ResultLine, bytes]:
        """The result and the ballot; a bad input has a line too, and a ballot without candidates."""
        from rangevote.formats.results import error_line, result_line
        from rangevote.formats.write import write_ballot
        from rangevote.hypothesis import Ballot

        if isinstance(answer, DataError):
            ballot, line = entry.ballot or Ballot(()), error_line(entry, answer, self.shape)
        else:
            ballot = answer.ballot
            line = result_line(ballot, answer.result, self.shape, answer.reasoning)
        return line, b"" if self.sink.ballots is None else write_ballot(ballot)


def answers(
    elector: Elector, entries: Iterable[tuple[int, Entry]]
) -> Generator[Iterable[Answer], None, None]:
    """The election of each numbered input, or why there is none, in order and in lists that come together."""
    waiting: deque[Entry] = deque()  # read, and still without an answer
    with closing(elector(_requests(entries, waiting))) as batches:
        for batch in batches:
            yield _matched(batch, waiting)
    yield _matched((), waiting)


def _requests(entries: Iterable[tuple[int, Entry]], waiting: deque[Entry]) -> Iterator[Request]:
    """What is to be elected; bad inputs only wait for their turn."""
    from rangevote.formats.inputs import ModelInput
    from rangevote.generation.batch import Request

    for number, entry in entries:
        waiting.append(entry)
        if isinstance(entry, ModelInput):
            yield Request(number, entry.content, entry.get())


def _matched(batch: Iterable[Elected | DataError], waiting: deque[Entry]) -> Iterator[Answer]:
    """Each answer with its input, and the bad inputs before it and right behind."""
    for answer in chain([None], batch):
        if answer is not None:
            entry = waiting.popleft()
            yield entry, _at(entry.where, answer) if isinstance(answer, DataError) else answer
        while waiting and (error := waiting[0].error) is not None:
            yield waiting.popleft(), error


def _at(where: str, error: DataError) -> DataError:
    """The error with the line of the input in its file, instead of its number in the run."""
    field = "" if error.field.startswith("inputs[") else error.field
    return DataError(error.problem, field=field, where=where)
