"""The settings in the sidebar, and their initial values."""
