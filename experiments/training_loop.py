"""The training loop of both systems.

The order of the examples depends on (seed, epoch) and the noise of a step on (seed, step) alone, so a run
that is interrupted goes on, from the state that it saved last, to the very weights of an undisturbed one (on
the same machine, with as many threads).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from experiments.checkpoint import (
    CARD,
    Model,
    is_checkpoint,
    load_checkpoint,
    read_card,
    save_checkpoint,
    write_card,
)
from experiments.steps import say
from experiments.training_record import Log, Position, State, check_fingerprint, in_order
from experiments.transformer import padded
from experiments.vocabulary import END, PAD, START, Vocabulary
from rangevote.errors import UsageError
from rangevote.models.protocol import Integers

if TYPE_CHECKING:
    from experiments.training import TrainingOptions

Pair = tuple[str, str]


class Examples(Protocol):
    """`lengths` (examples, sides) in tokens."""

    lengths: Integers

    def take(self, numbers: Integers) -> tuple[Tensor, Tensor]:
        """The inputs, whatever the network takes, and the targets `START ... END` (batch, length), padded."""


class Pairs:
    """Sentences and their translations, as tokens: sources `... END` and targets `START ... END`."""

    def __init__(self, sources: Sequence[list[int]], targets: Sequence[list[int]]) -> None:
        self._sources, self._targets = sources, targets
        sides = [[len(one) for one in side] for side in (sources, targets)]
        self.lengths = np.array(sides, dtype=np.int64).T  # (examples, 2)

    @classmethod
    def encode(cls, pairs: Sequence[Pair], vocabulary: Vocabulary) -> Pairs:
        """Texts as tokens."""
        sources = [[*vocabulary.encode(source), END] for source, _ in pairs]
        return cls(sources, [[START, *vocabulary.encode(target), END] for _, target in pairs])

    def within(self, length: int) -> Pairs:
        """Those with at most so many tokens on each side."""
        keep = np.flatnonzero(self.lengths.max(axis=1) <= length).tolist()
        return Pairs([self._sources[number] for number in keep], [self._targets[number] for number in keep])

    def take(self, numbers: Integers) -> tuple[Tensor, Tensor]:
        """See `Examples.take`; the inputs are source tokens (batch, length)."""
        chosen = numbers.tolist()
        return padded([self._sources[n] for n in chosen]), padded([self._targets[n] for n in chosen])


class Captions:
    """Images, as features (images, features), and the captions of each."""

    def __init__(
        self, features: NDArray[Any], captions: Sequence[Sequence[str]], vocabulary: Vocabulary
    ) -> None:
        self._features = torch.from_numpy(np.ascontiguousarray(features, dtype=np.float32))
        self._targets = [[START, *vocabulary.encode(text), END] for texts in captions for text in texts]
        self._image = np.repeat(np.arange(len(captions)), [len(texts) for texts in captions])  # (captions,)
        self.lengths = np.array([len(one) for one in self._targets], dtype=np.int64)[:, None]

    def take(self, numbers: Integers) -> tuple[Tensor, Tensor]:
        """See `Examples.take`; the inputs are features (batch, features)."""
        images = torch.from_numpy(self._image[numbers])
        return self._features[images], padded([self._targets[n] for n in numbers.tolist()])


def batches(
    lengths: Integers, tokens: int, rng: np.random.Generator | None = None, *, mixed: bool = False
) -> list[Integers]:
    """Numbers of examples, batch by batch; `lengths` (examples, sides) in tokens.

    A batch's examples times the longest side of any of them is at most `tokens`, but for examples that are
    longer alone. With `rng` examples of equal lengths are mixed, and so are the batches; their number is the
    same for every draw, since only equal lengths change order. Without it they go from short to long. `mixed`
    batches are drawn whatever the lengths, and have about `tokens` without the padding.
    """
    if mixed and rng is not None:
        several = max(1, round(tokens / lengths.max(axis=1).mean()))
        return np.array_split(rng.permutation(len(lengths)), math.ceil(len(lengths) / several))
    order = np.arange(len(lengths)) if rng is None else rng.permutation(len(lengths))
    widest = lengths.max(axis=1)  # (examples,)
    by_length = np.lexsort((*lengths[order].T, widest[order]))  # stable: equals stay in their order of chance
    order = order[by_length]
    found = [order[first:last] for first, last in _cuts(widest[order].tolist(), tokens)]
    if rng is None:
        return found
    return [found[number] for number in rng.permutation(len(found))]


def _cuts(rising: list[int], tokens: int) -> list[tuple[int, int]]:
    """Where each batch begins and ends, in lengths that never fall."""
    found, first = [], 0
    for last, length in enumerate(rising):
        if last > first and (last + 1 - first) * length > tokens:
            found.append((first, last))
            first = last
    return [*found, (first, len(rising))] if rising else []


def constant(step: int, total: int, warmup: int) -> float:
    """1 after a linear rise."""
    return min(1.0, step / max(1, warmup))


def inverse_sqrt(step: int, total: int, warmup: int) -> float:
    """min(step / warmup, sqrt(warmup / step)): Vaswani et al. 2017, section 5.3."""
    warmup = max(1, warmup)
    return min(step / warmup, math.sqrt(warmup / step))


def cosine(step: int, total: int, warmup: int) -> float:
    """A linear rise, then half a wave down to 0 after the last step."""
    if step < warmup:
        return step / warmup
    done = min(1.0, (step - warmup) / max(1, total - warmup))
    return 0.5 * (1 + math.cos(math.pi * done))


#: name -> (step from 1, steps in all, steps of the rise) -> share
SCHEDULES = {"constant": constant, "inverse_sqrt": inverse_sqrt, "cosine": cosine}


class Run:
    """One training run in its folder, which is the caller's to lock."""

    def __init__(
        self,
        model: Model,
        examples: Examples,
        dev: Examples,
        options: TrainingOptions,
        folder: Path,
        fingerprint: str,
    ) -> None:
        self.model, self.net, self.options, self.folder = model, model.net.to(options.device), options, folder
        self._examples = examples
        self._dev = [dev.take(batch) for batch in batches(dev.lengths, options.batch_tokens)]
        self._fingerprint = fingerprint
        self._epoch_steps = len(self._plan(epoch=0))
        self.total = options.epochs * self._epoch_steps
        self._optimizer = adam(self.net, options)
        self._state = State(folder, fingerprint)
        self.position = Position()

    def run(self, *, quiet: bool = False) -> None:
        """Train to the end, from where an earlier run stopped; the folder then holds the best model."""
        self.position = self._state.load(self.net, self._optimizer) or Position()
        log = Log(self.folder, self.position.step)
        with torch.random.fork_rng():
            while self.position.epoch < self.options.epochs and not self._stopped():
                self._epoch(log, quiet)

    def finish(self) -> None:
        """Mark the best model as final; what only an unfinished run needs goes away."""
        write_card(self.model, self.folder, self._facts(finished=True))
        self._state.remove()

    def _stopped(self) -> bool:
        return 0 < self.options.patience <= self.position.waited

    def _plan(self, epoch: int) -> list[Integers]:
        """The batches of an epoch; every epoch has as many."""
        options = self.options
        rng = np.random.default_rng([options.seed, epoch])
        return batches(self._examples.lengths, options.batch_tokens, rng, mixed=options.mixed)

    def _epoch(self, log: Log, quiet: bool) -> None:
        """The rest of an epoch."""
        options, epoch = self.options, self.position.epoch
        plan = self._plan(epoch)
        for batch in plan[self.position.batch :]:
            self._advance(batch)
            at = self.position
            last = at.batch == len(plan)
            if last:
                self.position = at = replace(at, epoch=epoch + 1, batch=0)
            every = options.evaluate_every
            evaluate = at.step % every == 0 or at.step == self.total if every else last
            if evaluate:
                self._evaluate(log, epoch, quiet)
            elif at.counted == options.log_every:
                log.write({"step": at.step, "epoch": epoch + 1, **self._mean_loss()})
            if evaluate or (options.save_every and at.step % options.save_every == 0):
                self._state.save(self.net, self._optimizer, self.position)
            if self._stopped():
                return

    def _advance(self, batch: Integers) -> None:
        """One step."""
        began, at = time.monotonic(), self.position
        loss, tokens = self._step(*self._examples.take(batch), at.step + 1)
        if not math.isfinite(loss):
            raise UsageError(
                f"the loss is {loss} at step {at.step + 1}; try a lower learning_rate than "
                f"{self.options.learning_rate:g}, or a longer warmup than {self.options.warmup} steps."
            )
        self.position = replace(
            at,
            batch=at.batch + 1,
            step=at.step + 1,
            loss=at.loss + loss,
            counted=at.counted + 1,
            tokens=at.tokens + tokens,
            seconds=at.seconds + time.monotonic() - began,
        )

    def _step(self, inputs: Tensor, tokens: Tensor, number: int) -> tuple[float, int]:
        """Forward, backward, and a move of the weights; `number` counts from 1."""
        options = self.options
        torch.manual_seed(int(np.random.SeedSequence([options.seed, number]).generate_state(1)[0]))
        share = SCHEDULES[options.schedule](number, self.total, options.warmup)
        for group in self._optimizer.param_groups:
            group["lr"] = options.learning_rate * share
        self.net.train()
        total, count = self._loss(inputs, tokens, options.label_smoothing)
        self._optimizer.zero_grad()
        (total / count).backward()  # type: ignore[no-untyped-call]
        if options.clip:
            nn.utils.clip_grad_norm_(self.net.parameters(), options.clip)
        self._optimizer.step()
        return float(total.detach()) / count, count

    def _loss(self, inputs: Tensor, tokens: Tensor, smoothing: float = 0.0) -> tuple[Tensor, int]:
        """Sum of -log P over the targets (batch, length) but START, and how many they are."""
        device = self.options.device
        inputs, tokens = inputs.to(device), tokens.to(device)
        targets = tokens[:, 1:]
        real = targets != PAD  # (batch, length)
        with precise(device, self.options.precision):
            states = self.net.states(inputs, tokens[:, :-1])[
                real
            ]  # (targets, dimension): no logits of padding
            logits = self.net.logits(states)  # (targets, vocabulary)
        chosen = targets[real]
        found = nn.functional.cross_entropy(
            logits.float(), chosen, reduction="sum", label_smoothing=smoothing
        )
        return found, len(chosen)

    def dev_loss(self) -> float:
        """Mean -log P of a token of the development set, ends included."""
        self.net.eval()
        with torch.no_grad():
            found = [self._loss(*batch) for batch in self._dev]
        return math.fsum(float(total) for total, _ in found) / sum(count for _, count in found)

    def _evaluate(self, log: Log, epoch: int, quiet: bool) -> None:
        """Development loss; the best model so far is kept."""
        loss, at = self.dev_loss(), self.position
        if not math.isfinite(loss):
            raise UsageError(f"the development loss is {loss} at step {at.step}; try a lower learning_rate.")
        better = at.best is None or loss < at.best
        mean = self._mean_loss()
        seconds = round(at.seconds, 1)
        log.write({"step": at.step, "epoch": epoch + 1, **mean, "dev_loss": loss, "seconds": seconds})
        if not quiet:
            losses = f"loss {mean['loss']:.3f}  dev {loss:.4f}{' *' if better else ''}"
            say(f"epoch {epoch + 1}/{self.options.epochs}  step {at.step:,}/{self.total:,}  {losses}")
        if better:
            self.position = replace(self.position, best=loss, best_step=at.step, waited=0)
            save_checkpoint(self.model, self.folder, self._facts(finished=False))
        else:
            self.position = replace(self.position, waited=at.waited + 1)

    def _mean_loss(self) -> dict[str, Any]:
        """The training loss since it was last logged, and the learning rate; the count begins anew."""
        at = self.position
        self.position = replace(at, loss=0.0, counted=0)
        return {"loss": at.loss / max(1, at.counted), "learning_rate": self._optimizer.param_groups[0]["lr"]}

    def _facts(self, finished: bool) -> dict[str, Any]:
        """What the checkpoint tells about its training."""
        at = self.position
        return {
            "finished": finished,
            "fingerprint": self._fingerprint,
            "dev_loss": at.best,
            "best_step": at.best_step,
            "steps": at.step,
            "tokens": at.tokens,
            "seconds": round(at.seconds, 1),
            "examples": len(self._examples.lengths),
            "threads": torch.get_num_threads(),
            "torch": str(torch.__version__),
            "options": asdict(self.options),
        }


def adam(net: nn.Module, options: TrainingOptions) -> torch.optim.Optimizer:
    """Adam; weight decay (AdamW) is for matrices, not for biases and norms."""
    parameters = [parameter for _, parameter in in_order(net)]
    matrices = sum(parameter.ndim > 1 for parameter in parameters)
    groups = [
        {"params": parameters[:matrices], "weight_decay": options.weight_decay},
        {"params": parameters[matrices:], "weight_decay": 0.0},
    ]
    rate = options.learning_rate
    return torch.optim.AdamW(groups, lr=rate, betas=(0.9, options.beta2), eps=1e-8, fused=True)


def precise(device: str, precision: str) -> AbstractContextManager[Any]:
    """Products in bfloat16 where that is asked for."""
    if precision == "float32":
        return nullcontext()
    return torch.autocast(torch.device(device).type, dtype=torch.bfloat16)


#: Makes a model with random weights, and what it is trained and evaluated on.
Prepare = Callable[[], tuple[Model, Examples, Examples]]


def train(
    prepare: Prepare, options: TrainingOptions, folder: Path, fingerprint: str, *, quiet: bool = False
) -> Model:
    """The best model of the run with this `fingerprint`, which begins, goes on, or has ended already."""
    if not _ended(folder, fingerprint):
        folder.mkdir(parents=True, exist_ok=True)
        with torch.random.fork_rng():  # the caller's own random numbers are left as they were
            torch.manual_seed(options.seed)
            model, examples, dev = prepare()
        run = Run(model, examples, dev, options, folder, fingerprint)
        run.run(quiet=quiet)
        run.finish()
    return load_checkpoint(folder, device=options.device)


def _ended(folder: Path, fingerprint: str) -> bool:
    """Whether a run has ended here; refuses a folder with the model of another."""
    if not is_checkpoint(folder):
        return False
    facts = read_card(folder)["training"]
    check_fingerprint(facts.get("fingerprint"), fingerprint, folder / CARD)
    return bool(facts.get("finished"))
