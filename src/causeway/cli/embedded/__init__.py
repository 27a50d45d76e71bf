"""The commands of the distribution causeway-embedded: ``causeway up`` and ``causeway devcloud``."""
