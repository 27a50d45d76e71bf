"""What a nova.conf means for Causeway, without a service or a hypervisor."""
