"""`load`: from folders, GGUF files, n-gram files, names and objects; and what is refused."""

from __future__ import annotations

import importlib.util
import json
import os
import pickle
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from rangevote.errors import MissingExtra, RangevoteWarning, SetupError, UsageError
from rangevote.models.huggingface.model import HuggingFace
from rangevote.models.load import load, quiet
from tests.models.huggingface.tiny import (
    END,
    EYE,
    SEEING,
    first,
    images,
    make,
    make_processor,
    make_tokenizer,
)

NEEDS_GGUF = pytest.mark.skipif(
    any(importlib.util.find_spec(package) is None for package in ("gguf", "accelerate")),
    reason="needs gguf and accelerate: pip install 'rangevote[models]'",
)


def saved(folder: Path, kind: str, tokenizer: bool = True) -> Path:
    make(kind).save_pretrained(folder)
    if tokenizer:
        make_tokenizer().save_pretrained(folder)
    if kind in SEEING:
        make_processor().save_pretrained(folder)
    return folder


@pytest.mark.parametrize("kind", ["llama", "bart", "vit-gpt2", "git"])
def test_a_folder_is_read_as_what_its_configuration_says(tmp_path, kind):
    if kind in SEEING and "dummy" in transformers.AutoImageProcessor.__module__:
        pytest.skip("older versions of transformers read no image processors without torchvision")
    model = load(saved(tmp_path, kind))
    assert type(model.hf) is type(make(kind))
    assert not model.hf.training
    inputs = images() if kind in SEEING else ["the dog runs", "red"]
    expected = HuggingFace(make(kind), make_tokenizer(), make_processor() if kind in SEEING else None)
    torch.testing.assert_close(first(model, *inputs), first(expected, *inputs), rtol=0, atol=1e-5)
    assert model.text([4, 6]) == "a dog"
    assert model.ends == (END,)


def test_a_text_names_a_folder_as_well_as_a_path_does(tmp_path, monkeypatch):
    saved(tmp_path / "model", "llama")
    monkeypatch.chdir(tmp_path)
    assert torch.equal(first(load("model"), "red"), first(load(tmp_path / "model"), "red"))


def test_loading_is_quiet_and_leaves_transformers_as_talkative_as_before(tmp_path, capfd):
    saved(tmp_path, "llama")
    capfd.readouterr()
    logging = transformers.utils.logging
    logging.set_verbosity_info()
    try:
        first(load(tmp_path), "the dog", "red")
        assert logging.get_verbosity() == logging.INFO
        assert logging.is_progress_bar_enabled()
    finally:
        logging.set_verbosity_warning()
    assert capfd.readouterr() == ("", "")


def test_warnings_of_transformers_are_not_shown_while_a_model_loads_and_others_are():
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        with quiet():
            for module in ("transformers.models.marian", "rangevote.models"):
                warnings.warn_explicit(module, UserWarning, f"{module}.py", 1, module=module)
    assert [str(one.message) for one in shown] == ["rangevote.models"]


def test_another_tokenizer_may_be_named(tmp_path):
    saved(tmp_path / "model", "llama", tokenizer=False)
    make_tokenizer().save_pretrained(tmp_path / "words")
    assert load(tmp_path / "model", tmp_path / "words").text([4, 6]) == "a dog"
    assert load(tmp_path / "model", make_tokenizer()).text([4, 6]) == "a dog"


def test_numbers_are_float32_on_a_processor_unless_others_are_asked_for(tmp_path):
    make("llama").bfloat16().save_pretrained(tmp_path)
    assert load(tmp_path).hf.dtype == torch.float32
    assert load(tmp_path, dtype="bfloat16").hf.dtype == torch.bfloat16
    assert load(tmp_path, dtype=torch.float64, device="meta").hf.dtype == torch.float64
    assert load(tmp_path, device="meta").hf.device.type == "meta"


def test_a_processor_that_is_given_is_used(tmp_path):
    processor = make_processor()
    assert load(saved(tmp_path, "vit-gpt2"), processor=processor).processor is processor


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": "int8"}, r"dtype='int8' is unknown. Choose from: float32"),
        ({"device": "tpu"}, r"device='tpu' is not available here"),
        ({"end": "nothing"}, r"end='nothing' is not a token of this model"),
        ({"end": 40}, r"end=40 is not a token of this model"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(tmp_path, options, message):
    with pytest.raises(UsageError, match=message):
        load(saved(tmp_path, "llama"), **options)


def test_ends_are_the_configurations_the_tokenizers_or_those_named(tmp_path):
    net, tokenizer = make("llama"), make_tokenizer()
    net.generation_config.eos_token_id = [2, 9]
    assert load(net, tokenizer).ends == (2, 9)
    assert load(net, tokenizer, end="dog").ends == (6,)
    assert load(net, tokenizer, end=["dog", 7, "dog"]).ends == (6, 7)
    net.generation_config.eos_token_id = None
    assert load(net, tokenizer).ends == (END,)
    with pytest.raises(SetupError, match=r"names a token that ends a sequence. Name one: load\(..., end="):
        load(net)


@pytest.mark.parametrize(
    ("model", "options", "error", "message"),
    [
        (3, {}, UsageError, "cannot load a int"),
        (torch.nn.Linear(2, 2), {}, UsageError, "cannot load a Linear"),
        (make("llama"), {"device": "cpu"}, UsageError, r"leave device out.*model\.to"),
        *(
            (name, {}, SetupError, "there is no file or folder")
            for name in ("./none", "none.gguf", "a/b/c", "")
        ),
        (__file__, {}, SetupError, r"test_loading\.py is not a model file"),
    ],
)
def test_what_is_no_model_is_refused(model, options, error, message):
    with pytest.raises(error, match=message):
        load(model, **options)


def test_a_model_that_writes_no_text_is_refused(tmp_path):
    small = {"vocab_size": 40, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    with pytest.raises(UsageError, match="cannot load a BertModel"):
        load(transformers.BertModel(transformers.BertConfig(**small, intermediate_size=8)))
    clip = transformers.CLIPModel(transformers.CLIPConfig(text_config=small, vision_config=EYE))
    clip.save_pretrained(tmp_path)
    with pytest.raises(SetupError, match="of the type 'clip', which does not write text"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("offline", "reason"), [(True, "HF_HUB_OFFLINE forbids"), (False, "the hub cannot be reached")]
)
def test_a_name_that_cannot_be_fetched_is_refused_at_once(monkeypatch, offline, reason):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", offline)
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")  # nobody listens there
    monkeypatch.setattr("rangevote.models.load.getproxies", dict)
    waits: list[float] = []
    monkeypatch.setattr("time.sleep", waits.append)
    with pytest.raises(SetupError, match=rf"has the name 'nobody/nothing', and {reason}.*give its folder"):
        load("nobody/nothing")
    assert waits == []


def test_a_downloaded_model_is_read_without_the_hub(tmp_path, monkeypatch):
    folder = tmp_path / "models--some--one"
    saved(folder / "snapshots" / "0123", "llama")
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text("0123")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))

    def no_network(*_, **__):
        raise OSError("no network")

    monkeypatch.setattr("socket.create_connection", no_network)
    assert load("some/one", dtype="float64").hf.dtype == torch.float64


def test_a_folder_without_a_model_is_refused(tmp_path):
    with pytest.raises(SetupError, match=r"is not a model: there is no config.json"):
        load(tmp_path)
    saved(tmp_path, "llama")
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(SetupError, match=r"has no weights: there is no file \*.safetensors"):
        load(tmp_path)


def test_pickled_weights_are_refused_and_never_opened(tmp_path):
    class Trap:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "sprung"),))

    saved(tmp_path, "llama")
    (tmp_path / "model.safetensors").unlink()
    (tmp_path / "pytorch_model.bin").write_bytes(pickle.dumps(Trap()))
    with pytest.raises(SetupError, match=r"only as pytorch_model.bin, a format that can run code.*Convert"):
        load(tmp_path)
    assert not (tmp_path / "sprung").exists()


def test_code_that_comes_with_a_model_is_never_run(tmp_path):
    saved(tmp_path, "llama")
    config = json.loads((tmp_path / "config.json").read_text())
    config |= {
        "model_type": "trap",
        "auto_map": {"AutoConfig": "trap.Trap", "AutoModelForCausalLM": "trap.Trap"},
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "trap.py").write_text(f"import os; os.mkdir({str(tmp_path / 'sprung')!r})")
    with pytest.raises(SetupError, match="needs code of its author to be run, which is never done here"):
        load(tmp_path)
    assert not (tmp_path / "sprung").exists()


def test_a_broken_configuration_or_weight_file_is_a_setup_error(tmp_path):
    saved(tmp_path, "llama")
    weights = (tmp_path / "model.safetensors").read_bytes()
    (tmp_path / "model.safetensors").write_bytes(weights[:100])
    with pytest.raises(SetupError, match="transformers cannot read it"):
        load(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(SetupError, match="transformers cannot read it"):
        load(tmp_path)


def test_weights_that_are_missing_are_told(tmp_path):
    saved(tmp_path, "llama")
    weights = load_file(tmp_path / "model.safetensors")
    del weights["model.norm.weight"]
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.warns(RangevoteWarning, match=r"no weights for 1 parts of the model \(model.norm.weight\)"):
        load(tmp_path)


def test_an_arpa_file_is_an_n_gram_model(tmp_path):
    ngram = pytest.importorskip("rangevote.models.ngram")
    ngram.NgramModel.train(["a dog runs", "a cat sits"], order=2).write(tmp_path / "small.arpa")
    assert isinstance(load(tmp_path / "small.arpa"), ngram.NgramModel)
    for option in ("device", "dtype", "end"):
        with pytest.raises(UsageError, match=rf"leave {option} out: it is for neural models"):
            load(tmp_path / "small.arpa", **{option: "cpu"})


def test_without_the_packages_it_says_what_to_install():
    script = "import sys; sys.modules['torch'] = None; from rangevote.models.load import load; load('a/b')"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "needs the package 'torch'" in done.stderr
    assert 'pip install "rangevote[models]"' in done.stderr
    assert MissingExtra.__name__ in done.stderr


def permuted(weight: np.ndarray, heads: int) -> np.ndarray:
    """Rows of a query or key matrix in the order of GGUF files of LLaMA models."""
    halves = weight.reshape(heads, 2, len(weight) // heads // 2, -1)
    return halves.swapaxes(1, 2).reshape(weight.shape)


def write_gguf(path: Path, net, words: list[str]) -> None:
    import gguf

    config = net.config
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(words)
    writer.add_token_types([3, 3, 3] + [1] * (len(words) - 3))
    writer.add_token_merges(["a b", "b a"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(END)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config.num_hidden_layers)
    for name, tensor in net.state_dict().items():
        weight = tensor.numpy()
        if "q_proj" in name or "k_proj" in name:
            weight = permuted(weight, config.num_attention_heads)
        writer.add_tensor(names.get_name(name, (".weight",)), np.ascontiguousarray(weight))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@NEEDS_GGUF
def test_a_gguf_file_has_weights_configuration_and_tokenizer(tmp_path, capfd):
    net = make("llama")
    words = ["<pad>", "<s>", "</s>", "a", "b", "ab", "ba", "Ġ", *[f"w{i}" for i in range(32)]]
    write_gguf(tmp_path / "tiny.gguf", net, words)
    capfd.readouterr()
    model = load(tmp_path / "tiny.gguf")
    assert capfd.readouterr() == ("", "")
    torch.testing.assert_close(
        first(model, [5, 6, 7], [9]), first(HuggingFace(net), [5, 6, 7], [9]), rtol=0, atol=1e-4
    )
    assert model.ends == (END,)
    assert model.source("ab") == [5]
    assert model.text([5, 3]) == "aba"
    other = load(tmp_path / "tiny.gguf", device="meta", dtype="bfloat16").hf
    assert (other.device.type, other.dtype) == ("meta", torch.bfloat16)


@NEEDS_GGUF
def test_a_broken_gguf_file_is_a_setup_error(tmp_path):
    (tmp_path / "broken.gguf").write_bytes(b"GGUF and nothing")
    with pytest.raises(SetupError, match=r"broken.gguf.*transformers cannot read it"):
        load(tmp_path / "broken.gguf")


SMOL = os.environ.get("RANGEVOTE_TEST_GGUF", "")


@pytest.mark.slow
@NEEDS_GGUF
@pytest.mark.skipif(not SMOL, reason="set RANGEVOTE_TEST_GGUF to the path of a SmolLM2 GGUF file")
def test_a_real_gguf_file_answers_in_a_chat():
    model = load(SMOL)
    step = model.step(model.start(["What is the capital of France? Answer in one word."]), None)
    tokens = []
    while not tokens or (tokens[-1] not in model.ends and len(tokens) < 20):
        tokens.append(int(step.log_probs.argmax()))
        step = model.step(step.state, np.array(tokens[-1:]))
    assert "Paris" in model.text(tokens)
