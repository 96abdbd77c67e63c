"""Bytes of any kind for everything that reads: see run.py, and targets.py for what is tried."""
