"""Documents of an account, as LangGraph's long-term memory has them: `store.Store` is the way in."""
