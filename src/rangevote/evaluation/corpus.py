"""The texts that are measured: how they are cut into words, and the references and sources beside them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rangevote.errors import DataError, UsageError, choose, need
from rangevote.similarity.units import TOKENISERS, Tokenise

Split = Callable[[str], Sequence[str]]

_WORDPUNCT = re.compile(r"\w+|[^\w\s]+")

#: name -> a function, or where sacrebleu's tokeniser is defined; token ids are not words. "wordpunct" cuts
#: punctuation off as NLTK's tokeniser of that name does; under it the references of newstest2014 have the
#: 21.66 words that the paper reports.
UNITS: dict[str, Split | str] = {name: path for name, (_, path) in TOKENISERS.items() if path is not None}
UNITS |= {
    "words": str.split,
    "chars": lambda text: "".join(text.split()),
    "wordpunct": _WORDPUNCT.findall,
}


@dataclass(frozen=True)
class WordUnits:
    """How texts are cut before they are counted; part of every signature, since it changes the numbers.

    `tokenize` is the unit of everything that counts words; `bleu_tokenize` is sacreBLEU's own tokenisation;
    `lowercase` applies to both.
    """

    tokenize: Tokenise = "words"
    bleu_tokenize: str = "13a"
    lowercase: bool = False

    @property
    def signature(self) -> str:
        name = getattr(self.tokenize, "__name__", "custom") if callable(self.tokenize) else self.tokenize
        return f"on:{name}|case:{self.case}"

    @property
    def case(self) -> str:
        """As sacrebleu writes it: "lc" or "mixed"."""
        return "lc" if self.lowercase else "mixed"

    def splitter(self) -> Split:
        """A function from a text to its words."""
        split = self._split()
        return (lambda text: split(text.lower())) if self.lowercase else split

    def _split(self) -> Split:
        if callable(self.tokenize):
            return self.tokenize
        unit = choose("tokenisation", self.tokenize, UNITS)
        if callable(unit):
            return unit
        module, _, name = unit.partition(":")
        tokenise = getattr(need(module, "evaluate", f"the tokenisation {self.tokenize!r}"), name)()
        return lambda text: tokenise(text).split()


@dataclass(frozen=True)
class EvaluationCorpus:
    """References and sources of `size` items; None where there are none at all.

    An item may have several references, and not every item the same number.
    """

    size: int
    references: Sequence[Sequence[str]] | None = None
    sources: Sequence[str] | None = None

    @classmethod
    def of(
        cls,
        size: int,
        references: Sequence[str | Sequence[str]] | None = None,
        sources: Sequence[str] | None = None,
    ) -> EvaluationCorpus:
        """A corpus for `size` outputs; a plain string is a single reference."""
        if size == 0:
            raise DataError("there are no outputs, so there is nothing to measure.")
        for name, given in (("references", references), ("sources", sources)):
            if isinstance(given, str):
                raise UsageError(
                    f"{name} is one string, not a list: pass a list with an entry for each output."
                )
            if given is not None and len(given) != size:
                raise DataError(
                    f"there are {size:,} outputs but {len(given):,} {name}; there must be one for each."
                )
        if references is None:
            return cls(size, None, sources)
        listed = [(item,) if isinstance(item, str) else tuple(item) for item in references]
        for number, item in enumerate(listed):
            if not item:
                raise DataError("is empty; every output needs a reference.", field=f"references[{number}]")
        return cls(size, listed, sources)

    @property
    def references_per_item(self) -> tuple[int, int]:
        """The fewest and the most references of an item; (0, 0) without references."""
        counts = [len(item) for item in self.references or ()]
        return (min(counts), max(counts)) if counts else (0, 0)

    @property
    def signature(self) -> str:
        """How many references, as sacrebleu writes it: `nrefs:5`, or `nrefs:var`."""
        fewest, most = self.references_per_item
        return f"nrefs:{most if fewest == most else 'var'}"

    def columns(self) -> list[list[str]]:
        """One reference an item, as many times as the most an item has.

        That makes the references' diversity comparable with the outputs': five references an item are
        five texts of the outputs' size, not one five times as long. Items with fewer begin again.
        """
        listed = self.references or ()
        return [[item[i % len(item)] for item in listed] for i in range(self.references_per_item[1])]
