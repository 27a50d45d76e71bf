"""Attacks, each with the promise of SECURITY.md that it must not break. A folder for each way in:

``images``     what tenants upload, and what is made of it
``credentials``  as whom services are called: for users, for accepted work, on hosts
``answers``    what a lying host answers the conductor
``hosts``      what a compromised compute host sends to others: definitions of guests, memory, offers, answers
``strangers``  ids that others may write: ports, attachments, allocations, image names
``requests``   what reaches the API, the operators' page and the command line
"""
