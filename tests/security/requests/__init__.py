"""What one request may do to others, and what a page, a command line or a path in a configuration gives away.

=========================================================================  ==================================
Promise                                                                    Test
=========================================================================  ==================================
A repeated query parameter is bounded on every route                        test_repeated_parameters
A failing query is its request's error: no cell is down, no list is empty   test_failing_queries
The operators' page refuses malformed forms, and another port's cookie      test_operators_page
Pages of consoles are framed only by sites that the operator lists          test_frames
A password that is posted in chunks is stored                               test_chunked_bodies
Passwords of cells need not be arguments of a command                       test_secrets_of_cells
Every path in the configuration is resolved, and exists                     `tests/unit/conf`
=========================================================================  ==================================
"""
