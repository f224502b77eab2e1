"""Signatures: whoever holds the key signed these bytes, and every way of that not being so has its own words."""

from __future__ import annotations

import base64
import json
import stat

import pytest

import sfumato as sf
from sfumato.signing import read_signature

# RFC 8032, section 7.1, TEST 2: the secret key, its public key, and the signature of the one byte 0x72.
RFC_SECRET = bytes.fromhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb")
RFC_PUBLIC = bytes.fromhex("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "2026.html").write_bytes(b"a statement")
    return tmp_path


def outcome(path="2026.html", **given):
    found = sf.verify(path, **given)["signature"]
    return found.outcome, found.words


def test_a_key_is_for_its_owner_alone_and_its_public_half_to_hand_out(here):
    key = sf.SigningKey.create("publisher.key")
    assert stat.S_IMODE((here / "publisher.key").stat().st_mode) == 0o600
    assert (here / "publisher.key.pub").read_text().strip() == key.public == sf.SigningKey("publisher.key").public
    secret = (here / "publisher.key").read_text().split(":")[1].strip()
    assert secret not in repr(key) + str(vars(key)) + key.public


def test_the_public_key_is_that_of_the_standard(here):
    written = f"sfumato-signing-key:{base64.b64encode(RFC_SECRET).decode()}\n"
    (here / "known.key").write_text(written)
    (here / "known.key").chmod(0o600)
    assert sf.SigningKey("known.key").public == f"sfumato-ed25519:{base64.b64encode(RFC_PUBLIC).decode()}"


def test_a_signed_file_is_verified_by_its_key_as_text_or_file(here):
    key = sf.SigningKey.create("publisher.key")
    assert str(key.sign("2026.html")) == "2026.html.sig"
    assert (here / "2026.html").read_bytes() == b"a statement"  # what was signed is as it was
    for given in (key.public, "publisher.key.pub", here / "publisher.key.pub", key):
        result, words = outcome(key=given)
        assert result == "holds"
        assert key.public in words


def test_without_a_key_nobody_says_whose_it_is(here):
    key = sf.SigningKey.create("publisher.key")
    key.sign("2026.html")
    result, words = outcome()
    assert result == "open"
    assert "whose key that is, the file cannot show" in words
    assert sf.verify("2026.html").passed and not sf.verify("2026.html").complete


def test_a_signature_by_another_key_fails(here):
    sf.SigningKey.create("publisher.key").sign("2026.html")
    other = sf.SigningKey.create("other.key")
    result, words = outcome(key=other.public)
    assert result == "fails"
    assert words.startswith("it is signed by another key: by sfumato-ed25519:")
    assert other.public in words


@pytest.mark.parametrize("content", [b"a Statement", b"a statement ", b"", b"a statemen"])
def test_a_changed_byte_shows(here, content):
    key = sf.SigningKey.create("publisher.key")
    key.sign("2026.html")
    (here / "2026.html").write_bytes(content)
    result, words = outcome(key=key.public)
    assert result == "fails"
    assert "the file is not the one that" in words and "it was changed since" in words


def test_a_file_without_signature(here):
    key = sf.SigningKey.create("publisher.key")
    assert outcome() == ("open", "it is not signed: there is no '2026.html.sig' beside it")
    result, words = outcome(key=key.public)
    assert result == "fails"
    assert words.startswith("it is not signed, and a signature by sfumato-ed25519:")
    assert not sf.verify("2026.html").passed  # neither a release nor signed: there is nothing that could be right


@pytest.mark.parametrize("name, value", [("signed", "2020-01-01T00:00:00+00:00"), ("bytes", 12), ("sha256", "0" * 64)])
def test_what_a_signature_says_cannot_be_edited(here, name, value):
    key = sf.SigningKey.create("publisher.key")
    written = json.loads(key.sign("2026.html").read_text())
    (here / "2026.html.sig").write_text(json.dumps(written | {name: value}))
    result, words = outcome(key=key.public)
    assert result == "fails"
    assert "was damaged or forged" in words


def test_a_signature_with_another_key_put_in_is_forged(here):
    key, other = sf.SigningKey.create("publisher.key"), sf.SigningKey.create("other.key")
    written = json.loads(key.sign("2026.html").read_text())
    (here / "2026.html.sig").write_text(json.dumps(written | {"key": other.public}))
    assert outcome(key=other.public)[0] == "fails"
    assert "damaged or forged" in outcome(key=other.public)[1]


@pytest.mark.parametrize(
    "content, why",
    [
        (b"x" * 5000, "it is longer than the 4,096 bytes"),
        (b"not json", "it is not JSON"),
        (b"[1]", "it must have exactly the fields"),
        (b'{"version": 2}', "it is of version 2, and this sfumato knows 1"),
        (b'{"version": 1, "key": "k"}', "it must have exactly the fields"),
    ],
)
def test_what_is_no_signature_says_so(here, content, why):
    (here / "2026.html.sig").write_bytes(content)
    result, words = outcome()
    assert result == "fails"
    assert why in words


@pytest.mark.parametrize(
    "field, value", [("sha256", "zz"), ("bytes", "11"), ("signature", "AAAA"), ("signed", "never")]
)
def test_fields_of_another_form_are_refused(here, field, value):
    written = json.loads(sf.SigningKey.create("publisher.key").sign("2026.html").read_text())
    (here / "2026.html.sig").write_text(json.dumps(written | {field: value}))
    with pytest.raises(sf.FileFormatError, match="must have exactly the fields"):
        read_signature(here / "2026.html.sig")


def test_a_key_is_never_made_by_opening_and_never_replaced(here):
    with pytest.raises(sf.InvalidInput, match=r"there is no signing key 'publisher.key'. Nothing was signed."):
        sf.SigningKey("publisher.key")
    assert not (here / "publisher.key").exists()
    first = sf.SigningKey.create("publisher.key").public
    with pytest.raises(sf.InvalidInput, match=r"there is a file 'publisher.key' already. Nothing was created"):
        sf.SigningKey.create("publisher.key")
    assert sf.SigningKey("publisher.key").public == first


def test_a_key_that_others_can_read_signs_nothing(here):
    sf.SigningKey.create("publisher.key")
    (here / "publisher.key").chmod(0o644)
    with pytest.raises(sf.InvalidInput, match=r"is open to other users .permissions 644.. Nothing was signed."):
        sf.SigningKey("publisher.key")


@pytest.mark.parametrize("content", ["", "sfumato-signing-key:AAAA", "sfumato-signing-key:!", "sfumato-ed25519:AAAA"])
def test_what_is_no_key_says_so_and_shows_nothing_of_it(here, content):
    (here / "bad.key").write_text(content)
    (here / "bad.key").chmod(0o600)
    with pytest.raises(sf.InvalidInput) as refused:
        sf.SigningKey("bad.key")
    assert "'bad.key' does not hold a signing key. Nothing was signed." in str(refused.value)
    assert not content or content.split(":")[1] not in str(refused.value)


def test_a_secret_key_given_for_a_public_one_is_refused(here):
    sf.SigningKey.create("publisher.key").sign("2026.html")
    with pytest.raises(sf.InvalidInput, match="is the secret key of a publisher, and the public one is wanted"):
        sf.verify("2026.html", key="publisher.key")
    with pytest.raises(sf.InvalidInput, match=r"is neither a public key .* nor a file with one"):
        sf.verify("2026.html", key="nowhere.pub")
    with pytest.raises(sf.InvalidInput, match="does not hold a public key"):
        sf.verify("2026.html", key="2026.html")
