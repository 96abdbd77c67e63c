"""Pairs of outputs from files.

    two files of outputs    as `rangevote.evaluation` reads them, with sources and pictures beside them
    pairs.jsonl             {"id", "outputs": {"beam": "...", "voted": "..."}, "source", "image", "check"}
    campaign.json           of Pearmut, with the outputs of two systems (`campaign.py`)

In pairs, `tgt` is read as `outputs`, `src` as `source`, `item_id` as `id`. `check` makes an attention
check of a line: the name of the system that must be judged better, or "tie".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from rangevote.errors import DataError, UsageError
from rangevote.evaluation.read import FileValues as Outputs
from rangevote.evaluation.read import in_step, read_outputs, read_sources
from rangevote.formats.exact import parse
from rangevote.formats.stream import open_stream
from rangevote.study.archive import Picture
from rangevote.study.campaign import Listed, campaign_items
from rangevote.study.images import load_picture
from rangevote.study.plan import Pair, Study, check_pair

SCHEMA = '{"id": "42", "outputs": {"beam": "...", "voted": "..."}, "source": "...", "image": "42.jpg"}'
#: White space, and a byte order mark.
_BLANK = b" \t\r\xef\xbb\xbf"
ENDINGS = (".png", ".jpg", ".jpeg", ".webp", ".gif")


class Found(NamedTuple):
    """The systems (baseline, challenger), their pairs with paths of pictures, and where these are."""

    systems: tuple[str, str]
    pairs: list[Pair]
    library: Library


def pairs_of_outputs(
    systems: Mapping[str, str],
    *,
    source: str | None = None,
    images: str | None = None,
    root: str | None = None,
    plain: bool = False,
) -> Found:
    """Pairs from two files (name of the system -> path), the baseline first."""
    (first, one), (second, two) = systems.items()
    order = read_outputs(one, plain=plain)
    others = in_step(read_outputs(two, plain=plain), order)
    texts = in_step(read_sources(source, plain=plain), order) if source else [None] * len(order.values)
    paths, base = _paths(images, order) if images else ([None] * len(order.values), Path("."))
    library = Library(Path(root) if root else base)
    keys = [str(id) for id in order.ids] if order.ids else [str(n) for n in range(1, len(order.values) + 1)]
    found = []
    rows = zip(keys, order.values, others, texts, paths, order.where, strict=True)
    for key, left, right, text, path, place in rows:
        pair = Pair(key, left, right, text, library.note(path, place))
        check_pair(pair, place)
        found.append(pair)
    _check_keys(found, order.where)
    return Found((first, second), found, library)


def _paths(images: str, order: Outputs[str]) -> tuple[Sequence[str | None], Path]:
    """The path of each item's picture, and the folder that paths are taken from."""
    folder = Path(images)
    if folder.is_dir():
        if order.ids is None:
            raise UsageError(
                f"{images} is a folder, so outputs need ids to find their pictures by, as in "
                f"{folder / 'ID.jpg'}. Else give a file with one path a line."
            )
        return [
            _picture_of(folder, str(id), place) for id, place in zip(order.ids, order.where, strict=True)
        ], folder
    listed = read_outputs(images, plain=True)
    return in_step(listed, order), folder.parent


def _picture_of(folder: Path, id: str, place: str) -> str:
    for ending in ENDINGS:
        if "/" not in id and "\0" not in id and (folder / f"{id}{ending}").exists():
            return f"{id}{ending}"
    raise DataError(
        f"there is no picture for {id!r} in {folder}; looked for {id}{{{','.join(ENDINGS)}}}.", where=place
    )


class Library:
    """The pictures below a folder, and the places that first name them."""

    def __init__(self, root: Path) -> None:
        self._root, self._places = root, dict[str, str]()

    def note(self, path: str | None, place: str) -> str | None:
        """Remember where a path is named; no path is None."""
        if path:
            self._places.setdefault(path, place)
        return path or None

    def imported(self, study: Study) -> tuple[Study, dict[str, Picture]]:
        """The study with each picture known by its SHA-256; only those that are shown are read."""
        names, pictures = dict[str, str](), dict[str, Picture]()
        for path in dict.fromkeys(pair.image for pair in study.pairs if pair.image):
            names[path], picture = load_picture(Path(path), self._root, self._places[path])
            pictures[names[path]] = picture
        pairs = [replace(pair, image=names[pair.image]) if pair.image else pair for pair in study.pairs]
        return replace(study, pairs=pairs), pictures


def read_pairs(path: str, *, root: str | None = None) -> Found:
    """Pairs from one file of JSON lines, or a campaign; all are of the same two systems."""
    systems: tuple[str, str] | None = None
    library = Library(Path(root) if root else Path("." if path == "-" else path).parent)
    found, places = [], []
    for number, (place, value) in _values(path):
        try:
            systems = systems or _systems(value)
            pair = _pair(value, systems, str(number))
        except DataError as error:
            raise error.at(place) from None
        library.note(pair.image, place)
        check_pair(pair, place)
        found.append(pair)
        places.append(place)
    if systems is None:
        raise DataError("is empty: there are no pairs in it.", where=path)
    _check_keys(found, places)
    return Found(systems, found, library)


def _values(path: str) -> Iterator[tuple[int, Listed]]:
    """What stands for a pair each, with its number in the file."""
    with open_stream(path) as stream:
        lines, name = list(stream.lines()), stream.name
    items = campaign_items([line for line in lines if line.strip()], name)
    if items is not None:
        yield from enumerate(items, 1)
        return
    if not next((line for line in lines if line.strip()), b"{").lstrip(_BLANK).startswith(b"{"):
        raise DataError(
            f"has no pairs, which look like {SCHEMA}. A file of one system's outputs goes with a second one, "
            f"as in: rangevote study new beam=beam.txt voted=voted.txt -o study.db",
            where=name,
        )
    for number, line in enumerate(lines, 1):
        if line.strip():
            place = f"{name}:{number}"
            try:
                yield number, Listed(place, parse(line))
            except DataError as error:
                raise error.at(place) from None


def _outputs(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise DataError(f"expected {SCHEMA}")
    outputs = value.get("outputs", value.get("tgt"))
    if not isinstance(outputs, dict) or len(outputs) != 2:
        raise DataError(f"expected the outputs of two systems, as in {SCHEMA}", field="outputs")
    return outputs


def _systems(value: Any) -> tuple[str, str]:
    first, second = _outputs(value)
    return first, second


def _pair(value: Any, systems: tuple[str, str], number: str) -> Pair:
    outputs = _outputs(value)
    if set(outputs) != set(systems):
        raise DataError(f"has the systems {sorted(outputs)}, while the first line has {sorted(systems)}.")
    for name, text in outputs.items():
        if not isinstance(text, str):
            raise DataError("expected a text.", field=f"outputs.{name}")
    key = value.get("id", value.get("item_id", number))
    if isinstance(key, bool) or not isinstance(key, (str, int)):
        raise DataError("expected a string or a whole number.", field="id")
    source = _text(value, "source" if "source" in value else "src")
    first, second = (outputs[name] for name in systems)
    image = _text(value, "image") or None
    return Pair(str(key), first, second, source, image, _expected(value.get("check"), systems))


def _text(value: Mapping[str, Any], field: str) -> str | None:
    text = value.get(field)
    if text is not None and not isinstance(text, str):
        raise DataError("expected a text.", field=field)
    return text


def _expected(check: Any, systems: tuple[str, str]) -> int | None:
    if check is None:
        return None
    answers = {systems[0]: -1, systems[1]: 1, "tie": 0}
    if not isinstance(check, str) or check not in answers:
        raise DataError(
            f"is {check!r}; it names who must be judged better: {', '.join(answers)}.", field="check"
        )
    return answers[check]


def _check_keys(pairs: Sequence[Pair], places: Sequence[str]) -> None:
    first: dict[str, str] = {}
    for pair, place in zip(pairs, places, strict=True):
        if first.setdefault(pair.key, place) != place:
            problem = f"{pair.key!r} was used before, at {first[pair.key]}; ids must differ."
            raise DataError(problem, field="id", where=place)
