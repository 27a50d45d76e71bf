"""Fault injection: at named points of the code, a rule can cause an error, a crash, a hang or a delay.

It is off unless ``[fault_injection] enabled`` is set, and costs nothing while it is off. ``causeway faults list`` prints all
points. A YAML file (``[fault_injection] file``) holds the rules; it is read again whenever it has changed::

    resize.FinishAtTarget.do.before: error
    compute.finish_snapshot_based_resize_at_dest.in: {crash: true, times: 1}
    call.image POST /v2/images.reply: {hang: 20, times: 1, host: cell1-host1}
    rpc.compute.restore_at_source.request: {delay: 2}

- ``error``: a failure that passes, so that it is tried again. A step and a compute fail with `UnexpectedFailure`, a service
  around with `ServiceFailed`; an RPC message or its answer is lost.
- ``refuse``: a failure that does not pass. A step, a compute and a service around refuse with `ServiceRefused`.
- ``crash``: the process ends at once (`os._exit`), with status 70.
- ``hang: SECONDS``: the process seems to have been stopped for so long. The move does not renew its lease, so another
  conductor takes it over. Then the thread continues, and must notice that.
- ``delay: SECONDS``: the process is slow, but alive. The delay ends at once when the rule is removed from the file.
- ``times: N``: the rule holds only the first N times. Each use is a line of JSON in ``FILE.hits``, from which it is counted, so a
  crash is not repeated after a restart. To begin anew, delete that file.
- ``host: NAME``: the rule holds only on this host (of a conductor or a compute).

Points:

- ``RECIPE.STEP.do.before|after``, ``RECIPE.STEP.undo.before|after``, ``RECIPE.roll_back.before|after``: on the conductor.
  ``before``: the journal has the intent, and nothing was done. ``after``: the step was done, and the journal does not say so yet.
- ``compute.METHOD.before|in|after``: a host's part of a step. ``in`` comes after each call to its hypervisor's driver,
  ``after`` when the work is done and not recorded yet.
- ``disk.fetch.before|after``, ``disk.release.before``: a host fetches a disk from another one.
- ``disk.fetch.connect``: the host can't reach the other one.
- ``disk.upload.in``, ``disk.download.in``: a disk goes through the image service, and a part of it (1 MiB up, 256 KiB down) has.
- ``disk.stream.in``, ``disk.stream.off``: the disk of a guest that is shelved is uploaded while the guest runs; while it is off;
  ``disk.stream.sent``: the upload has ended, and the host still has what it made for it.
- ``image.stored``: an image of a server is where the image service keeps its own, which does not know of it yet.
- ``adopt.take.held|marked``: a host has put Nova's identity aside; it is Causeway's, and its service does not run yet.
  ``adopt.release.ended|unmarked``: its service has ended; it is nobody's.
- ``driver.METHOD.before|after``: the calls to the driver that change something.
- ``call.SERVICE METHOD ROUTE.request|reply``: calls to the services around.
- ``rpc.TOPIC.METHOD.request|reply``: calls between our own services.

The rest of Causeway calls `injector`; `points` lists all points; `hooks` installs those of calls, RPC and drivers.
"""
