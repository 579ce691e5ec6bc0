"""What the examples run on without a network: rules instead of a model, a service of their own."""
