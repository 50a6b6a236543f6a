"""The server's routes in addition to the pages."""
