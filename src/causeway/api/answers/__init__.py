"""What answers look like: JSON schemas by microversion, a module for each family of resources, made of the parts in ``parts``.

They are strict: every key of an answer is in its schema, and keys that may be missing are marked. Handlers name theirs
(``@handler(answer=...)``); `dispatch` validates answers with them if ``[api] response_validation`` says so; `openapi` shows them.
"""
