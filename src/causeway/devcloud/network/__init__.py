"""Network v2.0: networks, subnets and ports with their bindings, security groups, and more that clients need."""
