"""What llama.cpp gives back through llama-cpp-python (`create_completion`, `create_chat_completion`), through
xllamacpp (`handle_completions`, `handle_chat_completions`), or from its server.

    calls = [[llm.create_completion(prompt, logprobs=1, seed=s) for s in range(20)] for prompt in prompts]
    hypotheses_of(calls)

All answer in OpenAI's shapes. Log-probabilities are natural and the model's own, before temperature and
truncation. llama-cpp-python needs `Llama(..., logits_all=True)` for them, leaves the end of the sequence out
and ignores `n`, and with `echo=True` its sums are those of other tokens; llama.cpp itself counts the end and
takes `n` up to its number of slots.
"""

from __future__ import annotations

from rangevote.sources.openai import hypotheses_of as hypotheses_of
