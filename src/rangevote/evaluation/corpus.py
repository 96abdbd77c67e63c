"""What outputs are measured against, item by item: references, sources, or neither."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rangevote.errors import DataError, UsageError

Id = str | int


@dataclass(frozen=True)
class Corpus:
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
    ) -> Corpus:
        """A corpus for `size` outputs; a plain string is a single reference."""
        if size == 0:
            raise DataError("there are no outputs, so there is nothing to measure.")
        _check_lists(references, sources)
        _check_number(size, references, "references")
        _check_number(size, sources, "sources")
        if references is None:
            return cls(size, None, sources)
        listed = [(item,) if isinstance(item, str) else tuple(item) for item in references]
        for number, item in enumerate(listed):
            if not item:
                raise DataError("is empty; every output needs a reference.", field=f"references[{number}]")
        return cls(size, listed, sources)

    @property
    def numbers(self) -> tuple[int, int]:
        """The fewest and the most references of an item; (0, 0) without references."""
        counts = [len(item) for item in self.references or ()]
        return (min(counts), max(counts)) if counts else (0, 0)

    @property
    def signature(self) -> str:
        """How many references, as sacrebleu writes it: `nrefs:5`, or `nrefs:var`."""
        fewest, most = self.numbers
        return f"nrefs:{most if fewest == most else 'var'}"

    def columns(self) -> list[list[str]]:
        """One reference an item, as many times as the most an item has.

        That makes the references' diversity comparable with the outputs': five references an item are
        five texts of the outputs' size, not one five times as long. Items with fewer begin again.
        """
        listed = self.references or ()
        return [[item[i % len(item)] for item in listed] for i in range(self.numbers[1])]


def _check_lists(references: Sequence[str | Sequence[str]] | None, sources: Sequence[str] | None) -> None:
    for name, given in (("references", references), ("sources", sources)):
        if isinstance(given, str):
            raise UsageError(f"{name} is one string, not a list: pass a list with an entry for each output.")


def _check_number(size: int, given: Sequence[object] | None, name: str) -> None:
    if given is not None and len(given) != size:
        raise DataError(f"there are {size:,} outputs but {len(given):,} {name}; they must go in step.")
