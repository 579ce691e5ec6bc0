"""The outside world behind the ports: AWS, OpenSearch, models, and their embedded counterparts."""
