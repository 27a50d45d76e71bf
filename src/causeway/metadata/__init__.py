"""The metadata service: what a guest asks at 169.254.169.254 about itself.

- `app`: the WSGI application and its route table.
- `callers`: which server asks. Behind the network service's metadata agent the agent says and signs it; a guest that asks
  directly is known by its address.
- `lookup`: reads a guest's data (`causeway.guest_data`) in the cell where the server lives by its mapping, and remembers it
  for some seconds.
- `password`: the one thing that a guest may write.

It reads the databases and, for guests that ask directly, the network service; it calls no conductor and no compute.
"""
