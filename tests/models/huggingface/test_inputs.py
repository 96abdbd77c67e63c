"""Texts, chats, token ids and images: what the model reads of them, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import transformers
from PIL import Image

from rangevote.errors import DataError, SetupError, UsageError
from rangevote.models.huggingface.model import HuggingFace
from tests.models.huggingface.tiny import (
    BEGIN,
    DECODER,
    END,
    EYE,
    PAD,
    ROOM,
    SEEING,
    first,
    images,
    make_processor,
    make_tokenizer,
)

TEMPLATE = (
    "{% for m in messages %}{{ m['role'] }} : {{ m['content'] }} {% endfor %}"
    "{% if add_generation_prompt %}assistant :{% endif %}"
)


@pytest.mark.parametrize("kind", ["llama", "bart"])
def test_a_text_is_read_as_its_tokens(tiny_model, tokenizer, kind):
    model = HuggingFace(tiny_model(kind), tokenizer)
    ids = tokenizer("the dog runs")["input_ids"]
    assert ids[0] == BEGIN
    assert torch.equal(first(model, "the dog runs"), first(model, ids))


@pytest.mark.parametrize(
    "ids", [(5, 6, 7), np.array([5, 6, 7]), torch.tensor([5, 6, 7]), np.array([5, 6, 7], dtype=np.int32)]
)
def test_token_ids_may_be_a_list_or_an_array(tiny_model, ids):
    model = HuggingFace(tiny_model("llama"))
    assert torch.equal(first(model, ids), first(model, [5, 6, 7]))
    assert model.source(ids) == [5, 6, 7]


@pytest.mark.parametrize("kind", ["llama", "opt", "bloom", "mamba", "t5"])
def test_texts_of_different_lengths_are_read_together_as_alone(tiny_model, tokenizer, kind):
    model = HuggingFace(tiny_model(kind), tokenizer)
    texts = ["the dog", "a big cat sleeps under the small tree", "red"]
    alone = torch.cat([first(model, text) for text in texts])
    torch.testing.assert_close(first(model, *texts), alone, rtol=0, atol=1e-4)


def test_a_text_is_a_users_message_where_there_is_a_chat_template(tiny_model):
    tokenizer = make_tokenizer(TEMPLATE)
    model = HuggingFace(tiny_model("llama"), tokenizer)
    expected = tokenizer("user : the dog assistant :", add_special_tokens=False)["input_ids"]
    assert torch.equal(first(model, "the dog"), first(model, expected))
    assert torch.equal(first(model, [{"role": "user", "content": "the dog"}]), first(model, expected))


def test_a_whole_chat_is_read_up_to_where_the_answer_begins(tiny_model):
    tokenizer = make_tokenizer(TEMPLATE)
    model = HuggingFace(tiny_model("llama"), tokenizer)
    chat = [
        {"role": "user", "content": "the dog"},
        {"role": "assistant", "content": "runs"},
        {"role": "user", "content": "a cat"},
    ]
    text = "user : the dog assistant : runs user : a cat assistant :"
    expected = tokenizer(text, add_special_tokens=False)["input_ids"]
    assert torch.equal(first(model, chat), first(model, expected))
    assert model.source(chat) == tokenizer("a cat", add_special_tokens=False)["input_ids"]


def test_without_chat_a_text_is_just_a_text(tiny_model, tokenizer):
    model = HuggingFace(tiny_model("llama"), make_tokenizer(TEMPLATE), chat=False)
    assert torch.equal(first(model, "the dog"), first(HuggingFace(tiny_model("llama"), tokenizer), "the dog"))


def test_text_and_source_are_without_special_tokens_and_template(tiny_model):
    tokenizer = make_tokenizer(TEMPLATE)
    model = HuggingFace(tiny_model("llama"), tokenizer)
    ids = model.source("the dog runs")
    assert BEGIN not in ids
    assert model.text([BEGIN, *ids, END]) == "the dog runs"


def test_the_source_is_written_as_a_target_where_that_is_another_way(tiny_model, tokenizer):
    class TwoSided:
        eos_token_id, pad_token_id, chat_template = END, 0, None

        def __call__(self, text=None, text_target=None, add_special_tokens=True):
            return {"input_ids": [7] if text_target else [8, END]}

    assert HuggingFace(tiny_model("marian"), TwoSided()).source("ein Hund") == [7]
    assert HuggingFace(tiny_model("llama"), TwoSided()).source("a dog") == [8, END]


def test_room_is_what_the_prompt_leaves_of_the_positions(tiny_model):
    model = HuggingFace(tiny_model("gpt2"))
    assert model.room(model.start([[5, 6, 7], [8]])).tolist() == [ROOM - 3, ROOM - 1]
    assert model.room(model.select(model.start([[5, 6, 7], [8]]), np.array([1, 1, 0]))).tolist() == [
        63,
        63,
        61,
    ]
    writer = HuggingFace(tiny_model("bart"))
    assert writer.room(writer.start([[5, 6, 7], [8]])).tolist() == [ROOM - 1, ROOM - 1]
    for kind in ("t5", "mamba"):
        assert HuggingFace(tiny_model(kind)).room(HuggingFace(tiny_model(kind)).start([[5]])) is None


REFUSED = [
    ("llama", [], r"inputs\[1\]: has no tokens.*Give a text"),
    ("llama", [5, 40], r"inputs\[1\]: contains the token 40; the model knows 0 to 39"),
    ("llama", [5, 6.5], r"inputs\[1\]\[1\]: 6.5 is not a token id"),
    ("llama", [True], r"inputs\[1\]\[0\]: True is not a token id"),
    ("llama", np.array([[5, 6]]), r"inputs\[1\]: is an array \(1, 2\); give a text"),
    ("llama", 3.5, r"inputs\[1\]: is 3.5; give a text, a chat or a list of token ids"),
    (
        "llama",
        [5] * ROOM,
        r"inputs\[1\]: has 64 tokens; the model takes at most 64, with what it is to write",
    ),
    ("bart", [5] * (ROOM + 1), r"inputs\[1\]: has 65 tokens; the model takes at most 64. Shorten it"),
    ("llama", "the \ud800 dog", r"inputs\[1\]: cannot be encoded as UTF-8"),
    (
        "llama",
        [{"role": "user", "content": "a"}],
        r"inputs\[1\]: is a chat, but the model has no tokenizer with",
    ),
    ("bart", [{"role": "user", "content": "a"}], r"inputs\[1\]: is a chat"),
]


@pytest.mark.parametrize(("kind", "input", "message"), REFUSED)
def test_what_cannot_be_read_is_refused_with_its_number(tiny_model, tokenizer, kind, input, message):
    with pytest.raises(DataError, match=message):
        HuggingFace(tiny_model(kind), tokenizer).start([[5, 6], input])


@pytest.mark.parametrize(
    ("template", "message"),
    [
        (None, "is the text 'the dog', but .* without a tokenizer"),
        ("{{ raise_exception('roles') }}", "is a chat the model's template refuses: roles"),
    ],
)
def test_a_text_that_the_tokenizer_cannot_prepare_is_refused(tiny_model, template, message):
    tokenizer = None if template is None else make_tokenizer(template)
    with pytest.raises(DataError, match=rf"inputs\[0\]: {message}"):
        HuggingFace(tiny_model("llama"), tokenizer).start(["the dog"])


def test_a_model_without_masks_reads_only_inputs_of_one_length(tiny_model, monkeypatch):
    net = tiny_model("llama")
    monkeypatch.setattr(type(net), "forward", lambda self, input_ids: None)
    with pytest.raises(UsageError, match="takes no attention mask"):
        HuggingFace(net).start([[5, 6], [7]])


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


def test_what_is_no_image_is_refused_with_its_number(tiny_model, tmp_path):
    model = HuggingFace(tiny_model("vit-gpt2"), processor=make_processor())
    broken, cut = tmp_path / "broken.png", tmp_path / "cut.png"
    broken.write_bytes(b"no image at all")
    images()[2].save(cut)
    cut.write_bytes(cut.read_bytes()[:60])
    for input, message in [
        ("a dog", r"inputs\[1\]: is 'a dog'; the model takes images"),
        ([5, 6], r"inputs\[1\]: is \[5, 6\]; the model takes images"),
        (list(range(99)), r"inputs\[1\]: is \[0, 1, .*; the model takes images"),
        (tmp_path / "none.png", r"inputs\[1\]: there is no file '.*none.png'"),
        (broken, r"inputs\[1\]: '.*broken.png' cannot be read as an image"),
        (cut, r"inputs\[1\]: '.*cut.png' cannot be read as an image"),
        (tmp_path, r"inputs\[1\]: .* cannot be read as an image"),
    ]:
        with pytest.raises(DataError, match=message):
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


IMAGE_TEMPLATE = (
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
        chat_template=IMAGE_TEMPLATE,
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


@pytest.mark.parametrize("input", [3.5, [{"role": "user"}]])
def test_what_is_no_chat_is_refused(talker, input):
    net, processor = talker
    with pytest.raises(DataError, match=r"inputs\[1\]: is not an image, text or chat"):
        HuggingFace(net, processor=processor).start(["the dog", input])
