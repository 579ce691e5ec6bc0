"""Programs that show what Memory Banks is used for. Each folder has a README."""
