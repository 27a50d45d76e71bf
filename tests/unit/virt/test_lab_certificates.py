"""Certificates of a lab: strict programs accept them, and those that they would not accept are made anew."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from cryptography import x509

from causeway.virt.lab import certificates
from causeway.virt.lab.certificates import Authority


def shake_hands(folder: Path) -> None:
    """A client that checks as strictly as Python 3.13 does by default connects to a server with the host's certificate."""
    server_side = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server_side.load_cert_chain(folder / "server-cert.pem", folder / "server-key.pem")
    client_side = ssl.create_default_context(cafile=str(folder / "ca-cert.pem"))
    client_side.verify_flags |= ssl.VERIFY_X509_STRICT
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_side.wrap_bio(to_client, to_server, server_hostname="127.0.0.1")
    server = server_side.wrap_bio(to_server, to_client, server_side=True)
    left = [client, server]
    while left:
        for side in list(left):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            left.remove(side)


def test_strict_clients_accept_them(tmp_path: Path) -> None:
    Authority(tmp_path / "authority").ensure("host", "127.0.0.1", tmp_path / "host")
    shake_hands(tmp_path / "host")


def test_those_of_an_earlier_release_are_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They did not say by which key they were signed."""
    build = certificates._builder

    class WithoutKeys(x509.CertificateBuilder):
        def add_extension(self, extval: x509.ExtensionType, critical: bool) -> x509.CertificateBuilder:
            if isinstance(extval, x509.AuthorityKeyIdentifier | x509.SubjectKeyIdentifier):
                return self
            made = super().add_extension(extval, critical)
            made.__class__ = WithoutKeys
            return made

    def build_without(*arguments: object) -> x509.CertificateBuilder:
        made = build(*arguments)  # type: ignore[arg-type]
        made.__class__ = WithoutKeys
        return made

    with monkeypatch.context() as earlier:
        earlier.setattr(certificates, "_builder", build_without)
        Authority(tmp_path / "authority").ensure("host", "127.0.0.1", tmp_path / "host")
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(tmp_path / "host")
    Authority(tmp_path / "authority").ensure("host", "127.0.0.1", tmp_path / "host")
    shake_hands(tmp_path / "host")
