"""The page Ask, a file for each tab."""
