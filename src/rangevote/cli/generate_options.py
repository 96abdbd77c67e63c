"""The options of `rangevote generate`: which model or server, and how to search."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from rangevote.cli.options import COMMANDLINE, Command, grouped, read_secret, secret_from_environment
from rangevote.errors import DataError, UsageError, need, warn

if TYPE_CHECKING:
    from rangevote.election.settings import Settings
    from rangevote.generation.generate import Elector
    from rangevote.generation.plan import GenerationPlan
    from rangevote.models.protocol import Engine, LanguageModel

#: Bytes of a response: hundreds of samples with their log-probabilities.
LONGEST_RESPONSE = 64 * 2**20


@dataclass(frozen=True)
class ModelOptions:
    """A model to load in this process, or its name at a server."""

    model: str
    device: str | None
    dtype: str | None
    no_chat: bool
    voter_models: tuple[str, ...] = ()

    def load(self, name: str | None = None) -> LanguageModel[Any] | Engine:
        from rangevote.models.load import load

        return load(name or self.model, device=self.device, dtype=self.dtype, chat=not self.no_chat)


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
        "voter_models": click.option(
            "--voter-model",
            "voter_models",
            multiple=True,
            metavar="NAME",
            help="Another model for --voters; several are a panel, with equal --shares or those given.",
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
            "--voters",
            metavar="SEARCH",
            help="Who votes, as sample:100; else the candidates.",
        ),
        "adaptive": click.option(
            "--adaptive",
            is_flag=False,
            flag_value=0.99,
            type=float,
            metavar="[CONFIDENCE]",
            help="Draw voters only until the winner is certain; 0.99 if no number follows.",
        ),
        "within": click.option(
            "--within",
            type=float,
            default=0.0,
            metavar="E",
            help="With --adaptive: or certainly at most E below the best, as 0.02.",
        ),
        "sampling_temperature": click.option(
            "--temperature",
            "sampling_temperature",
            type=float,
            metavar="T",
            help="Sample from P^(1/T) of each token; for the votes' own see --vote-temperature.",
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
        within: float,
        states: bool,
        max_rows: int,
        sampling_temperature: float | None,
        **others: Any,
    ) -> Callable[[Settings], GenerationPlan]:
        context = click.get_current_context()
        default = context.get_parameter_source("candidates") is not COMMANDLINE
        if default and context.params.get("engine") is not None:
            candidates = "sample:10"  # most servers have no beams
        searches = [candidates] if voters is None else [candidates, voters]
        common = {"temperature": sampling_temperature, **others}
        given = {name: value for name, value in common.items() if value is not None}
        return partial(
            plan_of,
            searches,
            given,
            adaptive=adaptive,
            within=within,
            states=states or None,
            max_rows=max_rows,
        )

    return grouped(command, "plan_for", options, build)


def plan_of(
    searches: Sequence[str], common: Mapping[str, Any], settings: Settings, **options: Any
) -> GenerationPlan:
    """The searches for candidates and voters, with the options they have in common, and the election."""
    from rangevote.decoding import get_search, open_options
    from rangevote.generation.plan import GenerationPlan, usual_voters

    if len(searches) == 1 and (voters := usual_voters(settings)) is not None:
        searches = [*searches, voters]
    made = [get_search(spec, **common) for spec in searches]
    for name in common:
        if not any(name in open_options(spec) for spec in searches):
            warn(
                f"--{name.replace('_', '-')} has no effect: it is for searches that have this option and do "
                f"not set it themselves, not for {' and '.join(searches)}."
            )
    return GenerationPlan.of(settings, *made, **options)


def server_options(command: Command) -> Command:
    """Which server, if one is to be asked; the command gets `server`, which makes an `Elector`, or None."""
    options = {
        "engine": click.option(
            "--engine",
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
                raise UsageError(f"{name} is for servers; say which kind with --engine, as --engine openai.")
        return None
    if base_url is None:
        raise UsageError(f"--engine {engine} needs --base-url, as --base-url http://127.0.0.1:8000/v1.")
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
    from rangevote.engines.openai.client import CallLimits, Client
    from rangevote.engines.openai.generating import RequestBuilder, ServerElector

    for name, value in (("--device", chosen.device), ("--dtype", chosen.dtype)):
        if value is not None:
            raise UsageError(f"{name} is for models in this process, but --engine {engine} is not.")
    if len(chosen.voter_models) > 1:
        raise UsageError(f"--engine {engine} takes one --voter-model; for a panel of servers use serve.")
    voter_model = chosen.voter_models[0] if chosen.voter_models else None
    builder = RequestBuilder.of(
        engine, chosen.model, plan, chat=not chosen.no_chat, extra=extra, voter_model=voter_model
    )
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
