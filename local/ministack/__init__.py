"""The AWS emulator's installation and process."""
