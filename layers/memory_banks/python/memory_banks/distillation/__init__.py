"""Distillation: turning captured messages into entries or documents."""
