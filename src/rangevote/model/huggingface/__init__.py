"""Hugging Face models behind the seam of `model/protocol.py`; only files in this folder import torch and
transformers.

A prompt or image is read once for each input, whatever the number of rows. Its keys and values, and those the
decoder takes from an encoder, are then kept once for each input, and the rows keep only those of their own
tokens:

    model.py      the seam: start, step, select and the rest
    inputs.py     texts, chats, token ids and images -> tensors, and what is refused
    prepare.py    tensors -> what transformers' `generate` would hand to a decoding method
    prompt.py     reads the prompts, and decides how their rows go on
    rows.py       rows under way
    feed.py       what the network is given at each step
    cache.py      keys and values: the inputs' shared ones, and the rows' own
    attention.py  attention over both, and its switch in transformers
    forward.py    one pass of the network
    limits.py     ends and lengths, from the many places where configurations keep them
    weights.py    files -> model and tokenizer, and what is refused
"""
