"""Drains: emptying a cell, hosts or servers by a plan, at a pace, under watch. This page is the manual.

A drain (`causeway.model.drains`) is planned first. For each server the plan says where it would go, how, and how long that
takes, or why it can't go. The plan is stored with the drain, in a row for each server. Nothing moves before the drain is
started.

Then conductors *look* at the drain every few seconds. One of them holds its lease. A look compares what is wanted with what is
there, and does what is missing. It closes the hosts of the scope to new servers, reads from the journal how requested moves
stand, requests as many moves as limits and windows allow, and confirms moves when it is time. Nothing is kept in memory between
two looks, so any conductor may look, at any time.

Each move is an operation like any other: a resize, a cold migration, a live migration. Before a look requests one, it writes
the request's id, which it chooses itself, into the drain's row of the server. So the next look finds in the journal whether the
request was made. If it is not there, the look requests the move again.

Users have priority. A server that its user deleted or moved is passed over; a server that its user is changing waits.

What is where::

    scope     which servers a drain moves                  runner    one look at a drain
    targets   which hosts they may go to                   asking    requests the move of one server, its confirm, its revert
    packing   which server fits where, all together        following how requested moves stand
    paths     how each server goes, and the cost           closing   closes source hosts, and opens them again
    schedule  when all is over, and what bounds it         pace      what may begin now: limits and windows
    plan      all of it, as one answer                     windows   when moves may begin: hours of the week, in their zone
    holds     owners who ask to wait                       climbing  finds limits by measuring
    notices   notifications, and what owners read          measuring reads from the journal how many bytes were sent
    newcomers servers that come to the scope later         replanning plans again what could not go
"""
