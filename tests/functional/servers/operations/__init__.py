"""Operations are watched and cancelled, through the API and with the clients."""
