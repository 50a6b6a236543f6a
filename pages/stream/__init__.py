"""The routes that the server has beside the pages."""
