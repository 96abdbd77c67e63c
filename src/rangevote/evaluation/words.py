"""What a word is: the unit in which lengths, n-grams and copies are counted.

It moves numbers, so every signature names it. "words" are cut at white space; "wordpunct" cuts
punctuation off as NLTK's tokeniser of that name does, under which the references of newstest2014 have the
21.66 words that the paper reports; the others are sacrebleu's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rangevote.errors import choose, need
from rangevote.similarity.tokens import TOKENISERS, Tokenise

Split = Callable[[str], Sequence[str]]

_WORDPUNCT = re.compile(r"\w+|[^\w\s]+")

#: The units that need no other package.
PLAIN: dict[str, Split] = {
    "words": str.split,
    "chars": lambda text: "".join(text.split()),
    "wordpunct": _WORDPUNCT.findall,
}
#: name -> where the tokeniser is found, None for the plain ones; token ids are no words.
UNITS: dict[str, str | None] = {name: path for name, (_, path) in TOKENISERS.items() if path is not None}
UNITS |= dict.fromkeys(PLAIN)


@dataclass(frozen=True)
class Units:
    """How texts are cut before they are counted.

    `tokenize` is the unit of all that counts words; `bleu_tokenize` is sacreBLEU's own tokenisation;
    `lowercase` holds for both.
    """

    tokenize: Tokenise = "words"
    bleu_tokenize: str = "13a"
    lowercase: bool = False

    @property
    def signature(self) -> str:
        """The unit and the case, as signatures name them."""
        name = getattr(self.tokenize, "__name__", "custom") if callable(self.tokenize) else self.tokenize
        return f"on:{name}|case:{self.case}"

    @property
    def case(self) -> str:
        """As sacrebleu has it: "lc" or "mixed"."""
        return "lc" if self.lowercase else "mixed"

    def splitter(self) -> Split:
        """A function from a text to its words."""
        split = self._split()
        return (lambda text: split(text.lower())) if self.lowercase else split

    def _split(self) -> Split:
        if callable(self.tokenize):
            return self.tokenize
        path = choose("tokenisation", self.tokenize, UNITS)
        if path is None:
            return PLAIN[self.tokenize]
        module, _, name = path.partition(":")
        tokenise = getattr(need(module, "evaluate", f"the tokenisation {self.tokenize!r}"), name)()
        return lambda text: tokenise(text).split()
