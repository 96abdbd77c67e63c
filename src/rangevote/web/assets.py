"""Files that pages are made of, from inside the package: never read from a path that a client names."""

from __future__ import annotations

import importlib.resources
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True)
class Asset:
    """A file and its media type."""

    content: bytes
    media_type: str

    @property
    def text(self) -> str:
        """The file as text."""
        return self.content.decode()


@cache
def assets(package: str) -> Mapping[str, Asset]:
    """The files in the folder `static` of a package, by name."""
    found = {}
    for file in (importlib.resources.files(package) / "static").iterdir():
        ending = "." + file.name.rpartition(".")[2]
        if file.is_file() and ending in TYPES:
            found[file.name] = Asset(file.read_bytes(), TYPES[ending])
    return found


def asset_routes(*packages: str) -> list[Route]:
    """GET /static/NAME for every file of these packages but the pages; the favicon under its usual name."""
    served: dict[str, Asset] = {}
    for package in packages:
        again = served.keys() & assets(package).keys()
        assert not again, f"two packages have a file {', '.join(sorted(again))}"
        served |= assets(package)

    async def static(request: Request) -> Response:
        asset = served.get(request.path_params["name"])
        if asset is None or asset.media_type.startswith("text/html"):
            return Response(status_code=404)
        return Response(asset.content, media_type=asset.media_type)

    async def favicon(request: Request) -> Response:
        asset = assets("rangevote.web")["favicon.svg"]
        return Response(asset.content, media_type=asset.media_type)

    return [Route("/static/{name}", static), Route("/favicon.ico", favicon)]
