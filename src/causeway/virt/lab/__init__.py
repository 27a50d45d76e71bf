"""The lab: libvirt hosts, their networks and a guest image on one machine, for the demonstration and the tests."""
