"""docs/coming-from.md: mbrs' BLEU MBR elects what ours elects when set alike."""

from __future__ import annotations

import json
import random
import subprocess

import pytest

from tests.docs.blocks import DOCS, ROOT, blocks
from tests.figure1 import CAPTIONS, LOGPROBS

PEERS = ROOT / ".venv-peers" / "bin" / "python"
PAGE = DOCS / "coming-from.md"
ASK = """
import json, sys
print(json.dumps([mbrs_winner(*one) for one in json.load(sys.stdin)]))
"""


def made_up(number: int) -> list[tuple[list[str], list[float]]]:
    """Lists of sentences that vary a few words, with log-probabilities."""
    chance = random.Random(1)
    text = "the old train to the city leaves at ten from platform two every day"
    base = text.split(" ")
    others = ["a", "bus", "nine", "town", "young", "goes", "never", "one"]
    lists = []
    for _ in range(number):
        texts = []
        for _ in range(8):
            words = [chance.choice(others) if chance.random() < 0.2 else word for word in base]
            texts.append(" ".join(words[: chance.randint(6, len(words))]))
        lists.append((texts, [chance.uniform(-12, -2) for _ in texts]))
    return lists


@pytest.fixture(scope="module")
def mbrs() -> str:
    """The page's block, and what asks it; where mbrs is not there, the test is skipped."""
    if not PEERS.exists():
        pytest.skip("mbrs is missing: benchmarks/setup.sh peers installs it into .venv-peers")
    tried = subprocess.run(
        [PEERS, "-W", "ignore", "-c", "import mbrs.decoders"], capture_output=True, text=True
    )
    if tried.returncode:
        pytest.skip(f"mbrs cannot be imported in .venv-peers: {tried.stderr.strip().splitlines()[-1]}")
    [block] = [block for block in blocks(PAGE, "python") if block.title == "mbrs"]
    return block.text + ASK


def test_mbrs_elects_the_same_when_set_alike(mbrs):
    lists = [(CAPTIONS, LOGPROBS), *made_up(30)]
    done = subprocess.run(
        [PEERS, "-W", "ignore", "-c", mbrs], input=json.dumps(lists), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    names: dict[str, object] = {}
    ours = next(block for block in blocks(PAGE, "python") if not block.title)
    exec(ours.text.split("\n\n\ntexts = ")[0], names)
    elected = [names["our_winner"](texts, logprobs) for texts, logprobs in lists]  # type: ignore[operator]
    assert json.loads(done.stdout.splitlines()[-1]) == elected
    likely = [texts[logprobs.index(max(logprobs))] for texts, logprobs in lists]
    assert elected != likely  # the lists tell the two apart
