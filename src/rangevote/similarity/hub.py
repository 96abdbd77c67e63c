"""Models by name: a folder, an installed package that carries one, or a name on the hub.

Nothing is fetched that is here already, and where the hub cannot be reached that is said at once: the
libraries themselves try again for more than a minute.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import socket
import urllib.request
from pathlib import Path
from types import ModuleType
from urllib.parse import urlsplit

from rangevote.errors import MissingExtra, SetupError

#: Seconds to wait for the hub's answer to a first call.
PATIENCE = 5.0
#: What brings a module that packages of others take for granted.
INSTALLS = {"pkg_resources": '"setuptools<81"'}


def folder_of(model: str, mark: str) -> Path | None:
    """The folder that holds the file `mark`: `model` itself, or inside the package of this name.

    The package is not imported, only looked into. None where the name can only be one on the hub.
    """
    path = Path(model).expanduser()
    if path.is_dir():
        if (path / mark).is_file():
            return path
        raise SetupError(f"the folder {model!r} holds no model: there is no {mark} in it.")
    if model.startswith((".", "~", "/")) or "\\" in model or model.count("/") > 1:
        raise SetupError(f"there is no folder {model!r} to load a model from.")
    module = model.replace("-", "_")
    if not module.isidentifier():
        return None
    spec = importlib.util.find_spec(module)
    places = [] if spec is None else [Path(place) for place in spec.submodule_search_locations or ()]
    found = (file.parent for place in places for file in sorted(place.glob(f"**/{mark}")))
    return next(found, None)


def refuse_unreachable(model: str, measure: str) -> None:
    """Say so where the model is not here and the hub cannot be asked for it."""
    from huggingface_hub import constants

    remedy = "Download it where there is a network, and give its folder in place of the name."
    if constants.HF_HUB_OFFLINE:
        raise SetupError(
            f"{measure}: no folder, package or downloaded model has the name {model!r}, and HF_HUB_OFFLINE "
            f"forbids to fetch it. {remedy}"
        )
    if urllib.request.getproxies():  # then a direct call tells nothing
        return
    address = urlsplit(constants.ENDPOINT)
    port = address.port or (80 if address.scheme == "http" else 443)
    try:
        socket.create_connection((address.hostname or "", port), timeout=PATIENCE).close()
    except OSError as error:
        raise SetupError(
            f"{measure}: no folder, package or downloaded model has the name {model!r}, and the hub cannot "
            f"be reached ({error}). {remedy}"
        ) from error


def is_cached(model: str) -> bool:
    """Whether the model was downloaded from the hub before."""
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        return isinstance(try_to_load_from_cache(model, "config.json"), (str, os.PathLike))
    except HFValidationError as error:
        raise SetupError(f"{model!r} is no folder, and no name that the hub can have: {error}") from error


def bring(module: str, package: str, measure: str) -> ModuleType:
    """Import a package of others that the user installs, or say how."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        missing = (error.name or module).partition(".")[0]
        if missing == module:
            state, wanted = "not installed", package
        else:
            state, wanted = f"there, but lacks {missing!r}", INSTALLS.get(missing, missing)
        raise MissingExtra(
            f"the similarity {measure!r} needs the package {package!r}, which is {state}. "
            f"Install it with: pip install {wanted}"
        ) from error
    except Exception as error:  # a package at odds with the others fails in any way
        raise SetupError(
            f"the similarity {measure!r} needs the package {package!r}, which is installed but cannot be "
            f"imported: {said(error)}. Install one that fits: pip install --upgrade {package}"
        ) from error


def said(error: BaseException) -> str:
    """What a library said, in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split()).rstrip(".:")
