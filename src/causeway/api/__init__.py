"""The REST API (Compute API v2.1): how it is built, and how to add a resource.

``routes.py`` is the whole API as one table. A request passes `app.Entrance` (request ids, version documents), the token
check, version negotiation and the router; then `dispatch.Endpoint` picks the row by method, microversion and action,
validates query and body, and calls the row's handler.

To add a resource ``things``:

0. ``microversions.py`` says what each microversion changed; a new one has a line there.
1. ``schemas/things.py``: lists ``[(first_minor, last_minor_or_None, schema), ...]``, made of the parts in
   ``schemas/common.py`` (``body("thing", properties(["name"], name=NAME))``; ``query({"limit": many(LIMIT)}, strict=True)``).
   A version without a schema accepts anything. Unknown fields get a 400 (the legacy ``/v2`` ignores them).
2. ``views/things.py``: pure functions ``(request, model) -> dict``. ``request.version >= (2, 53)`` compares versions;
   ``views.common.links(request, "things", id)`` makes self and bookmark links; ``seconds`` and ``micros`` write times.
3. ``resources/things.py``: handlers; each reads policy -> objects -> one transaction -> view::

       @handler(body=schemas.CREATE, answer=answers.SHOW, statuses=(202,))    # query=schemas.LIST for query parameters
       def create(request: ApiRequest) -> Response:
           request.authorize("os_compute_api:things:create")   # or with a target: {"project_id": ..., "user_id": ...}
           name = request.body["thing"]["name"]                # validated and decoded; an action's body has its key
           thing = store.create(request.services.api, name)
           return Response(202, {"thing": views.show(request, thing)}, {"Location": request.self_url(f"/things/{id}")})

       @handler(answer=answers.SHOW)
       def show(request: ApiRequest, thing_id: str) -> Response: ...   # path parameters come by name

   Each rule is a line of `causeway.policy`; the rules of resources that Nova does not have begin with ``causeway:``.
   Errors of `causeway.errors` become Nova's bodies by their status. ``request.allows(rule, target)`` asks without
   raising. ``request.param("limit")`` is a query parameter's value, ``request.query`` has all of them as lists.
   Lists: ``paging.page`` (of a whole list) or ``paging.limit_of``, and ``paging.next_link``. Quota: ``quota.check_deltas``.
4. ``answers/things.py``: the answers as strict schemas, made of ``answers/parts.py`` (its docstring says how versions are
   marked): ``SHOW = shown_as("thing", record({"id": UUID, "tags": since(26, many(TEXT))}, maybe={"fault": TEXT}))``. Handlers
   name theirs: ``@handler(answer=answers.SHOW)``, ``EMPTY`` for an answer without a body, ``NEVER`` with ``statuses=()`` if they
   only refuse. All tests run with ``[api] response_validation = error``: an answer that differs becomes a 500.
5. ``routes.py``: one row each: ``_get("/things/{thing_id}", things.show, 1, 52)`` with first and last minor version; the
   same path and method may have several rows for different versions. Actions (``POST .../action``) are ``_action(path,
   "resize", things.resize)``: picked by the body's only key. Path parameters of one path must always have the same name
   (``/servers/{server_id}/...``). The rows of servers are in ``servers/routes.py``: a list ``ROUTES`` that is merged here.
   What was removed from the Compute API is in ``gone.py`` (410). What it has and this cloud does not is a line of
   ``unavailable.py`` (501), raised after all other checks: ``raise Unavailable.THINGS.refusal(f"thing {id}")``. A path that is
   not in the table is 404, and so is a known path with another method.
6. Tests: ``tests/functional/api/SUBJECT/test_things.py`` with the fixture ``api`` (`tests/functional/conftest.py`):
   ``api.get("/things", version="2.96")``, ``admin.post("/things", {...})`` -> ``answer.status``, ``answer.json``.
"""
