"""The definition of a guest that comes from another host gives the target's definition a few values, and nothing else."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from causeway.errors import GuestRefused
from causeway.virt.libvirt.guest_xml.migratable_xml import cookie_for_target, cpu_for_target, for_target
from tests.security.definitions.guests import UUID, saved, wanted

NAMES = ("i440fx", "q35")
_SMALL = "[0-9]{1,9}"
_WORD = "[A-Za-z0-9_.-]{1,64}"
_HEX = "0x[0-9a-fA-F]{1,8}"
_PLACE = {
    "type": _WORD,
    "domain": _HEX,
    "bus": f"{_HEX}|{_SMALL}",
    "slot": _HEX,
    "function": _HEX,
    "port": r"[0-9.]{1,30}",
}
_PLACE |= {
    "controller": _SMALL,
    "target": _SMALL,
    "unit": _SMALL,
    "multifunction": "on|off",
    "iobase": _HEX,
    "irq": _HEX,
}
# What a definition may have of another one: path -> attribute ("" is the text) -> pattern. Nothing in it names a file,
# a program or a device of a host.
LISTED: dict[str, dict[str, str]] = {
    r"domain": {"type": "qemu"},
    r"domain/name": {"": "[A-Za-z0-9][A-Za-z0-9_.@+-]*"},
    r"domain/os/type": {"machine": r"pc|q35|pc-(i440fx|q35)-[a-z0-9.]+"},
    r"domain/features/tcg/tb-cache": {"": _SMALL},
    r"domain/features/vmcoreinfo": {"state": "on|off"},
    r"domain/sysinfo/system/entry": {
        "name": "manufacturer|product|version|serial|uuid|family",
        "": "[A-Za-z0-9 ._:/()+-]{1,128}",
    },
    r"domain/cpu": {"mode": _WORD, "match": _WORD, "check": _WORD, "migratable": _WORD},
    r"domain/cpu/model": {"": _WORD, "fallback": _WORD, "vendor_id": "[A-Za-z0-9 ]{12}"},
    r"domain/cpu/vendor": {"": _WORD},
    r"domain/cpu/(feature|cache|maxphysaddr)": dict.fromkeys(
        ("policy", "name", "level", "mode", "bits", "limit"), _WORD
    ),
    r"domain/devices/(?!hostdev)[a-z]+/address": _PLACE,
    r"domain/devices/(?!hostdev)[a-z]+/alias": {"name": "ua-[A-Za-z0-9_-]+"},
    r"domain/devices/(?!hostdev)[a-z]+/acpi": {"index": _SMALL},
    r"domain/devices/disk/target": {"bus": _WORD},
    r"domain/devices/interface/(model|mtu|driver)": {
        "type": _WORD,
        "size": _SMALL,
        "queues": _SMALL,
        "name": "qemu",
    },
    r"domain/devices/memballoon": {"model": "none", "autodeflate": "on|off", "freePageReporting": "on|off"},
    r"domain/devices/controller(/(model|target|master|driver))?": dict.fromkeys(
        [
            "type",
            "index",
            "model",
            "name",
            "chassis",
            "chassisNr",
            "port",
            "busNr",
            "hotplug",
            "startport",
            "queues",
            "ports",
        ],
        _WORD,
    ),
    r"domain/devices/video(/model)?": dict.fromkeys(
        ("type", "ram", "vram", "vram64", "vgamem", "heads", "primary"), _WORD
    ),
    r"domain/devices/input": {"type": "mouse|tablet|keyboard", "bus": "ps2|usb|virtio"},
    r"domain/devices/watchdog": {"model": _WORD, "action": "reset|shutdown|poweroff|pause|none|inject-nmi"},
}


def values_of(xml: str) -> Iterator[tuple[str, str, str]]:
    """(path, attribute, value) of everything in a document; a text is the attribute ""."""

    def walk(path: str, element: ET.Element) -> Iterator[tuple[str, str, str]]:
        yield path, "", (element.text or "").strip()
        yield from ((path, name, value) for name, value in element.attrib.items())
        for child in element:
            yield from walk(f"{path}/{child.tag}", child)

    root = ET.fromstring(xml)
    return walk(root.tag, root)


def assert_only_listed_values(made: str, own: str) -> None:
    known = set(values_of(own))
    for path, name, value in values_of(made):
        if (path, name, value) in known or (name == "" and not value):
            continue
        patterns = [each[name] for where, each in LISTED.items() if re.fullmatch(where, path) and name in each]
        assert any(re.fullmatch(pattern, value) for pattern in patterns), (path, name, value)


@pytest.mark.parametrize("name", NAMES)
def test_a_guest_keeps_its_devices_where_they_were(name: str) -> None:
    made = for_target(saved(name), wanted(name))
    assert_only_listed_values(made, wanted(name))
    assert "/source/" not in made and "brq-source" not in made
    here, there = ET.fromstring(saved(name)), ET.fromstring(made)

    def places(domain: ET.Element) -> list[tuple[str, dict[str, str]]]:
        return sorted(
            (
                (device.tag, dict(address.attrib))
                for device in domain.iterfind("devices/*")
                for address in device.iterfind("address")
            ),
            key=str,
        )

    assert places(there) == places(here)
    assert there.find("os/type").attrib == here.find("os/type").attrib  # type: ignore[union-attr]
    assert {each.tag for each in there.iterfind("devices/*")} == {each.tag for each in here.iterfind("devices/*")} - {
        "emulator"
    }
    # Whoever wakes the guest again does it again.
    assert for_target(made, wanted(name)) == made


def with_device(xml: str) -> Callable[[str], str]:
    return lambda domain: domain.replace("</devices>", f"{xml}</devices>")


def with_part(xml: str) -> Callable[[str], str]:
    return lambda domain: domain.replace("</domain>", f"{xml}</domain>")


def replaced(old: str, new: str) -> Callable[[str], str]:
    def change(domain: str) -> str:
        assert re.search(old, domain), f"there is no {old}"
        return re.sub(old, new, domain, count=1)

    return change


def with_table(entries: str, kind: str = "smbios", shown: str = "<smbios mode='sysinfo'/>") -> Callable[[str], str]:
    """What the firmware says of the machine."""
    table = f"<sysinfo type='{kind}'><system>{entries}</system></sysinfo>"
    return lambda domain: domain.replace("</os>", f"{shown}</os>{table}")


def entry(name: str, text: str) -> str:
    return f"<entry name='{name}'>{text}</entry>"


TABLE = entry("manufacturer", "Somebody") + entry("serial", "42") + entry("uuid", UUID)

_QEMU = "http://libvirt.org/schemas/domain/qemu/1.0"
REFUSED: dict[str, Callable[[str], str]] = {
    "arguments of QEMU": with_part(
        f"<q:commandline xmlns:q='{_QEMU}'><q:arg value='-device'/><q:env name='LD_PRELOAD' value='/x.so'/></q:commandline>"
    ),
    "QEMU's properties": with_part(f"<q:override xmlns:q='{_QEMU}'><q:device alias='x'/></q:override>"),
    "QEMU's capabilities": with_part(f"<q:capabilities xmlns:q='{_QEMU}'><q:add capability='x'/></q:capabilities>"),
    "an encrypted disk that is none": replaced(
        "<backingStore/>", "<encryption format='luks'><secret usage='evil'/></encryption>"
    ),
    "encrypted memory": with_part("<launchSecurity type='sev'><policy>1</policy></launchSecurity>"),
    "a table of the firmware": with_part("<sysinfo type='fwcfg'><entry name='opt/x' file='/etc/shadow'/></sysinfo>"),
    "a table of another kind": with_table(TABLE, "fwcfg"),
    "two tables": lambda domain: with_table(TABLE)(with_table(TABLE)(domain)),
    "a table that the guest does not see": with_table(TABLE, shown=""),
    "a table of the board": with_table("</system><baseBoard>" + entry("serial", "1") + "</baseBoard><system>"),
    "an entry of the firmware that is none": with_table(entry("sku", "1")),
    "an entry with an option in it": with_table(entry("serial", "1,file=/etc/shadow")),
    "an entry of many lines": with_table(entry("product", "a&#10;b")),
    "an entry that is long": with_table(entry("product", "x" * 1000)),
    "a firmware that names another server": with_table(entry("uuid", "00000000-0000-4000-8000-000000000000")),
    "users of the host": with_part("<idmap><uid start='0' target='0' count='1'/></idmap>"),
    "a kernel": replaced("</os>", "<kernel>/boot/vmlinuz</kernel></os>"),
    "a ramdisk": replaced("</os>", "<initrd>/etc/shadow</initrd></os>"),
    "a command line of the kernel": replaced("</os>", "<cmdline>init=/bin/sh</cmdline></os>"),
    "a table": replaced("</os>", "<acpi><table type='slic'>/etc/shadow</table></acpi></os>"),
    "a folder of the host": with_device("<filesystem type='mount'><source dir='/'/><target dir='x'/></filesystem>"),
    "a device of the host": with_device("<hostdev mode='subsystem' type='usb'><source/></hostdev>"),
    "shared memory": with_device("<shmem name='../x'><model type='ivshmem-plain'/></shmem>"),
    "a redirected device": with_device(
        "<redirdev bus='usb' type='tcp'><source mode='connect' host='10.0.0.1'/></redirdev>"
    ),
    "a smart card": with_device("<smartcard mode='host-certificates'><database>/etc</database></smartcard>"),
    "sound": with_device("<sound model='ich6'/>"),
    "a parallel port": with_device("<parallel type='file'><source path='/etc/passwd'/></parallel>"),
    "another serial port": with_device("<serial type='dev'><source path='/dev/mem'/><target port='1'/></serial>"),
    "the same serial port twice": with_device("<serial type='file'><source path='/x'/><target port='0'/></serial>"),
    "another channel": with_device(
        "<channel type='file'><source path='/etc/x'/><target type='virtio' name='x'/></channel>"
    ),
    "another source of random numbers": with_device("<rng model='virtio'><backend model='egd' type='tcp'/></rng>"),
    "another TPM": with_device(
        "<tpm model='tpm-tis'><backend type='passthrough'><device path='/dev/tpm0'/></backend></tpm>"
    ),
    "another disk": with_device("<disk type='file'><source file='/etc/shadow'/><target dev='vdx'/></disk>"),
    "the root disk twice": with_device("<disk type='file'><source file='/etc/shadow'/><target dev='vda'/></disk>"),
    "another port": with_device("<interface type='bridge'><mac address='fa:16:3e:00:00:99'/></interface>"),
    "a persistent memory": with_device("<memory model='nvdimm'><source><path>/etc/shadow</path></source></memory>"),
    "an event device": with_device("<input type='passthrough'><source evdev='/dev/input/event1'/></input>"),
    "an event device by another name": with_device("<input type='evdev'><source dev='/dev/input/event1'/></input>"),
    "a video card of another program": with_device("<video><model type='/x'/></video>"),
    "an unknown controller": with_device("<controller type='xenbus' index='0'/>"),
    "a controller with a path": with_device("<controller type='usb' index='0' model='../x'/>"),
    "an index that is none": with_device("<controller type='usb' index='0,x=y'/>"),
    "a panic device": with_device("<panic model='pvpanic'/>"),
    "a watchdog that dumps": with_device("<watchdog model='i6300esb' action='dump'/>"),
    "an address that is none": replaced("slot='0x[0-9a-f]+'", "slot='0x04,romfile=/etc/shadow'"),
    "an address of a file": replaced("<address type='pci'", "<address type='/x'"),
    "an address in other digits": replaced("slot='0x[0-9a-f]+'", "slot='0x\u0664'"),
    "an alias with an option in it": replaced("<target dev='vda'", "<alias name='ua-x,y=z'/><target dev='vda'"),
    "another architecture": replaced("arch='x86_64'", "arch='sparc'"),
    "a machine with an option in it": replaced(r"machine='[^']*'", "machine='pc-i440fx-7.2,dumpdtb=/etc/x'"),
    "another machine": replaced(r"machine='[^']*'", "machine='microvm'"),
    "another hypervisor": replaced("type='qemu'", "type='kvm'"),
    "a hypervisor that runs programs": replaced("type='qemu'", "type='lxc'"),
    "the name of another server": replaced("<name>[^<]*", "<name>instance-00000000-0000-4000-8000-000000000000"),
    "a name that is a path": replaced("<name>[^<]*", "<name>../../etc/x"),
    "more memory": replaced(r"<memory unit='KiB'>\d+", "<memory unit='KiB'>999999999"),
    "memory in other units": replaced("<memory unit='KiB'>", "<memory unit='TiB'>"),
    "more processors": replaced(r"<vcpu placement='static'>\d+", "<vcpu placement='static'>64"),
    "a CPU of another kind": replaced("<cpu mode='custom'", "<cpu mode='host-passthrough'"),
    "a CPU model with an option in it": replaced(">qemu64<", ">qemu64,+x<"),
    "a CPU feature with an option in it": replaced("</cpu>", "<feature policy='require' name='vmx,x=y'/></cpu>"),
    "a balloon with an option in it": replaced("<memballoon ", "<memballoon autodeflate='on,x=y' "),
    "a crash dump in a file": replaced("</features>", "<vmcoreinfo state='/etc/shadow'/></features>"),
    "a feature that is not the server's": replaced("</features>", "<hyperv mode='passthrough'/></features>"),
    "an MTU that starves the network": replaced("<mtu size='1450'/>", "<mtu size='68'/>"),
    "a card that is none": replaced("<model type='virtio'/>", "<model type='virtio,x=y'/>"),
    "another volume": replaced("<serial>[^<]*", "<serial>00000000-0000-4000-8000-000000000000"),
    "a disk that is a device": replaced("device='disk'", "device='lun'"),
    "no devices": lambda _domain: "<domain type='qemu'/>",
    "another document": lambda _domain: "<network/>",
    "no document": lambda _domain: "",
    "entities": lambda domain: "<!DOCTYPE d [<!ENTITY a SYSTEM 'file:///etc/shadow'>]>" + domain,
    "a mountain": lambda domain: domain.replace("</title>", "x" * 2_000_000 + "</title>"),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("name", NAMES)
def test_a_definition_with_what_the_server_does_not_have_is_refused(name: str, case: str) -> None:
    with pytest.raises(GuestRefused):
        for_target(REFUSED[case](saved(name)), wanted(name))


@pytest.mark.parametrize("name", NAMES)
def test_the_firmware_still_says_what_it_said_to_the_guest(name: str) -> None:
    made = for_target(with_table(TABLE)(saved(name)), wanted(name))
    assert_only_listed_values(made, wanted(name))
    domain = ET.fromstring(made)
    said = {each.get("name"): each.text for each in domain.iterfind("sysinfo/system/entry")}
    assert said == {"manufacturer": "Somebody", "serial": "42", "uuid": UUID}
    assert domain.find("os/smbios[@mode='sysinfo']") is not None
    # A guest to which it said nothing hears nothing.
    assert ET.fromstring(for_target(saved(name), wanted(name))).find(".//sysinfo") is None


def test_a_guest_that_nova_started_keeps_what_it_was_offered() -> None:
    offered = {"autodeflate": "on", "freePageReporting": "on"}
    changes = (
        replaced("<memballoon ", "<memballoon autodeflate='on' freePageReporting='on' "),
        replaced("</features>", "<vmcoreinfo state='on'/></features>"),
        with_part("<iothreads>1</iothreads>"),
        replaced("<model type='virtio'/>", "<model type='virtio'/><driver name='qemu'/>"),
    )
    theirs = saved("i440fx")
    for change in changes:
        theirs = change(theirs)
    made = for_target(theirs, wanted("i440fx"))
    assert_only_listed_values(made, wanted("i440fx"))
    domain = ET.fromstring(made)
    assert domain.find("features/vmcoreinfo[@state='on']") is not None
    balloon = domain.find("devices/memballoon")
    assert balloon is not None
    assert {name: balloon.get(name) for name in offered} == offered
    assert domain.find("iothreads") is None
    assert domain.find("devices/interface/driver[@name='qemu']") is not None
    # Others are not offered it.
    assert "vmcoreinfo" not in for_target(saved("i440fx"), wanted("i440fx"))


def test_the_program_behind_a_card_is_the_targets_own() -> None:
    change = replaced("<model type='virtio'/>", "<model type='virtio'/><driver name='evil' txmode='evil' queues='2'/>")
    assert "evil" not in for_target(change(saved("i440fx")), wanted("i440fx"))


# What a guest does not see: this host's is used, whatever the other one says.
OWN: dict[str, Callable[[str], str]] = {
    "emulator": replaced("<emulator>[^<]*", "<emulator>/evil"),
    "disk": replaced("/source/instances[^']*/disk'", "/evil'"),
    "format of a disk": replaced("type='qcow2'", "type='evil'"),
    "files below a disk": replaced(
        "<backingStore/>", "<backingStore type='file'><source file='/evil'/></backingStore>"
    ),
    "mirror of a disk": replaced("<backingStore/>", "<mirror type='file' file='/evil'/>"),
    "bridge": replaced("bridge='brq-source'", "bridge='evil'"),
    "script of a port": replaced("<mac ", "<script path='/evil'/><downscript path='/evil'/><mac "),
    "kind of a port": replaced(
        "<interface type='bridge'>", "<interface type='ethernet'><ip address='10.6.6.6' peer='evil'/>"
    ),
    "program behind a port": replaced(
        "<mac ", "<backend type='passt' tap='/evil' vhost='/evil' logFile='/evil'/><mac "
    ),
    "ROM of a device": replaced("<model type='virtio'/>", "<model type='virtio'/><rom bar='on' file='/evil'/>"),
    "filter of a port": replaced("<mac ", "<filterref filter='evil'/><virtualport type='802.1Qbg'/><mac "),
    "serial port": replaced("<source mode='bind' host='127.0.0.1'", "<source mode='bind' host='evil'"),
    "log": replaced("log file='[^']*'", "log file='/evil'"),
    "kind of a serial port": replaced("<serial type='tcp'>", "<serial type='pipe'><source path='/evil'/>"),
    "screen": replaced("listen='127.0.0.1'", "listen='0.0.0.0' passwd='evil' websocket='evil'"),
    "sound of the screen": with_device("<audio id='1' type='file' path='/evil'/>"),
    "random numbers": replaced(">/dev/urandom<", ">/evil<"),
    "label": with_part("<seclabel type='none' model='evil'/>"),
    "part of the host": with_part("<resource><partition>/evil</partition></resource>"),
    "memory of the host": with_part("<memoryBacking><source type='file' path='/evil'/></memoryBacking>"),
    "notes": with_part("<metadata><evil/></metadata>"),
    "program of a video card": replaced("<video>", "<video><driver name='vhostuser' rendernode='/evil'/>"),
    "processors of the host": with_part("<cputune><vcpupin vcpu='0' cpuset='evil'/></cputune>"),
    "threads for disks": with_part("<iothreads>64</iothreads><iothreadids><iothread id='666'/></iothreadids>"),
    "how often a balloon is asked": replaced("</memballoon>", "<stats period='666'/></memballoon>"),
    "what a crash does": replaced("<on_crash>destroy", "<on_crash>coredump-restart"),
}


@pytest.mark.parametrize("case", OWN)
@pytest.mark.parametrize("name", NAMES)
def test_what_the_guest_does_not_see_is_the_targets_own(name: str, case: str) -> None:
    made = for_target(OWN[case](saved(name)), wanted(name))
    assert "evil" not in made
    assert made == for_target(saved(name), wanted(name))


def test_firmware_and_tpm_are_the_targets_own() -> None:
    change = replaced("<loader readonly='yes' type='pflash'>[^<]*", "<loader>/evil")
    variables = replaced("<nvram template='[^']*'>[^<]*", "<nvram template='/evil'>/evil")
    device = replaced("<backend type='emulator'", "<backend type='passthrough' path='/evil'")
    assert for_target(device(variables(change(saved("q35")))), wanted("q35")) == for_target(saved("q35"), wanted("q35"))


@pytest.mark.parametrize(("own", "theirs"), [("i440fx", "q35"), ("q35", "i440fx")])
def test_a_guest_of_another_kind_is_refused(own: str, theirs: str) -> None:
    with pytest.raises(GuestRefused):
        for_target(saved(theirs), wanted(own))


def test_the_cookie_has_a_cpu_and_nothing_else() -> None:
    cookie = (
        "<cookie><cpu mode='custom' match='exact' check='full'><model fallback='forbid'>qemu64</model>"
        "<feature policy='require' name='hypervisor'/></cpu><slirpHelper/><evil/></cookie>"
    )
    made = cookie_for_target(cookie, wanted("i440fx"))
    assert made == (
        '<cookie><cpu mode="custom" match="exact" check="full"><model fallback="forbid">qemu64</model>'
        '<feature policy="require" name="hypervisor" /><topology sockets="1" cores="1" threads="1" /></cpu></cookie>'
    )
    with pytest.raises(GuestRefused):
        cookie_for_target(cookie.replace("qemu64", "host,+x"), wanted("i440fx"))


def test_a_cpu_has_no_feature_that_the_targets_operator_disabled() -> None:
    own = ET.fromstring("<cpu mode='host-model'><feature policy='disable' name='vmx'/></cpu>")
    theirs = ET.fromstring("<cpu mode='custom'><model>qemu64</model><feature policy='require' name='vmx'/></cpu>")
    with pytest.raises(GuestRefused, match="CPU feature"):
        cpu_for_target(theirs, own)


_EVIL = st.sampled_from(
    ["/evil", "evil,x=/evil", "\u0661", "0x1\n", "-1", "", "on", "file", "kvm", "9" * 20, "ua-/evil", "none"]
)
_ADDED = st.sampled_from(
    [
        "<source file='/evil'/>",
        "<script path='/evil'/>",
        "<address type='pci' domain='/evil'/>",
        "<address type='usb' bus='0' port='1'/>",
        "<alias name='ua-/evil'/>",
        "<rom file='/evil'/>",
        "<driver name='/evil' iothread='1' queues='1'/>",
        "<hostdev mode='subsystem' type='pci'/>",
        "<filesystem><source dir='/evil'/></filesystem>",
        "<emulator>/evil</emulator>",
        "<controller type='usb' index='1'/>",
        "<model name='/evil' type='virtio'>/evil</model>",
        "<target dev='/evil' type='virtio' port='0'/>",
        "<kernel>/evil</kernel>",
        "<loader>/evil</loader>",
        "<a:commandline xmlns:a='evil'><a:arg value='/evil'/></a:commandline>",
    ]
)


@settings(max_examples=300, deadline=None)
@given(data=st.data(), name=st.sampled_from(NAMES))
def test_whatever_another_host_says_only_listed_values_get_in(data: st.DataObject, name: str) -> None:
    domain = ET.fromstring(saved(name))
    for _ in range(data.draw(st.integers(1, 4))):
        elements = list(domain.iter())
        element = data.draw(st.sampled_from(elements))
        how = data.draw(st.sampled_from(["attribute", "text", "added", "removed", "twice", "moved"]))
        if how == "attribute":
            known = sorted(element.attrib) or ["path"]
            element.set(data.draw(st.sampled_from([*known, "file", "path", "model"])), data.draw(_EVIL).strip("\n"))
        elif how == "text":
            element.text = data.draw(_EVIL)
        elif how == "added":
            element.append(ET.fromstring(data.draw(_ADDED)))
        elif len(element):
            child = data.draw(st.sampled_from(list(element)))
            if how != "twice":
                element.remove(child)
            if how != "removed":
                data.draw(st.sampled_from(elements)).append(copy.deepcopy(child))
    try:
        made = for_target(ET.tostring(domain, encoding="unicode"), wanted(name))
    except GuestRefused:
        return
    assert_only_listed_values(made, wanted(name))
    assert "/evil" not in made
    assert ET.fromstring(made).findtext("uuid") == UUID


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=300) | st.binary(max_size=300).map(lambda found: found.decode("latin-1")))
def test_what_is_no_definition_is_refused(text: str) -> None:
    with pytest.raises(GuestRefused):
        for_target(text, wanted("i440fx"))
