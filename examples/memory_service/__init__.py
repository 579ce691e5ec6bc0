"""A chatbot whose memory forms in the background: it hands in its turns, and the memory service does the rest."""
