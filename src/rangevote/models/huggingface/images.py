"""Images, for models that describe them or talk about them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rangevote.errors import DataError, SetupError, need
from rangevote.models.huggingface.head import Net
from rangevote.quiet import quiet

#: A text that ends so is taken for a file, by models that see.
SUFFIXES = {".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp"}


def sees(hf: Net) -> bool:
    """Whether a model takes images."""
    return hf.main_input_name == "pixel_values" or hasattr(hf.config, "vision_config")


def is_image(input: Any) -> bool:
    """Whether this may be an image: an open one, or the path of a file."""
    if isinstance(input, str):
        return Path(input).suffix.lower() in SUFFIXES
    return isinstance(input, Path) or hasattr(input, "convert")


class Images:
    """Makes of inputs what a model that sees takes.

    One with a chat template gets a message for each input: the image, the text, or the chat it is, in which
    images stand as {"type": "image", "image": ...}. The others get images alone.
    """

    def __init__(self, hf: Net, processor: Any) -> None:
        self._hf, self._processor = hf, processor
        self._chats = getattr(processor, "chat_template", None) is not None

    def encode(self, inputs: Sequence[Any]) -> dict[str, Any]:
        """What `generate` takes: `pixel_values` (images, ...), and for chats also tokens and their mask."""
        if self._processor is None:
            raise SetupError(
                "the model takes images, but came without an image processor. Load it from a folder or name "
                "that has one, or give one: load(model, processor=...)."
            )
        tensors = self._chatted(inputs) if self._chats else self._seen(inputs)
        floating = {name for name, tensor in tensors.items() if tensor.is_floating_point()}
        return {
            name: tensor.to(self._hf.device, self._hf.dtype if name in floating else None)
            for name, tensor in tensors.items()
        }

    def _seen(self, inputs: Sequence[Any]) -> dict[str, Any]:
        images = [opened(input, f"inputs[{i}]") for i, input in enumerate(inputs)]
        alone = getattr(self._processor, "image_processor", self._processor)
        with quiet():
            return {"pixel_values": alone(images=images, return_tensors="pt")["pixel_values"]}

    def _chatted(self, inputs: Sequence[Any]) -> dict[str, Any]:
        texts, images = [], []
        for i, input in enumerate(inputs):
            messages = _messages(input, f"inputs[{i}]")
            parts = [part for message in messages for part in message["content"]]
            images.append([part["image"] for part in parts if part["type"] == "image"])
            try:
                texts.append(self._processor.apply_chat_template(messages, add_generation_prompt=True))
            except Exception as error:  # templates are programs of their own, and raise what they like
                raise DataError(
                    f"is a chat the model's template refuses: {error}.", field=f"inputs[{i}]"
                ) from error
        given = {"images": images} if any(images) else {}
        with quiet():
            return dict(
                self._processor(text=texts, **given, padding=True, padding_side="left", return_tensors="pt")
            )


def _messages(input: Any, field: str) -> list[dict[str, Any]]:
    """A chat whose messages are lists of parts, with images opened."""
    if is_image(input):
        input = [{"role": "user", "content": [{"type": "image", "image": input}]}]
    elif isinstance(input, str):
        input = [{"role": "user", "content": input}]
    try:
        return [{"role": message["role"], "content": _parts(message["content"], field)} for message in input]
    except (TypeError, KeyError) as error:
        raise DataError(
            f"is no image, text or chat ({error!r}). A chat is a list of "
            '{"role": ..., "content": ...}, the content a text or a list of {"type": "text", "text": ...} '
            'and {"type": "image", "image": ...}.',
            field=field,
        ) from None


def _parts(content: Any, field: str) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [
        {"type": "image", "image": opened(part["image"], field)} if part["type"] == "image" else dict(part)
        for part in content
    ]


def opened(input: Any, field: str) -> Any:
    """An image in red, green and blue."""
    pil = need("PIL.Image", "models", "reading images")
    if not is_image(input):
        told = repr(input) if len(repr(input)) <= 60 else f"a {type(input).__name__}"
        raise DataError(
            f"is {told}, and the model takes images. Give a PIL image or the path of one.", field=field
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pil.DecompressionBombWarning)
            if isinstance(input, pil.Image):
                return input.convert("RGB")
            with pil.open(input) as image:
                return image.convert("RGB")
    except FileNotFoundError:
        raise DataError(f"there is no file {str(input)!r}.", field=field) from None
    except (
        OSError,
        ValueError,
        SyntaxError,
        pil.DecompressionBombError,
        pil.DecompressionBombWarning,
    ) as error:
        raise DataError(f"{str(input)!r} cannot be read as an image: {error}.", field=field) from error
