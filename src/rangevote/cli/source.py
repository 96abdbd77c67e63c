"""Options of commands that ask a server in the place of a model in this process."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from rangevote.cli.options import Command, grouped
from rangevote.cli.searching import Loading
from rangevote.errors import DataError, UsageError, need, warn

if TYPE_CHECKING:
    from rangevote.generation.batch import Elector
    from rangevote.generation.plan import GenerationPlan


#: Bytes of a response: hundreds of samples with their log-probabilities.
LONGEST_RESPONSE = 64 * 2**20


@dataclass(frozen=True)
class Server:
    """A server that samples in the place of a model here."""

    engine: str
    base_url: str
    key: str | None
    body: Mapping[str, Any]
    concurrency: int
    timeout: float

    def elector(self, load: Loading, plan: GenerationPlan, *, skip: bool) -> Elector:
        """What answers requests by this server; nothing is sent before the first of them."""
        need("httpx", "web", "asking a server")
        from rangevote.sources.openai.client import CallLimits, Client
        from rangevote.sources.openai.generating import RequestBuilder, ServerElector

        for option, value in (("--device", load.device), ("--dtype", load.dtype)):
            if value is not None:
                raise UsageError(
                    f"{option} is for models in this process, but --source {self.engine} is not."
                )
        builder = RequestBuilder.of(self.engine, load.model, plan, chat=not load.no_chat, extra=self.body)
        limits = CallLimits(read=self.timeout, total=self.timeout, response_bytes=LONGEST_RESPONSE)
        client = Client(self.base_url, key=self.key, limits=limits, concurrency=self.concurrency)
        if self.key is not None and exposed(client.base_url):
            warn(f"the API key goes to {client.base_url} unencrypted; if you can, use https.")
        return ServerElector(client, builder, plan, ahead=2 * self.concurrency, skip=skip)


def server_options(command: Command) -> Command:
    """Which server, if one is to be asked; the command gets `server`, a `Server` or None."""
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
    concurrency: int,
    timeout: float,
) -> Server | None:
    given = {"--base-url": base_url, "--key-env": key_env, "--key-file": key_file, "--body": body}
    if engine is None:
        for option, value in given.items():
            if value is not None:
                raise UsageError(
                    f"{option} is for servers; say which kind with --source, as --source openai."
                )
        return None
    if base_url is None:
        raise UsageError(f"--source {engine} needs --base-url, as --base-url http://127.0.0.1:8000/v1.")
    return Server(engine, base_url, _key(key_env, key_file), _body(body), concurrency, timeout)


def _key(variable: str | None, file: str | None) -> str | None:
    """The API key; servers of one's own mostly want none."""
    from rangevote.cli.secrets import from_environment, read_secret

    if variable is not None and file is not None:
        raise UsageError("--key-env and --key-file are both given; a server has one key.")
    if file is not None:
        return read_secret(file).strip()
    if variable is not None:
        return from_environment(variable).strip()
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
