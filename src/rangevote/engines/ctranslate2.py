"""Hypotheses from CTranslate2's `translate_batch` and `generate_batch`, and an engine that calls them.

    results = translator.translate_batch(sources, beam_size=10, num_hypotheses=10, return_scores=True,
                                         min_decoding_length=0)
    hypotheses_of(results, text="".join)

A score is the natural log of P, including the end of the sequence, divided by its length to the power of
`length_penalty` (1 by default); here the division is undone. Without `return_scores` there are no
log-probabilities. `min_decoding_length=0` (for generators `min_length=0`) makes it the model's own P: by
default CTranslate2 forbids the end as the first token and divides its probability among the others. Penalties
for repetition or coverage and forbidden n-grams change it as well, and it is conditional on a target prefix;
`score_batch` returns the model's own scores of whole sequences.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from rangevote.decoding import NAMES
from rangevote.decoding.base import Search
from rangevote.decoding.beam import Beam, LengthNormalised
from rangevote.decoding.sample import Nucleus, Sample, Sampling, TopK
from rangevote.engines import each
from rangevote.errors import DataError, SetupError, UsageError, need
from rangevote.formats.logprobs import checked
from rangevote.hypothesis import Hypothesis

#: The searches that CTranslate2 has.
SEARCHES = (Beam, LengthNormalised, Sample, TopK, Nucleus)
#: Files with the tokenizer in a converted folder.
TOKENIZERS = ("tokenizer.json", "tokenizer_config.json", "source.spm")
#: The default maximum length of outputs of translators and of generators.
LONGEST = {"hypotheses": 256, "sequences": 512}


def hypotheses_of(
    results: Iterable[Any],
    *,
    text: Callable[[list[str]], str] = " ".join,
    length_penalty: float = 1.0,
    max_length: int | None = None,
    end: str = "</s>",
    sampled: bool = False,
) -> list[list[Hypothesis]]:
    """The hypotheses of each result, in its order.

    `text` joins tokens. `length_penalty`, `max_length` (`max_decoding_length`) and `sampled` (whether tokens
    were drawn: `beam_size=1` with `sampling_topk` other than 1) must be those of the call. Generators must be
    called with `include_prompt_in_result=False`. Asynchronous results are waited for.
    """
    lists = []
    for output in each(results):
        result = output.result() if hasattr(output, "result") else output
        kind = next((name for name in LONGEST if hasattr(result, name)), None)
        if kind is None:
            raise DataError(f"expected a TranslationResult or GenerationResult, got {type(result).__name__}.")
        longest, ids, hypotheses = max_length or LONGEST[kind], getattr(result, "sequences_ids", None), []
        for index, tokens in enumerate(getattr(result, kind)):
            # a sequence of the maximum length without the end was cut off
            has_end = bool(tokens) and tokens[-1] == end
            finished, kept = has_end or len(tokens) < longest, len(tokens) - has_end
            logprob = None
            if result.scores:  # the length in a score includes the end, whether `return_end_token` shows it
                logprob = checked(result.scores[index] * (kept + finished) ** length_penalty, index, "scores")
            hypotheses.append(
                Hypothesis(
                    text(tokens[:kept]),
                    tokens=None if not ids else tuple(ids[index][:kept]),
                    logprob=logprob,
                    finished=finished,
                    sampled=sampled,
                )
            )
        lists.append(hypotheses)
    return lists


class CTranslate2Engine:
    """A converted model with CTranslate2's own beam search and sampling.

    Inputs are texts, or without a tokenizer tokens separated by spaces. Beams are ranked by log P, or as the
    search's `length_penalty` or `alpha` says, and end by CTranslate2's own rule. Samples follow the seed in
    the order in which they are drawn: the same run draws the same, a part of it does not.
    """

    def __init__(
        self,
        folder: Path,
        tokenizer: Any = None,
        *,
        device: str | None = None,
        dtype: str | None = None,
        chat: bool = True,
    ) -> None:
        self._library = need("ctranslate2", "ctranslate2", "searching by CTranslate2")
        kind = _kind_of(folder)
        if kind not in ("Translator", "Generator"):
            raise UsageError(
                f"{folder} has a model of the kind {kind!r}; only translators and language models work."
            )
        self._translates, self._folder, self._chat = kind == "Translator", folder, chat
        self._options = {"device": device or "auto", "compute_type": dtype or "default"}
        self._tokenizer = tokenizer_in(folder) if tokenizer is None else tokenizer
        self._seed: int | None = None
        self._model = self._open()

    def _open(self) -> Any:
        try:
            return getattr(self._library, "Translator" if self._translates else "Generator")(
                str(self._folder), **self._options
            )
        except (RuntimeError, ValueError) as error:
            raise SetupError(f"CTranslate2 cannot load {self._folder}: {error}.") from None

    def hypotheses(self, inputs: Sequence[Any], search: Search) -> list[list[Hypothesis]]:
        """The hypotheses of a search for each input, best first, with the model's own log-probabilities."""
        options = _options_of(search)
        if isinstance(search, Sampling) and search.seed != self._seed:
            # only new threads use a new seed, so the model is opened again
            self._library.set_random_seed(search.seed % 2**32)
            self._seed, self._model = search.seed, self._open()
        tokens = [self._tokens(input, i) for i, input in enumerate(inputs)]
        if self._translates:
            results = self._model.translate_batch(
                tokens, max_decoding_length=search.max_new_tokens, **options
            )
        else:
            options["min_length"] = options.pop("min_decoding_length")
            results = self._model.generate_batch(
                tokens, max_length=search.max_new_tokens, include_prompt_in_result=False, **options
            )
        lists = hypotheses_of(
            results,
            text=self._text,
            length_penalty=options["length_penalty"],
            max_length=search.max_new_tokens,
            sampled=isinstance(search, Sampling),
        )
        return [sorted(some, key=lambda one: -(one.logprob or 0.0)) for some in lists]

    def _tokens(self, input: Any, index: int) -> list[str]:
        if self._tokenizer is None or not isinstance(input, str):
            tokens = input.split() if isinstance(input, str) else list(input)
            if not tokens or not all(isinstance(token, str) for token in tokens):
                raise DataError("expected a text, or tokens of the model as texts.", field=f"inputs[{index}]")
            return tokens
        if self._chat and not self._translates and getattr(self._tokenizer, "chat_template", None):
            messages = [{"role": "user", "content": input}]
            ids = self._tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
        else:
            ids = self._tokenizer(input).input_ids
        return list(self._tokenizer.convert_ids_to_tokens(ids))

    def _text(self, tokens: list[str]) -> str:
        if self._tokenizer is None:
            return " ".join(tokens)
        ids = self._tokenizer.convert_tokens_to_ids(tokens)
        return str(self._tokenizer.decode(ids, skip_special_tokens=True)).strip()


def is_converted(path: Path) -> bool:
    """Whether a folder holds a model that was converted for CTranslate2."""
    return (
        (path / "model.bin").is_file() and not (path / "pytorch_model.bin").exists() and bool(_kind_of(path))
    )


def _kind_of(folder: Path) -> str:
    """ "Translator" or "Generator", the name of another kind of model, or "" for files of other programs.

    The file begins with its version, a number of 32 bits, and the length and name of the model's kind.
    """
    with (folder / "model.bin").open("rb") as file:
        head = file.read(6)
        if len(head) < 6:
            return ""
        version, length = struct.unpack("<IH", head)
        name = file.read(min(length, 64)).rstrip(b"\0").decode("ascii", "replace")
    if not 1 <= version <= 100 or not name.isidentifier():
        return ""
    if name.startswith("TransformerDecoder"):
        return "Generator"
    return "Translator" if name.startswith("Transformer") else name


def tokenizer_in(folder: Path) -> Any:
    """The transformers tokenizer in a folder, or None."""
    if not any((folder / name).exists() for name in TOKENIZERS):
        return None
    transformers = need("transformers", "models", f"the tokenizer in {folder}")
    return transformers.AutoTokenizer.from_pretrained(folder)


def _options_of(search: Search) -> dict[str, Any]:
    """The options of a call that carries out a search."""
    if (
        type(search) not in SEARCHES
        or search.copy_filter is not None
        or getattr(search, "form", "length") != "length"
    ):
        offered = ", ".join(sorted(NAMES[each] for each in SEARCHES))
        raise UsageError(
            f"CTranslate2 cannot search by {str(search)!r}, only by: {offered}, without a copy filter."
        )
    options = {
        "num_hypotheses": search.size,
        "return_scores": True,
        "min_decoding_length": search.min_new_tokens,
        "length_penalty": 0.0,
        "max_batch_size": 0,
    }
    if isinstance(search, Sampling):
        options |= {"beam_size": 1, "sampling_temperature": search.temperature, "sampling_topk": 0}
        if isinstance(search, TopK):
            options["sampling_topk"] = search.top
        elif isinstance(search, Nucleus):
            options["sampling_topp"] = search.p
        return options
    penalty = search.length_penalty if isinstance(search, Beam) else search.alpha  # type: ignore[attr-defined]
    return options | {"beam_size": search.size, "length_penalty": penalty}
