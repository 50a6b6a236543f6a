"""The player: modules that draw a recording in a browser, and the data they get."""
