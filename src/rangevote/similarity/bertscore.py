"""bertscore, bertscore:MODEL: F1 of the best matches between the two texts' word vectors; more is better.

By the user's package `bert-score`, without idf weights and without its baseline, so that a grade is a mean of
cosines: in practice from 0 to 1, never beyond -1 and 1. Symmetric: turned, a pair swaps precision and recall.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rangevote.errors import SetupError, UsageError
from rangevote.quiet import quiet
from rangevote.similarity.hub import bring, is_cached, refuse_unreachable, said
from rangevote.similarity.judged import Judged, Lazy
from rangevote.similarity.tokens import Tokenise

PACKAGE = "bert-score"
#: What the package itself takes for English.
DEFAULT = "roberta-large"


class Bertscore(Judged):
    """BERTScore's F1 of candidate and voter.

    `model` is a name on the hub or a folder; `layer` which of its layers gives the vectors, needed for those
    the package has not tuned.
    """

    def __init__(self, model: str = DEFAULT, *, layer: int | None = None, batch_size: int = 64) -> None:
        if layer is not None and layer < 1:
            raise UsageError(f"bertscore: layer must be a whole number from 1, got {layer!r}.")
        self.model, self.layer, self.batch_size = model, layer, batch_size
        self.name = f"bertscore:{model}" + ("" if layer is None else f"@{layer}")
        self._lazy = Lazy()

    def judge(self, voters: list[str], candidates: list[str]) -> Sequence[float]:
        """F1 of each candidate and the voter at the same place."""
        with self._lazy.lock:
            if self._lazy.model is None:
                self._lazy.model = load(self.model, self.layer, self.name)
            scorer: Any = self._lazy.model
            try:
                _, _, f1 = scorer.score(candidates, voters, batch_size=self.batch_size)
            except Exception as error:  # of tokenizers, transformers, torch
                raise SetupError(
                    f"{self.name}: bert-score cannot grade by this model ({said(error)})."
                ) from error
        return f1.tolist()  # type: ignore[no-any-return]


def load(model: str, layer: int | None, measure: str) -> Any:
    """The package's scorer with this model."""
    library = bring("bert_score", PACKAGE, measure)
    folder = Path(model).expanduser()
    if not folder.is_dir() and not is_cached(model):
        refuse_unreachable(model, measure)
    try:
        with quiet():
            scorer = library.BERTScorer(
                model_type=str(folder) if folder.is_dir() else model, num_layers=layer
            )
    except KeyError as error:
        raise UsageError(
            f"{measure}: bert-score has not tuned which layer of this model to take. Name one, as in "
            f"bertscore:{model}@9."
        ) from error
    except Exception as error:
        raise SetupError(f"{measure}: bert-score cannot load the model ({said(error)}).") from error
    _limit(scorer)
    return scorer


def _limit(scorer: Any) -> None:
    """Give the tokenizer the model's longest input, where its folder does not tell.

    bert-score hands on what stands in its place, 10^30, which no tokenizer of today takes.
    """
    tokenizer, network = getattr(scorer, "_tokenizer", None), getattr(scorer, "_model", None)
    positions = getattr(getattr(network, "config", None), "max_position_embeddings", None)
    if positions and getattr(tokenizer, "model_max_length", 0) > 1 << 31:
        first = (
            getattr(getattr(network, "embeddings", None), "padding_idx", -1) + 1
        )  # RoBERTa's counts from here
        tokenizer.model_max_length = positions - first  # type: ignore[union-attr]


def bertscore(argument: str, tokenize: Tokenise) -> Bertscore:
    """F1 of matched word vectors: bertscore, bertscore:MODEL or bertscore:MODEL@LAYER."""
    model, _, layer = argument.rpartition("@")
    if model and layer.isdecimal():
        return Bertscore(model, layer=int(layer))
    return Bertscore(argument or DEFAULT)
