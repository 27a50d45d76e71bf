"""``make demo``: the main job, shown step by step with the unmodified ``openstack`` client, and checked.

It runs `causeway up` as a child process and is a client of it like any other. No client can see that nothing of a server is
left in the cell that it came from: the demonstration checks that in the cell's database, in the host's files, in Placement and
in the network, volume and image services.

- `command`: options, set-up and clean-up; `cloud`: the child process.
- `story`: the whole demonstration from top to bottom: read this first.
- `client`: runs ``openstack``; `watch`: follows a server's status while a command runs.
- `neighbour`, `rescuing`, `emptying`: chapters of live migrations, of a rescue, and of a cell that is emptied.
- `guest`: what a guest says on its console; `evidence`: what is left of a server in a cell.
- `screen`: what is printed, and the count of checks; `timeline`: the table at the end.
"""
