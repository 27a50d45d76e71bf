"""Operations under errors, crashes, hangs, power cuts and accidents: the matrix (`make faults`) and samples of it."""
