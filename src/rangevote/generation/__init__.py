"""Search and election joined: inputs and a model in, elected outputs out."""
