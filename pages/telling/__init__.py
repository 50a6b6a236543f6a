"""Stories on a page: telling one, and writing one from what is on the screen."""
