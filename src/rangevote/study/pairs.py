"""Pairs of outputs from files.

    two files of outputs    as `rangevote.evaluation` reads them, with sources and images beside them
    pairs.jsonl             {"id", "outputs": {"beam": "...", "voted": "..."}, "source", "image", "check",
                            "practice"}
    campaign.json           of Pearmut, another program for evaluations, with the outputs of two systems:
                            {"info": {}, "data": [[[{"item_id": "1", "src": "...", "tgt": {...}}]]]}

In pairs, `tgt` is read as `outputs`, `src` as `source`, `item_id` as `id`. `check` makes an attention
check of a line: the name of the system that must be judged better, or "tie". `practice`: true makes it the
item that everybody sees first and that does not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from rangevote.errors import DataError, UsageError
from rangevote.evaluation.read import FileValues, align, read_outputs, read_sources
from rangevote.formats.stream import open_stream
from rangevote.study.images import StudyImage, load_image
from rangevote.study.plan import Pair, Study

SCHEMA = '{"id": "42", "outputs": {"beam": "...", "voted": "..."}, "source": "...", "image": "42.jpg"}'
ENDINGS = (".png", ".jpg", ".jpeg", ".webp", ".gif")
#: Longest text of an output or a source, in characters.
LONGEST = 4 * 2**20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
#: Lists in the lists of a campaign's data: tasks, documents, items.
_DEPTH = 3


class PairFiles(NamedTuple):
    """The systems (baseline, challenger), their pairs, the folder of their images, and where each image is
    named first."""

    systems: tuple[str, str]
    pairs: list[Pair]
    image_root: Path
    named_at: dict[str, str]

    @classmethod
    def of(
        cls, systems: tuple[str, str], pairs: list[Pair], positions: Sequence[str], image_root: Path
    ) -> PairFiles:
        """Pairs, each with its position in a file, where no two have the same key."""
        keys: dict[str, str] = {}
        named_at: dict[str, str] = {}
        for pair, where in zip(pairs, positions, strict=True):
            _check_lengths(pair, where)
            if keys.setdefault(pair.key, where) != where:
                problem = f"{pair.key!r} was used before, at {keys[pair.key]}; ids must differ."
                raise DataError(problem, field="id", where=where)
            if pair.image:
                named_at.setdefault(pair.image, where)
        return cls(systems, pairs, image_root, named_at)

    def load_images(self, study: Study) -> tuple[Study, dict[str, StudyImage]]:
        """The study with each image known by its SHA-256; only those that are shown are read."""
        names, images = dict[str, str](), dict[str, StudyImage]()
        everything = [*study.pairs, study.practice]
        for path in dict.fromkeys(pair.image for pair in everything if pair.image):
            names[path], image = load_image(Path(path), self.image_root, self.named_at[path])
            images[names[path]] = image
        *pairs, practice = [
            replace(pair, image=names[pair.image]) if pair.image else pair for pair in everything
        ]
        return replace(study, pairs=pairs, practice=practice), images


class PairValue(NamedTuple):
    """A parsed JSON value that should be a pair, and where it is in the file."""

    where: str
    value: Any


def pairs_of_outputs(
    systems: Mapping[str, str],
    *,
    source: str | None = None,
    images: str | None = None,
    root: str | None = None,
    plain: bool = False,
) -> PairFiles:
    """Pairs from two files (name of the system -> path), the baseline first."""
    (first, one), (second, two) = systems.items()
    order = read_outputs(one, plain=plain)
    others = align(read_outputs(two, plain=plain), order)
    texts = align(read_sources(source, plain=plain), order) if source else [None] * len(order.values)
    paths, base = _image_paths(images, order) if images else ([None] * len(order.values), Path("."))
    keys = [str(id) for id in order.ids] if order.ids else [str(n) for n in range(1, len(order.values) + 1)]
    rows = zip(keys, order.values, others, texts, paths, strict=True)
    pairs = [Pair(key, left, right, text, path or None) for key, left, right, text, path in rows]
    return PairFiles.of((first, second), pairs, order.where, Path(root) if root else base)


def _image_paths(images: str, order: FileValues[str]) -> tuple[Sequence[str | None], Path]:
    """The path of each item's image, and the folder that paths are relative to."""
    folder = Path(images)
    if not folder.is_dir():
        return align(read_outputs(images, plain=True), order), folder.parent
    if order.ids is None:
        raise UsageError(
            f"{images} is a folder, so outputs need ids to find their images by, as in "
            f"{folder / 'ID.jpg'}. Else give a file with one path a line."
        )
    named = zip(order.ids, order.where, strict=True)
    return [_image_of(folder, str(id), where) for id, where in named], folder


def _image_of(folder: Path, id: str, where: str) -> str:
    for ending in ENDINGS:
        if "/" not in id and "\0" not in id and (folder / f"{id}{ending}").exists():
            return f"{id}{ending}"
    raise DataError(
        f"there is no image for {id!r} in {folder}; looked for {id}{{{','.join(ENDINGS)}}}.", where=where
    )


def read_pairs(path: str, *, root: str | None = None) -> PairFiles:
    """Pairs from one file of JSON lines, or a campaign; all are of the same two systems."""
    systems: tuple[str, str] | None = None
    pairs, positions = [], []
    for number, (where, value) in _values(path):
        try:
            systems = systems or _systems(value)
            pairs.append(_pair(value, systems, str(number)))
        except DataError as error:
            raise error.at(where) from None
        positions.append(where)
    if systems is None:
        raise DataError("is empty: there are no pairs in it.", where=path)
    folder = Path(root) if root else Path("." if path == "-" else path).parent
    return PairFiles.of(systems, pairs, positions, folder)


def _values(path: str) -> Iterator[tuple[int, PairValue]]:
    """The values that should be pairs, each with its number in the file."""
    with open_stream(path) as stream:
        lines, name = [line.removeprefix(_BYTE_ORDER_MARK) for line in stream.lines()], stream.name
    written = [line for line in lines if line.strip()]
    items = _campaign_items(written, name)
    if items is not None:
        yield from enumerate(items, 1)
        return
    if written and not written[0].lstrip().startswith(b"{"):
        raise DataError(
            f"has no pairs, which look like {SCHEMA}. A file of one system's outputs goes with a second one, "
            f"as in: rangevote study new beam=beam.txt voted=voted.txt -o study.db",
            where=name,
        )
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield number, PairValue(f"{name}:{number}", _parsed(line, f"{name}:{number}"))


def _parsed(text: bytes, where: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"not valid JSON: {error}.", where=where) from None


def _campaign_items(lines: Sequence[bytes], name: str) -> list[PairValue] | None:
    """The items of a campaign of Pearmut, on one line or on many; None for a file that is none.

    `data` is a list of items, of documents (lists of items), or of tasks (lists of documents). Items with a
    `validation` are checks of Pearmut's scores and are left out.
    """
    for text in (lines[0] if lines else b"", b"\n".join(lines)):
        try:
            whole = _parsed(text, name)
        except DataError:  # raised again when the file is read line by line
            continue
        if not isinstance(whole, dict) or not isinstance(whole.get("data"), list):
            return None
        return list(_distinct(_flat(whole["data"], f"{name}: data")))
    return None


def _flat(value: Any, where: str, depth: int = 0) -> Iterator[PairValue]:
    if isinstance(value, list) and depth < _DEPTH:
        for index, inner in enumerate(value):
            yield from _flat(inner, f"{where}[{index}]", depth + 1)
    elif not (isinstance(value, dict) and "validation" in value):
        yield PairValue(where, value)


def _distinct(items: Iterable[PairValue]) -> Iterator[PairValue]:
    """The same item in several tasks comes once; another one of the same id stays, to be refused."""
    known: dict[str, object] = {}
    for item in items:
        value = item.value
        if not isinstance(value, dict) or not isinstance(value.get("item_id"), (str, int)):
            yield item
            continue
        id, content = str(value["item_id"]), (value.get("src"), value.get("tgt"))
        if known.get(id) != content:
            yield item
        known.setdefault(id, content)


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
    expected, practice = _expected(value.get("check"), systems), value.get("practice", False)
    if not isinstance(practice, bool) or (practice and expected is not None):
        raise DataError("expected true or false, and no check beside it.", field="practice")
    return Pair(str(key), first, second, source, image, expected, practice=practice)


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
            f"is {check!r}; it names the system that must be judged better: {', '.join(answers)}.",
            field="check",
        )
    return answers[check]


def _check_lengths(pair: Pair, where: str) -> None:
    """Refuse texts that no page can show."""
    for name, text in (("first", pair.first), ("second", pair.second), ("source", pair.source or "")):
        if len(text) > LONGEST:
            raise DataError(
                f"has {len(text):,} characters; at most {LONGEST:,} can be shown. Shorten or drop it.",
                field=name,
                where=where,
            )
