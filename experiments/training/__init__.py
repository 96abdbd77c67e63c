"""Training of the paper's two systems: one loop, from which an interrupted run goes on to the same weights.

options.py     what can be set, and from which values
examples.py    texts and features -> numbers, and the numbers of a batch
batches.py     which examples go together
schedules.py   the learning rate at each step
session.py     a folder in which a run begins, goes on or has ended -> a trained model
loop.py        steps, development loss, early stopping
record.py      the files of a run: its state, its log; and a lock
progress.py    the line on standard error
translator.py  pairs of sentences -> a Transformer
captioner.py   features of images and their captions -> Show and Tell
"""
