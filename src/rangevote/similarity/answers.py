r"""Keys of `exact`: the answer in a text, or None where there is none that can be read for certain.

What a model wrote to itself before its answer (`split_reasoning`) is cut off before a key looks.

Numbers are read in two steps. `REWRITES` bring the many ways to write one (LaTeX, Unicode, units) into plain
characters. Then the last run of digits, and of what joins digits, has to have one of `FORMS`: a run that has
none is a range, a date, a list or a formula, and not a number. Where there is a box, its content alone
is looked at, and has to be one number.

A choice is read in three steps. Letters that a negation excludes ("not A", "(A) and (B) are wrong") and
lists that leave the choice open ("A or B") are struck out. Then the last of `STATED` ("the answer is C")
wins; where there is none, the `MARKED` letters ("(C)") do, if they agree.
"""

from __future__ import annotations

import re
import unicodedata
from collections import deque
from collections.abc import Callable, Mapping
from fractions import Fraction

#: The longest number that is read, in characters; powers give no more digits than this either.
LONGEST = 300

_FRACTION = r"\\frac\s*(?:\{\s*([-+]?[\d.,]+)\s*\}\s*\{\s*([-+]?[\d.,]+)\s*\}|(\d)\s*(\d))"
_SUPERSCRIPT = "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻"


def _repeating(match: re.Match[str]) -> str:
    r"""0.1\overline{6} as the fraction 15/90."""
    digits = match["whole"] + match["once"]
    value = int(digits + match["period"]) - int(digits or "0")
    return f"{value}/{(10 ** len(match['period']) - 1) * 10 ** len(match['once'])}"


#: What is written otherwise, and how it is read; in this order.
REWRITES: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (
        re.compile(r"(?P<whole>\d{0,50})\.(?P<once>\d{0,50})\\(?:overline|bar)\{(?P<period>\d{1,50})\}"),
        _repeating,
    ),
    (re.compile(f"[{_SUPERSCRIPT}]+"), lambda m: "^" + unicodedata.normalize("NFKC", m[0])),
    (re.compile(r"(?<=\d)(?=[¼-¾⅐-⅞])"), " "),  # 1½
    (re.compile(r"\\!|\\(?=[$%])"), ""),
    (re.compile(r"(?<=\d)(?:\{,\}|\\,|٬|[\u00a0\u2009\u202f'’_])(?=\d{3})"), ","),  # 1 000 without a break
    (re.compile(r"(?s).+"), lambda m: unicodedata.normalize("NFKC", m[0])),
    (re.compile("[−–‐‑]"), "-"),
    (re.compile("[⁄∕]"), "/"),
    (re.compile("(?<=\\d)٫(?=\\d)"), "."),
    (re.compile(r"\\[dtc]frac"), r"\\frac"),
    (re.compile(r"(?<=\d)\s*" + _FRACTION), r" \1\3/\2\4"),  # 1\frac{1}{2}
    (re.compile(_FRACTION), r"\1\3/\2\4"),
    (re.compile(r"\\(?:text|mathrm|mbox)\{([^{}]*)\}"), r" \1"),
    (re.compile(r"\\?\bsqrt|\\pi|\\pm|\bpi\b"), "√"),
    (re.compile(r"\\(?:times|cdot)|[×·⋅]"), "*"),
    (re.compile(r"(?<=\d)\*\*(?=[-\d])"), "^"),
    (re.compile(r"\\(?!frac|\))[A-Za-z]*"), " "),
    (re.compile(r"(?<![A-Za-z])(?:[cdkm]?m|ft|in|yd|mi|s) ?(?:\^ ?\{?-?\d\}?|[23]\b)"), " "),  # 12 cm^2
)

#: The last match is the number: what no number can be read after, or digits with what joins them.
_RUN = re.compile(
    r"(?:\\frac|[√π±])(?:[^=≈$\n\\]|\\(?!\)))*"
    r"|(?P<sign>(?:(?<![\w)\]}%])[-+]|(?<=[={($]) *- *)[$€£¥₹]?)?"
    r"(?P<number>(?:(?<![\w.)])\.)?\d+(?:(?:%?[.,:'_-]+[-+$€£¥₹]?|[eE][-+]?| ?/ ?[-+]?| ?\^ ?[{(]?[-+]?"
    r"| ?[*xX] ?(?=\d+ ?\^)| (?=\d+ ?/ ?\d)| (?=\d{3}(?!\d))| -)\d+)*)"
)
#: Before a run that is not a number of its own: x2, x_2, n/2, y^2, n + 2, ln 2.
_FORMULA_BEFORE = re.compile(
    r"(?:[A-Za-z]_?|[/^_]\s?[{(]\s?|[/^]\s?|(?<![A-Za-z])[a-z]\s?[-+*]\s?|(?<![A-Za-z])(?:ln|log|exp|sin|cos|tan)\s?[({]?\s?)$"
)
#: After a run that is not a number of its own: 2x, 3i.
_FORMULA_AFTER = re.compile(r"[binxyz](?![A-Za-z])")
#: A minus that stands apart from its number, after what a formula cannot end with.
_MINUS_BEFORE = re.compile(r"(?:(?<![\w)\]}%])(?:minus|negative)|\bis:?\s*-) $")
_MINUS_ALONE = re.compile(r"(?:\A|:)\s*- ?$")
#: In a box, what a number may be written with.
_BOX_COMMANDS = re.compile(
    r"\\(?:boxed|[dtc]?frac|text(?:bf|rm|it)?|math(?:rm|bf)|mbox|times|cdot|approx|circ|degree|left|right|overline|bar"
    r"|[^A-Za-z])"
)
_NUMBER = r"(?=[\d.])(?:(?!0)\d{1,3}(?:,\d{3})+|\d*)(?:\.\d+)?(?:[eE][-+]?\d{1,3})?"
#: 1,200.50 or 1e5; 1/2 or 1 1/2; 10^5 or 2.5*10^-3.
FORMS = (
    re.compile(rf"(?:(?P<whole>\d+) (?=\d+ ?/))?(?P<a>{_NUMBER})(?: ?/ ?(?P<b>[-+]?{_NUMBER}))?"),
    re.compile(rf"(?:(?P<a>{_NUMBER}) ?[*xX] ?)?(?P<base>{_NUMBER}) ?\^ ?[{{(]?(?P<power>[-+]?\d{{1,3}})"),
)


def last_number(text: str) -> str | None:
    r"""The last number in the text, written plainly: '1,200.50' and '1200.5' are one answer, as are '1/2',
    '\frac{1}{2}', '½' and '.5', or '1e5', '10^5' and '100,000'.

    A percent sign or a unit does not change the number. Where the last number is part of a range ('12-15'), a
    date, a list without spaces, a name ('x2') or a formula with roots or π, nothing is found.
    """
    box = None
    if "\\boxed{" in text:
        box = boxed(text)
        if box is None or re.search(r"\\[A-Za-z]|[<>≤≥]", _BOX_COMMANDS.sub("", box)):
            return None
        *sides, text = re.split(r"=|≈|\\approx", box)
        if any(re.search(r",(?!\d{3})", side) for side in sides):  # x = 3, y = 4
            return None
    for written, plainly in REWRITES:
        text = written.sub(plainly, text)
    runs = list(_RUN.finditer(text))
    if not runs or (number := runs[-1]["number"]) is None or len(number) > LONGEST:
        return None
    before, after = text[: runs[-1].start()], text[runs[-1].end() :]
    if _FORMULA_BEFORE.search(before[-9:]) or _FORMULA_AFTER.match(after):
        return None
    if box is not None and (len(runs) > 1 or re.search("[-+*/^]", before.strip("-+ ")) or after[:1] == "!"):
        return None
    minus = _MINUS_BEFORE.search(before) or (_MINUS_ALONE.search(before) and not re.search(r"\w", after))
    for form in FORMS:
        if match := form.fullmatch(number):
            value = _value(match.groupdict())
            negative = minus or "-" in (runs[-1]["sign"] or "")
            return None if value is None else _written(-value if negative else value)
    return None


def _value(parts: Mapping[str, str | None]) -> Fraction | None:
    """Of the parts of a form, where they make one number."""

    def part(name: str, default: int) -> Fraction:
        return Fraction((parts.get(name) or str(default)).replace(",", ""))

    whole, a, b, base, power = part("whole", 0), part("a", 1), part("b", 1), part("base", 1), part("power", 1)
    if not b or (whole and not 0 < a < b):
        return None
    if (not base and power < 0) or len(str(base)) * abs(power) > LONGEST * 2:
        return None
    return (whole + a / b) * base**power.numerator


def _written(value: Fraction) -> str:
    """As a decimal where that ends, otherwise as a fraction.

    >>> _written(Fraction(5, 2)), _written(Fraction(-6, 2)), _written(Fraction(1, 3))
    ('2.5', '-3', '1/3')
    """
    places = value.denominator.bit_length()
    if 10**places % value.denominator:
        return str(value)
    digits = str(int(abs(value) * 10**places)).rjust(places + 1, "0")
    sign = "-" if value < 0 else ""
    return sign + f"{digits[:-places]}.{digits[-places:]}".rstrip("0").rstrip(".")


_BARE = r"(?<![\w'’.-])(?:[B-HJ-Z]|[AI](?! +(?!(?:and|are|but|is|nor|or|since)\b)\w| *[-'’]))(?![\w'’+#]|-\w)"
_LETTER = rf"(?:(?<!\w)[(\[*_`\"“']{{1,3}}[A-Z][.):]?[)\]*_`\"”']{{1,3}}(?!\w)|{_BARE})"
_LIST = rf"{_LETTER}(?:(?:, *{_LETTER}){{0,8}},? +(?:and|or|nor|&) +{_LETTER})"
_IS = r"(?:is|are|was|were|seems?)"
_ADVERB = r"(?: +(?:both|all|also|clearly|obviously|definitely|simply|just))*"
#: A small letter that is marked as a choice: (b), or b) at the beginning of a line.
_SMALL = re.compile(r"(?m)(?<![\w)])\([a-h]\)|^[^\w\n(]*[a-h]\)")
#: Letters that are not a choice: excluded, only supposed, or several.
STRUCK = (
    re.compile(
        r"(?i:\b(?:not|never|neither|nor|cannot|rather than|instead of|rul\w+ out|eliminat\w+"
        r"|exclud\w+|reject\w*|unlike)\b|n['’]t\b)"
        r"(?i: +(?:be|to|confused|with|the|options?|choices?|answers?|either|correct|right))*"
        rf" +(?:{_LIST}|{_LETTER})"
    ),
    re.compile(rf"(?i:\bwould be(?: option| choice)?) +{_LETTER} +if\b"),
    re.compile(
        rf"(?:{_LIST}|{_LETTER}) +(?:(?:{_IS}|does|do|can|could|would)(?:n['’]t|{_ADVERB} +not)\b"
        r"|can(?:not|['’]t)\b"
        rf"|{_IS}{_ADVERB} +(?:incorrect|wrong|false|invalid|impossible|out)\b)"
    ),
    re.compile(_LIST),
)
_CUE = (
    r"(?i:\b(?:answer|choose|chose|pick|select|go with)\b"
    r"|\b(?:choice|option|letter)\b(?=(?:[^\w?:]|\b(?:here|would|should|must)\b)*(?:\b(?:is|be)\b|:)))"
)
_FILLER = (
    r"(?:[^\w?]|\b(?i:is|was|be|must|should|would|the|correct|right|best|final|option|choice|letter|here|clearly|definitely"
    r"|therefore|thus|then|to|this|question|but|it)\b)"
)
#: What can follow a choice: the article A and the pronoun I are followed by other words.
_CHOICE = (
    r"([B-HJ-Z]|[AI](?! +\w| *[-'’])"
    r"|[AI](?= +(?:because|since|is|as|which|based|due|given|rather|instead)\b))"
)

#: How a choice is stated; the letter is the group.
STATED = (
    re.compile(
        _CUE + _FILLER + r"{1,40}(?<!\w)" + _CHOICE + r"(?![\w'’+#]|-\w|[^\w.!\n]*\?)"
    ),  # the answer is C
    re.compile(r"(?<![\w'’.-])([A-Z])(?=[)\]*_]* is (?:the )?(?:correct|right|best|answer)\b)"),
    re.compile(r"\\boxed\{\W{0,9}(?:\\text\w*\{)?\W{0,9}([A-Z])\W{0,9}\}"),
    re.compile(r"<answer>\W{0,9}([A-Z])\b"),
    re.compile(r"(?m)^[^\w\n]*([A-Z])[^\w\n?]*$"),  # alone on a line
)
#: How a letter is marked as a choice without such words.
MARKED = (
    re.compile(r"(?:(?<!\w)[(\[]|\{) *([A-Z]) *[)\]}]"),  # (C), {C}
    re.compile(r"(?<!\w)[*_`\"“']{1,3}\(?([A-HJ-Z])\)?[.:]?[*_`\"”']{1,3}(?!\w)"),  # **C**
    re.compile(r"\*\*\(?([A-Z])[.):] [^*\n]*\*\*"),  # **C) Rome**
    re.compile(r"(?i:\b(?:option|choice|letter)\b)\W{1,3}" + _CHOICE + r"(?![\w'’+#]|-\w)"),  # Option C
    re.compile(r"(?m)^[^\w\n]*([A-Z])(?:[.:] |\))"),  # B. Paris
    re.compile(r"\A\W*([A-HJ-Z])(?:, | [-–—] )"),  # B, because
)
#: A letter that ends the text, after a word that announces it: it wins over other marks.
_AT_THE_END = re.compile(
    r"(?:\b(?i:is|be|it['’]s|so|thus|hence|therefore|definitely|certainly|probably|likely|surely|leaves)\b|[:=→,>])[^\w?]*"
    r"([A-HJ-Z])[^\w\s+#?]*\s*\Z"
)


def choice(text: str) -> str | None:
    """The choice, as a capital letter: the last that is stated ('the answer is C', 'C is correct',
    alone on a line or in a box), otherwise the one that is marked ('(C)', '(c)', '**C**', 'option C').

    Where a negation excludes a letter ('not A', '(A) is wrong'), or several are left, it is none of them.
    Other letters are words, such as I and A, and not answers.
    """
    text = _SMALL.sub(lambda match: match[0].upper(), unicodedata.normalize("NFKC", text))
    for struck in STRUCK:
        text = struck.sub(lambda match: "…" * len(match[0]), text)
    stated = [match for form in STATED for match in form.finditer(text)]
    if stated:
        return max(stated, key=lambda match: match.start(1))[1]
    if at_the_end := _AT_THE_END.search(text[-80:]):
        return at_the_end[1]
    marked = {match[1] for form in MARKED for match in form.finditer(text)}
    return marked.pop() if len(marked) == 1 else None


def boxed(text: str) -> str | None:
    r"""The content of the last \boxed{...}, as mathematics models mark their answers; None where it is empty
    or not closed. An escaped brace, \{ or \}, neither opens nor closes anything."""
    start = text.rfind("\\boxed{")
    if start < 0:
        return None
    depth, begin = 1, start + len("\\boxed{")
    for brace in re.finditer(r"\\.|[{}]", text[begin:], re.DOTALL):
        depth += {"{": 1, "}": -1}.get(brace[0], 0)
        if depth == 0:
            return text[begin : begin + brace.start()].strip() or None
    return None


def plain(text: str) -> str | None:
    """The text without regard to case, punctuation and marks at its ends, and runs of white space.

    >>> plain(" **Rome.** ")
    'rome'
    """
    return " ".join(text.casefold().split()).strip(" .,;:!?\"'*_`$") or None


def regex(pattern: re.Pattern[str], text: str) -> str | None:
    """The last match that is not empty; of a pattern with groups, its first group that took part."""
    matches = deque((match for match in pattern.finditer(text) if match[0]), maxlen=1)
    if not matches:
        return None
    groups = [group for group in matches[0].groups() if group is not None]
    return (groups[0] if groups else matches[0][0]).strip()


def after(marker: str, text: str) -> str | None:
    """What follows the last occurrence of the marker on its line, in any case; plainly."""
    _, occurrence, rest = text.casefold().rpartition(marker.casefold())
    return plain(rest.strip(" \t:*_").partition("\n")[0]) if occurrence else None


def line(which: int, text: str) -> str | None:
    """The first or the last line that is not empty, plainly."""
    lines = text.strip().splitlines()
    return plain(lines[which]) if lines else None
