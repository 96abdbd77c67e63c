"""`rangevote serve` as an operator runs it."""

from __future__ import annotations

import json
import logging
import shutil
import signal
import subprocess
import sys
import threading
import time
import warnings

import pytest

pytest.importorskip("starlette", reason="the extra 'web' is not installed")
pytest.importorskip("openai", reason="the official client is not installed")

import httpx
import openai

from tests.cli.conftest import spawn
from tests.engines.llama import llama
from tests.engines.openai.upstream import Upstream

__all__ = ["llama"]

KEY = "a-key-of-more-than-16-letters"


class Serving:
    """The command in a process of its own; `lines` is its log."""

    def __init__(self, *arguments: object, env: dict[str, str] | None = None) -> None:
        self.process = spawn("serve", "--port", 0, *arguments, env=env or {})
        self.lines: list[dict[str, object]] = []
        while not self.lines or self.lines[-1]["event"] in ("loading", "loaded"):
            self.lines.append(json.loads(self.process.stderr.readline()))
        assert self.lines[-1]["event"] == "ready", self.lines
        self.url = self.lines[-1]["address"]
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        self.lines += [json.loads(line) for line in self.process.stderr]

    def __enter__(self) -> Serving:
        return self

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(how)
        code = self.process.wait(20)
        self._reader.join(5)
        return code

    def __exit__(self, *error: object) -> None:
        if self.process.poll() is None:
            self.stop()
        assert self.process.stdout.read() == b""
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            pipe.close()

    def client(self, key: str = "unused") -> openai.OpenAI:
        return openai.OpenAI(base_url=f"{self.url}/v1", api_key=key, max_retries=0)


def question(client: openai.OpenAI, **options: object) -> openai.types.chat.ChatCompletion:
    return client.chat.completions.create(
        model="tiny", messages=[{"role": "user", "content": "when?"}], **options
    )


def test_an_upstream_with_keys_profiles_and_pages_whose_log_has_neither_keys_nor_prompts(tmp_path):
    keys = tmp_path / "keys"
    keys.write_text(KEY)
    keys.chmod(0o600)
    (tmp_path / "tuned.toml").write_text('[election]\nsimilarity = "overlap_1"\n')
    with Upstream() as upstream:
        path = tmp_path / "service.toml"
        path.write_text(
            f'upstream = "{upstream.url}"\nkeep_elections = 2\n[options]\nsamples = 3\n'
            "[limits]\nsamples = 5\n"
            '[profiles.big]\nsamples = 5\n[aliases.elected]\nmodel = "tiny"\nprofile = "big"\n'
        )
        options = ["--config", path, "--profile", f"tuned={tmp_path / 'tuned.toml'}"]
        options += ["--samples", 4, "--keys-file", keys, "--upstream-key-env", "UP"]
        with Serving(*options, env={"UP": "sk-upstream"}) as serving:
            with serving.client("wrong") as client, pytest.raises(openai.AuthenticationError):
                question(client)
            with serving.client(KEY) as client:
                answer = question(client, seed=0)
            headers = {"authorization": f"Bearer {KEY}"}
            with httpx.Client(base_url=serving.url, headers=headers, trust_env=False) as http:
                body = {"model": "elected", "messages": [{"role": "user", "content": "q"}]}
                elected = http.post("/v1/chat/completions", json=body).json()["rangevote"]
                body["model"] = "tiny"
                tuned = http.post("/v1/tuned/chat/completions", json=body).json()["rangevote"]
                refused = http.post("/v1/chat/completions", json={**body, "rangevote": {"samples": 6}})
                assert http.get(elected["election"]).status_code == 200
            upstream.delay, answers = 1.0, list[object]()
            asking = threading.Thread(target=lambda: answers.append(question(serving.client(KEY))))
            asked = len(upstream.asked)
            asking.start()
            while len(upstream.asked) == asked:
                time.sleep(0.01)
            assert serving.stop() == 0  # SIGTERM finishes an answer that is under way
            asking.join(10)
    assert len(answers) == 1
    assert (answer.rangevote["votes"], elected["votes"], tuned["votes"]) == (4, 5, 4)
    assert "sim:overlap_1|" in tuned["signature"]
    assert refused.status_code == 400
    assert upstream.asked[0].headers["authorization"] == "Bearer sk-upstream"
    assert serving.lines[-1]["event"] == "stopped"
    election = next(line for line in serving.lines if line["event"] == "election")
    assert election["signature"] == answer.rangevote["signature"]
    assert election["request"] in {line["request"] for line in serving.lines if line["event"] == "request"}
    text = json.dumps(serving.lines)
    for secret in (KEY, "sk-upstream", "when?", "train"):
        assert secret not in text


def test_several_upstreams_are_a_panel_with_a_name():
    with Upstream(models=("a",)) as one, Upstream(models=("b",)) as two:
        named = ("--upstream", f"a={one.url}", "--upstream", f"b={two.url}", "--panel", "both")
        with Serving(*named, "--samples", 4, "-s", "exact") as service:
            assert service.lines[-1]["serving"] == f"{one.url}, {two.url}"
            client = openai.OpenAI(
                base_url=f"{service.url}/v1", api_key="x", http_client=httpx.Client(trust_env=False)
            )
            assert [model.id for model in client.models.list()] == ["both", "a", "b"]
            answer = client.chat.completions.create(
                model="both", messages=[{"role": "user", "content": "q"}], seed=0
            )
            assert answer.rangevote["panel"]["shares"] == {"a": 0.5, "b": 0.5}
            assert (len(one.asked), len(two.asked)) == (1, 1)
            client.close()


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_a_gguf_file_answers_curl_as_in_the_documentation_until_ctrl_c(llama):
    with Serving("--model", "smollm2", "--allow-model", "tiny", "--samples", 4, "--adaptive") as serving:
        command = [
            "curl", "-sS", "--noproxy", "*", f"{serving.url}/v1/chat/completions",
            "-H", "Content-Type: application/json",
            "-d", '{"model": "tiny", "messages": [{"role": "user", "content": "the"}], "max_tokens": 4}',
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, check=True, timeout=120)
        stream = [*command[:-1], command[-1][:-1] + ', "stream": true}', "-N"]
        streamed = subprocess.run(stream, capture_output=True, check=True, timeout=120)
        assert serving.stop(signal.SIGINT) == 0
    loading, loaded, ready = serving.lines[:3]
    assert (loading["event"], loaded["event"], ready["event"]) == ("loading", "loaded", "ready")
    assert loading["model"] == loaded["model"] == ready["serving"] == "smollm2"
    assert json.loads(done.stdout)["rangevote"]["votes"] == 4
    assert streamed.stdout.endswith(b"data: [DONE]\n\n")
    assert serving.lines[-1]["event"] == "stopped"


ONE = ("--upstream", "http://127.0.0.1:1/v1")
PANEL = ("--upstream", "a=http://h/v1", "--upstream", "b=http://h/v1")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give either --upstream URL"),
        ([*ONE, "--model", "x"], "give either --upstream URL"),
        (["--upstream", "http://u:p@h/v1"], "contains a user name or password"),
        (2 * ["--upstream", "http://h/v1"], "several --upstream are a panel"),
        (2 * ["--upstream", "a=http://h/v1"], "with different names"),
        (["--upstream", "a=http://h/v1", *ONE], "several --upstream are a panel"),
        ([*PANEL, "--panel", "a"], "give it another name than its members"),
        ([*PANEL, "--escalate", "share<2"], "share<1"),
        ([*ONE, "--escalate", "share<1"], "needs a panel"),
        ([*PANEL, "--samples", "1"], "number of members of the panel, 2"),
        ([*PANEL, "--shares", "agreement", "--similarity", "exact"], "shares must be"),
        ([*ONE, "--engine", "other"], "'other' is not one of"),
        ([*ONE, "--adaptive", "2"], "adaptive: expected"),
        ([*ONE, "--temperature", "2"], "No such option"),
        ([*ONE, "--key", "sk-secret-of-mine"], "No such option"),  # keys come from files or variables
        ([*ONE, "--profile", "x"], "write it as NAME=FILE"),
        ([*ONE, "--host", "0.0.0.0"], "has no keys"),
        ([*ONE, "--host", "0.0.0.0", "--keys-env", "K"], "add --allow-host NAME"),
    ],
)
def test_wrong_options_are_refused_before_anything_listens(run, monkeypatch, arguments, message):
    monkeypatch.setenv("K", KEY)
    done = run("serve", "--port", 0, *arguments)
    assert (done.code, done.out) == (2, b"")
    assert message in done.err
    assert KEY not in done.err


def test_files_that_cannot_be_used_have_their_exit_codes(run, tmp_path, monkeypatch):
    url = ("--upstream", "http://127.0.0.1:1/v1")
    keys = tmp_path / "keys"
    keys.write_text(KEY)
    keys.chmod(0o640)
    assert run("serve", *url, "--keys-file", keys).code == 5
    assert run("serve", *url, "--keys-env", "RANGEVOTE_NO_SUCH_VARIABLE").code == 5
    assert run("serve", *url, "--config", tmp_path / "none.toml").code == 5
    (tmp_path / "bad.toml").write_text("upstrem = 1")
    done = run("serve", *url, "--config", tmp_path / "bad.toml")
    assert (done.code, "Did you mean 'upstream'" in done.err) == (3, True)
    assert run("serve", "--model", tmp_path / "none.gguf").code == 5
    (tmp_path / "model.gguf").touch()
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    missing = run("serve", "--model", tmp_path / "model.gguf")
    assert (missing.code, "pip install xllamacpp" in missing.err) == (5, True)
    folder = run("serve", "--model", tmp_path)
    assert (folder.code, "vllm serve" in folder.err) == (2, True)


def test_a_service_that_ended_leaves_the_log_and_the_warnings_of_its_process_as_they_were(run, tmp_path):
    service = logging.getLogger("rangevote.service")
    before = list(service.handlers), service.propagate, service.level, list(warnings.filters)
    (tmp_path / "model.gguf").write_bytes(b"none")
    assert run("serve", "--model", tmp_path / "model.gguf", "--port", 0).code == 5
    assert (service.handlers, service.propagate, service.level, warnings.filters) == before
