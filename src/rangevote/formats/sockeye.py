"""N-best JSON of Sockeye: `--nbest-size N --output-type json`, one object a line.

    {"sentence_id": 1, "translation": "..", "translations": ["..", ".."], "scores": [[0.4], [0.55]]}

What scores mean: minus the natural log of P, divided by length ** alpha, where the length counts the
end of the sequence and alpha (--length-penalty-alpha) is 1 unless it was set. The file does not say.
"""

from __future__ import annotations

import msgspec

from rangevote.errors import DataError
from rangevote.formats.jsonl import decode_as
from rangevote.formats.logprobs import accept, scale_of, scored_ballot
from rangevote.formats.reader import Decode, ReadOptions
from rangevote.hypothesis import Ballot

_UNSETTLED = (
    "Sockeye's scores are divided by a power of the length that the file does not tell. Pass "
    "--normalisation length (Sockeye's default, --length-penalty-alpha 1), --normalisation X for "
    "another alpha, --normalisation none for alpha 0; or --score-scale count to ignore the scores."
)


class SockeyeLine(msgspec.Struct):
    """The fields that matter; a list for each target factor stands in `scores`, the words' first."""

    translation: str | None = None
    translations: list[str] | None = None
    score: float | None = None
    scores: list[list[float] | float] | None = None
    sentence_id: int | str | None = None


def decoder(options: ReadOptions) -> Decode:
    return lambda line: _ballot(decode_as(line, SockeyeLine), options)


def _ballot(row: SockeyeLine, options: ReadOptions) -> Ballot:
    texts = row.translations
    if texts is None:
        if row.translation is None:
            raise DataError('has no translations; expected {"translations": ["..."], "scores": ...}')
        texts = [row.translation]
    scores = _scores(row, len(texts))
    scale = scale_of(options, alpha=None, sign=-1, unsettled=_UNSETTLED) if scores else None
    logprobs: list[float | None] = [None] * len(texts)
    if scale is not None:
        # translations are the model's own tokens, joined by spaces
        logprobs = [*scale.logprobs(scores, [len(text.split()) + 1 for text in texts])]
    return accept(scored_ballot(texts, logprobs, row.sentence_id), options)


def _scores(row: SockeyeLine, size: int) -> list[float]:
    """One score a translation; none at all where the file has none."""
    if row.scores is None:
        return [row.score] if row.score is not None and size == 1 else []
    if len(row.scores) != size:
        raise DataError(f"has {size} translations but {len(row.scores)} scores", field="scores")
    scores = []
    for i, item in enumerate(row.scores):
        if isinstance(item, list) and not item:
            raise DataError("is empty", field=f"scores[{i}]")
        scores.append(item[0] if isinstance(item, list) else item)
    return scores
