"""The paper's two experiments, from data to tables: `python experiments/run.py captions --scale local`.

run.py, command.py     the command line; results/*.json at the end
settings.py            what an experiment is to do, from its TOML file, and where data and results are
plan.py, steps.py      an experiment as steps, each known by a fingerprint of all that decides it

data.py                data sets -> items: inputs and references           (step "data")
show_and_tell.py       the captioner: an LSTM behind `rangevote`'s seam
transformer.py, transformer_layers.py   the translator
vocabulary.py, checkpoint.py            words and BPE; a trained model as a folder
training.py            items -> a model                                    (step "train")
training_loop.py, training_record.py    the loop, and the files of a run
searching.py           model + items -> ballot files, one for each k       (step "search")
voting.py              ballots -> the outputs of all methods               (steps "tune", "vote")
measuring.py           outputs -> numbers and significance                 (steps "evaluate", "compare")

findings.py            results/*.json as tables and claims ask for it; the methods' names
paper.py, claims.py    the numbers of the paper's tables; what it says, and whether it was found here
tables.py, page.py     results/*.json -> RESULTS.md, TABLES.md and figures
prepare_mscoco.py      MSCOCO as the captions experiment reads it
"""
