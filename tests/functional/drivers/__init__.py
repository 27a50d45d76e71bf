"""A cloud whose hosts have a driver with only what is required of one."""
