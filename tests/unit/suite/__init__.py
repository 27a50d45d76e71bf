"""How the functional suite runs: by URL, in lanes, with commands that share their imports."""
