"""What one host sends another of a guest: its definition, its memory, its firmware, where to send it; and whose folder is whose.

| promise | test |
|---|---|
| No argument, program, file, script or device of another host's choice gets into a definition | `test_foreign_definitions` |
| A guest that comes in a memory file runs with this host's definition, on real libvirt | `test_memory_of_others` |
| The head of a memory file starts no program, makes libvirt read no more than it should, and is made anew | `test_memory_heads` |
| Variables of UEFI and state of a TPM are as large as they should be, and lie where they should | `test_kept_state` |
| The source of a live migration has libvirt read only definitions such as targets of ours make | `test_definitions_of_targets` |
| No host makes another one call a URI, or send a guest to what is no address | `test_addresses` |
| No host makes another one make disks that its server does not have | `test_addresses` |
| A host does not start with another host's folder of disks | `test_folders_of_hosts` |

`saved/` has definitions as libvirt 9.0 wrote them beside the memory of guests of this driver.
"""
