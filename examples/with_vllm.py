"""Elect among samples that vLLM drew, all prompts at once. Not run by the tests: it needs vLLM and a GPU.

pip install vllm                         # beside rangevote
python examples/with_vllm.py Qwen/Qwen2.5-1.5B-Instruct
"""

from __future__ import annotations

import sys

from vllm import LLM, SamplingParams

import rangevote as rv
from rangevote.engines.vllm import hypotheses_of

PROMPTS = ["When does the next train leave?", "Name a good way to learn a language."]


def main(name: str) -> None:
    """32 samples a prompt stand and vote, each once."""
    llm = LLM(name)
    tokenizer = llm.get_tokenizer()
    chats = [[{"role": "user", "content": prompt}] for prompt in PROMPTS]
    outputs = llm.chat(chats, SamplingParams(n=32, temperature=0.8, max_tokens=100, logprobs=0))
    ballots = hypotheses_of(outputs, ends=[tokenizer.eos_token_id])
    for prompt, result in zip(PROMPTS, rv.elect_many(ballots, preset="blend"), strict=True):
        print(prompt)
        print(" ", result.winner)
        print(f"  {len(result.groups)} different answers; {result.signature}")


if __name__ == "__main__":
    main(sys.argv[1])
