"""The settings in the sidebar, and where they begin."""
