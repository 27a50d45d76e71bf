"""The metadata service: what a guest asks at 169.254.169.254 about itself.

- `app`: the WSGI application and its route table.
- `callers`: finds out which server asks. The network service's metadata agent names and signs it; a guest that asks directly
  is known by its address.
- `lookup`: reads a guest's data (`causeway.guest_data`) in the cell that the server's mapping names, and remembers it for some
  seconds.
- `password`: the one thing that a guest may write.

It reads the databases and, for guests that ask directly, the network service. It calls neither conductors nor computes.
"""
