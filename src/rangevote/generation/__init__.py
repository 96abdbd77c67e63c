"""Search and election together: inputs and a model in, elected outputs out."""
