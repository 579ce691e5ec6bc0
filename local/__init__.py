"""The service on one machine: the deployed functions themselves, an AWS emulator, and what stands in for the rest."""
