"""What an OpenAI-compatible server answers: as it should, or as bad ones do."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

SENTENCES = (
    "the train leaves at ten",
    "a train leaves at ten",
    "the train leaves at noon",
    "i do not know",
    "the train is leaving at ten",
    "trains leave at ten",
)
LOGPROBS = (-0.25, -0.5, -1.25)


def text_of(seed: int) -> str:
    """What a sample with this seed says."""
    return SENTENCES[seed % len(SENTENCES)]


@dataclass(frozen=True)
class Asked:
    """One request."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]
    when: float

    @property
    def chat(self) -> bool:
        return self.path.endswith("/chat/completions")

    @property
    def n(self) -> int:
        return int(self.body.get("n", 1))


@dataclass(frozen=True)
class Reply:
    """What goes back."""

    body: bytes | dict[str, Any] | list[Any]
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": "application/json"})
    cut: int = 0  # so many bytes are promised and not sent
    lengthless: bool = False  # no Content-Length: the end of the connection is that of the body

    @property
    def content(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


def choice(asked: Asked, index: int) -> dict[str, Any]:
    """One choice, with log-probabilities where they are asked for."""
    text = text_of(int(asked.body.get("seed", 0)) + index)
    wanted = asked.body.get("logprobs") not in (None, False)
    if asked.chat:
        listed = {"content": [{"token": "t", "logprob": value, "top_logprobs": []} for value in LOGPROBS]}
        said = {"message": {"role": "assistant", "content": text}}
    else:
        listed = {"tokens": ["t"] * len(LOGPROBS), "token_logprobs": list(LOGPROBS)}
        said = {"text": text}
    return {"index": index, **said, "finish_reason": "stop", "logprobs": listed if wanted else None}


def completion(asked: Asked, choices: Sequence[Mapping[str, Any]]) -> Reply:
    """A response with these choices; a token of the prompt and of each choice costs 1."""
    usage = {"prompt_tokens": 7, "completion_tokens": 3 * len(choices), "total_tokens": 7 + 3 * len(choices)}
    return Reply(
        {
            "id": "cmpl-1",
            "object": "chat.completion" if asked.chat else "text_completion",
            "created": 1,
            "model": asked.body.get("model"),
            "choices": list(choices),
            "usage": usage,
        }
    )


def refusal(status: int, message: str, **headers: str) -> Reply:
    """An error as OpenAI writes it."""
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
    return Reply({"error": error}, status, {"content-type": "application/json", **headers})


#: Where a bad server sends its clients; on loopback too, where nobody answers: should a redirect ever be
#: followed, no test leaves this machine.
ELSEWHERE = "http://127.0.0.1:9/latest/meta-data/"


class Behaviour:
    """How a server may answer; `stalls` is told by the handler, not by a reply."""

    def well(self, asked: Asked) -> Reply:
        return completion(asked, [choice(asked, i) for i in range(asked.n)])

    def ignores_n(self, asked: Asked) -> Reply:
        return completion(asked, [choice(asked, 0)])

    def refuses_n(self, asked: Asked) -> Reply:
        if asked.n > 1:
            return refusal(400, "Invalid n value (currently only n = 1 is supported)")
        return self.ignores_n(asked)

    def one_fewer(self, asked: Asked) -> Reply:
        return completion(asked, [choice(asked, i) for i in range(max(1, asked.n - 1))])

    def at_most_two(self, asked: Asked) -> Reply:
        return completion(asked, [choice(asked, i) for i in range(min(2, asked.n))])

    def refuses_more_than_four(self, asked: Asked) -> Reply:
        if asked.n > 4:
            return refusal(400, "n must be at most 4")
        return self.well(asked)

    def greedy_once(self, asked: Asked) -> Reply:
        if asked.n > 1 and asked.body.get("temperature", 1) < 1e-5:
            return refusal(400, "n must be 1 when using greedy sampling")
        return self.well(asked)

    def busy(self, asked: Asked) -> Reply:
        return refusal(429, "slow down", **{"retry-after": "1"})

    def busy_for_long(self, asked: Asked) -> Reply:
        return refusal(429, "slow down", **{"retry-after": "3600"})

    def broken(self, asked: Asked) -> Reply:
        return refusal(500, "Traceback (most recent call last): /srv/model.py")

    def overloaded(self, asked: Asked) -> Reply:
        return refusal(503, "overloaded")

    def denied(self, asked: Asked) -> Reply:
        return refusal(401, f"Incorrect API key provided: {asked.headers.get('authorization')}")

    def refuses(self, asked: Asked) -> Reply:
        return refusal(400, "this prompt is too long")

    def half_json(self, asked: Asked) -> Reply:
        content = self.well(asked).content
        return Reply(content[: len(content) // 2])

    def cut_off(self, asked: Asked) -> Reply:
        content = self.well(asked).content
        return Reply(content[: len(content) // 2], cut=len(content) // 2)

    def huge(self, asked: Asked) -> Reply:
        return Reply(b'{"choices": [], "x": "' + b"x" * 10_000_000 + b'"}')

    def huge_without_length(self, asked: Asked) -> Reply:
        return Reply(self.huge(asked).content, lengthless=True)

    def compressed(self, asked: Asked) -> Reply:
        import gzip

        headers = {"content-type": "application/json", "content-encoding": "gzip"}
        return Reply(gzip.compress(self.well(asked).content), headers=headers)

    def redirects(self, asked: Asked) -> Reply:
        return Reply(b"", 302, {"location": ELSEWHERE})

    def html(self, asked: Asked) -> Reply:
        return Reply(b"<!doctype html><title>Sign in</title>", headers={"content-type": "text/html"})

    def plain_text(self, asked: Asked) -> Reply:
        return Reply(self.well(asked).content, headers={"content-type": "text/plain"})

    def no_object(self, asked: Asked) -> Reply:
        return Reply([1, 2])

    def no_choices(self, asked: Asked) -> Reply:
        return completion(asked, [])

    def other_shape(self, asked: Asked) -> Reply:
        return Reply({"output": [{"content": "hello"}]})

    def error_with_200(self, asked: Asked) -> Reply:
        return Reply({"error": {"message": "provider is down", "code": 502}})

    def nan_logprob(self, asked: Asked) -> Reply:
        return self._with_logprob(asked, float("nan"))

    def unlikely(self, asked: Asked) -> Reply:
        return self._with_logprob(asked, -9999.0)

    def greedy(self, asked: Asked) -> Reply:
        return completion(asked, [{**choice(asked, 0), "index": i} for i in range(asked.n)])

    def null_content(self, asked: Asked) -> Reply:
        return self._with_message(asked, {"content": None}, "length")

    def declines(self, asked: Asked) -> Reply:
        return self._with_message(asked, {"content": None, "refusal": "I cannot help with that."}, "stop")

    def reasons_apart(self, asked: Asked) -> Reply:
        return self._reasoned(asked, lambda text, why: {"content": text, "reasoning_content": why})

    def reasons_by_the_other_name(self, asked: Asked) -> Reply:
        return self._reasoned(asked, lambda text, why: {"content": text, "reasoning": why})

    def reasons_inline(self, asked: Asked) -> Reply:
        return self._reasoned(asked, lambda text, why: {"content": f"<think>\n{why}\n</think>\n\n{text}"})

    def reasons_after_the_prompt(self, asked: Asked) -> Reply:
        """The first tag was the end of the prompt."""
        return self._reasoned(asked, lambda text, why: {"content": f"{why}\n</think>\n\n{text}"})

    def _reasoned(self, asked: Asked, message: Callable[[str, str], dict[str, Any]]) -> Reply:
        """What is answered every third time has most votes; what is thought is always another text."""
        choices = []
        for i in range(asked.n):
            number = int(asked.body.get("seed", 0)) + i
            text, why = ("42", "41", "42")[number % 3], f"I said {number} to {asked.path} as {number}"
            answer = message(text, why)
            said = {"message": {"role": "assistant", **answer}} if asked.chat else {"text": answer["content"]}
            choices.append({**choice(asked, i), **said, "index": i})
        return completion(asked, choices)

    def _with_message(self, asked: Asked, message: Mapping[str, Any], reason: str) -> Reply:
        """The first choice says this, the others are as they should be."""
        first = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": reason}
        return completion(asked, [first, *(choice(asked, i) for i in range(1, asked.n))])

    def _with_logprob(self, asked: Asked, value: float) -> Reply:
        """One token of the first choice has this log-probability."""
        choices = [choice(asked, i) for i in range(asked.n)]
        if asked.chat:
            choices[0]["logprobs"]["content"][1]["logprob"] = value
        else:
            choices[0]["logprobs"]["token_logprobs"][1] = value
        return completion(asked, choices)
