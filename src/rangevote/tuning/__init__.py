"""Ballots with references -> the measure, exponent and temperature that elect best, and how sure that is."""
