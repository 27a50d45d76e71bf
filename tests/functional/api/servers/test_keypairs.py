"""Key pairs."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

from causeway.api import keys


@pytest.fixture(scope="module")
def public_key() -> str:
    key = ed25519.Ed25519PrivateKey.generate().public_key()
    return key.public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH).decode() + " me@here"


def test_a_key_is_imported_shown_listed_and_deleted(api: Any, public_key: str) -> None:
    created = api.post("/os-keypairs", {"keypair": {"name": "mine", "public_key": public_key}})
    assert created.status == 201
    digest = hashlib.md5(base64.b64decode(public_key.split()[1])).hexdigest()
    expected = {
        "name": "mine",
        "public_key": public_key,
        "fingerprint": ":".join(digest[i : i + 2] for i in range(0, 32, 2)),
        "type": "ssh",
    }
    assert created.json == {"keypair": expected | {"user_id": "user"}}
    shown = api.get("/os-keypairs/mine").json["keypair"]
    assert shown.keys() == expected.keys() | {"id", "user_id", "created_at", "updated_at", "deleted", "deleted_at"}
    assert api.get("/os-keypairs").json == {"keypairs": [{"keypair": expected}]}
    assert api.delete("/os-keypairs/mine").status == 204
    assert api.get("/os-keypairs/mine").status == 404
    assert api.delete("/os-keypairs/mine").status == 404


@pytest.mark.parametrize("form", ["{}\n", "{}\r\n", "{} \n\n", "  {}", "{}"])
def test_a_key_comes_back_as_it_was_sent(api: Any, public_key: str, form: str) -> None:
    """Clients compare the two, and make the key pair anew if they differ."""
    sent = form.format(public_key)
    made = api.post("/os-keypairs", {"keypair": {"name": "mine", "public_key": sent}}).json["keypair"]
    assert made["public_key"] == sent
    assert api.get("/os-keypairs/mine").json["keypair"]["public_key"] == sent
    (listed,) = api.get("/os-keypairs").json["keypairs"]
    assert listed["keypair"]["public_key"] == sent


def test_the_first_versions_have_their_codes_and_fields(api: Any, public_key: str) -> None:
    created = api.post("/os-keypairs", {"keypair": {"name": "mine", "public_key": public_key}}, version="2.1")
    assert created.status == 200
    assert "type" not in created.json["keypair"]
    assert api.delete("/os-keypairs/mine", version="2.1").status == 202
    assert api.post("/os-keypairs", {"keypair": {"name": "x", "type": "ssh"}}, version="2.1").status == 400


def test_pairs_are_made_until_2_91(api: Any) -> None:
    made = api.post("/os-keypairs", {"keypair": {"name": "made"}}, version="2.91").json["keypair"]
    assert made["private_key"].startswith("-----BEGIN RSA PRIVATE KEY-----")
    assert made["fingerprint"] == keys.fingerprint(made["public_key"], "ssh")
    assert "private_key" not in api.get("/os-keypairs/made").json["keypair"]
    refused = api.post("/os-keypairs", {"keypair": {"name": "other"}}, version="2.92")
    assert (refused.status, refused.message) == (400, "Invalid input for field/attribute keypair. Value: "
                                                 "{'name': 'other'}. 'public_key' is a required property")  # fmt: skip


def test_a_certificate_is_made_and_imported(api: Any) -> None:
    made = api.post("/os-keypairs", {"keypair": {"name": "cert", "type": "x509"}}, version="2.10").json["keypair"]
    assert made["type"] == "x509"
    again = {"name": "again", "type": "x509", "public_key": made["public_key"]}
    assert api.post("/os-keypairs", {"keypair": again}).json["keypair"]["fingerprint"] == made["fingerprint"]


@pytest.mark.parametrize("key", ["", "ssh-rsa", "ssh-rsa AAAA", "nonsense here", "ssh-ed25519 %%%"])
def test_what_is_no_key_is_refused(api: Any, key: str) -> None:
    refused = api.post("/os-keypairs", {"keypair": {"name": "bad", "public_key": key}})
    assert refused.status == 400
    assert refused.message.startswith("Keypair data is invalid")
    refused = api.post("/os-keypairs", {"keypair": {"name": "bad", "public_key": key, "type": "x509"}})
    assert refused.status == 400


@pytest.mark.parametrize("name", ["", " a", "a/b", "x" * 256, "ä"])
def test_bad_names_are_refused(api: Any, public_key: str, name: str) -> None:
    assert api.post("/os-keypairs", {"keypair": {"name": name, "public_key": public_key}}).status == 400


def test_at_and_dot_in_names_come_with_2_92(api: Any, public_key: str) -> None:
    keypair = {"keypair": {"name": "me@host.example", "public_key": public_key}}
    assert api.post("/os-keypairs", keypair, version="2.91").status == 400
    assert api.post("/os-keypairs", keypair, version="2.92").status == 201


def test_a_name_is_taken_once(api: Any, public_key: str) -> None:
    keypair = {"keypair": {"name": "mine", "public_key": public_key}}
    api.post("/os-keypairs", keypair)
    again = api.post("/os-keypairs", keypair)
    assert (again.status, again.message) == (409, "Key pair 'mine' already exists.")


def test_key_pairs_are_listed_in_pages_from_2_35(api: Any, public_key: str) -> None:
    for name in "abc":
        api.post("/os-keypairs", {"keypair": {"name": name, "public_key": public_key}})
    page = api.get("/os-keypairs?limit=1&marker=a").json
    assert [entry["keypair"]["name"] for entry in page["keypairs"]] == ["b"]
    assert page["keypairs_links"][0]["href"].endswith("/os-keypairs?limit=1&marker=b")
    assert len(api.get("/os-keypairs?limit=1", version="2.34").json["keypairs"]) == 3
    assert api.get("/os-keypairs?marker=z").status == 400


def test_others_keys_are_for_administrators(api: Any, admin: Any, public_key: str) -> None:
    api.post("/os-keypairs", {"keypair": {"name": "mine", "public_key": public_key}})
    assert admin.get("/os-keypairs?user_id=user").json["keypairs"][0]["keypair"]["name"] == "mine"
    assert admin.get("/os-keypairs/mine?user_id=user").status == 200
    assert api.by("other:project").get("/os-keypairs?user_id=user").status == 403
    assert api.by("other:project").delete("/os-keypairs/mine?user_id=user").status == 403


def test_key_pairs_are_limited_by_quota(api: Any, cloud: Any, public_key: str) -> None:
    cloud.option("quota", "key_pairs", 1)
    assert api.post("/os-keypairs", {"keypair": {"name": "a", "public_key": public_key}}).status == 201
    refused = api.post("/os-keypairs", {"keypair": {"name": "b", "public_key": public_key}})
    assert (refused.status, refused.message) == (403, "Quota exceeded, too many key pairs.")
