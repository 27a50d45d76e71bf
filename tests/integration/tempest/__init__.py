"""Tempest, which other people wrote to test the Compute API: unmodified, against a deployment of ours.

``make tempest`` installs it into ``.venv-tempest`` (scripts/install-tool.sh) and runs `__main__`. What is where:

- `stack`: the deployment; `settings`: tempest.conf, with what this cloud says it can do.
- ``exclusions.txt``: the tests that are not run, a regular expression and a reason per line.
- `report`: reads what Tempest says, prints counts and failures. It runs in Tempest's own interpreter.
"""
