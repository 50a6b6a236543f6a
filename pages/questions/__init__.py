"""The tabs of the page Ask, with a file for each, and what they share."""
