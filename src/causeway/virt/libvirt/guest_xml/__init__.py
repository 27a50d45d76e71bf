"""How guests are defined: their XML, and what follows from their records, their images and the options of the host."""
