"""What stands between a port and a worker's thread, in every server of ours.

A thread gets a request when its head and, if it is short, its body have arrived (`arrived`): however many connections send
theirs slowly or never, no thread waits for them. `server` does that for cheroot (`causeway up`, `causeway devcloud`, the disk
servers of hosts); `causeway.cli.api_worker` for gunicorn. Long bodies are read by threads, a bounded number of them, and only as
long as bytes keep coming (`body`). `head` says what a head says of the body, and `strict` answers what is malformed with 400.
`direct` is for callers in the same process, which need no port.
"""
