"""What the server hands out beside the pages."""
