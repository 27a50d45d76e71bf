"""Fault injection: named points that can be made to fail, to end the process, to hang, or to be slow.

Off unless ``[fault_injection] enabled`` is set, and then at no cost: no file is looked at. ``causeway faults list`` prints
all points. What happens where is set in a YAML file (``[fault_injection] file``), read again whenever it changed::

    cross_cell_resize.FinishResizeAtDest.do.before: error
    compute.finish_snapshot_based_resize_at_dest.in: {crash: true, times: 1}
    call.image POST /v2/images.reply: {hang: 20, times: 1, host: cell1-host1}
    rpc.compute.restore_at_source.request: {delay: 2}

- ``error``: a step and a compute fail with `UnexpectedFailure`, a service around with `ServiceFailed`, RPC as if the message
  or the answer had been lost: what passes, and is worth another try.
- ``refuse``: a step, a compute and a service around say no (`ServiceRefused`): another try gets the same answer.
- ``crash``: the process ends at once (`os._exit`), with status 70.
- ``hang: SECONDS``: as if the process had been stopped for so long: the move at hand does not renew its lease, so another
  conductor takes it over; then the thread continues, and must find that out.
- ``delay: SECONDS``: slow, but alive; ends at once when the rule is taken out of the file.
- ``times: N``: only the first N times. What happened is kept in ``FILE.hits``, one JSON object a line, and counted from
  there: a crash is not repeated after a restart. Delete that file to begin anew.
- ``host: NAME``: only on this host (a conductor's or a compute's).

Points:

- ``RECIPE.STEP.do.before|after``, ``RECIPE.STEP.undo.before|after``, ``RECIPE.roll_back.before|after``: on the conductor.
  ``before``: the journal has the intent, nothing was done; ``after``: it was done, the journal does not know.
- ``compute.METHOD.before|in|after``: a host's part of a step. ``in`` is behind each call to its hypervisor's driver,
  ``after`` where it was done and not recorded.
- ``disk.fetch.before|after``, ``disk.release.before``: a host fetches a disk from another one.
- ``disk.fetch.connect``: it can't reach that one.
- ``disk.upload.in``, ``disk.download.in``: a disk goes by the image service, and part of it (a MiB up, 256 KiB down) is through.
- ``disk.stream.in``, ``disk.stream.off``: the disk of a guest that is shelved is uploaded, and it runs yet; is off.
- ``driver.METHOD.before|after``: the calls to the driver that change something.
- ``call.SERVICE METHOD ROUTE.request|reply``: calls to the services around.
- ``rpc.TOPIC.METHOD.request|reply``: calls between our own services.

`injector` is what the rest of Causeway calls; `points` knows all points; `hooks` puts them in.
"""
