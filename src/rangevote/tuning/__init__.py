"""Ballots with references -> the options that elect best, and how sure that is."""
