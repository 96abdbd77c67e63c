"""The entry for `model.generate(..., custom_generate=FOLDER, trust_remote_code=True)`.

Transformers prepares nothing for a method from a folder, so this calls `generate` again with our function.
Unlike a function, a method from a folder receives the `tokenizer`: with one, texts vote.
"""

from typing import Any

from rangevote.generation.custom_generate import custom_generate


def generate(model: Any, tokenizer: Any = None, **arguments: Any) -> Any:
    """Call `model.generate` with an election as its decoding method."""
    method = custom_generate.with_options(tokenizer=tokenizer)
    return model.generate(**arguments, custom_generate=method)
