"""exact:math: answers that are the same mathematics, such as sqrt(8) and 2 sqrt(2), or (x+1)^2 and x^2+2x+1.

The answer is read by math-verify where that is installed, otherwise, of a box alone, by sympy. Two answers
are the same if they have the same values, to 15 digits (above 1 to 15 places, so that 10^20 is not
10^20 + 1), where each of their symbols stands for a number of its own that is made of its name. So equality
is transitive, as a key needs, and nothing is simplified, which could take forever.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Hashable
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from rangevote.similarity.answers import boxed, last_number

#: Characters of a text, at its end, in which an answer without a box is looked for.
LOOKED_AT = 2000
DIGITS = 15
#: What could take forever: powers of powers, large powers, factorials of large numbers, long numbers.
_TOO_MUCH = re.compile(
    r"\^\s*\{[^{}]*\^|\^\s*\{?\s*-?\s*[\d.,]{4}|[\d.,]{4}[\s})]*!|!\s*!|\d{50}|\\boxed\{(?s:.{400})"
)


@dataclass(frozen=True)
class MathAnswer:
    """An answer as it was read; equal to another if its `values` are."""

    values: Hashable
    text: str = field(compare=False)

    def __str__(self) -> str:
        return self.text


def math_answer(text: str) -> Hashable:
    """The mathematics in the last box, or what math-verify finds in the text; None where there is none."""
    import sympy

    box = boxed(text)
    looked_at = text[-LOOKED_AT:] if box is None else rf"\boxed{{{box}}}"
    looked_at = looked_at.replace(r"\varnothing", r"\emptyset")
    too_much = _TOO_MUCH.search(looked_at)
    try:
        value = None if too_much else _parsed(looked_at, box)
        if value is None and (box is None or not too_much) and (number := last_number(looked_at)) is not None:
            value = sympy.Rational(number)
        if isinstance(value, sympy.Equality) and isinstance(value.lhs, sympy.Symbol):
            value = value.rhs  # x = 5 is 5
        if value is not None:
            return MathAnswer(_values(value), str(value))
    except (ArithmeticError, AttributeError, RecursionError, TypeError, ValueError, NotImplementedError):
        pass  # mathematics that has no values
    return None if box is None else "".join(box.split())


def _parsed(text: str, box: str | None) -> Any:
    """A sympy object, or None."""
    if find_spec("math_verify"):
        import math_verify

        logging.getLogger("math_verify").setLevel(logging.ERROR)  # limits of time would need signals
        answers = math_verify.parse(text, parsing_timeout=None, raise_on_error=False)
        return next((answer for answer in answers if not isinstance(answer, str)), None)
    from sympy.parsing.latex import parse_latex

    try:
        return None if box is None else parse_latex(box, backend="lark")
    except Exception:  # the parser's own errors are of many kinds
        return None


def _values(value: Any) -> Hashable:
    """What stays the same however the mathematics is written."""
    import sympy

    if isinstance(value, sympy.MatrixBase):
        return ("matrix", *value.shape, *map(_values, value))
    if isinstance(value, sympy.FiniteSet):
        return ("set", frozenset(map(_values, value.args)))
    if isinstance(value, sympy.Interval):
        ends = (value.left_open, value.right_open)
        return ("interval", _values(value.start), _values(value.end), *map(bool, ends))
    if isinstance(value, (sympy.Tuple, tuple, list)):
        return ("list", *map(_values, value))
    if isinstance(value, sympy.Equality):
        return ("equal", frozenset({_values(value.lhs), _values(value.rhs)}))
    if isinstance(value, sympy.Symbol) and str(value) != "i":
        return ("name", str(value).casefold())
    endless = (sympy.Integral, sympy.Sum, sympy.Product, sympy.Limit)
    if isinstance(value, sympy.Expr) and not value.has(*endless):
        exact = {decimal: sympy.Rational(str(decimal)) for decimal in value.atoms(sympy.Float)}
        numbers = {symbol: _number_of(str(symbol)) for symbol in value.free_symbols}
        value = value.xreplace(exact).doit()
        size = abs(value.evalf(DIGITS, subs=numbers, chop=True))
        digits = DIGITS + (max(0, int(sympy.log(size, 10)) + 1) if size.is_number and size > 1 else 0)
        number = value.evalf(digits + DIGITS, subs=numbers, chop=True)
        if number.is_number:
            parts = number.as_real_imag()
            return tuple("0" if abs(part) < 10.0**-DIGITS else str(part.evalf(digits)) for part in parts)
    return ("written", str(value))


def _number_of(name: str) -> Any:
    """The imaginary unit for i; for another symbol a number between 1 and 2 of its own."""
    import sympy

    if name == "i":
        return sympy.I
    digest = hashlib.sha256(name.encode()).digest()
    return sympy.Rational(2**64 + int.from_bytes(digest[:8], "big"), 2**64)
