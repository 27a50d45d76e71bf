"""The real services around us, on one machine: Keystone, Glance, Neutron, Cinder, Placement, and what they need.

`services.RealServices` starts them in a folder of its own; by hand, ``python -m tests.integration.real_services DIRECTORY``.
They live in a virtual environment of their own (`.venv-services`, made by ``scripts/install-services.sh``): nothing of ours is
in it, and nothing of theirs in ours.
"""
