"""Hugging Face models behind the seam of `models/protocol.py`.

A prompt or image is read once for each input, whatever the number of rows. Its keys and values, and those the
decoder takes from an encoder, are then kept once for each input, and the rows keep only those of their own
tokens:

    model.py      the seam: start, step, select and the rest
    inputs.py     texts, chats and token ids -> tensors, and what is refused; images.py: images
    prepare.py    tensors -> what transformers' `generate` would hand to a decoding method
    prompt.py     reads the prompts, and decides how their rows go on
    rows.py       rows under way
    feed.py       what the network is given at each step; arguments.py: as transformers keeps it
    shared.py     keys and values of the inputs, and whose rows are whose
    cache.py      the cache of rows under way, with their own keys and values
    attention.py  attention over both; switch.py: puts it in the place of transformers'
    forward.py    one pass of the network; head.py: its last layer
    limits.py     ends and lengths, from the many places where configurations keep them
    weights.py    files -> model and tokenizer, and what is refused
    quiet.py      keeps transformers from writing to the terminal
"""
