"""Stories on a page: present a story, or write one from the state of the screen."""
