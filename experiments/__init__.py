"""The paper's two experiments, from data to tables: `python experiments/run.py captions --scale local`.

settings.py   what an experiment is to do, from its TOML file
places.py     where data are found and results are kept
stage.py      a step with one output, known by a fingerprint of all that decides it
schedule.py   steps in order, several at a time; what is there is kept
plan.py       an experiment as steps
items.py      data -> items: inputs and references        (step "data")
training.py   items -> a model                            (step "train")
searching.py  model + items -> ballot files, one for each k (step "search")
tuning.py     ballots of the development set -> a profile (step "tune")
voting.py     ballots -> the outputs of all methods       (step "vote")
measuring.py  outputs -> numbers of one system            (step "evaluate")
comparing.py  numbers of all seeds -> significance        (step "compare")
collect.py    everything -> results/*.json
methods.py    the methods' names, as tables show them
paper.py      the numbers of the paper's tables
claims.py     what the paper says, and whether it was found here
tables.py, figures.py, page.py   results/*.json -> RESULTS.md and its figures
"""
