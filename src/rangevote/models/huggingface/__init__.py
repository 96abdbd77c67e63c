"""Hugging Face models as a `LanguageModel` (`models/protocol.py`).

    model.py             start, step, select and the rest
    inputs.py            texts, chats, token ids and images -> tensors, and what is refused
    prepare.py           tensors -> what transformers' `generate` hands to a decoding method -> read prompts
    steps.py             one pass of the network after another, on transformers' own cache
    loading.py           files -> model and tokenizer, and what is refused
    shared_cache.py      rows that keep what they have in common once; tried against steps.py before use
    shared_attention.py  attention over what rows share and what they own

A prompt or image is read once for each input, whatever the number of rows.
"""
