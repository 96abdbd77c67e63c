"""What MkDocs cannot do by itself: files beside docs/, parts of them in pages, the commands' own help.

A page may hold, on a line of its own,

    <!-- include experiments/RESULTS.md: Heading / Heading below it -->    the part under that heading
    <!-- help -->                                                          the help of every command
    <!-- names -->                                                         in the repository: a page's entries
    <!-- options -->                                                       the options of an election

so that no number and no option is kept in two places by hand. For those who read the pages in the repository,
`make docs` writes below each such line what it stands for, up to `<!-- end -->`; the site takes it anew.
Links lead where they lead in the repository.
"""

from __future__ import annotations

import inspect
import posixpath
import pydoc
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

from rangevote.cli import COMMANDS, Commands
from rangevote.election.settings import SCHEMA

ROOT = Path(__file__).parents[2]
#: Files beside docs/ that are part of the site, at the path they have in the repository.
BESIDE = (
    "CHANGELOG.md",
    "CITATION.cff",
    "CONTRIBUTING.md",
    "README.md",
    "SECURITY.md",
    "benchmarks/*.md",
    "benchmarks/results.png",
    "experiments/README.md",
    "experiments/RESULTS.md",
    "experiments/TABLES.md",
    "experiments/figures/*.svg",
    "examples/*.md",
    "examples/data/README.md",
    "examples/*.py",
    "examples/plugin/*.py",
    "examples/*.ipynb",
    "faults/RESULTS.md",
    "faults/trials.py",
    "fuzz/RESULTS.md",
    "fuzz/targets.py",
)
_LINK = re.compile(r"(\]\()(?![a-z]+:|#|/)([^)\s#]+)(#[^)\s]*)?\)")
_DRAWING = re.compile(r'<p><img [^>]*src="[^"]*?(assets/[a-z]+\.svg)"[^>]*></p>')
_DIRECTIVE = re.compile(
    r"^<!-- (include|help|names|options)(?: (\S+?))?(?:: (.+?))? -->$"
    r"(?:\n(?:(?!<!-- (?:include|help|names|options)\b).*\n)*?<!-- end -->$)?",  # what it was then
    re.MULTILINE,
)


def on_files(files: Files, config: Any) -> Files:
    """Add the files beside docs/."""
    for pattern in BESIDE:
        for path in sorted(ROOT.glob(pattern)):
            uri = path.relative_to(ROOT).as_posix()
            files.append(File.generated(config, uri, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Fill a page in."""
    uri = page.file.src_uri
    here = posixpath.dirname(_in_repository(uri))
    filled = _DIRECTIVE.sub(lambda found: _filled(found, uri, _in_site), markdown)
    return _relinked(filled, here, uri)


def on_page_content(html: str, page: Any, config: Any, files: Files) -> str:
    """Put drawings into the page, where they follow its colours."""
    return _DRAWING.sub(lambda found: (ROOT / "docs" / found[1]).read_text(encoding="utf-8").strip(), html)


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Name the theme's search box to those who do not see it."""
    return output.replace('role="dialog">', 'role="dialog" aria-label="Search">')


def _in_repository(uri: str) -> str:
    """Where the file of a page is, from the root of the repository."""
    return f"docs/{uri}" if (ROOT / "docs" / uri).exists() else uri


def _in_site(target: str, uri: str) -> str:
    """From a page of the site to a file of the repository."""
    return posixpath.relpath(target.removeprefix("docs/"), posixpath.dirname(uri) or ".")


def _beside(target: str, uri: str) -> str:
    """The same in the repository."""
    return posixpath.relpath(target, posixpath.dirname(_in_repository(uri)) or ".")


Way = Callable[[str, str], str]


def _relinked(markdown: str, here: str, uri: str, way: Way = _in_site) -> str:
    """The text with links that lead, from the page, to what they lead to from `here` in the repository."""

    def relinked(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(here, found[2]))
        if not (ROOT / target).exists():
            return found[0]
        return "](" + way(target, uri) + (found[3] or "") + ")"

    return _LINK.sub(relinked, markdown)


def _filled(found: re.Match[str], uri: str, way: Way) -> str:
    kind, name, heading = found.groups()
    if kind == "help":
        return "\n\n".join(_help(name) for name in sorted(COMMANDS))
    if kind == "options":
        return _options()
    if kind == "names":  # the site has the entries themselves
        return "" if way is _in_site else _names(found.string)
    path = ROOT / (name or "")
    if not path.is_file():
        raise PluginError(f"{uri}: there is no file {name!r} to include.")
    text = path.read_text(encoding="utf-8")
    return _relinked(_part(text, heading or "", f"{uri}: {name}"), posixpath.dirname(name), uri, way)


def _options() -> str:
    """The options of an election as a table."""
    rows = ["| option | default | command line | meaning |", "|---|---|---|---|"]
    for option in SCHEMA.values():
        flags = ", ".join(f"`{word}`" for word in option.flags.split() if word.startswith("-"))
        meaning = option.help.replace("|", "\\|")
        rows.append(f"| `{option.name}` | `{option.default!r}` | {flags} | {meaning} |")
    return "\n".join(rows)


def _names(page: str) -> str:
    """The entries of a page of the reference, with the first paragraph of each."""
    listed = []
    for entry in re.findall(r"^::: (\S+)$", page, re.MULTILINE):
        first = " ".join((inspect.getdoc(pydoc.locate(entry)) or "").partition("\n\n")[0].split())
        listed.append(f"* `{entry}`: {first}")
    return "\n".join(listed)


def pages() -> Iterator[tuple[Path, str]]:
    """Every page that is made of other files, with the text that it has in the repository."""
    for path in sorted((ROOT / "docs").rglob("*.md")):
        text, uri = path.read_text(encoding="utf-8"), path.relative_to(ROOT / "docs").as_posix()
        if _DIRECTIVE.search(text):
            yield path, _DIRECTIVE.sub(lambda found, uri=uri: _written(found, uri), text)


def _written(found: re.Match[str], uri: str) -> str:
    return f"{found[0].splitlines()[0]}\n\n{_filled(found, uri, _beside)}\n\n<!-- end -->"


def _part(text: str, heading: str, where: str) -> str:
    """What stands under a heading, to the next one of its level; `heading` is a path, as "A / B"."""
    for title in filter(None, heading.split(" / ")):
        begin = re.search(rf"^(#+) {re.escape(title)}$", text, re.MULTILINE)
        if begin is None:
            raise PluginError(f"{where} has no heading {title!r}.")
        text = text[begin.end() :]
        end = re.search(rf"^(?:#{{1,{len(begin[1])}}} |<a id=)", text, re.MULTILINE)
        text = text[: end.start()] if end else text
    return text.strip()


def _help(name: str) -> str:
    """The help of a command and of the commands below it."""
    command = Commands(name="rangevote").get_command(None, name)
    assert command is not None
    below = command.commands if isinstance(command, click.Group) else {}
    texts = [(f"rangevote {name}", command)] + [
        (f"rangevote {name} {one}", below[one]) for one in sorted(below)
    ]
    shown = []
    for title, each in texts:
        each._help_option = None  # click keeps the one of the first context
        context = click.Context(
            each,
            info_name=title,
            terminal_width=88,
            max_content_width=88,
            help_option_names=["-h", "--help"],
        )
        shown.append(f"## {title}\n\n```text\n{each.get_help(context)}\n```")
    return "\n\n".join(shown)


if __name__ == "__main__":
    for page, text in pages():
        page.write_text(text, encoding="utf-8")
