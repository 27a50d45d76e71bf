"""A port is plugged as its binding says, or not at all.

| promise | test |
|---|---|
| every detail that Neutron's drivers write is obeyed, only describes, or is refused | `test_port_plugs` |
| a server whose port would be plugged past its security groups is not built, attached, or moved | `test_refused_bindings` |
| a move is refused before its source is touched | `test_refused_bindings` |
"""
