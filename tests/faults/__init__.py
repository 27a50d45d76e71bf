"""Operations under errors, crashes, hangs, power cuts and accidents: the matrices (`make faults`), and samples of them.

- `clouds`: clouds to break, in a process, in several, with real guests, or on a disk that loses what was not synced.
- `moves`: resize, confirm, revert and drains; `matrix` has the actions.
- `operations`: everything else that takes long on a server.
- `storm`: many users do everything at once while the cloud is killed.

`cases` are what the matrices run, `complaints` say what is wrong, `world` is everything that is there.
"""
