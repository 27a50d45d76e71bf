"""Makes the documentation a site: ``python -m docs.site`` (``make docs``).

`stage` copies the Markdown pages to build/docs-source and adds what is made from the code: pictures of the recipes
(`recipes`), the reference of the API (`api`), plots of recorded figures (`plots`). `contents` reads the order of the pages from
docs/README.md. Sphinx (`conf`) then makes build/docs of it.
"""
