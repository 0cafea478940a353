"""What runs cases: the protocol, the registry, and the backends that come with dmlconf."""
