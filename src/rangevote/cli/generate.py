"""`rangevote generate`: inputs and a model in, elected outputs out."""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Generator, Iterable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from rangevote.cli.options import (
    MODEL_SECTIONS,
    HelpCommand,
    check_one_winner,
    declared,
    election_options,
    grouped,
    option,
    options_of,
    read_key,
    result_options,
)
from rangevote.cli.output import ResultsAndBallots, keeping_results, open_outputs, skip_done
from rangevote.cli.progress import Bar, Notes, RunCounts, check_input, loading
from rangevote.errors import DataError, SetupError, UsageError, need, warn

if TYPE_CHECKING:
    from rangevote.election.settings import Settings
    from rangevote.formats import Entry
    from rangevote.formats.result_writer import ResultLine, ResultShape
    from rangevote.generation.generate import Elected, Elector, Request
    from rangevote.generation.plan import GenerationPlan
    from rangevote.hypothesis import Ballot
    from rangevote.models.protocol import Engine, LanguageModel

    #: An input, and its election or why there is none.
    Answer = tuple[Entry, Elected | DataError]

#: Options that change how a run goes but not what it writes; a resumed run may have others.
OPTIONS_FREE_TO_CHANGE_ON_RESUME = frozenset(
    {"source", "output", "ballots", "max_rows", "on_error", "resume", "force", "quiet"}
    | {"base_url", "key_env", "key_file", "concurrency", "timeout"}
)
#: Bytes of a response: hundreds of samples with their log-probabilities.
LONGEST_RESPONSE = 64 * 2**20


def _json_object(context: click.Context, option: click.Parameter, text: str | None) -> dict[str, Any] | None:
    from rangevote.formats.jsonl import parse

    if text is None:
        return None
    try:
        fields = parse(text.encode())
    except DataError as error:
        raise UsageError(f"{option.opts[0]} is {error.problem}.") from None
    if not isinstance(fields, dict):
        raise UsageError(
            f'{option.opts[0]} must be a JSON object, such as {{"stop": ["\\n"]}}, got {text!r}.'
        )
    return fields


@dataclass(frozen=True)
class GenerateOptions:
    """Which model or server, and how to search."""

    models: tuple[str, ...] = declared(
        "-m --model NAME",
        "Hugging Face name, folder, GGUF or ARPA file, smollm2, or a name that the server knows. Several "
        "models are a panel: the outputs of all of them stand and vote, with equal --shares or those given.",
        multiple=True,
        required=True,
    )
    voter_models: tuple[str, ...] = declared(
        "--voter-model NAME",
        "Another model to draw --voters from; its outputs vote and cannot be elected. Several are a panel.",
        multiple=True,
    )
    device: str | None = declared("--device NAME", "Device, such as cuda or cpu.")
    dtype: str | None = declared(
        "--dtype NAME", "Number type, such as float32 or bfloat16. Default: that of the weights."
    )
    no_chat: bool = declared("--no-chat", "Do not use the model's chat template.")
    candidates: str | None = declared(
        "--candidates N|SEARCH",
        "Which outputs can be elected: N samples, or those of a search. Default: beam:10, or sample:10 of a "
        "server.",
    )
    voters: str | None = declared(
        "--voters SEARCH", "Which outputs vote, for example sample:100. Default: the candidates."
    )
    adaptive: float | None = declared(
        "--adaptive [CONFIDENCE]",
        "Draw voters only until the winner is certain; 0.99 if no number follows.",
        is_flag=False,
        flag_value=0.99,
        type=float,
    )
    within: float = declared(
        "--within E",
        "With --adaptive: also stop when the winner is certainly at most E below the best, such as 0.02.",
        type=float,
        default=0.0,
        show_default=False,
    )
    escalate: str | None = declared(
        "--escalate WHEN",
        "Ask several models in order, the next only if the election so far has share<1, score<0.8 or "
        "margin<0.2 (any numbers), or with --adaptive is undecided.",
    )
    sampling_temperature: float | None = declared(
        "--temperature T", "Temperature of sampling; --vote-temperature sets that of the votes.", type=float
    )
    max_new_tokens: int | None = declared(
        "--max-new-tokens N", "Maximum length of outputs, for candidates and voters.", type=int
    )
    seed: int | None = declared("--seed N", "Seed of random searches.", type=int)
    copy_filter: float | None = declared(
        "--copy-filter SHARE", "Remove outputs that copy this share of the input's words.", type=float
    )
    states: bool = declared("--states", "Keep hidden states in the ballots.")
    max_rows: int = declared(
        "--max-rows N", "Maximum number of outputs extended at once.", type=int, default=256
    )
    engine: str | None = declared(
        "--engine",
        "Sample from a server: openai for any compatible one; vllm and llama_cpp have more searches.",
        type=click.Choice(["openai", "vllm", "llama_cpp"]),
    )
    base_url: str | None = declared(
        "--base-url URL", "Address of the server, for example http://127.0.0.1:8000/v1."
    )
    key_env: str | None = declared(
        "--key-env NAME", "Environment variable with its API key. Default: OPENAI_API_KEY, if set."
    )
    key_file: str | None = declared("--key-file FILE", "File (mode 0600) with its API key.")
    body: dict[str, Any] | None = declared(  # noqa: RUF009
        "--body JSON",
        'More fields for requests; null removes one, for example {"seed": null}.',
        callback=_json_object,
    )
    concurrency: int = declared(
        "--concurrency N", "Maximum number of concurrent calls.", type=click.IntRange(1), default=16
    )
    timeout: float = declared(
        "--timeout SECONDS", "Timeout of a call.", type=click.FloatRange(0, min_open=True), default=600.0
    )

    def plan(self, settings: Settings) -> GenerationPlan:
        """The searches for candidates and voters, with the options they have in common, and the election."""
        from rangevote.decoding import get_search, open_options
        from rangevote.generation.plan import GenerationPlan, usual_voters

        # most servers have no beams
        candidates = self.candidates or ("beam:10" if self.engine is None else "sample:10")
        candidates = f"sample:{candidates}" if candidates.isdecimal() else candidates
        voters = usual_voters(settings) if self.voters is None else self.voters
        searches = [candidates] if voters is None else [candidates, voters]
        values = {
            "temperature": self.sampling_temperature,
            "max_new_tokens": self.max_new_tokens,
            "seed": self.seed,
            "copy_filter": self.copy_filter,
        }
        common = {name: value for name, value in values.items() if value is not None}
        for name in common:
            if not any(name in open_options(spec) for spec in searches):
                warn(
                    f"--{name.replace('_', '-')} has no effect: it applies to searches that have this option "
                    f"and do not set it themselves, not to {' and '.join(searches)}."
                )
        plan = GenerationPlan.of(
            settings,
            *(get_search(spec, **common) for spec in searches),
            adaptive=self.adaptive,
            within=self.within,
            states=self.states or None,
            max_rows=self.max_rows,
            escalate=self.escalate,
        )
        for flag, names in (("--model", self.models), ("--voter-model", self.voter_models)):
            if twice := [name for name in names if names.count(name) > 1]:
                raise UsageError(f"{flag} {twice[0]} is given twice; for more outputs, use a larger search.")
        return plan.by(self.models, self.voter_models)

    def load(self, name: str) -> LanguageModel[Any] | Engine:
        from rangevote.models.load import load

        return load(name, device=self.device, dtype=self.dtype, chat=not self.no_chat)

    def server(self, plan: GenerationPlan, *, skip: bool) -> Elector | None:
        """What elects with the server; None without one. Nothing is sent before the first request."""
        engine = self.engine
        for name in ("base_url", "key_env", "key_file", "body") if engine is None else ("device", "dtype"):
            if getattr(self, name) is not None:
                where = "servers; give --engine too, for example --engine openai"
                where = where if engine is None else f"models in this process, not for --engine {engine}"
                raise UsageError(f"--{name.replace('_', '-')} is for {where}.")
        if engine is None:
            return None
        if self.base_url is None:
            raise UsageError(
                f"--engine {engine} needs --base-url, for example --base-url http://127.0.0.1:8000/v1."
            )
        key = read_key(self.key_env, self.key_file, "--key")
        if self.key_env is None and self.key_file is None:  # most local servers need none
            key = os.environ.get("OPENAI_API_KEY", "").strip() or None
        need("httpx", "web", "asking a server")
        from rangevote.engines.openai.client import CallLimits, Client
        from rangevote.engines.openai.generating import RequestBuilder, ServerElector

        builder = RequestBuilder.of(
            engine,
            self.models,
            plan,
            chat=not self.no_chat,
            extra=self.body or {},
            voter_models=self.voter_models,
        )
        limits = CallLimits(read=self.timeout, total=self.timeout, response_bytes=LONGEST_RESPONSE)
        client = Client(self.base_url, key=key, limits=limits, concurrency=self.concurrency)
        if key is not None and exposed(client.base_url):
            warn(f"the API key is sent to {client.base_url} unencrypted; use https if possible.")
        return ServerElector(client, builder, plan, skip=skip)


def exposed(url: str) -> bool:
    """Whether others could read what is sent to this address.

    >>> exposed("http://example.org/v1"), exposed("https://example.org/v1"), exposed("http://[::1]:80/v1")
    (True, False, False)
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    return parts.scheme == "http" and host not in ("localhost", "::1") and not host.startswith("127.")


@click.command(
    cls=HelpCommand,
    sections=MODEL_SECTIONS,
    example="rangevote generate -m smollm2 -i prompts.txt --candidates sample:20 -o answers.jsonl",
)
@partial(grouped, name="options", options=options_of(GenerateOptions), build=GenerateOptions)
@option(
    "-i --input FILE",
    "Inputs: lines of text, JSON lines, or images (a folder, or a list of paths). Default: standard input.",
    name="source",
    default="-",
    show_default=False,
)
@partial(election_options, sampling=True)
@option("-o --output FILE", "Output file. Default: standard output.")
@option("--ballots FILE", "Also write candidates and voters to FILE, for rangevote vote.")
@result_options
@option(
    "--format",
    "Format of the input. Default: by the file's name.",
    type=click.Choice(["text", "jsonl"]),
)
@option("--field NAME", "Field with the text, messages, token ids or image. Default: detected.")
@option(
    "--on-error",
    "What to do with a bad input: stop, or skip it.",
    type=click.Choice(["stop", "skip"]),
    default="stop",
)
@option("--resume", "Continue unfinished output files.")
@option("--force", "Overwrite existing output files.")
@option("-q --quiet", "No notes, warnings or progress bar.")
def generate(
    options: GenerateOptions,
    source: str,
    settings: Settings,
    output: str | None,
    ballots: str | None,
    shape: ResultShape,
    format: str | None,
    field: str | None,
    on_error: str,
    resume: bool,
    force: bool,
    quiet: bool,
) -> int:
    """Generate outputs of a model for every input, and elect one of them.

    A SEARCH is a name, a number and options, such as beam:10, diverse_beam:12,groups=4, stochastic_beam:20,
    sample:100,temperature=0.7, top_k:100,top=20 or nucleus:100,p=0.9, or a sum such as sample:50+nucleus:50.
    Results are written in the order of the inputs, with the fields that `rangevote vote` writes. With
    --engine a server samples instead of a model in this process; its API key is in the environment or a file.
    """
    from rangevote.formats.prompts import read_inputs
    from rangevote.generation.generate import elect_requests

    check_input(source, "inputs")
    if source != "-" and not os.path.exists(source):  # before a model is loaded
        raise SetupError(f"cannot read {source}: no such file or directory.")
    check_one_winner(shape.text, settings.winners)
    notes, params = Notes(quiet=quiet), click.get_current_context().params
    remembered = {
        name: value for name, value in params.items() if name not in OPTIONS_FREE_TO_CHANGE_ON_RESUME
    }
    remembered["ballots"] = ballots is not None
    plan, skip, images = options.plan(settings), on_error == "skip", False
    elector = options.server(plan, skip=skip)
    with ExitStack() as files:
        sink = files.enter_context(
            open_outputs(output, ballots, source, remembered, resume=resume, force=force)
        )
        if elector is None:
            with loading(", ".join(options.models), quiet=quiet):
                models = {name: options.load(name) for name in options.models}
                plan = replace(plan, voter_models={name: options.load(name) for name in options.voter_models})
            elector = partial(elect_requests, models, plan=plan)
            images = any(getattr(model, "reads_images", False) for model in models.values())
        entries = files.enter_context(
            read_inputs(source, format=format, field=field, images=images, carry=shape.carry)
        )
        bar = Bar(None, "generating", quiet=quiet, unit="inputs", total=entries.total, done=sink.done)
        counts, model_counts = _write_all(elector, entries, sink, shape, bar, notes, skip=skip)
    counts.tell(notes, bar.items)
    if model_counts:
        each = ", ".join(f"{name} for {model_counts[name]:,}" for name in options.models)
        notes.tell(f"of {bar.items:,} inputs, models were asked: {each}.")
    counts.tell_members(notes, plan.settings)
    if counts.skipped:
        click.echo(f"rangevote: {counts.skipped} of {bar.items} inputs were skipped.", err=True)
    return 4 if counts.skipped else 0


def _write_all(
    elector: Elector,
    entries: Iterator[Entry],
    sink: ResultsAndBallots,
    shape: ResultShape,
    bar: Bar,
    notes: Notes,
    *,
    skip: bool,
) -> tuple[RunCounts, Counter[str]]:
    """Write a line for every input; returns counts, also of the inputs that each model was asked in turn."""
    counts, model_counts = RunCounts(), Counter[str]()
    with keeping_results(sink, bar):
        rest = skip_done(entries, sink.leading, text=shape.text and sink.leading is sink.results)
        bar.show()
        with closing(answers(elector, enumerate(rest, sink.done))) as answered:
            for entry, answer in answered:
                line, ballot = _line(entry, answer, shape)
                model_counts.update(() if isinstance(answer, DataError) else answer.asked)
                if line.error is not None:
                    if not skip:
                        raise line.error
                    notes.warn(f"skipped: {line.error}")
                    counts.skipped += 1
                counts.add(line.facts)
                sink.write(line.content, ballot)
                sink.flush()
                bar.advance()
        sink.finish()
    if not sink.done + bar.items:
        notes.tell("there are no inputs.")
    return counts, model_counts


def _line(entry: Entry, answer: Elected | DataError, shape: ResultShape) -> tuple[ResultLine, Ballot]:
    """The line and ballot of a result; a bad input has a line too, and a ballot without candidates."""
    from rangevote.formats.result_writer import error_line, result_line
    from rangevote.hypothesis import Ballot

    if isinstance(answer, DataError):
        return error_line(entry, answer, shape), entry.ballot or Ballot(())
    more = {"reasoning": answer.reasoning, "asked": answer.asked}
    extra = {name: value for name, value in more.items() if value}
    return result_line(answer.ballot, answer.result, shape, extra), answer.ballot


def answers(elector: Elector, entries: Iterable[tuple[int, Entry]]) -> Generator[Answer, None, None]:
    """The election of each numbered input, or its error, in order."""
    from rangevote.formats.prompts import ModelInput
    from rangevote.generation.generate import Request

    waiting: deque[Entry] = deque()  # read, but not yet answered

    def requests() -> Iterator[Request]:
        for number, entry in entries:
            waiting.append(entry)
            if isinstance(entry, ModelInput):  # a bad input only keeps its place
                yield Request(number, entry.content, entry.get())

    def bad_inputs() -> Iterator[Answer]:
        while waiting and (error := waiting[0].error) is not None:
            yield waiting.popleft(), error

    with closing(elector(requests())) as answered:
        for answer in answered:
            yield from bad_inputs()
            entry = waiting.popleft()
            if isinstance(answer, DataError):  # named by its line in the file, not by its number in the run
                field = "" if answer.field.startswith("inputs[") else answer.field
                answer = DataError(answer.problem, field=field, where=entry.where)
            yield entry, answer
    yield from bad_inputs()
