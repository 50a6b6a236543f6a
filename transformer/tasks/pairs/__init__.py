"""The user's own sentence pairs: from the bytes of a file to a corpus that can be learned."""
