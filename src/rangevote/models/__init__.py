"""P(next token | input, prefix): n-gram models and Hugging Face models behind one seam (`protocol.py`)."""
