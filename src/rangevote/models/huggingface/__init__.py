"""Hugging Face models as a `LanguageModel` (`models/protocol.py`).

    model.py          start, step, select and the rest
    inputs.py         texts, chats, token ids and images -> tensors, and what is refused
    steps.py          tensors -> read prompts -> passes of the network, on transformers' own cache
    shared_prefix.py  rows that keep what they have in common once; tried against steps.py before use
    loading.py        files -> model and tokenizer, and what is refused

A prompt or image is read once for each input, whatever the number of rows.
"""
