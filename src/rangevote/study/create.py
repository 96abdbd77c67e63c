"""Make a study: pairs of outputs from files, items, checks, and each annotator's items and order.

Pairs come from two files of outputs, as `rangevote.evaluation` reads them, with sources and images beside
them; or from one file of JSON lines, `PairLine`.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
from msgspec.structs import replace

from rangevote.errors import DataError, UsageError
from rangevote.evaluation.corpus import FileValues, align, read_outputs, read_sources
from rangevote.formats.jsonl import decode_as
from rangevote.study.plan import (
    ITEMS,
    SIDES,
    Annotator,
    Assignment,
    Pair,
    Study,
    StudyPlan,
    StudyRules,
    coin,
    shuffled,
)
from rangevote.text import WEB_IMAGE_ENDINGS, open_stream
from rangevote.web.images import PageImage, load_image

SCHEMA = '{"id": "42", "outputs": {"beam": "...", "voted": "..."}, "source": "...", "image": "42.jpg"}'
#: Longest text of an output or a source, in characters.
LONGEST = 4 * 2**20
#: For practice, where no pair is left over for it.
PRACTICE = Pair(
    "practice",
    "A man on a bench reads a newspaper in the park.",
    "A man the park bench on bench a newspaper.",
    source="For practice: a photograph of a man who sits on a bench in a park and reads.",
    practice=True,
)


class PairLine(msgspec.Struct):
    """A line of a file of pairs; other fields are ignored.

    `check` makes it an attention check: the name of the system that must be judged better, or "tie".
    `practice` makes it the item that everybody sees first and that does not count.
    """

    outputs: dict[str, str]
    id: str | int | None = None
    source: str | None = None
    image: str | None = None
    check: str | None = None
    practice: bool = False

    def pair(self, systems: tuple[str, str], number: int) -> Pair:
        if set(self.outputs) != set(systems):
            raise DataError(
                f"has the systems {sorted(self.outputs)}, while the first line has {sorted(systems)}.",
                field="outputs",
            )
        answers = {None: None, systems[0]: -1, systems[1]: 1, "tie": 0}
        if self.check not in answers:
            allowed = ", ".join((*systems, "tie"))
            problem = f"is {self.check!r}; it must name the system that is to be judged better: {allowed}."
            raise DataError(problem, field="check")
        if self.practice and self.check is not None:
            raise DataError("a line is for practice or a check, not both.", field="practice")
        key = str(number if self.id is None else self.id)
        first, second = (self.outputs[name] for name in systems)
        return Pair(
            *(key, first, second, self.source, self.image or None, answers[self.check]),
            practice=self.practice,
        )


@dataclass(frozen=True)
class PairFiles:
    """The systems (baseline, challenger), their pairs, where each stands, and the folder of their images."""

    systems: tuple[str, str]
    pairs: list[Pair]
    positions: Sequence[str]
    image_root: Path

    def __post_init__(self) -> None:
        """Check that keys differ and that texts can be shown."""
        keys: dict[str, str] = {}
        for pair, where in zip(self.pairs, self.positions, strict=True):
            for name in ("first", "second", "source"):
                length = len(getattr(pair, name) or "")
                if length > LONGEST:
                    problem = f"has {length:,} characters; at most {LONGEST:,} can be shown."
                    raise DataError(f"{problem} Shorten or drop it.", field=name, where=where)
            if keys.setdefault(pair.key, where) != where:
                problem = f"{pair.key!r} was used before, at {keys[pair.key]}; ids must differ."
                raise DataError(problem, field="id", where=where)

    def load_images(self, study: Study) -> tuple[Study, dict[str, PageImage]]:
        """The study with each image named by its SHA-256; only images that are shown are read."""
        names, images = dict[str, str](), dict[str, PageImage]()
        named_at: dict[str | None, str] = {}
        for pair, where in zip(self.pairs, self.positions, strict=True):
            named_at.setdefault(pair.image, where)
        everything = [*study.pairs, study.practice]
        for path in dict.fromkeys(pair.image for pair in everything if pair.image):
            names[path], image = load_image(Path(path), self.image_root, named_at[path])
            images[names[path]] = image
        *pairs, practice = [
            replace(pair, image=names[pair.image]) if pair.image else pair for pair in everything
        ]
        return replace(study, pairs=pairs, practice=practice), images


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
    return PairFiles((first, second), pairs, order.where, Path(root) if root else base)


def _image_paths(images: str, order: FileValues[str]) -> tuple[Sequence[str | None], Path]:
    """The path of each item's image, and the folder that paths are relative to."""
    folder = Path(images)
    if not folder.is_dir():
        return align(read_outputs(images, plain=True), order), folder.parent
    if order.ids is None:
        raise UsageError(
            f"{images} is a folder, so outputs need ids to find their images by, such as "
            f"{folder / 'ID.jpg'}. Or give a file with one path per line."
        )
    paths = []
    for id, where in zip(map(str, order.ids), order.where, strict=True):
        names = [f"{id}{ending}" for ending in WEB_IMAGE_ENDINGS if "/" not in id and "\0" not in id]
        path = next((name for name in names if (folder / name).exists()), None)
        if path is None:
            looked = f"looked for {id}{{{','.join(WEB_IMAGE_ENDINGS)}}}"
            raise DataError(f"there is no image for {id!r} in {folder}; {looked}.", where=where)
        paths.append(path)
    return paths, folder


def read_pairs(path: str, *, root: str | None = None) -> PairFiles:
    """Pairs from one file of JSON lines; all are of the same two systems."""
    systems: tuple[str, str] | None = None
    pairs: list[Pair] = []
    positions = []
    with open_stream(path) as stream:
        for number, line in enumerate(stream.lines(), 1):
            if not line.strip():
                continue
            if not pairs and not line.lstrip().startswith(b"{"):
                raise DataError(
                    f"has no pairs, which look like {SCHEMA}. A file of one system's outputs goes with a "
                    f"second one: rangevote study new beam=beam.txt voted=voted.txt -o study.db",
                    where=stream.name,
                )
            where = f"{stream.name}:{number}"
            try:
                read = decode_as(line, PairLine)
                if len(read.outputs) != 2:
                    problem = f"expected the outputs of two systems, as in {SCHEMA}"
                    raise DataError(problem, field="outputs")
                one, other = read.outputs
                systems = systems or (one, other)
                pairs.append(read.pair(systems, number))
            except DataError as error:
                raise error.at(where) from None
            positions.append(where)
    if systems is None:
        raise DataError("is empty: there are no pairs in it.", where=path)
    folder = Path(root) if root else Path("." if path == "-" else path).parent
    return PairFiles(systems, pairs, positions, folder)


class StudyOptions(StudyRules, frozen=True, kw_only=True):
    """What the user asks of a study; `per_item` None: all annotators judge each item. A `seed` that is not
    given is drawn, so that nobody who knows the defaults can compute the sides."""

    seed: int | None = None
    items: int = ITEMS
    annotators: int = 1
    per_item: int | None = None
    checks: int = 0


def make_study(systems: tuple[str, str], pairs: Sequence[Pair], options: StudyOptions) -> Study:
    """Draw the items, add the checks, and assign all. Only the secrets differ from call to call."""
    own_checks = [pair for pair in pairs if pair.expected is not None]
    per_item = options.annotators if options.per_item is None else options.per_item
    _check(options, per_item, options.checks + len(own_checks))
    seed = secrets.randbits(63) if options.seed is None else options.seed
    items, spare = draw_items([pair for pair in pairs if pair.counts], options.items, seed)
    available = len(items) + len(spare)
    practice, spare = choose_practice(pairs, spare, seed)
    checks = [*own_checks, *make_checks(options.checks, spare, items, seed)]
    shown = [pair for pair in items if options.show_identical or not pair.identical]
    repeats = draw_repeats(options.repeats, shown, [*pairs, *checks, practice], seed)
    names = tuple(f"annotator-{number}" for number in range(1, options.annotators + 1))
    fixed = {
        "seed": seed,
        "systems": systems,
        "annotators": names,
        "items": len(items),
        "available": available,
        "automatic": len(items) - len(shown),
        "checks": len(checks),
        "per_item": per_item,
        "stop": len(shown) * per_item,
    }
    plan = msgspec.convert(msgspec.structs.asdict(options) | fixed, StudyPlan)
    everything = [*items, *checks, *repeats]
    annotators = [Annotator(name, secrets.token_urlsafe(16)) for name in names]
    return Study(plan, everything, annotators, assign(plan, everything, annotators), practice)


def _check(options: StudyOptions, per_item: int, checks: int) -> None:
    """Refuse options that contradict each other."""
    if per_item > options.annotators:
        raise UsageError(f"--per-item is {per_item}; there are only {options.annotators} annotators.")
    if options.pass_share is not None and not checks:
        raise UsageError("--pass-share needs attention checks: give --checks N as well.")
    code = options.completion_code
    if code is not None and not (code.strip() and code.isprintable() and len(code) <= 200):
        raise UsageError("--completion-code must be 1 to 200 visible characters.")


def draw_items(pairs: Sequence[Pair], number: int, seed: int) -> tuple[list[Pair], list[Pair]]:
    """So many of the pairs at random, in file order; and those that were not drawn."""
    if not pairs:
        raise DataError("there are no pairs of outputs to judge.")
    chosen = set(shuffled([pair.key for pair in pairs], seed, "items")[:number])
    return [pair for pair in pairs if pair.key in chosen], [pair for pair in pairs if pair.key not in chosen]


def choose_practice(pairs: Sequence[Pair], spare: Sequence[Pair], seed: int) -> tuple[Pair, list[Pair]]:
    """The pair to practise with, and the spare ones that are left: the user's own, else one that was not
    drawn, else a made-up one."""
    marked = [pair for pair in pairs if pair.practice]
    if len(marked) > 1:
        raise DataError(f"{marked[0].key!r} and {marked[1].key!r} are both for practice; there can be one.")
    if marked:
        return marked[0], list(spare)
    by_key = {pair.key: pair for pair in spare if not pair.identical}
    for key in shuffled(by_key, seed, "practice")[:1]:
        return replace(by_key[key], practice=True), [pair for pair in spare if pair.key != key]
    return replace(PRACTICE, key=_free(PRACTICE.key, {pair.key for pair in pairs})), list(spare)


def make_checks(number: int, spare: Sequence[Pair], items: Sequence[Pair], seed: int) -> list[Pair]:
    """Attention checks: an output beside the scrambled words of another item's, or beside itself.

    They are made of items that were not drawn, as far as there are any. A coin says of which system the
    output is: so a check does not tell annotators how one of the systems writes.
    """
    order: list[Pair] = []
    for some in (spare, items):
        whole = (pair for pair in some if pair.first.strip() and pair.second.strip() and not pair.identical)
        usable = {pair.key: pair for pair in whole}
        order += [usable[key] for key in shuffled(usable, seed, "checks")]
    texts = {text for pair in (*spare, *items) for text in (pair.first, pair.second)}
    long = sorted(text for text in texts if len(text.split()) > 2)
    if number and not (order and len(long) > 1):
        raise DataError("the outputs are too few or too short to make attention checks of; use --checks 0.")
    taken = {pair.key for pair in (*spare, *items)}
    checks: list[Pair] = []
    for index in range(number):
        pair = order[index % len(order)]
        intact = pair.second if coin(seed, "intact", index) else pair.first
        key = _free(f"check-{index + 1}", taken)
        if index % 2:
            checks.append(replace(pair, key=key, first=intact, second=intact, expected=0))
            continue
        outputs = (pair.first, pair.second)
        other = next((text for text in shuffled(long, seed, "broken", index) if text not in outputs), long[0])
        scrambled = " ".join(word for _, word in shuffled(enumerate(other.split()), seed, "words", index))
        second_wins = coin(seed, "check", index)
        first, second = (scrambled, intact) if second_wins else (intact, scrambled)
        checks.append(replace(pair, key=key, first=first, second=second, expected=1 if second_wins else -1))
    return checks


def _free(key: str, taken: Container[str]) -> str:
    """The key, or a variant of it where an item of the user has it."""
    while key in taken:
        key += "'"
    return key


def draw_repeats(number: int, shown: Sequence[Pair], everything: Sequence[Pair], seed: int) -> list[Pair]:
    """So many of the items at random, to be shown a second time."""
    if number > len(shown):
        raise UsageError(
            f"--repeats is {number}; it must be from 0 to the {len(shown)} items that are shown."
        )
    taken = {pair.key for pair in everything}
    by_key = {pair.key: pair for pair in shown}
    drawn = shuffled(by_key, seed, "repeats")[:number]
    return [replace(by_key[key], key=_free(f"{key} again", taken), again=key) for key in drawn]


def assign(plan: StudyPlan, pairs: Sequence[Pair], annotators: Sequence[Annotator]) -> list[Assignment]:
    """Each annotator's items in an order of their own; identical pairs go to nobody unless shown.

    What is shown again goes to those who have it already.
    """
    queues: list[list[int]] = [[] for _ in annotators]
    turn = 0
    for index in shuffled(range(len(pairs)), plan.seed, "deal"):
        pair = pairs[index]
        if pair.expected is not None:
            for queue in queues:
                queue.append(index)
        elif pair.counts and (plan.show_identical or not pair.identical):
            for step in range(plan.per_item):
                queues[(turn + step) % len(queues)].append(index)
            turn += plan.per_item
    indices = {pair.key: index for index, pair in enumerate(pairs)}
    for index, pair in enumerate(pairs):
        if pair.again is not None:
            for queue in queues:
                queue += [index] if indices[pair.again] in queue else []
    assignments = []
    for number, (who, queue) in enumerate(zip(annotators, queues, strict=True)):
        order = _repeats_last(pairs, shuffled(queue, plan.seed, "order", who.name))
        keys = [pairs[index].key for index in order]
        swapped = SIDES[plan.sides](plan.seed, who.name, keys)
        for position, (index, key, side) in enumerate(zip(order, keys, swapped, strict=True)):
            # an id that reveals nothing and cannot be guessed
            handle = hmac.digest(who.token.encode(), key.encode(), hashlib.sha256)[:16].hex()
            assignments.append(Assignment(number, index, position, handle, side))
    return assignments


def _repeats_last(pairs: Sequence[Pair], order: Sequence[int]) -> list[int]:
    """The order, but items that are shown twice take the first of their positions and the repeats the last.

    So the first look always comes first, and as many others as are repeated lie between the two.
    """
    by_key = {pairs[index].key: index for index in order}
    again = [index for index in order if pairs[index].again is not None]
    first = [by_key[str(pairs[index].again)] for index in again]
    moved = list(order)
    positions = sorted(order.index(index) for index in (*first, *again))
    for position, index in zip(positions, (*first, *again), strict=True):
        moved[position] = index
    return moved
