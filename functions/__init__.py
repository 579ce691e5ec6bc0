"""The Lambda functions: a folder each, thin. They call the package and never each other."""
