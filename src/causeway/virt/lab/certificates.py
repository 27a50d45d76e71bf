"""Certificates of lab hosts: hypervisors prove to each other who they are, and traffic between them is encrypted.

A lab has one authority. Each host has one certificate, as server and as client, for its name and its address. The files have the
names that libvirt (`pkipath`) and QEMU (`default_tls_x509_cert_dir`) look for. Each certificate says by which key it is signed:
Python 3.13 and later refuse others.
"""

from __future__ import annotations

import datetime
import shutil
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from causeway import durable

_VALID = datetime.timedelta(days=3650)
# Clocks may differ.
_BEFORE = datetime.timedelta(days=1)


class Authority:
    """The authority of a lab, in ``folder``. It is made when it is first needed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def ensure(self, host: str, address: str, folder: Path) -> None:
        """Makes the host's key and certificate in ``folder``, unless they are there and fit this authority and address."""
        key, certificate = self._own()
        if not _fits(folder / "server-cert.pem", certificate, host, address):
            shutil.rmtree(folder, ignore_errors=True)
            durable.make_folder(folder)
            own = ec.generate_private_key(ec.SECP256R1())
            names: list[x509.GeneralName] = [x509.DNSName(host), x509.IPAddress(ip_address(address))]
            signed = (
                _builder(host, certificate.subject, own.public_key())
                .add_extension(x509.SubjectAlternativeName(names), critical=False)
                .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
                .add_extension(_usage(signs_certificates=False), critical=True)
                .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False)
                .add_extension(
                    x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]),
                    critical=False,
                )
                .sign(key, hashes.SHA256())
            )
            for name in ("server", "client"):
                durable.write(folder / f"{name}-key.pem", _pem(own), mode=0o600)
            durable.write(folder / "client-cert.pem", signed.public_bytes(serialization.Encoding.PEM))
            durable.write(folder / "ca-cert.pem", certificate.public_bytes(serialization.Encoding.PEM))
            for link, file in (("cacert", "ca-cert"), ("clientcert", "client-cert"), ("clientkey", "client-key")):
                (folder / f"{link}.pem").symlink_to(f"{file}.pem")
            # Written last: it shows that the others exist.
            durable.write(folder / "server-cert.pem", signed.public_bytes(serialization.Encoding.PEM))

    def _own(self) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
        path = self._folder / "authority.pem"
        try:
            found = durable.read(path, _decode)
        except durable.Torn:
            found = None
        if found is None or not _has(found[1], x509.SubjectKeyIdentifier):
            key = ec.generate_private_key(ec.SECP256R1())
            name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Causeway lab")])
            certificate = (
                _builder("Causeway lab", name, key.public_key())
                .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
                .add_extension(_usage(signs_certificates=True), critical=True)
                .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
                .sign(key, hashes.SHA256())
            )
            durable.make_folder(self._folder)
            durable.write(path, _pem(key) + certificate.public_bytes(serialization.Encoding.PEM), mode=0o600)
            found = key, certificate
        return found


def _decode(content: bytes) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    key = serialization.load_pem_private_key(content, None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError("not an elliptic curve key")
    return key, x509.load_pem_x509_certificate(content[content.index(b"-----BEGIN CERTIFICATE") :])


def _has(certificate: x509.Certificate, extension: type[x509.ExtensionType]) -> bool:
    return any(isinstance(one.value, extension) for one in certificate.extensions)


def _fits(path: Path, authority: x509.Certificate, host: str, address: str) -> bool:
    try:
        found = x509.load_pem_x509_certificate(path.read_bytes())
        found.verify_directly_issued_by(authority)
        names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        found.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier)
    except Exception:  # noqa: BLE001 - whatever is wrong with it, it is made again
        return False
    return host in names.get_values_for_type(x509.DNSName) and ip_address(address) in names.get_values_for_type(
        x509.IPAddress
    )


def _builder(name: str, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:64])]))
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BEFORE)
        .not_valid_after(now + _VALID)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        # libvirtd does not start with a certificate without this.
        key_encipherment=not signs_certificates,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
