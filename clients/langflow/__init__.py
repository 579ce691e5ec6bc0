"""A component for Langflow. `memory_bank.py` stands alone: copy it, or point Langflow at this folder."""
