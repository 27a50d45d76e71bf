"""The storm: users do everything that users do, many at once, while the whole cloud is killed every few seconds.

What they do is one table, `deeds.DEEDS`: a row says what a server must be like for it, how it is asked for, and what an accepted
answer promises. Now and then a host dies with its guests for longer, its operator says so (``forced_down``), and administrators
evacuate its servers; later it comes back.

::

    users ──▶ deeds ──▶ asking ──▶ the cloud ◀── weather (kills it, starts it again; a host that is dead for a while)
                 │                    │
                 ▼                    ▼
               ledger ──▶ judge ◀── world (hypervisors, disks, Placement, image, network, volume services, databases)
                            │
                            ▼
                          audit: what the judge sees and `causeway audit` does not is a fault of the audit

- `drains`: the operator, who drains cells and hosts meanwhile; and what is to be said of drains in the end.
- `ledger`: what one server's users asked for and were answered, and which values are therefore allowed.
- `judge`: holds the answers against the world, and the world against itself. It does not ask Causeway whether it is right: it
  looks at the files of the simulated hypervisors, at the services around and in the databases.
- `run`: the threads, and the end: all is settled, judged, deleted, and nothing may be left.

``--processes``: each role and each part around is a process, and struck by itself (``--pairs``: two at once) while all others
continue. `strikes` is the table of accidents, `gauges` what the cloud holds before and after, `processes` puts it together.

``python -m tests.faults.storm [--servers 30] [--seconds 180] [--seed 0] [--keep DIRECTORY] [--no-drains]`` prints what was asked
for and answered, how the operations ended, and what is wrong; its exit status is 1 if anything is. Without ``--processes`` the
cloud is a process of its own, which gets SIGKILL.
"""
