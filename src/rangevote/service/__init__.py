"""The election service: an OpenAI-compatible server that answers with the elected sample."""
