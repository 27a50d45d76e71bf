"""Other people's software on a cloud of ours: functional tests that clients bring along, unmodified, and tools in everyday use.

``make clients`` (`__main__`) installs each into an environment of its own (scripts/install-tool.sh) and runs it on a cloud of its
own. A module for each: `unmodified` runs what openstacksdk, python-openstackclient and python-novaclient bring along (what is not
run, and why: ``exclusions.txt``); the others say what they do. All give their counts in one shape (`counts`).
"""
