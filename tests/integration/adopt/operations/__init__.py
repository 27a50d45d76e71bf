"""Every operation of the API on servers that Nova made, whose guests run as Nova started them.

What ends a guest's run, or moves it, has a guest of its own. Each test says which operations it tries, and `test_all_are_tried`
compares them with the table of routes.
"""
