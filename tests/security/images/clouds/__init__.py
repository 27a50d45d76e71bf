"""Images from tenants in a whole cloud with simulated hosts: see the table of the folder above."""
