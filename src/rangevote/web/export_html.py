"""The election page as one file that opens from disk: page, style, script and answers in it, nothing loaded.

The page's modules are joined into one script, since a file may not import others from disk. Script and style
are allowed by their hashes in a policy that forbids everything else. The answers are in a block of JSON,
compressed ballot by ballot: each is unpacked when it is opened, and no text can close the block.
"""

from __future__ import annotations

import re
import zlib
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from graphlib import TopologicalSorter
from hashlib import sha256
from typing import Any
from urllib.parse import quote

import msgspec

from rangevote.errors import RangevoteError, SetupError
from rangevote.web.app import PAGE, ElectionPage, NotFound
from rangevote.web.serving import assets

STYLES = ("base.css", "election.css")
#: Candidates of each ballot whose score is taken apart in an export.
EXPLAINED = 100
#: Digits of a number in an export.
PRECISION = 6
#: Maximum size of an exported file in bytes; browsers do not open much larger ones.
LARGEST = 200 * 2**20
#: What JavaScript's encodeURIComponent leaves as it is.
UNQUOTED = "-_.!~*'()"
#: Answers by their paths.
Answers = Mapping[str, Any]

_IMPORT = re.compile(r'^import \{[^}]*\} from "\./([a-z_]+\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?function|const|class)", re.MULTILINE)
_COMMENT = re.compile(r"^ *(?:/\*\*.*?\*/|//[^\n]*)\n|^ +", re.MULTILINE | re.DOTALL)


def single_file(page: ElectionPage, done: Callable[[], None] = lambda: None) -> str:
    """The whole page with all its answers; `done` is called after each ballot."""
    html = assets("rangevote.web")["election.html"].text
    style = "".join(assets("rangevote.web")[name].text for name in STYLES)
    script = joined()
    block = data_block(export_answers(page, done))
    script_hash, style_hash = (b64encode(sha256(one.encode()).digest()).decode() for one in (script, style))
    policy = (  # run this script, apply this style, and nothing else
        f"default-src 'none'; script-src 'sha256-{script_hash}'; style-src 'sha256-{style_hash}'; "
        "img-src data:; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
    head = (
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f"<style>{style}</style>\n"
        f'<script type="application/json" id="answers">{block}</script>\n'
        f'<script type="module">{script}</script>\n'
    )
    before, served = html.split("<!-- served -->\n")
    return before + head + served.split("<!-- /served -->\n")[1]


def export_answers(
    page: ElectionPage, done: Callable[[], None] = lambda: None
) -> Iterator[tuple[str, Answers]]:
    """The beginning of paths, and the answers under all paths that begin so."""
    yield "", dict(_of_all_ballots(page))
    for number in range(page.kept):
        yield f"api/ballots/{number}", dict(_of_ballot(page, number))
        done()


def _of_all_ballots(page: ElectionPage) -> Iterator[tuple[str, object]]:
    """The paths that belong to no single ballot, with their answers."""
    about = page.about()
    yield "api/election", msgspec.structs.replace(about, measures=[])  # a file elects nothing
    for list in range(len(about.lists)) if about.members else ():
        yield f"api/members?list={list}", page.members(list)
    for number in range(-(-page.kept // PAGE)):
        rows = page.page(number)
        yield f"api/ballots?page={number}", rows
        for id in (str(row.id) for row in rows if row.id is not None):
            yield f"api/find?id={quote(id, safe=UNQUOTED)}", page.find(id)


def _of_ballot(page: ElectionPage, number: int) -> Iterator[tuple[str, object]]:
    """The paths that belong to one ballot, with their answers; a failure is kept as its message."""
    start = f"api/ballots/{number}"
    for list, _ in enumerate(page.about().lists):
        end = f"?list={list}"
        try:
            yield f"{start}/winners{end}", page.winners(number, list)
            shown = page.election(number, list)
        except (RangevoteError, NotFound) as error:
            yield start + end, {"error": str(error)}
            continue
        if (image := page.image(number, list)) is not None:
            shown.ballot.image = f"data:{image.type};base64,{b64encode(image.content).decode()}"
        yield start + end, shown
        yield f"{start}/grades{end}", page.grades(number, list)
        first = [row.index for row in shown.candidates.rows[:EXPLAINED]]
        for index in dict.fromkeys([*first, shown.most_likely]):
            if index is not None:
                yield f"{start}/candidates/{index}{end}", page.parts(number, list, index)
        for role, rows in (("candidates", shown.candidates.rows), ("voters", shown.voters.rows)):
            for row in rows:
                if row.more:
                    text = page.text(number, list, role, row.index)
                    yield f"{start}/text{end}&role={role}&index={row.index}", text


def data_block(parts: Iterable[tuple[str, Answers]]) -> str:
    """Answers by the beginning of their paths, each part compressed, as JSON for a script element."""
    block, size = {}, 0
    for start, some in parts:
        packed = zlib.compress(msgspec.json.encode(_shorter(msgspec.to_builtins(some))), 9)
        block[start] = b64encode(packed).decode()
        size += len(block[start])
        if size > LARGEST:
            raise SetupError(
                f"the page would be larger than {LARGEST / 2**20:,.0f} MiB, which browsers may not open. "
                f"Export fewer ballots with --limit, or look at them with rangevote show without --export."
            )
    return msgspec.json.encode(block).decode()


def _shorter(answer: Any) -> Any:
    """Plain data with numbers of `PRECISION` digits."""
    if isinstance(answer, float):
        return float(f"{answer:.{PRECISION}g}")
    if isinstance(answer, dict):
        return {name: _shorter(value) for name, value in answer.items()}
    return [_shorter(value) for value in answer] if isinstance(answer, (list, tuple)) else answer


def joined() -> str:
    """All modules of the page as one script, each after those it needs, without comments."""
    files = {
        name: asset.text for name, asset in sorted(assets("rangevote.web").items()) if name.endswith(".js")
    }
    order = TopologicalSorter({name: _IMPORT.findall(text) for name, text in files.items()}).static_order()
    return "".join(_COMMENT.sub("", _EXPORT.sub("", _IMPORT.sub("", files[name]))) for name in order)
