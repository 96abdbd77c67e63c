"""Read and check requests: what goes to the model's server, and how the answer is elected.

`ChatBody` and `PromptBody` declare the parameters that are passed on; the operator can add names with
`forward` in the configuration. All others are refused, since servers and gateways have parameters that load
files, name other hosts or run code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from rangevote.decoding import get_search
from rangevote.engines.openai.sampling import is_greedy
from rangevote.errors import DataError, RangevoteError
from rangevote.formats.jsonl import convert
from rangevote.service.config import RequestOptions, ServiceConfig
from rangevote.service.errors import ApiError, invalid

Endpoint = Literal["chat", "completions", "responses"]
Prompt = str | list[int]
Count = Annotated[int, Meta(ge=1)]
Whole = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
NotNegative = Annotated[float, Meta(ge=0)]
Stop = str | Annotated[list[str], Meta(min_length=1, max_length=16)]

#: Names that have been used to send keys to other hosts; refused anywhere in a request.
FORBIDDEN = frozenset({"api_base", "base_url", "extra_headers", "extra_body", "extra_query", "api_key"})
#: The longest schema, in bytes, that merged JSON is checked by, and keywords that can make the check endless.
LONGEST_SCHEMA = 2**16
UNBOUNDED = re.compile(rb'"(\$ref|\$dynamicRef|\$recursiveRef|pattern|patternProperties)"')
#: The start of a picture that is part of the request.
PICTURES = tuple(f"data:image/{kind};base64," for kind in ("png", "jpeg", "webp", "gif"))
#: Parameters that an election cannot support, and what to do instead.
UNSUPPORTED = {
    "best_of": "is not supported: the election selects; set the number of samples with rangevote.samples",
    "use_beam_search": 'is not supported: with a vLLM server, use rangevote.candidates = "beam:10"',
    "audio": "is not supported: audio cannot be voted on",
    "previous_response_id": "is not supported: the service keeps no conversations; send the whole input",
    "conversation": "is not supported: the service keeps no conversations; send the whole input",
    "background": "is not supported; use stream",
}


class TextPart(msgspec.Struct, tag_field="type", tag="text"):
    text: str


class RefusalPart(msgspec.Struct, tag_field="type", tag="refusal"):
    refusal: str


class ImageUrl(msgspec.Struct):
    url: str


class ImagePart(msgspec.Struct, tag_field="type", tag="image_url"):
    image_url: ImageUrl


class RequestMessage(msgspec.Struct):
    role: Literal["assistant", "developer", "function", "system", "tool", "user"]
    content: str | list[TextPart | RefusalPart | ImagePart] | None = None
    audio: None = None


class StreamOptions(msgspec.Struct, forbid_unknown_fields=True):
    include_usage: bool = False


class OwnParameters(msgspec.Struct):
    """Parameters that the service uses itself."""

    model: str = ""
    n: Count = 1
    stream: bool = False
    stream_options: StreamOptions | None = None
    rangevote: dict[str, Any] = {}


class CommonBody(OwnParameters):
    """Parameters of both endpoints that go to the model's server."""

    temperature: NotNegative = 1
    top_p: Annotated[float, Meta(gt=0, le=1)] = 1
    max_tokens: Count = 1
    stop: Stop = ""
    seed: Whole = 0
    presence_penalty: float = 0
    frequency_penalty: float = 0
    logit_bias: dict[str, Any] = {}
    user: str = ""
    metadata: dict[str, Any] = {}
    store: bool = False
    service_tier: str = ""
    safety_identifier: str = ""
    prompt_cache_key: str = ""
    top_k: Whole = 0
    min_p: float = 0
    min_tokens: Annotated[int, Meta(ge=0)] = 0
    typical_p: float = 1
    repetition_penalty: float = 1
    repeat_penalty: float = 1
    stop_token_ids: list[int] = []


class ChatBody(CommonBody):
    messages: list[RequestMessage] = []
    tools: list[dict[str, Any]] = []
    tool_choice: str | dict[str, Any] = ""
    parallel_tool_calls: bool = True
    functions: list[dict[str, Any]] = []
    function_call: str | dict[str, Any] = ""
    logprobs: bool = False
    top_logprobs: Annotated[int, Meta(ge=0)] = 0
    max_completion_tokens: Count = 1
    response_format: dict[str, Any] = {}
    reasoning_effort: str = ""
    verbosity: str = ""
    prediction: dict[str, Any] = {}
    modalities: list[Literal["text"]] = []


class PromptBody(CommonBody):
    prompt: str | list[str | int | list[int]] = []
    suffix: str = ""
    logprobs: Annotated[int, Meta(ge=0)] = 0


@dataclass(frozen=True)
class CompletionRequest:
    """One request, answered by the one server (""), or by these `members` of the panel.

    `body` goes to the model, without the number of samples; `name` is the client's name for the model. Each
    of several `prompts` has its own election. `sent` has the fields as the client sent them, if `body` has
    others.
    """

    endpoint: Endpoint
    name: str
    body: Mapping[str, Any]
    n: int
    stream: bool
    include_usage: bool
    options: RequestOptions
    members: tuple[str, ...]
    prompts: tuple[Prompt, ...] = ()
    sent: Mapping[str, Any] = field(default_factory=dict)

    def each(self) -> list[CompletionRequest]:
        """One request for each election."""
        several = [replace(self, body={**self.body, "prompt": one}, prompts=()) for one in self.prompts]
        return several or [self]

    @property
    def json(self) -> bool:
        """Whether the answer must be JSON."""
        return asks_for_json(self.body)

    @property
    def question(self) -> str:
        """The text of the last message, or the prompt."""
        if self.endpoint == "completions":
            return str(self.body["prompt"])
        content = self.body["messages"][-1].get("content")
        if isinstance(content, list):
            content = " ".join(str(part.get("text", "")) for part in content)
        return str(content or "")


def read_object(content: bytes) -> dict[str, Any]:
    """The JSON object of a request, without null values and without names that could send it elsewhere."""
    try:
        body = msgspec.json.decode(content)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise ApiError(400, "the request is not valid JSON", code="invalid_json") from None
    if not isinstance(body, dict):
        raise ApiError(400, "the request must be a JSON object", code="invalid_json")
    pending: list[Any] = [body]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            for name in value:
                if name.lower() in FORBIDDEN:
                    raise invalid(name, "is not allowed in a request", "forbidden_parameter")
            pending += value.values()
        elif isinstance(value, list):
            pending += value
    return {name: value for name, value in body.items() if value is not None}


def read_request(
    fields: Mapping[str, Any], profile: str | None, config: ServiceConfig, endpoint: Endpoint
) -> CompletionRequest:
    """The request in a body; an `ApiError` names the parameter that is wrong."""
    read = _body(fields, ChatBody if endpoint == "chat" else PromptBody, config)
    if not read.model or len(read.model) > 256 or not read.model.isprintable():
        raise invalid("model", "must be the name of a model")
    alias = config.aliases.get(read.model)
    passed = {name: value for name, value in fields.items() if name not in OwnParameters.__struct_fields__}
    passed["model"] = read.model if alias is None else alias.model
    prompts: tuple[Prompt, ...] = ()
    if isinstance(read, ChatBody):
        _check_messages(read.messages, config)
    else:
        prompts = _prompts(read.prompt, config)
        passed["prompt"] = prompts[0]
    options = _options(read.rangevote, profile or (None if alias is None else alias.profile), config)
    options = _json_options(options, passed)
    members = _members(passed["model"], options, config)
    _check_winners(read.n, options, members, greedy=is_greedy(passed))
    if read.stream_options is not None and not read.stream:
        raise invalid("stream_options", "needs stream")
    include_usage = read.stream_options is not None and read.stream_options.include_usage
    several = prompts if len(prompts) > 1 else ()
    return CompletionRequest(
        endpoint, read.model, passed, read.n, read.stream, include_usage, options, members, several
    )


def _body(
    fields: Mapping[str, Any], kind: type[ChatBody | PromptBody], config: ServiceConfig
) -> ChatBody | PromptBody:
    for name in fields:
        if name in UNSUPPORTED:
            raise invalid(name, UNSUPPORTED[name], "unsupported_parameter")
        if name not in kind.__struct_fields__ and name not in config.forward:
            message = "is not a parameter of this request, and the service's operator does not forward it"
            raise invalid(name[:60], message, "unsupported_parameter")
    try:
        return convert(fields, kind)
    except DataError as error:
        raise invalid(error.field, f"is wrong: {error.problem}"[:300]) from None


def _json_options(options: RequestOptions, body: Mapping[str, Any]) -> RequestOptions:
    """The options for the format of the request: n-grams of JSON are its leaves, and merged JSON must fit the
    schema."""
    settings = options.settings(1)
    if settings.merging is None:
        by_ngrams = settings.measure.orders and settings.measure.decomposes
        leaves = by_ngrams and asks_for_json(body)
        return options.changed({"tokenize": "json", **options.election}) if leaves else options
    if (schema := _schema(body)) is not None:
        options = msgspec.structs.replace(options, election={**options.election, "schema": schema})
        try:
            options.settings(1)
        except RangevoteError as error:
            raise invalid("response_format.json_schema", f"is wrong: {error}"[:300]) from None
    return options


def asks_for_json(body: Mapping[str, Any]) -> bool:
    return _object(body, "response_format").get("type") in ("json_object", "json_schema")


def _object(fields: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = fields.get(name)  # of any type, if the operator forwards the field
    return value if isinstance(value, Mapping) else {}


def _schema(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The schema that merged JSON must fit; None if there is none or its check could be endless."""
    schema = _object(_object(body, "response_format"), "json_schema").get("schema")
    if not isinstance(schema, Mapping) or find_spec("jsonschema") is None:
        return None
    text = msgspec.json.encode(schema)
    return None if len(text) > LONGEST_SCHEMA or UNBOUNDED.search(text) else schema


def _options(asked: Mapping[str, Any], profile: str | None, config: ServiceConfig) -> RequestOptions:
    options = config.options if profile is None else config.profiles[profile]
    if not asked:  # the operator's own options were checked at the start
        return options
    try:
        config.check_key(asked)
        options = options.changed(asked)
        config.check(options, client=True)
    except RangevoteError as error:
        named = next((name for name in asked if str(error).startswith((name, f"unknown {name}"))), None)
        param = "rangevote" if named is None else f"rangevote.{named}"
        raise ApiError(400, f"rangevote: {error}"[:300], code="invalid_value", param=param) from None
    return options


def _members(model: str, options: RequestOptions, config: ServiceConfig) -> tuple[str, ...]:
    """The members that answer a request: the one that it names as the model, otherwise those with a share."""
    names = tuple(config.upstreams) or ("",)
    if model in names:
        return (model,)
    shares = options.election.get("shares", names)
    members = tuple(name for name in names if name in shares)
    if isinstance(shares, str) or not members or len(members) < len(shares):
        listed = ", ".join(config.upstreams) or "none"
        raise invalid("rangevote.shares", f"must be of the panel's members: {listed}")
    if len(members) > 1 and isinstance(options.candidates, str):
        raise invalid("rangevote.candidates", "must be a number of samples: a panel has no search")
    if options.samples < len(members):
        message = f"must be at least {len(members)}, the number of members of the panel"
        raise invalid("rangevote.samples", message)
    return members


def _check_winners(n: int, options: RequestOptions, members: Sequence[str], *, greedy: bool) -> None:
    """Refuse more winners than there are candidates."""
    if n > options.samples:
        raise invalid("n", f"must be at most the number of samples, {options.samples}")
    try:
        options.settings(n)
    except RangevoteError as error:
        raise invalid("n", f"cannot be combined with the other options: {error}"[:300]) from None
    most = options.candidates
    if isinstance(most, str):
        most = get_search(most).size
    elif greedy:
        most = len(members)  # whatever the request says
    if most is not None and most < n:
        raise invalid("n", f"must be at most the number of candidates, {most}")


def _check_messages(messages: list[RequestMessage], config: ServiceConfig) -> None:
    if not messages:
        raise invalid("messages", "must be a list of at least one message")
    _check_number(len(messages), config.limits.messages, "messages", "messages")
    characters = 0
    for i, message in enumerate(messages):
        parts = [TextPart(message.content)] if isinstance(message.content, str) else message.content or ()
        for j, part in enumerate(parts):
            if isinstance(part, ImagePart):
                _check_picture(part.image_url.url, f"messages[{i}].content[{j}].image_url.url", config)
            else:
                characters += len(part.text if isinstance(part, TextPart) else part.refusal)
    _check_number(characters, config.limits.prompt_chars, "characters", "messages")


def _prompts(prompt: str | list[str | int | list[int]], config: ServiceConfig) -> tuple[Prompt, ...]:
    """Prompts, each a text or token ids; one may come alone."""
    alone = isinstance(prompt, str) or all(isinstance(one, int) for one in prompt)
    prompts: list[Any] = [prompt] if alone else list(prompt)
    if not all(isinstance(one, str) or (isinstance(one, list) and one) for one in prompts):
        raise invalid("prompt", "must be a text, a list of token ids, or a list of such prompts")
    _check_number(len(prompts), config.limits.prompts, "prompts", "prompt")
    _check_number(sum(map(len, prompts)), config.limits.prompt_chars, "characters", "prompt")
    return tuple(prompts)


def _check_number(number: int, most: int, what: str, param: str) -> None:
    if number > most:
        raise invalid(param, f"has {number:,} {what}; {most:,} are allowed", "too_many")


def _check_picture(url: str, path: str, config: ServiceConfig) -> None:
    """Allow pictures in the request, and allowed hosts from which the model's server may fetch them."""
    if url.startswith(PICTURES):
        return
    try:
        parts = urlsplit(url)
        host = parts.hostname if parts.scheme == "https" and parts.username is None else None
    except ValueError:
        host = None
    allowed = {name.lower() for name in config.allow_image_hosts}
    if host is None or host.lower() not in allowed or not url.isprintable() or "\\" in url:
        raise invalid(path, "must be a data: URI of a picture, or https from an allowed host")
