"""Keys: where they come from, and how they are compared."""

from __future__ import annotations

import hashlib
import hmac

import pytest

pytest.importorskip("starlette", reason="the extra 'web' is not installed")

from rangevote.cli.secrets import from_environment, read_secret
from rangevote.errors import DataError, SetupError
from rangevote.service import middleware as module
from rangevote.service.middleware import Keys, read_keys

ONE, OTHER = "one-key-of-many-letters", "other-key-of-many-letters"


def test_all_keys_are_compared_whichever_fits(monkeypatch):
    compared, genuine = [], hmac.compare_digest

    def compare(known, given):
        compared.append(known)
        return genuine(known, given)

    keys = Keys([ONE, OTHER])
    monkeypatch.setattr(module.hmac, "compare_digest", compare)
    assert keys.match(ONE.encode())
    assert not keys.match(b"\xff wrong")
    assert compared == 2 * [hashlib.sha256(key.encode()).digest() for key in (ONE, OTHER)]


def test_keys_are_kept_as_digests_alone():
    keys = Keys([ONE])
    assert ONE not in repr(keys) + repr(vars(keys))


def test_without_keys_the_door_is_open():
    assert not Keys()
    assert Keys().admit(b"")


def test_a_file_that_others_can_read_is_refused(tmp_path):
    path = tmp_path / "keys"
    path.write_text(f"# of the team\n{ONE}\n\n{OTHER}\n")
    path.chmod(0o644)
    with pytest.raises(SetupError, match=r"can be read by others \(mode 0644\)\. Use: chmod 600"):
        read_secret(str(path))
    path.chmod(0o600)
    assert read_keys(read_secret(str(path)), "keys") == [ONE, OTHER]


def test_a_file_that_is_not_there_is_told(tmp_path):
    with pytest.raises(SetupError, match=r"cannot read .*no such file"):
        read_secret(str(tmp_path / "keys"))


@pytest.mark.parametrize(
    ("text", "told"), [("", "no key"), ("# x\n", "no key"), ("short", "shorter than 16")]
)
def test_keys_that_are_none_or_too_short_are_refused_and_not_shown(text, told):
    with pytest.raises(DataError, match=told):
        read_keys(text, "keys")


def test_a_variable_holds_keys_with_commas_between():
    assert read_keys(from_environment("K", {"K": f"{ONE}, {OTHER}"}), "K") == [ONE, OTHER]
    with pytest.raises(SetupError, match="the environment variable K is not set"):
        from_environment("K", {})
