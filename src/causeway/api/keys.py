"""Makes and reads keys: SSH keys and X.509 certificates."""

from __future__ import annotations

import base64
import hashlib
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from causeway import errors

RSA_BITS = 2048
CERTIFICATE_LIFETIME = timedelta(days=3650)


def _colons(digest: bytes) -> str:
    return digest.hex(":")


def fingerprint(public_key: str, kind: str) -> str:
    """MD5 of an SSH key, SHA-1 of a certificate, as in Nova. Raises BadRequest if the key is invalid."""
    if kind == "x509":
        try:
            certificate = x509.load_pem_x509_certificate(public_key.encode())
        except ValueError as failure:
            raise errors.BadRequest(
                f"Keypair data is invalid: failed to generate X509 fingerprint. {failure}"
            ) from failure
        return _colons(certificate.fingerprint(hashes.SHA1()))  # noqa: S303  (what the API calls a fingerprint; nothing trusts it)
    parts = public_key.split(None, 2)
    invalid = errors.BadRequest("Keypair data is invalid: failed to generate fingerprint")
    if len(parts) < 2:
        raise invalid
    try:
        data = base64.b64decode(parts[1], validate=True)
    except ValueError as failure:
        raise invalid from failure
    try:
        # The data of a key begins with its kind (RFC 4253, 6.6).
        if not data[4:].startswith(parts[0].encode()):
            raise invalid
        serialization.load_ssh_public_key(" ".join(parts[:2]).encode())
    except UnsupportedAlgorithm:
        # Of kinds that the library does not know (hardware keys) only the beginning is checked.
        pass
    except ValueError as failure:
        raise invalid from failure
    return _colons(hashlib.md5(data, usedforsecurity=False).digest())


def _pem(key: rsa.RSAPrivateKey, form: serialization.PrivateFormat) -> str:
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode()


def generate_ssh() -> tuple[str, str]:
    """(private key, public key)."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=RSA_BITS)
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return _pem(key, serialization.PrivateFormat.TraditionalOpenSSL), f"{public.decode()} Generated-by-Causeway"


def generate_x509(user_id: str) -> tuple[str, str]:
    """(private key, certificate for the user's login on a Windows guest)."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=RSA_BITS)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, user_id[:64] or "user")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + CERTIFICATE_LIFETIME)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    return _pem(key, serialization.PrivateFormat.PKCS8), certificate.public_bytes(serialization.Encoding.PEM).decode()
