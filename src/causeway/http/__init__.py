"""What is between a port and the threads that answer requests, in all our servers.

A thread gets a request when its head and, if it is short, its body have arrived (`arrived`): however many connections send
theirs slowly or never, no thread waits for them. `server` does that for cheroot (`causeway up`, `causeway devcloud`, the disk
servers of hosts), `causeway.cli.api_worker` for gunicorn. A bounded number of threads reads long bodies, only as long as bytes
keep coming (`body`). `head` reads from a head how long the body is, and `strict` answers malformed requests with 400. `direct`
is for callers in the same process, which need no port.
"""
