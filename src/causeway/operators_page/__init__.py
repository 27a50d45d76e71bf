"""The console: a page for operators. It shows cells, drains and operations as they change, and has buttons for them.

It is only a client of the API, with an administrator's credentials from clouds.yaml, and runs wherever these are. It listens on
loopback only. The URL that the command prints has a token which opens it once; from then on the browser has a cookie. Every
button is a form with a secret of the session. What can't be undone has to be confirmed.

Pages are made here (`templates`), and made again every other second while a browser shows them. Changed pages are sent as
server-sent events, and a small script replaces the parts that changed. Without the script, pages don't change by themselves.

Where to read what::

    app        routes: pages, events, forms       cloud      requests to the API
    sessions   who may use it                     pages      what a page is made of: the name of its template and its data
    events     pages as they change               drawing    lines and arrows of SVG pictures
"""
