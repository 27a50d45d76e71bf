"""Where a server may move: what is explained to its operators, groups, availability zones."""
