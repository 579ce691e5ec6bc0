"""Capture: the runs of flows and agents, kept until they are distilled, and when that is."""
