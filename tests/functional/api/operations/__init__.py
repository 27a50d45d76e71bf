"""Operations and drains."""
