"""The console: a page for operators. It shows cells, drains and operations as they change, and has buttons for them.

It is a client of the API and nothing else, with an administrator's credentials of clouds.yaml: it runs wherever these are. It
listens on loopback only. The URL that the command prints has a token which opens it once; from then on the browser has a
cookie. Every button is a form with a secret of the session, and what can't be undone asks first.

Pages are made here (`templates`), and made again every other second while somebody looks: what is new is sent as a server-sent
event, and a small script puts the parts that changed in place. Without the script pages are as of when they were loaded.

Where to read what::

    app        routes: pages, events, forms       cloud      what is asked of the API
    doors      who may come in                    pages      what a page is made of: the name of its template and its data
    events     pages as they change               drawing    lines and arrows of SVG pictures
"""
