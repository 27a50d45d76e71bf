"""Functional tests of other people: those of openstacksdk, python-openstackclient and python-novaclient, unmodified.

``make clients`` installs them into ``.venv-clients`` (scripts/install-tool.sh) and runs `__main__`. What is not run, and why:
``exclusions.txt``.
"""
