"""Stories: lists of beats, each a sentence and a state of the screen; talks and tours."""
