"""A chatbot that remembers: this thread by a checkpointer, this user by a store."""
