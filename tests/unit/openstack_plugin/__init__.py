"""`causeway.openstack_plugin`."""
