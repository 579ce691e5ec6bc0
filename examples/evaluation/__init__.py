"""Evaluation: talks, and what must be remembered of them. A case is a file of this folder, or of yours."""
