"""Drains: move all servers away from cells or hosts, or move named servers, by a plan and at a limited pace.

This page is the manual.

A drain (`causeway.model.drains`) is planned first. For each server the plan says where it would go, how, and how long that
takes, or why it can't go. The plan is stored with the drain, in a row for each server. Nothing moves before the drain is
started.

Then conductors *look* at the drain every few seconds. One of them holds the drain's lease. A look compares the wanted state with
the present one, and does the next things: it closes the hosts of the scope to new servers, reads the state of requested moves
from the journal, requests as many moves as limits and windows allow, and confirms moves when it is time. Nothing is kept in
memory between two looks, so any conductor can look, at any time.

Each move is an operation like any other: a resize, a cold migration, a live migration. Before a look requests a move, it chooses
the request's id, and writes the id into the drain's row of the server. So the next look can find the request in the journal. If
it is not there, the look requests the move again.

Users have priority. The drain passes over a server that its user has deleted or moved; a server that its user is changing waits.

The modules::

    scope     the servers that a drain moves               runner     one look at a drain
    targets   the hosts to which they may go               movable    whether a server can be moved now
    packing   finds hosts for all servers together         asking     requests the move of one server
    paths     how each server goes, and the cost           following  reads the state of requested moves
    schedule  estimates the end, and what delays it        concluding requests confirms and reverts, cancels operations
    plan      all of these, as one answer                  closing    closes source hosts, and opens them again
    holds     owners who ask to wait                       pace       the moves that can begin now: limits and order
    notices   notifications, and notes for owners          windows    when moves may begin: hours of the week, in their zone
    newcomers servers that come to the scope later         climbing   finds limits by measuring
    replanning plans servers again that could not go       measuring  reads from the journal how many bytes were sent
"""
