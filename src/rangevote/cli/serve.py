"""`rangevote serve`: an OpenAI-compatible server that answers with the elected sample."""

from __future__ import annotations

import logging
import secrets
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from rangevote.cli.options import (
    MODEL_SECTIONS,
    HelpCommand,
    client_options,
    option,
    read_key,
    read_secret,
    secret_from_environment,
)
from rangevote.election.settings import CLIENT_OPTIONS
from rangevote.errors import RangevoteWarning, SetupError, UsageError, need

if TYPE_CHECKING:
    from rangevote.service.config import ServiceConfig
    from rangevote.service.middleware import Keys

PORT = 8720


@click.command(
    cls=HelpCommand,
    sections=MODEL_SECTIONS,
    example="rangevote serve --upstream http://127.0.0.1:8000/v1 --samples 16 --adaptive",
)
@option(
    "--upstream [NAME=]URL",
    "Server to sample from, for example http://127.0.0.1:8000/v1; several named servers are a panel.",
    name="upstreams",
    multiple=True,
)
@option("--panel NAME", "Model name under which clients address the whole panel. Default: panel.")
@option(
    "--engine",
    "Kind of server: openai for any compatible one; vllm also has beams. Default: openai.",
    name="engine",
    type=click.Choice(["openai", "vllm", "llama_cpp"]),
)
@option("-m --model FILE", "Start llama.cpp's server on this GGUF file, or smollm2 (needs xllamacpp).")
@option("--samples N", "Number of samples drawn for a request. Default: 16.", type=int)
@option(
    "--candidates N|SEARCH",
    "Which outputs can be elected: the first N samples, or with --engine vllm those of a search such as "
    "beam:10. Default: all samples.",
)
@option(
    "--adaptive [CONFIDENCE]",
    "Draw samples only until the winner is certain; 0.99 if no number follows.",
    is_flag=False,
    flag_value=0.99,
    type=float,
)
@option(
    "--within E",
    "With --adaptive: also stop when the winner is certainly at most E below the best, such as 0.02.",
    type=float,
)
@option(
    "--escalate WHEN",
    "Ask the panel in order, the next server only if the election so far has share<1, score<0.8 or "
    "margin<0.2 (any numbers), or with --adaptive is undecided.",
)
@option("--min-votes N", "Minimum number of usable samples for an answer. Default: 1.", type=int)
@client_options
@option("--config FILE", "Settings, limits, profiles and aliases in TOML.")
@option(
    "--profile NAME=FILE",
    "Options from rangevote tune, at /v1/NAME/chat/completions.",
    name="profiles",
    multiple=True,
)
@option(
    "--allow-model NAME",
    "Model that clients may ask for. May be repeated. Default: all.",
    name="allow_models",
    multiple=True,
)
@option("--upstream-key-env VAR", "Environment variable with the upstream's key.")
@option("--upstream-key-file FILE", "File (mode 0600) with the upstream's key.")
@option("--keys-env VAR", "Environment variable with the keys of this service's clients.")
@option("--keys-file FILE", "File (mode 0600) with the keys of clients, one per line.")
@option(
    "--keep-elections N",
    "Keep the last N elections at /elections. Default: 0.",
    type=click.IntRange(0, 10_000),
)
@option("--host ADDRESS", "Address to listen on.", default="127.0.0.1")
@option("--port N", "Port; 0 takes a free one.", type=click.IntRange(0, 65535), default=PORT)
@option(
    "--allow-host NAME", "Host name that clients use, in addition to those of this machine.", multiple=True
)
@option("--log-details", "Log the upstream's error messages.")
def serve(host: str, port: int, allow_host: tuple[str, ...], log_details: bool, **arguments: Any) -> None:
    """Serve OpenAI's API: answer each request by an election among samples of --upstream or --model.

    POST /v1/chat/completions, /v1/completions and /v1/responses; GET /v1/models, /healthz, /readyz, /metrics.
    The object `rangevote` of a request sets samples, similarity and other options. Logs are lines of JSON on
    standard error; limits are set in --config. After SIGTERM, open requests are answered first.
    """
    for package in ("starlette", "uvicorn", "httptools", "httpx"):
        need(package, "web", "the service")
    from rangevote.engines.llama_cpp import SLOTS
    from rangevote.service.app import service_app
    from rangevote.service.metrics import Metrics
    from rangevote.service.middleware import log_event, log_to
    from rangevote.service.upstream import Upstream
    from rangevote.web.serving import address, bound, host_names, is_local
    from rangevote.web.serving import serve as run

    keys = _keys(arguments["keys_env"], arguments["keys_file"])
    if not is_local(host) and not keys:
        raise UsageError(
            f"--host {host} lets others reach the service, which has no keys. Add --keys-file FILE or "
            f"--keys-env VAR, or listen on 127.0.0.1."
        )
    hosts = host_names(host, allow_host, "clients")
    key = read_key(arguments["upstream_key_env"], arguments["upstream_key_file"], "--upstream-key")
    config = _config(arguments, hosts)
    with warnings.catch_warnings(), log_to(logging.StreamHandler()):
        warnings.simplefilter("ignore", RangevoteWarning)  # replies contain the same
        metrics, most_choices = Metrics(), None
        if arguments["model"] is not None:
            key, most_choices = secrets.token_hex(32), SLOTS
            model = _start_model(arguments["model"], key)
            url = f"{model.listening_address}/v1"
            config = msgspec.structs.replace(config, upstream=url, engine="llama_cpp")
        upstream = Upstream(config, metrics, key=key, most_choices=most_choices)
        app = service_app(upstream, config, metrics, keys=keys, details=log_details)
        listening = bound(host, port)
        serving = arguments["model"] or ", ".join(config.upstreams.values()) or config.upstream
        log_event("ready", address=address(listening), serving=serving)
        run(app, listening, drain=config.limits.drain)
        log_event("stopped")


def _keys(variable: str | None, file: str | None) -> Keys:
    from rangevote.service.middleware import Keys, read_keys

    keys = []
    if variable is not None:
        keys += read_keys(secret_from_environment(variable), f"the variable {variable}")
    if file is not None:
        keys += read_keys(read_secret(file), file)
    return Keys(keys)


def _config(arguments: dict[str, Any], hosts: Sequence[str]) -> ServiceConfig:
    """The configuration file, overridden by the options of the command line."""
    from rangevote.service.config import (
        OWN_OPTIONS,
        ConfigFile,
        OperatorOptions,
        RequestOptions,
        ServiceConfig,
        profile_options,
        read_config,
    )

    file = ConfigFile() if arguments["config"] is None else read_config(arguments["config"])
    values = {name: getattr(file, name) for name in OperatorOptions.__struct_fields__}
    values |= {name: arguments[name] for name in values if arguments.get(name) not in (None, ())}
    values["allow_models"] = (*file.allow_models, *arguments["allow_models"])
    if arguments["upstreams"] or arguments["model"]:
        members = _members(arguments["upstreams"])
        values |= {"upstream": members.pop("", ""), "upstreams": members}
    if bool(values["upstream"] or values["upstreams"]) == bool(arguments["model"]):
        raise UsageError("give either --upstream URL, the server to sample from, or --model FILE.")
    options: dict[str, Any] = {name: arguments.get(name) for name in (*OWN_OPTIONS, *CLIENT_OPTIONS)}
    if str(options["candidates"]).isdecimal():
        options["candidates"] = int(options["candidates"])
    base = RequestOptions().changed(file.options).changed(options)
    profiles = dict(file.profiles)
    for profile in arguments["profiles"]:
        name, equals, path = profile.partition("=")
        if not equals:
            raise UsageError(f"--profile {profile!r}: write it as NAME=FILE.")
        profiles[name] = profile_options(path)
    served = {name: base.changed(options) for name, options in profiles.items()}
    return ServiceConfig(**values, options=base, profiles=served, hosts=tuple(hosts))


def _members(upstreams: tuple[str, ...]) -> dict[str, str]:
    """The servers by their names; a single one may have no name."""
    members: dict[str, str] = {}
    for upstream in upstreams:
        name, equals, url = upstream.partition("=")
        members |= {name: url} if equals and "/" not in name else {"": upstream}
    if len(upstreams) > 1 and ("" in members or len(members) < len(upstreams)):
        raise UsageError(
            "several --upstream are a panel; write each as NAME=URL, with different names, for example "
            "small=http://host/v1."
        )
    return members


def _start_model(name: str, key: str) -> Any:
    """Start llama.cpp's server on a GGUF file; it runs as long as the returned object lives."""
    from rangevote.engines.llama_cpp import start_server
    from rangevote.models.load import SMOLLM2, smollm2
    from rangevote.service.middleware import log_event

    path = Path(smollm2() if name == SMOLLM2 else name)
    if path.suffix != ".gguf":
        raise UsageError(
            f"--model serves GGUF files with llama.cpp, and {name} is not one. Start another server, for "
            f"example: vllm serve {name}; then: rangevote serve --upstream http://127.0.0.1:8000/v1"
        )
    if not path.is_file():
        raise SetupError(f"there is no file {name}.")
    log_event("loading", model=name)
    server = start_server(path, key=key)
    log_event("loaded", model=name)
    return server
