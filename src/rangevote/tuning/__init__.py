"""Ballots with references -> the measure, exponent and temperature that elect best, and how sure that is.

`grid` names the settings, `polling` holds the elections of all of them over shared counts, `measuring` scores
their winners, `noise` tells what chance alone would do, `tune` puts them together, `present` shows them.
"""
