"""The proxy of consoles: between a browser's WebSocket and the TCP port where a guest's console listens.

It has the API database, and through it those of the cells; it asks the conductor. A console is opened by a URL with a token,
which the API gave (``remote-consoles``). Whoever has the token has the console: it is written to no log.

- Who may: the token is known and has not expired; the page that opens the console is of the proxy, or of an allowed origin.
- Where: the host is asked again, through the conductor. A token opens nothing but the console that it was given for: not if
  another guest has its port by now, not if its own has another one.
- While a console is open its server is looked at every few seconds, all open ones together. One that has moved, or was deleted,
  ends with a WebSocket close whose reason says so (`causeway.model.console.Ending`), and how to get a new URL. One whose server
  can't be looked up stays open.

Where to read what::

    server     listens; a thread for each connection, bounded; the watch over what is open
    visit      one connection: a file of a page, or a console
    admission  may this console be opened, and where is it?
    relay      bytes to and fro; nobody is read from faster than the other side takes it
    pages      which files are served
"""
