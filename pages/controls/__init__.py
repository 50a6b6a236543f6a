"""What is pressed, chosen or typed on a page, and what is done for it."""
