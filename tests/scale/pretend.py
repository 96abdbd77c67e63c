"""In Ray's place: what the engine asks of it, done in this process and at once, through pickle as Ray does.

So all of the engine but Ray itself is tested without starting one; `test_ray_engine.py` has the real one.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from rangevote.scale.ray.places import Place


class Killed(BaseException):
    """As after kill -9: nothing in the package catches it."""


@dataclass
class PretendRay:
    """Units are done one after the other; `stop_before` so many, Ctrl-C is pressed."""

    stop_before: int | None = None
    meanwhile: Callable[[], object] | None = None  # what happens before the first unit is done
    done: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.exceptions = SimpleNamespace(RayError=RuntimeError)
        context = SimpleNamespace(enable_progress_bars=True)
        self.data = SimpleNamespace(
            DataContext=SimpleNamespace(get_current=lambda: context), from_items=self._from_items
        )

    def remote(self, function: Any) -> Any:
        return SimpleNamespace(remote=lambda *given: function(*pickle.loads(pickle.dumps(given))))

    def get(self, found: list[Any]) -> list[Any]:
        return found

    def _from_items(self, items: list[dict[str, bytes]], override_num_blocks: int) -> Any:
        return SimpleNamespace(
            map_batches=lambda task, **_: SimpleNamespace(
                iter_batches=lambda **_: self._batches(pickle.loads(pickle.dumps(task)), items)
            )
        )

    def _batches(self, task: Any, items: list[dict[str, bytes]]) -> Iterator[dict[str, Any]]:
        for item in reversed(items):  # in any order
            if self.stop_before == len(self.done):
                raise KeyboardInterrupt
            if self.meanwhile is not None:
                self.meanwhile()
                self.meanwhile = None
            self.done.append(pickle.loads(item["unit"]).number)
            yield task({"unit": [item["unit"]]})


@contextmanager
def in_place_of_ray(ray: PretendRay) -> Iterator[PretendRay]:
    """`rangevote vote --engine ray` gets this one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rangevote.scale.ray.session.check_installed", lambda: None)
        patch.setattr("rangevote.scale.ray.session.session", lambda address: _held(ray))
        yield ray


@contextmanager
def _held(ray: PretendRay) -> Iterator[PretendRay]:
    yield ray


@contextmanager
def killed_at(change: int) -> Iterator[None]:
    """The process ends before it makes its n-th change to the file system, and makes none afterwards."""
    left = change

    def counted(real: Any) -> Any:
        def method(place: Place, *given: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                raise Killed
            return real(place, *given)

        return method

    @contextmanager
    def create(place: Place, draft: Place | None = None) -> Iterator[Any]:
        """In two steps: a draft is there, then it has its name."""
        nonlocal left
        left -= 1
        if left < 0:
            raise Killed
        path = f"{(draft or place).path}.tmp-0"
        with place.system.open_output_stream(path) as file:
            yield file
        left -= 1
        if left < 0:
            raise Killed
        place.system.move(path, place.path)

    with pytest.MonkeyPatch.context() as patch:
        for name in ("remove", "make_folder", "remove_folder"):
            patch.setattr(Place, name, counted(getattr(Place, name)))
        patch.setattr(Place, "create", create)
        yield
