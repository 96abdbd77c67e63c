"""Ballot -> result: weights, rules, streaming, explanation."""
