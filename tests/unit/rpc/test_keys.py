"""Files of keys: what is usable, what is refused, and what changes without a restart."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from causeway.errors import Misconfigured
from causeway.rpc.keys import LOOK_EVERY, Sender, TrustedKeys, fingerprint, make_pair, read_private_key


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def trusted(tmp_path: Path) -> Path:
    """A folder with the key of one conductor."""
    folder = tmp_path / "trusted"
    for kind in ("control", "hosts"):
        (folder / kind).mkdir(parents=True)
    make_pair(tmp_path / "conductor1.key", folder / "control/conductor1.pem")
    return folder


def name_of(private: Path) -> str:
    return fingerprint(read_private_key(private).public_key())


def test_a_new_pair_is_for_its_owner_and_never_replaces_one(tmp_path: Path, trusted: Path) -> None:
    assert (tmp_path / "conductor1.key").stat().st_mode & 0o777 == 0o600
    for private, public in (
        ("conductor1.key", "trusted/control/conductor1.pem"),
        ("new.key", "trusted/control/conductor1.pem"),
    ):
        with pytest.raises(FileExistsError):
            make_pair(tmp_path / private, tmp_path / public)
    found = TrustedKeys(trusted).find(name_of(tmp_path / "conductor1.key"))
    assert found is not None and found[1] == Sender("conductor1", is_host=False)


def test_a_pair_that_was_interrupted_is_completed_with_the_same_key(tmp_path: Path) -> None:
    private, public = tmp_path / "a.key", tmp_path / "a.pem"
    make_pair(private, public)
    before, said = private.read_bytes(), public.read_bytes()
    public.unlink()
    make_pair(private, public)
    assert (private.read_bytes(), public.read_bytes()) == (before, said)


@pytest.mark.parametrize("mode", [0o604, 0o644, 0o602])
def test_a_private_key_that_everybody_can_use_is_refused(tmp_path: Path, trusted: Path, mode: int) -> None:  # noqa: ARG001
    private = tmp_path / "conductor1.key"
    private.chmod(mode)
    with pytest.raises(Misconfigured, match=r"chmod o= .*conductor1\.key"):
        read_private_key(private)
    private.chmod(0o640)
    read_private_key(private)


def test_what_is_no_private_key_is_refused(tmp_path: Path) -> None:
    other = ec.generate_private_key(ec.SECP256R1())
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    for content in (
        b"",
        b"nonsense",
        other.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain),
        other.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"secret")),
    ):
        path = tmp_path / "private.key"
        path.write_bytes(content)
        path.chmod(0o600)
        with pytest.raises(Misconfigured, match=r"private\.key can't be used"):
            read_private_key(path)
    with pytest.raises(Misconfigured, match="missing"):
        read_private_key(tmp_path / "missing")


def test_keys_that_come_and_go_need_no_restart(tmp_path: Path, trusted: Path, clock: Clock) -> None:
    keys = TrustedKeys(trusted, clock)
    make_pair(tmp_path / "host1.key", trusted / "hosts/host1.pem")
    host1 = name_of(tmp_path / "host1.key")
    assert keys.find(host1) is None
    clock.now += LOOK_EVERY
    found = keys.find(host1)
    assert found is not None and found[1] == Sender("host1", is_host=True)
    (trusted / "hosts/host1.pem").unlink()
    clock.now += LOOK_EVERY
    assert keys.find(host1) is None
    assert keys.senders() == {Sender("conductor1", is_host=False)}


def test_a_file_may_have_the_old_key_and_the_new_one(tmp_path: Path, trusted: Path) -> None:
    make_pair(tmp_path / "new.key", tmp_path / "new.pem")
    with (trusted / "control/conductor1.pem").open("ab") as file:
        file.write(b"# the next one\n" + (tmp_path / "new.pem").read_bytes())
    keys = TrustedKeys(trusted)
    for private in ("conductor1.key", "new.key"):
        found = keys.find(name_of(tmp_path / private))
        assert found is not None and found[1].name == "conductor1"


def test_broken_files_are_refused_and_later_ignored(tmp_path: Path, trusted: Path, clock: Clock) -> None:
    keys = TrustedKeys(trusted, clock)
    known = name_of(tmp_path / "conductor1.key")
    broken = trusted / "hosts/host1.pem"
    broken.write_text("half of a key")
    with pytest.raises(Misconfigured, match=r"host1\.pem"):
        TrustedKeys(trusted)
    clock.now += LOOK_EVERY
    assert keys.find(known) is not None
    # As soon as it is repaired it counts.
    _pair(tmp_path, "host1").replace(broken)
    clock.now += LOOK_EVERY
    assert {each.name for each in keys.senders()} == {"conductor1", "host1"}


def _pair(folder: Path, name: str) -> Path:
    make_pair(folder / f"{name}.key", folder / f"{name}.pem")
    return folder / f"{name}.pem"


def test_a_key_has_one_owner(tmp_path: Path, trusted: Path) -> None:
    public = _pair(tmp_path, "host1").read_bytes()
    for host in ("host1", "host2"):
        (trusted / f"hosts/{host}.pem").write_bytes(public)
    with pytest.raises(Misconfigured, match="same key"):
        TrustedKeys(trusted)


def test_without_a_key_of_the_control_plane_nothing_would_be_done(trusted: Path, tmp_path: Path) -> None:
    (trusted / "control/conductor1.pem").unlink()
    # Half-written and hidden files are none.
    (trusted / "control/.conductor1.pem.1.new").write_text("")
    with pytest.raises(Misconfigured, match="control plane"):
        TrustedKeys(trusted)
    with pytest.raises(Misconfigured, match="control plane"):
        TrustedKeys(tmp_path / "missing")
