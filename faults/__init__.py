"""Runs of rangevote through faults: killed, out of space, cut off, damaged, two at once. See run.py."""
