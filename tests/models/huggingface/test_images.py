"""Images: what models that see make of them, and what is refused."""

from __future__ import annotations

import pytest
import torch
import transformers
from PIL import Image

from rangevote.errors import DataError, SetupError
from rangevote.models.huggingface.model import HuggingFace
from tests.models.huggingface.samples import images
from tests.models.huggingface.tiny import DECODER, EYE, PAD, SEEING, make_processor, make_tokenizer


def first(model, *inputs) -> torch.Tensor:
    return model.step(model.start(inputs), None).log_probs


@pytest.mark.parametrize("kind", SEEING)
def test_an_image_may_be_open_or_a_file_and_of_any_mode(tiny_model, tmp_path, kind):
    model = HuggingFace(tiny_model(kind), processor=make_processor())
    image = images()[1]
    path = tmp_path / "noise.PNG"
    image.save(path)
    expected = first(model, image)
    for same in (path, str(path), image.convert("RGBA")):
        assert torch.equal(first(model, same), expected)
    assert not torch.equal(first(model, images()[0]), expected)
    assert model.source(image) == model.source(str(path)) == []


def test_images_are_read_together_as_alone(tiny_model):
    model = HuggingFace(tiny_model("vit-gpt2"), processor=make_processor())
    alone = torch.cat([first(model, image) for image in images()])
    torch.testing.assert_close(first(model, *images()), alone, rtol=0, atol=1e-4)


def test_what_is_no_image_is_refused_with_its_number(tiny_model, tmp_path):
    model = HuggingFace(tiny_model("vit-gpt2"), processor=make_processor())
    broken, cut = tmp_path / "broken.png", tmp_path / "cut.png"
    broken.write_bytes(b"no image at all")
    images()[2].save(cut)
    cut.write_bytes(cut.read_bytes()[:60])
    for input, told in [
        ("a dog", r"inputs\[1\]: is 'a dog', and the model takes images"),
        ([5, 6], r"inputs\[1\]: is \[5, 6\], and the model takes images"),
        (list(range(99)), r"inputs\[1\]: is a list, and the model takes images"),
        (tmp_path / "none.png", r"inputs\[1\]: there is no file '.*none.png'"),
        (broken, r"inputs\[1\]: '.*broken.png' cannot be read as an image"),
        (cut, r"inputs\[1\]: '.*cut.png' cannot be read as an image"),
        (tmp_path, r"inputs\[1\]: .* cannot be read as an image"),
    ]:
        with pytest.raises(DataError, match=told):
            model.start([images()[0], input])


def test_an_image_that_would_fill_the_memory_is_refused(tiny_model, tmp_path, monkeypatch):
    images()[2].save(tmp_path / "large.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    model = HuggingFace(tiny_model("vit-gpt2"), processor=make_processor())
    with pytest.raises(DataError, match=r"cannot be read as an image: .*exceeds limit"):
        model.start([tmp_path / "large.png"])


def test_a_model_that_sees_needs_an_image_processor(tiny_model):
    with pytest.raises(SetupError, match="came without an image processor"):
        HuggingFace(tiny_model("vit-gpt2")).start(images())


TEMPLATE = (
    "{% for m in messages %}{{ m['role'] }} : {% for p in m['content'] %}"
    "{% if p['type'] == 'image' %}<image> {% else %}{{ p['text'] }} {% endif %}{% endfor %}{% endfor %}"
    "{% if add_generation_prompt %}assistant :{% endif %}"
)


@pytest.fixture(scope="module")
def talker():
    """A tiny LLaVA, which talks about images."""
    torch.manual_seed(0)
    tokenizer = make_tokenizer()
    tokenizer.add_special_tokens({"additional_special_tokens": ["<image>"]})
    image = tokenizer.convert_tokens_to_ids("<image>")
    config = transformers.LlavaConfig(
        vision_config=transformers.CLIPVisionConfig(**EYE),
        text_config=transformers.LlamaConfig(**{**DECODER, "vocab_size": image + 1}),
        image_token_id=image,
        vision_feature_layer=-1,
    )
    net = transformers.LlavaForConditionalGeneration(config).eval()
    net.generation_config.eos_token_id, net.generation_config.pad_token_id = 2, PAD
    processor = transformers.LlavaProcessor(
        image_processor=transformers.CLIPImageProcessorPil(
            size={"height": 16, "width": 16}, crop_size={"height": 16, "width": 16}
        ),
        tokenizer=tokenizer,
        patch_size=4,
        vision_feature_select_strategy="default",
        chat_template=TEMPLATE,
        num_additional_image_tokens=1,
    )
    return net, processor


def test_a_model_that_talks_about_images_takes_chats_with_them(talker):
    net, processor = talker
    model = HuggingFace(net, processor=processor)
    picture = images()[0]
    chat = [
        {
            "role": "user",
            "content": [{"type": "image", "image": picture}, {"type": "text", "text": "the dog"}],
        }
    ]
    given = processor(
        text="user : <image> the dog assistant :",
        images=picture,
        return_tensors="pt",
        add_special_tokens=True,
    )
    with torch.no_grad():
        expected = net(**given).logits[:, -1].log_softmax(dim=-1)
    found = first(model, chat, picture, "a cat runs", [{"role": "user", "content": "red"}])
    torch.testing.assert_close(found[:1], expected, rtol=0, atol=1e-4)
    alone = [first(model, one) for one in (chat, picture, "a cat runs", [{"role": "user", "content": "red"}])]
    torch.testing.assert_close(found, torch.cat(alone), rtol=0, atol=1e-4)
    step = model.step(model.step(model.start([chat, picture]), None).state, torch.tensor([5, 6]).numpy())
    given["input_ids"] = torch.cat([given["input_ids"], torch.tensor([[5]])], dim=1)
    given["attention_mask"] = torch.ones_like(given["input_ids"])
    with torch.no_grad():
        expected = net(**given).logits[:, -1].log_softmax(dim=-1)
    torch.testing.assert_close(step.log_probs[:1], expected, rtol=0, atol=1e-4)
    assert model.source(chat) == []


@pytest.mark.parametrize("input", [3.5, [{"role": "user"}], [{"content": "a"}], [5, 6]])
def test_what_is_no_chat_is_refused(talker, input):
    net, processor = talker
    with pytest.raises(DataError, match=r"inputs\[1\]: is no image, text or chat"):
        HuggingFace(net, processor=processor).start(["the dog", input])
