"""The proxy of consoles: between a browser's WebSocket and the TCP port where a guest's console listens.

It uses the API database, through it those of the cells, and a conductor. A console is opened by a URL with a token from the API
(``remote-consoles``). Whoever has the token has the console, so it is not written to any log.

- Who may: the token is known and has not expired; the page that opens the console is the proxy's, or of an allowed origin.
- Where: the host is asked again, through a conductor. A token only opens the console that it was made for: not if another guest
  has its port by now, and not if its own guest has another port.
- While consoles are open, their servers are looked up every few seconds, all of them together. If a server has moved or was
  deleted, its console ends with a WebSocket close whose reason says so (`causeway.model.console.Ending`), and how to get a new
  URL. A console whose server can't be looked up stays open.

Where to read what::

    server     listens; a thread for each connection, bounded; watches the open consoles
    visit      one connection: a file of a page, or a console
    admission  whether a console may be opened, and where it is
    relay      passes bytes on in both directions; reads from no side faster than the other accepts it
    pages      which files are served
"""
