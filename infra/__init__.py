"""The CDK application: one construct a file, put together by `stack`."""
