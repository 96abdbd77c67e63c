"""Options that several commands share. Each decorator adds a group and hands over one object."""

from __future__ import annotations

import functools
import importlib
import os
import re
import stat
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from rangevote.errors import DataError, SetupError, UsageError, nearest

if TYPE_CHECKING:
    from rangevote.election.settings import Settings

Command = Callable[..., Any]
Option = Callable[[Command], Command]
COMMANDLINE = click.core.ParameterSource.COMMANDLINE
#: Shares that are found from all ballots; election/weights.py has it too, and loads numpy.
AGREEMENT: Final = "agreement"
#: Formats in words; endings of names that promise a table are among them.
FORMAT_NAMES = {"jsonl": "JSON lines", "parquet": "Parquet", "csv": "CSV", "tsv": "TSV", "xlsx": "Excel"}


#: The sections of `--help` and the options in them: the same word stands in the same place everywhere.
SECTIONS: dict[str, tuple[str, ...]] = {
    "Input": (
        *("--input", "--source", "--format", "--field", "--group-by", "--text-field", "--logprob-field"),
        *("--score-field", "--ignore-field", "--log-base", "--length-normalised", "--sign", "--score-scale"),
        *("--per-source", "--logprobs", "--columns", "--filter", "--max-line-bytes", "--strict"),
        *("--references", "--plain", "--beam", "--images", "--image-root", "--gold"),
        *("--allow-empty", "--require-nonempty", "--trust-ids"),
    ),
    "Model": (
        *("--model", "--device", "--dtype", "--no-chat", "--upstream", "--base-url", "--key-env"),
        *("--key-file", "--body", "--upstream-key-env", "--upstream-key-file", "--allow-model"),
        *("--concurrency", "--timeout", "--panel"),
    ),
    "Search": (
        *("--candidates", "--adaptive", "--temperature", "--max-new-tokens", "--copy-filter"),
        *("--voter-model", "--escalate", "--within", "--states", "--samples", "--min-votes", "--max-rows"),
    ),
    "Election": (
        *("--profile", "--similarities", "--temperatures", "--exponents", "--likelihoods", "--max-risk"),
    ),
    "Metrics": (
        *("--metric", "--metric-tokenize", "--bleu-tokenize", "--lowercase", "--resamples", "--seed"),
        *("--p-value", "--key", "--confidence"),
    ),
    "Output": (
        *("--output", "--to", "--json", "--text", "--scores", "--explain", "--carry", "--ballots"),
        *("--export", "--limit", "--plot", "--x", "--baseline", "--history", "--bom", "--force"),
    ),
}
#: Options that stand elsewhere in some commands.
FILE_OF_VOTERS = {"Input": ("--voters",)}
MODEL_SECTIONS = {"Model": ("--engine",), "Search": ("--voters", "--seed")}


class HelpCommand(click.Command):
    """A command whose `--help` lists options in sections and ends with an example. `sections` overrides
    `SECTIONS` for this command; options without a section are listed under `Run`."""

    def __init__(
        self, *args: Any, example: str, sections: Mapping[str, Sequence[str]] | None = None, **others: Any
    ) -> None:
        super().__init__(*args, **others)
        self.epilog = epilog(example)
        extra = sections or {}
        self.titles = [*(title for title in extra if title not in SECTIONS), *SECTIONS, "Run"]
        self.title_of = {
            name: title for table in (SECTIONS, extra) for title, names in table.items() for name in names
        }

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Suggest the options that an unknown one begins, and only otherwise those that look like it."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            names = [name for option in self.get_params(ctx) for name in option.opts]
            begun = [repr(name) for name in names if name.startswith(error.option_name)]
            if not begun:
                raise
            message = f"No such option {error.option_name!r}. Did you mean {' or '.join(begun)}?"
            raise click.NoSuchOption(error.option_name, message, ctx=ctx) from None

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {title: [] for title in self.titles}
        for option in self.get_params(ctx):
            record = option.get_help_record(ctx) if isinstance(option, click.Option) else None
            if record is not None:
                default = "Election" if isinstance(option, ElectionOption) else "Run"
                sections[self.title_of.get(max(option.opts, key=len), default)].append(record)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


class ElectionOption(click.Option):
    """An option that `Settings` declares."""


def epilog(example: str) -> str:
    """The end of `--help`; \\b keeps click from rewrapping the lines."""
    lines = "".join(f"\n  {line}" for line in example.splitlines())
    return f"\b\nExample:{lines}"


def option(flags: str, help: str, **how: Any) -> Option:
    """Add one option. `flags` are separated by spaces; words after them name the value in `--help`, and
    without such words the option is a flag. Defaults are shown."""
    words = flags.split()
    names = [word for word in words if word.startswith("-")]
    metavar = " ".join(words[len(names) :]) or None
    name = how.pop("name", max(names, key=len).strip("-").replace("-", "_"))
    if metavar is None and "type" not in how:
        how["is_flag"] = True  # never False: click would then take an option without a value as None
    how.setdefault("show_default", "default" in how)
    return click.option(*names, name, metavar=metavar, help=help, **how)


def declared(flags: str, help: str, **how: Any) -> Any:
    """A field of a dataclass that is an option of a command, as `option` takes it."""
    return field(metadata={"option": functools.partial(option, flags, help, **how)})


def options_of(declaring: type) -> list[Option]:
    """The options that the fields of a dataclass declare, under the fields' names."""
    return [one.metadata["option"](name=one.name) for one in fields(declaring)]


def election_option(name: str, *, sampling: bool = False, default: bool = True) -> Option:
    """One option of an election as its declaration in `Settings` has it.

    `sampling`: the command draws samples, whose temperature is `--temperature`; that of votes has only its
    long name. `default=False`: the value is None where the option is not given.
    """
    from rangevote.election.settings import SCHEMA  # which loads numpy: `doctor` works without it

    setting = SCHEMA[name]
    how: dict[str, Any] = {"cls": ElectionOption, "default": setting.default if default else None}
    if dict in setting.types:
        how["callback"] = _json_file if name == "schema" else _numbers_by_name
    elif not {str, bool}.intersection(setting.types):
        how["type"] = setting.types[-1]
    if name in ("similarity", "preset", "rule", "weights", "tokenize"):
        how["shell_complete"] = lambda context, option, typed: _names_of(name, typed)
    flags = setting.flags.replace("--temperature ", "") if sampling else setting.flags
    shown = how["default"] is not None and bool not in setting.types
    return option(flags, setting.help, name=name, show_default=shown, **how)


def _names_of(option: str, typed: str) -> list[str]:
    """Names that begin with what was typed so far, for the shell's completion."""
    from rangevote.election.rules import RULES
    from rangevote.election.weights import WEIGHTS
    from rangevote.similarity import PRESETS, listings
    from rangevote.similarity.ngram import TOKENISERS

    measures = [listing.example.removesuffix("MODEL") for listing in listings().values()]
    choices = {
        "similarity": ["overlap_1", "overlap_1-4", "overlap_1-4@0.25", *measures],
        "preset": PRESETS,
        "rule": RULES,
        "weights": WEIGHTS,
        "tokenize": TOKENISERS,
    }
    return sorted(name for name in choices[option] if name.startswith(typed))


def election_options(command: Command, *, sampling: bool = False) -> Command:
    """All options of an election and a profile; the command gets `settings`."""
    from rangevote.election.settings import SCHEMA, Settings, override, read_profile

    profile = option(
        "--profile FILE",
        "Options from rangevote tune. Explicit options override them.",
        # the profile's options instead of its path: so a resumed run knows if the file has changed
        callback=lambda context, option, path: {} if path is None else read_profile(path),
    )

    def build(profile: dict[str, Any], **values: Any) -> Settings:
        source = click.get_current_context().get_parameter_source
        explicit = {name: value for name, value in values.items() if source(name) is COMMANDLINE}
        if "similarity" in explicit:
            explicit["similarity"] = own_similarity(explicit["similarity"])
        return Settings(**override(profile, explicit))

    options = [*(election_option(name, sampling=sampling) for name in SCHEMA), profile]
    return grouped(command, "settings", options, build)


def client_options(command: Command) -> Command:
    """The options that a request to the service may set; None where they are not given."""
    from rangevote.election.settings import CLIENT_OPTIONS

    for name in reversed(CLIENT_OPTIONS):
        command = election_option(name, sampling=True, default=False)(command)
    return command


def own_similarity(name: str) -> Any:
    """The object that `module:function` names, also of a module in the working directory; other names
    unchanged.

    Only the command line does so: a name in a file or in a request never runs code.
    """
    from rangevote.entry_points import plugins
    from rangevote.similarity import listings, spelled

    module, colon, attribute = name.partition(":")
    stem = spelled(name).partition(":")[0]
    measures = {*listings(), *plugins("similarities")}
    if not colon or stem in measures or not re.fullmatch(r"[^\W\d][\w.]*", module):
        return name
    sys.path.insert(0, os.getcwd())
    try:
        value = functools.reduce(getattr, attribute.split("."), importlib.import_module(module))
    except AttributeError:
        raise UsageError(f"-s {name}: the module {module!r} has no {attribute!r}.") from None
    except Exception as error:  # whatever the user's module raises
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing and module.startswith(missing):
            raise UsageError(
                f"-s {name}: there is no module {module!r}, here or installed, and no similarity of that "
                f"name.{nearest(stem, measures)}"
            ) from None
        raise SetupError(f"-s {name}: cannot import {module}: {type(error).__name__}: {error}") from error
    return value() if isinstance(value, type) else value


def _json_file(context: click.Context, option: click.Parameter, path: str | None) -> Any:
    if path is None:
        return None
    from rangevote.formats.jsonl import parse

    try:
        return parse(read_file(path).encode())
    except DataError as error:
        raise error.placed(path) from None


def _numbers_by_name(
    context: click.Context, option: click.Parameter, text: str | None
) -> dict[str, float] | str | None:
    words = (AGREEMENT,) if option.name == "shares" else ()
    if text is None or text in words:
        return text
    numbers: dict[str, float] = {}
    for part in text.split(","):
        name, equals, number = part.rpartition("=")
        try:
            value = float(number)
        except ValueError:
            equals = ""
        if not equals or not name or name in numbers:
            raise UsageError(
                f"{option.opts[0]} is {text!r}; write each name once, with its number, as A=0.7,B=0.3"
                f"{''.join(f', or {word}' for word in words)}."
            )
        numbers[name] = value
    return numbers


def result_options(command: Command) -> Command:
    """Options for what is written of each result; the command gets `shape`, a `ResultShape`."""
    options = [
        option("--scores", "Write the scores of all candidates.", name="all_scores"),
        option("--explain", "Write which n-grams and voters earned the winner its score."),
        option("--text", "Write only the winning text, one per line; its line breaks become spaces."),
        option(
            "--carry FIELD[=NAME]",
            "Also write a field of the input, such as prompt or meta.topic, or under another name, such as "
            "answer=gold; may be repeated.",
            multiple=True,
        ),
    ]

    def build(text: bool, all_scores: bool, **more: Any) -> Any:
        from rangevote.formats.reader import carried_name
        from rangevote.formats.result_writer import COLUMNS, ResultShape

        more = {"scores": all_scores, **more}
        for name, path in map(carried_name, more["carry"]):
            if name in COLUMNS:
                raise UsageError(
                    f"--carry {name}: results have a field of that name; give it another: --carry {path}=NAME"
                )
        extras = [f"--{option}" for option, value in more.items() if value]
        if text and extras:
            raise UsageError(
                f"--text writes only the winning text, without {extras[0]}; leave one of them out."
            )
        return ResultShape(text, **more)

    return grouped(command, "shape", options, build)


def check_one_winner(text: bool, winners: int) -> None:
    """Lines of text have room for one winner, since line n of the output belongs to ballot n."""
    if text and winners > 1:
        raise UsageError(
            f"--text writes one winner per line, not {winners}; without --text each line of JSON lists them."
        )


def format_by_name(output: str | None, *formats: str, option: str = "") -> str:
    """The first of `formats`, or the one that the ending of the output's name asks for.

    >>> format_by_name("out.parquet", "jsonl", "parquet"), format_by_name("winners.txt", "jsonl")
    ('parquet', 'jsonl')
    """
    ending = Path(output or "").suffix.lower().removeprefix(".")
    if ending in formats:
        return ending
    if ending in FORMAT_NAMES and ending != "jsonl":
        others = " or ".join(FORMAT_NAMES[format] for format in formats)
        choose = f", or choose the format with {option}" if option else ""
        raise UsageError(
            f"cannot write {output} as {FORMAT_NAMES[ending]}, only as {others}: give it another "
            f"name{choose}."
        )
    return formats[0]


def reading_options(command: Command) -> Command:
    """How to read n-best lists; the command gets `reading`, a `rangevote.formats.ReadOptions`."""
    options = [
        option(
            "--format NAME",
            "Format of the input: jsonl, json, csv, tsv, parquet, moses, fairseq, sockeye, mbrs, vllm or "
            "openai. Default: detected.",
        ),
        option(
            "--field NAME",
            "Field with the candidates, such as outputs or choices[*].message.content. Default: detected.",
        ),
        option(
            "--group-by NAME",
            "Each record is one sample; records with the same NAME, such as prompt_id, form a ballot.",
        ),
        option("--text-field NAME", "Field with a candidate's text. Default: detected."),
        option(
            "--logprob-field NAME",
            "Field with a candidate's log-probability, or with a list of them beside a list of texts.",
        ),
        option(
            "--score-field NAME",
            "A number of each candidate, such as reward, that --score-weights may add to its votes. May be "
            "repeated.",
            multiple=True,
        ),
        option(
            "--ignore-field NAME",
            "Ignore this field, although it looks like a score. May be repeated.",
            multiple=True,
        ),
        option(
            "--columns PATTERN",
            "Columns of a table with one candidate each, such as 'output_*'; empty cells are skipped.",
        ),
        option("--filter NAME", "Filter of an lm-eval log to read. Default: the first."),
        option("--log-base", "Base of the logarithms of the scores.", type=click.Choice(["e", "2", "10"])),
        option(
            "--length-normalised none|length|A",
            "What the scores were divided by: nothing, the length, or the length to the power A.",
            name="normalisation",
        ),
        option(
            "--sign",
            "+ if scores are log-probabilities, - if they are negative log-probabilities.",
            type=click.Choice(["+", "-"]),
        ),
        option(
            "--score-scale X|count",
            "For scores that are not log-probabilities: use softmax(X * score) as weights, or ignore them.",
        ),
        option("--per-source N", "Lines per source in the format mbrs.", type=int),
        option("--logprobs FILE", "Log-probabilities, one per line, for the format mbrs."),
        option("--max-line-bytes N", "Maximum length of a line.", type=int),
        option("--strict", "Treat warnings about ballots as errors."),
    ]
    return grouped(command, "reading", options, _read_options)


def grouped(command: Command, name: str, options: Sequence[Option], build: Command) -> Command:
    """Add options to a command, which gets one argument `name` that `build` makes of their values."""

    @functools.wraps(command)
    def wrapped(**given: Any) -> Any:
        built = build(**{option: given.pop(option) for option in names})
        return command(**given, **{name: built})

    before = len(getattr(command, "__click_params__", []))
    decorated: Command = wrapped
    for add in reversed(options):
        decorated = add(decorated)
    names = [param.name for param in decorated.__click_params__[before:]]  # type: ignore[attr-defined]
    return decorated


def _read_options(**given: Any) -> Any:
    from rangevote.formats import ReadOptions

    for flag, name, words in (
        ("--length-normalised", "normalisation", ("none", "length")),
        ("--score-scale", "score_scale", ("count",)),
    ):
        value = given[name]
        try:
            given[name] = value if value is None or value in words else float(value)
        except ValueError:
            raise UsageError(f"{flag} is {value!r}; it must be {', '.join(words)} or a number.") from None
    given["sign"] = {"+": 1, "-": -1, None: None}[given["sign"]]
    return ReadOptions(**{option: value for option, value in given.items() if value is not None})


def read_file(path: str) -> str:
    """The text of a file that an option names."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise SetupError(f"cannot read {path}: {(error.strerror or str(error)).lower()}.") from None
    except UnicodeDecodeError:
        raise DataError("is not UTF-8 text.", where=path) from None


def read_secret(path: str) -> str:
    """The text of a file that nobody else may read."""
    text, mode = read_file(path), stat.S_IMODE(os.stat(path).st_mode)
    if os.name == "posix" and mode & 0o077:
        raise SetupError(f"{path} can be read by others (mode {mode:04o}). Use: chmod 600 {path}")
    return text


def secret_from_environment(name: str) -> str:
    """The value of a variable, which must be set: keys are never given on the command line."""
    value = os.environ.get(name, "").strip()
    if not value:
        raise SetupError(f"the environment variable {name} is not set; it must have the key.")
    return value


def read_key(variable: str | None, file: str | None, option: str) -> str | None:
    """The key of a server, from the environment or a file; None if neither is named."""
    if variable is not None and file is not None:
        raise UsageError(f"{option}-env and {option}-file are both given; a server has one key.")
    if variable is not None:
        return secret_from_environment(variable)
    return None if file is None else read_secret(file).strip()
