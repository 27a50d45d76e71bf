"""Drains: a cell, some hosts or some servers are emptied: planned, paced, watched. This page is the manual.

A drain (`causeway.model.drains`) is planned first: for each server where it would go, how, how long that takes, or why it can't
go. The plan is kept with the drain, a row for each server, and nothing moves before the drain is started.

From then on conductors *look* at it every few seconds; one of them has its lease. A look compares what is wanted with what is
there, and does what is missing: hosts of the scope are closed to new servers; what became of moves that were asked for is
read from their journal; as many moves are asked for as limits and windows allow; what has arrived is confirmed when it is time.
Nothing is kept in memory between two looks, so it makes no difference which conductor looks, or how often.

Each move is an operation like any other: a resize, a cold migration, a live one. Before one is asked for, the drain's row of the
server gets the id of the request, of our choosing. So the next look finds in the journal whether it was asked for, whatever
happened in between; one that is not found was not, and is asked for again.

What users do with their servers meanwhile wins: one that was deleted or moved away is passed over; one that is being changed by
its user waits.

Where to read what::

    scope     which servers a drain is about               runner    one look at a drain
    targets   which hosts they may go to                   asking    asks for the move of one server, its confirm, its revert
    packing   who fits where, all of them together         following what became of what was asked for
    paths     how each goes, and what it costs             closing   source hosts are closed, and opened again
    schedule  when all is over, and what bounds it         pace      what may begin now: limits and windows
    plan      all of it, as one answer                     windows   when moves may begin: hours of the week, in their zone
    holds     owners who ask to wait                       climbing  limits that are found out, from what is measured
                                                           measuring what came through, from the journal
    notices   notifications, and what owners read of it
"""
