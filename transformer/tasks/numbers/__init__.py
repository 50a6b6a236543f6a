"""Numbers in words and in digits: a corpus, and one file a language with its words and rules."""
