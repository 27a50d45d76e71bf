"""How long a guest that migrates is silent for others on its network, and for how long its hypervisors had it stand still."""
